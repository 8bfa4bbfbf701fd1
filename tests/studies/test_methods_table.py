"""The page of methods: methods that depend on the scale have both, and a run is bounded, resumable and paired."""

import numpy as np
import pytest

import handful_fewshot as fewshot
import methods_table as study
from handful_fewshot.methods.method import FOUND_TRANSFORM
from tests.banks_at_hand import random_bank
from tests.tasks_at_hand import random_task

SHORT = {"max_iter": 3, "max_bounds": 5, "training_steps": 5, "max_sweeps": 50}


def moved(name: str) -> float:
    """The most that a probability moves if all features are multiplied by four."""
    task = fewshot.transform("l2", random_task(3, n_tasks=2))
    known = set(fewshot.METHODS[name].options.__dataclass_fields__)
    options = {option: value for option, value in SHORT.items() if option in known}
    a, b = (
        fewshot.solve(name, task.with_features(factor * task.support, factor * task.query), **options)
        for factor in (1.0, 4.0)
    )
    return (a.log_assignments.exp() - b.log_assignments.exp()).abs().max().item()


@pytest.mark.parametrize("name", sorted({row.method for row in study.ROWS} & fewshot.METHODS.own))
def test_methods_that_depend_on_the_scale_stand_at_both(name):
    scales = {row.transform for row in study.ROWS if row.method == name and row.note in ("", study.STORED)}
    assert (moved(name) < 1e-4) == (name in study.NEED_NO_SCALE)
    assert (len(scales) == 2 and FOUND_TRANSFORM in scales) == (name not in study.NEED_NO_SCALE)


def test_no_row_is_there_twice():
    assert len({row.title for row in study.ROWS}) == len(study.ROWS)


@pytest.fixture
def bank(tmp_path):
    random_bank(n_classes=6, least=30, most=30).save(tmp_path / "toy")
    return tmp_path / "toy"


def test_a_run_is_resumed_where_more_is_wanted_and_tasks_are_paired(bank, tmp_path, monkeypatch, capsys):
    results = tmp_path / "cells.json"
    methods = ("paddle", "prior_em")
    monkeypatch.setattr(study, "TASKS_AT_SPEED", {np.inf: 4})
    study.run([bank], methods, 5.0, results)
    first = study.load(results)
    assert [(cell["method"], cell["transform"]) for cell in first] == [
        (method, transform)
        for method in ("prior_em", "paddle")
        for transform in ("range_scale_public_code", "found_scale")
    ]
    assert all(cell["n_tasks"] == 4 and len(cell["right"].split()) == 4 for cell in first)
    study.run([bank], methods, 5.0, results)
    assert study.load(results) == first
    monkeypatch.setattr(study, "TASKS_AT_SPEED", {np.inf: 31})
    study.run([bank], methods, 5.0, results)
    cells = study.load(results)
    assert all(
        cell["n_tasks"] == 31 and cell["right"].split()[:4] == old["right"].split()
        for cell, old in zip(cells, first, strict=True)
    )
    a, b = (study.Row(name, {}, "found_scale") for name in ("prior_em", "paddle"))
    gain = study.paired(cells, "toy", a, b)
    means = {(cell["method"], cell["transform"]): cell["accuracy"] for cell in cells}
    assert gain.n == 31
    assert gain.mean == pytest.approx(100 * (means["prior_em", "found_scale"] - means["paddle", "found_scale"]))
    said = study.at_one_scale(cells)
    assert "`prior_em (found scale)` minus `paddle (found scale)` on the same tasks, in points: " in said
    assert "The found scale is ahead of the other in 2 of 2 pairs of a method and a data set" in said
    page = study.page(cells).text()
    assert said in page
    for name in ("paddle (published scale)", "paddle (found scale)", "prior_em (found scale)"):
        assert f"| {name}† |" not in page.partition("![")[2]
        assert f"| {name} |" in page


def test_a_budget_bounds_the_whole_run(bank, tmp_path, capsys):
    study.run([bank], ("paddle",), 5.0, tmp_path / "cells.json", cpu_minutes=1e-9)
    assert "CPU minutes are used up; 2 cells are left" in capsys.readouterr().out
    assert study.load(tmp_path / "cells.json") == []


def test_tasks_are_fewer_where_they_take_longer():
    assert [study.wanted_tasks(seconds) for seconds in (0.001, 0.019, 0.02, 0.19, 0.2, 60)] == [
        1000,
        1000,
        200,
        200,
        20,
        20,
    ]
