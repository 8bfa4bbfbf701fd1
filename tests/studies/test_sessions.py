"""The study of sessions: a person who answers over HTTP, what is asked for, and the page."""

from pathlib import Path

import numpy as np
import pytest

import sessions


@pytest.fixture
def made_up(monkeypatch):
    """A bank of 20 classes with 30 rows each."""
    rng = np.random.default_rng(0)
    labels = np.arange(20).repeat(30)
    features = rng.normal(size=(20, 12))[labels] + 0.6 * rng.normal(size=(600, 12))
    monkeypatch.setattr(sessions, "bank", lambda folder: (features.astype(np.float32), labels))
    monkeypatch.setattr(sessions, "orders", lambda folder, number: list(np.arange(600).reshape(20, 30)))


def test_questions_need_fewer_answers_than_reading_one_by_one(made_up):
    needed = {
        rule: sessions.answers_needed(sessions.Drawn(Path("made-up"), 0, 40, 3, 12, 1, 1), rule)
        for rule in ("again", "one by one")
    }
    assert needed["again"][0] <= needed["again"][1] <= needed["one by one"][1]
    assert needed["again"][0] > 0


def answers(again, by_one):
    rules = {rule: [[5, 10]] for rule in sessions.RULES} | {"again": [[2, again]], "one by one": [[30, by_one]]}
    return {"shots": 1, "lacking": 0, "before": 60.0, "needed": rules}


def found(again=10, covered=9, grows=0.9):
    audit = {
        n: {"covered": [1] * covered + [0] * (10 - covered), "half_width": 0.1, "audits": 6.0} for n in ("12", "24")
    }
    batches = {"repeat": 0, "grows": [0.6] * 19 + [grows], "fixed": [0.6] * 20}
    return {"a-b": {"answers": [answers(again, 50)], "audit": [audit], "batches": [batches]}}


@pytest.mark.parametrize(
    ("changes", "reached"),
    [
        ({}, [True] * 3),
        ({"again": 20}, [False, True, True]),
        ({"covered": 8}, [True, False, True]),
        ({"grows": 0.7}, [True, True, False]),
    ],
)
def test_what_is_reached_is_said(changes, reached):
    assert [ok for _, _, ok in sessions.requirements(found(**changes))] == reached


def test_the_page_says_what_was_found(monkeypatch):
    monkeypatch.setattr(sessions, "kept", lambda folder, names: found())
    page = sessions.page()
    assert "| 1 | 0 | 60.0 | 2/10 | 5/10 | 5/10 | 5/10 | 30/50 |" in page.text()
    assert "60, 60, 60, 90 % with what was confirmed, 60, 60, 60, 60 %" in page.text()
    assert "3 of 3 requirements were met" in page.text()
