"""The study of the paper's methods on banks: bounded by CPU time, and continued by the same command."""

from dataclasses import replace

import pytest

import banks_study as study
from handful_fewshot.benchmark.journal import Journal
from handful_fewshot.benchmark.plan import Cell, bound_plan
from tests.plans_at_hand import SPEC, small_banks


@pytest.fixture
def plan():
    methods = ("nearest_prototype", "paddle", "soft_kmeans", "prior_em")
    return bound_plan([Cell("toy", SPEC, method, n_tasks=20) for method in methods], small_banks())


def test_a_run_that_is_cut_short_continues(plan, tmp_path, capsys):
    banks = small_banks()
    journal = study.run(tmp_path / "run", plan, banks, seconds=0.0)
    assert "CPU minutes are used up; the same command continues" in capsys.readouterr().out
    assert 0 < journal.table().num_rows < 80
    study.run(tmp_path / "run", plan, banks)
    assert Journal(tmp_path / "run").table().num_rows == 80


def test_slow_methods_share_what_a_stage_has(plan):
    slow = tuple(replace(cell, cpu_budget=10.0) for cell in plan[:2])
    found = study.within((*slow, *plan[2:]), 8.0)
    assert [cell.cpu_budget for cell in found] == [4.0, 4.0, None, None]
    assert [cell.cpu_budget for cell in study.within(slow, 100.0)] == [10.0, 10.0]
    assert [cell.content_hash for cell in found] == [cell.content_hash for cell in plan]
