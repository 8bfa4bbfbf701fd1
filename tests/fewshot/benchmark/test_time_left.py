import pytest

from handful.fewshot.benchmark.completion import CellProgress
from handful.fewshot.benchmark.plan import Cell
from handful.fewshot.benchmark.time_left import TimeLeft, time_left
from tests.plans_at_hand import SPEC


def state(method, done, wanted, seconds, *, failed=0, budget=None):
    cell = Cell("toy", SPEC, method, n_tasks=wanted, cpu_budget=budget)
    return CellProgress(cell, done, failed, wanted, seconds)


def test_each_cell_is_judged_by_its_own_tasks():
    quick, slow = state("paddle", 900, 1000, 0.9), state("tim", 10, 1000, 20.0)
    assert time_left([quick]) == TimeLeft(pytest.approx(0.1), 0)
    assert time_left([slow]) == TimeLeft(pytest.approx(1980.0), 0)
    assert time_left([quick, slow]) == TimeLeft(pytest.approx(1980.1), 0)
    # One mean over all tasks that are done, 20.9 s / 910, would make it 25 s.


def test_a_cell_that_has_not_begun_is_judged_by_others_of_its_method_or_counted():
    begun, later, unknown = state("paddle", 10, 10, 5.0), state("paddle", 0, 10, 0.0), state("tim", 0, 10, 0.0)
    assert time_left([begun, later]) == TimeLeft(5.0, 0)
    assert time_left([begun, later, unknown]) == TimeLeft(5.0, 1)
    assert time_left([unknown]) == TimeLeft(0.0, 1)


def test_a_budget_bounds_what_is_left_and_failures_have_no_time():
    assert time_left([state("tim", 10, 1000, 20.0, budget=50.0)]) == TimeLeft(30.0, 0)
    assert time_left([state("tim", 10, 1000, 60.0, budget=50.0)]) == TimeLeft(0.0, 0)
    assert time_left([state("tim", 10, 20, 10.0, failed=5)]) == TimeLeft(20.0, 0)
    assert time_left([state("tim", 10, 20, 0.0, failed=10)]) == TimeLeft(0.0, 1)
    assert time_left([state("tim", 20, 20, 10.0)]) == TimeLeft(0.0, 0)
