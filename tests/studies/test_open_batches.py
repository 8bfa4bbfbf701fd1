"""The study of open batches: how batches are drawn, what is measured, and what the page makes of it."""

from functools import partial
from types import SimpleNamespace

import numpy as np
import pytest

import open_batches as study
import open_batches_data as data
import open_batches_page as page
from pages import keep


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Data of every kind: 24 separate classes of which rows are split, changed, asked, or of another laboratory."""
    rng = np.random.default_rng(0)
    labels = np.arange(24).repeat(30)
    points = (rng.normal(size=(24, 12))[labels] + 0.35 * rng.normal(size=(720, 12))).astype(np.float32)
    first = np.arange(720) % 30 < 6
    files = {
        "bank/features": points,
        "bank/labels": labels,
        "bank/original_split": np.where(first, 0, 2),
        "strange/features": rng.normal(size=(90, 12)).astype(np.float32),
        "changed/rows": np.arange(720),
        "changed/louder": points + 1,
        "asked/features": points,
        "asked/labels": labels,
        "asked/original_split": (first & (labels < 20)).astype(np.int64),
        "lung-two-atlases/reference": points[first & (labels < 20)],
        "lung-two-atlases/reference_labels": labels[first & (labels < 20)],
        "lung-two-atlases/query": points[~first],
        "lung-two-atlases/query_labels": labels[~first],
        "lung-two-atlases/query_batches": np.arange((~first).sum()) % 4,
    }
    made = tmp_path_factory.mktemp("data")
    for name, values in files.items():
        (made / name).parent.mkdir(exist_ok=True)
        np.save(made / f"{name}.npy", values)
    return made


MAKERS = {
    "removed": partial(data.bank, folder="bank", shots=5),
    "split": partial(data.bank, folder="bank", shots=5, split=True),
    "strangers": partial(data.strangers, folder="bank", others="strange", shots=5),
    "shifted": partial(data.shifted, folder="bank", changed="changed", kinds=("louder",), shots=5),
    "requests": partial(data.requests, folder="asked"),
    "cells": partial(data.cells, batches=(0, 1), most=3),
}


@pytest.mark.parametrize("kind", MAKERS)
@pytest.mark.parametrize("share", [0.0, 0.3, 0.7])
def test_batches_have_the_share_asked_for_and_no_example(folder, kind, share):
    made = MAKERS[kind](folder, "made-up", 1)
    pool = made.pools[0]
    rows = data.drawn(pool, share, np.random.default_rng(2))
    assert len(set(rows)) == len(rows) > 25
    unknown = ~np.isin(pool.truth[rows], made.labels)
    assert unknown.mean() == pytest.approx(share, abs=0.02)
    assert not {row.tobytes() for row in made.examples} & {row.tobytes() for row in pool.points[rows]}
    if pool.how == "few":
        assert len(rows) == data.SIZE
        assert data.FEWEST <= len(set(pool.truth[rows][~unknown])) <= data.MOST
        assert len(set(pool.truth[rows][unknown])) <= data.THERE


def test_a_class_that_is_too_small_is_made_up_for_by_the_others():
    small = [np.arange(start, start + 12) for start in range(0, 96, 12)]
    pool = data.Pool(np.zeros((96, 1)), np.zeros(96), small, small)
    assert len(data.drawn(pool, 0.0, np.random.default_rng(0))) in (60, 72, 75)  # 5, 6 or more classes of 12


def test_whole_classes_are_drawn_one_after_another():
    whole = [np.arange(start, start + 4) for start in range(0, 400, 4)]
    pool = data.Pool(np.zeros((400, 1)), np.arange(400) // 4, whole, whole, "whole")
    rows = data.drawn(pool, 0.0, np.random.default_rng(0))
    assert sorted(np.bincount(pool.truth[rows])[np.unique(pool.truth[rows])])[:2] == [3, 4]


def test_groups_have_no_data_in_common():
    assert not set(data.GROUPS["tuning"]) & set(data.GROUPS["confirmation"])


def test_the_ceiling_rejects_no_more_known_items_than_allowed():
    scores, known = np.array([0.1] * 18 + [0.5, 0.9, 0.4, 0.5, 0.7, 0.95]), np.arange(24) < 20
    assert study.above(scores, known, 0.0) == 25  # above 0.9
    assert study.above(scores, known, 0.05) == 50  # above 0.5
    assert study.above(scores, known, 0.1) == 100


def test_a_class_is_found_by_a_pure_group_with_half_of_its_items():
    truth = np.array([7] * 6 + [8] * 4 + [1] * 4 + [data.NO_CLASS] * 8)
    known = truth == 1

    def found(*groups):
        return study.groups_found(truth, known, [SimpleNamespace(items=np.array(group)) for group in groups])

    assert found([10, 11, 12], [0, 1, 2]) == (1, 1)  # four items of class 8 are too few, and -1 is no class
    assert found([0, 1, 2, 6]) == found([0, 1]) == found() == (0, 1)


@pytest.fixture(scope="module")
def measured(folder):
    """Four batches of a cell with two catalogues."""
    cell = data.Cell(MAKERS["removed"], catalogues=2)
    parts = [study.PARTS[name] for name in ("0", "0.3", "answers 0.3")]
    return study.measured_cell(folder, "made-up", cell, parts, 4)


def test_a_cell_is_measured(measured):
    assert [row["batch"] for row in measured["0.3"]["rows"]] == [0, 1, 2, 3]
    assert [row["catalogue"] for row in measured["0.3"]["rows"]] == [0, 1, 0, 1]
    assert "ceiling5" not in measured["0"]
    assert {row["share"] for row in measured["0"]["rows"]} == {0}
    found = page.summary(measured["0.3"])
    assert found["share"] == pytest.approx(100 * 22 / 75, abs=0.01)
    assert found["joint"] > 90
    assert found["auroc"] > 80
    assert found["ceiling10"] >= found["ceiling5"] >= 0
    assert found["gain"][0] == pytest.approx(found["joint"] - found["alone"])
    assert [row["share"] for row in measured["answers 0.3"]["rows"]] == [
        row["share"] for row in measured["0.3"]["rows"]
    ]


def test_a_person_answers_with_a_class_or_none(folder):
    made = MAKERS["removed"](folder, "made-up", 0)
    rows = data.drawn(made.pools[0], 0.7, np.random.default_rng(0))
    truth = made.pools[0].truth[rows]
    model = study.BatchClassifier().fit(made.examples, made.labels)
    given = study.answered(model, made.pools[0].points[rows], truth)
    assert len(given) == study.ANSWERS
    assert None in given.values()
    for item, label in given.items():
        assert label == (truth[item] if truth[item] in made.labels else None)


def test_the_page_shows_the_confirmation_group_once_it_was_run(measured, tmp_path, monkeypatch):
    monkeypatch.setattr(page, "RESULTS", tmp_path)
    measured = measured | {"0.7": measured["0.3"]}
    of = {"seconds": 60.0, "parts": measured}
    keep(tmp_path / "tuning.json", {"group": "tuning", "cells": {"clinc150-5": of}})
    assert "sealed" in page.page().limits
    assert "| clinc150-5 |" in page.page().table
    keep(tmp_path / "confirmation.json", {"group": "confirmation", "cells": {"clips": of}})
    shown = page.page()
    assert "sealed" not in shown.limits
    assert "| clips |" in shown.table
    assert len(shown.rows) == 8
