import itertools
import time

import pytest

from handful.large.progress import Reporter


@pytest.fixture
def clock(monkeypatch):
    ticks = itertools.count()
    monkeypatch.setattr(time, "monotonic", lambda: float(next(ticks)))


def test_time_left_of_a_pass_is_what_its_shards_took(clock):
    reports = []
    reporter = Reporter(reports.append)  # at 0
    reporter.shard("compare", 0, 1, 4, began=0.0)  # at 1
    assert reports[0].seconds_left == 3.0
    assert (reports[0].done, reports[0].total, reports[0].stage) == (1, 4, "compare")


def test_time_left_of_a_loop_follows_from_how_its_change_shrinks(clock):
    reports = []
    reporter = Reporter(reports.append)
    for iteration, change in enumerate((1.0, 0.1, 0.01)):
        reporter.iterated("iterate", iteration, change, tol=1e-5, most_left=100)
    assert reports[0].seconds_left is None
    # Two clock readings an iteration; a tenth each time, three more to go.
    assert reports[2].seconds_left == pytest.approx(3 * 2.0)
    reporter.iterated("iterate", 3, 1e-6, tol=1e-5, most_left=100)
    assert reports[3].seconds_left == 0.0


def test_without_convergence_the_limit_counts(clock):
    reports = []
    reporter = Reporter(reports.append)
    for iteration, change in enumerate((1.0, 1.0)):
        reporter.iterated("iterate", iteration, change, tol=1e-5, most_left=7)
    assert reports[1].seconds_left == pytest.approx(7 * 2.0)
    reporter.began_again()
    reporter.iterated("iterate", 2, 1.0, tol=1e-5, most_left=7)
    assert reports[2].seconds_left is None


def test_nobody_needs_to_listen():
    Reporter(None).shard("compare", 0, 1, 1, began=0.0)
