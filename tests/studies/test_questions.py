"""The study of questions: what is drawn, what is asked for, and the page."""

import json
from pathlib import Path

import numpy as np
import pytest

import questions
from pages import keep


def row(cell=(1, 75, 5, 0), asked=95.0, least=90.0, random=92.0, noise=1.0):
    """Make a cell of 20 batches whose differences vary a little."""
    rng = np.random.default_rng(0)

    def of(mean):
        return [[mean + noise * float(rng.normal()), mean - 1] for _ in range(20)]

    return {
        "cell": list(cell),
        "before": 80.0,
        "right": {"random": of(random), "least certain": of(least), "asked": of(asked)},
        "wrong": {"random": 2.0, "least certain": 6.0, "asked": 4.0},
        "seconds": 1.0,
    }


def test_the_difference_is_paired_and_has_an_interval():
    one = questions.ahead([row()], "least certain", 0)
    assert one.mean == pytest.approx(5, abs=0.6)
    assert 0.2 < one.half_width < 1
    assert questions.ahead([row()], "random", 1).mean == pytest.approx(3)


@pytest.mark.parametrize(
    ("rows", "reached"),
    [([row()], [True, True]), ([row(random=95.0)], [True, False]), ([row(least=94.9, noise=5.0)], [False, True])],
)
def test_what_is_reached_is_said(rows, reached):
    assert [ok for _, _, ok in questions.requirements({"a-b": rows})] == reached


@pytest.fixture
def made_up(monkeypatch):
    """A bank of 30 classes with 20 rows each."""
    rng = np.random.default_rng(0)
    labels = np.arange(30).repeat(20)
    features = rng.normal(size=(30, 16))[labels] + 0.8 * rng.normal(size=(600, 16))
    features /= np.linalg.norm(features, axis=1, keepdims=True)
    monkeypatch.setattr(questions, "bank", lambda folder: (features, labels))
    monkeypatch.setattr(questions, "orders", lambda folder, number: list(np.arange(600).reshape(30, 20)))
    return labels


def test_tasks_have_few_classes_and_some_that_the_catalogue_lacks(made_up):
    task = questions.Task(Path("made-up"), (2, 40, 5, 2), 0)
    assert len(set(task.truth) - set(task.names)) == 2
    assert len(set(task.truth)) <= 5
    assert np.unique(task.names, return_counts=True)[1].tolist() == [2] * 28
    labels, chosen = task.chosen()
    assert len(labels) == len(task.truth)
    for items in chosen.values():
        assert len(set(items.tolist())) == questions.ANSWERS
        again = task.labelled_with(items)
        assert (again[items] == task.truth[items]).all()


def test_a_cell_is_measured(made_up):
    found = questions.measured_cell(Path("made-up"), (1, 30, 3, 0), tasks=2)
    assert [len(of) for of in found["right"].values()] == [2, 2, 2]
    assert json.loads(json.dumps(found)) == found


def test_results_are_kept_and_shown(tmp_path, monkeypatch):
    monkeypatch.setattr(questions, "RESULTS", tmp_path)
    rows = [row(), row((2, 150, 10, 2))]
    keep(tmp_path / "confirmation" / "hwu64-minilm.json", {"cells": rows})
    shown = questions.page()
    assert "| 2 | 150 | 10 | 2 | 80.0 |" in shown.table
    assert shown.more["requirements"][0]["requirement"] == "hwu64: ahead of ten least certain by an interval"
    assert len(shown.rows) == 2
