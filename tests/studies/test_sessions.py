"""The study of sessions: a person who answers what the session asks, what is asked for, and the page."""

from pathlib import Path

import numpy as np
import pytest

import sessions

CLOSED, ONE_EXAMPLE = sessions.CELLS[:2]


@pytest.fixture
def made_up(monkeypatch):
    """A bank of 20 classes with 30 rows each."""
    rng = np.random.default_rng(0)
    labels = np.arange(20).repeat(30)
    features = rng.normal(size=(20, 12))[labels] + 0.6 * rng.normal(size=(600, 12))
    monkeypatch.setattr(sessions, "read", lambda folder: (features.astype(np.float32), labels))
    sessions.drawn.cache_clear()
    yield
    sessions.drawn.cache_clear()


@pytest.mark.parametrize("cell", [ONE_EXAMPLE, sessions.CELLS[3]])
def test_a_careful_person_sees_everything_and_leaves_nothing_wrong(made_up, cell):
    row = sessions.measured_session(Path("made-up"), 0, cell)
    assert row["stop"] <= row["all"] < sessions.ITEMS / 2
    assert row["left"] == 0
    assert row["questions"] + row["sheets"] + row["exceptions"] == row["all"]


def test_a_hasty_person_leaves_mistakes(made_up, monkeypatch):
    monkeypatch.setattr(sessions, "ERRS", 1.0)
    row = sessions.measured_session(Path("made-up"), 0, ONE_EXAMPLE._replace(person="hasty"))
    assert row["left"] > 0


def test_batches_of_one_catalogue_are_measured_in_a_row(made_up, monkeypatch):
    monkeypatch.setattr(sessions, "BATCHES", 2)
    found = sessions.measured_batches(Path("made-up"), 0)
    assert len(found["answers"]) == len(found["wrong"]) == 2


def half(cell, stop, n_all, wrong):
    columns = {"first": [8], "stop": [stop], "said": [True], "wrong": [wrong], "seen": [40]}
    told = {"left_first": [-2], "left_middle": [1], "left_rises": [0.1]}
    ends = {"all": [n_all], "left": [0], "questions": [3], "sheets": [6], "exceptions": [1]}
    return {**cell._asdict(), **columns, **told, **ends}


def found(stop=10, n_all=8, wrong=1, last=4):
    halves = {f"sessions {n}": [half(CLOSED, stop, n_all, wrong)] for n in (1, 2)}
    return {sessions.CALTECH: {**halves, "batches": [{"repeat": 0, "answers": [8] * 19 + [last], "wrong": [0] * 20}]}}


def test_the_page_says_what_was_found(monkeypatch):
    monkeypatch.setattr(sessions, "kept", lambda folder, names: found())
    text = sessions.page().text()
    assert "| 5 examples | 10 | 10 | 1.2 | 0.0 | 8 |" in text
    assert "after 8, 8, 8, 4 answers" in text
    assert "is off by 2.0 at first and by 1.0 halfway, on average, and rises after 10% of the answers" in text
    assert "1 of 42 settings were run, with 2 of 16 sessions each." in text
