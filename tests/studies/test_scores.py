"""The study of scores: what is asked for, points against thresholds, and the page."""

import numpy as np
import pytest

import scores


def row(**more):
    """Make a cell in which everything is reached."""
    kinds = {kind: {"accuracy": 90.0, "ahead": [5.0, 1.0]} for kind in (*scores.KINDS, scores.CONTROL)}
    return {"present": 2, "tasks": 200, "own": 85.0, "own_rest": 85.0, **kinds, **more}


def test_a_point_is_compared_with_all_thresholds():
    truth = np.array([[True, True, False, False]])
    values = np.array([[0.9, 0.2, 0.5, 0.1]])
    found = scores.point(np.array([[True, True, False, False]]), truth, values)
    assert (found["recall"], found["precision"]) == (100, 100)
    assert found["threshold_precision"] == pytest.approx(200 / 3)
    assert found["threshold_f1"] == pytest.approx(80)


def test_a_cell_has_no_more_items_than_its_smallest_classes():
    labels = np.arange(30).repeat(10)
    logits = np.random.default_rng(0).normal(size=(300, 30))
    assert [scores.cell((logits, logits, labels), n, 2)["items"] for n in (2, 0)] == [20, 75]


def test_a_cell_measures_every_kind():
    rng = np.random.default_rng(0)
    labels = np.arange(30).repeat(40)
    logits = rng.normal(size=(1200, 30))
    logits[np.arange(1200), labels] += 2.5
    found = scores.cell((logits, logits, labels), 3, 5)
    assert {*scores.KINDS, scores.CONTROL} <= set(found)
    assert found["logits"]["ahead"][0] > 5
    assert found["times 5"]["accuracy"] == found["logits"]["accuracy"]


def test_the_page_is_made_from_what_was_kept(tmp_path, monkeypatch):
    monkeypatch.setattr(scores, "RESULTS", tmp_path)
    one = dict.fromkeys(("recall", "precision", "threshold_precision", "f1", "threshold_f1"), 50.0)
    mixed = {"batches": 4, **{str(n): {"classes": one, "items": one} for n in (*scores.MIXED_PRESENT, 0)}}
    scores.keep(tmp_path / "confirmation" / "hwu64-minilm.json", [row()])
    scores.keep(tmp_path / "confirmation" / "mixtures.json", mixed)
    page = scores.page()
    assert "| 2 | 85.0 | +5.0 |" in page.table
    assert "50% of the classes were found with a precision of 50%" in page.shows
    assert "confirmation,all,items,50.0" in page.tables()["scores_mixtures.csv"]
