"""The study of names under StatA's protocol: what is drawn, what is compared, and the page."""

import json

import numpy as np
import pytest
import torch

import stata_protocol as study
from handful import FeatureBank
from tests.banks_at_hand import random_bank


def setting(name):
    return next(one for one in study.SETTINGS if one.name == name)


@pytest.mark.parametrize(
    ("name", "sizes", "rule"),
    [
        ("1–4", [150] * 150, study.RangeOverPool(4, 1)),
        ("5–25", [150] * 150, study.RangeOverPool(25, 5)),
        ("5–25 of 1,000", [150] * 150, study.RangeOverPool(25, 7)),  # five classes have 750 rows, seven have 1,050
        ("5–25 of 1,000", [100, 300, 300] * 20, study.RangeOverPool(25, 10)),  # the smallest ones may be drawn together
        ("50–100 of 1,000", [150] * 77, study.RangeOverPool(77, 50)),
        ("all of 1,000", [150] * 77, study.RangeOverPool(77, 77)),
    ],
)
def test_a_range_is_cut_to_what_the_bank_has(name, sizes, rule):
    labels = np.repeat(np.arange(len(sizes)), sizes)
    assert setting(name).rule(labels) == rule


def test_a_number_of_classes_is_drawn_for_each_task():
    labels = np.repeat(np.arange(8), 60)
    drawn = study.Setting("2–5", 60, 2, 5).draw(labels, 0, range(400))
    counts = np.bincount([len(set(task)) for task in drawn.query_labels.tolist()])
    assert counts[:2].sum() == counts[6:].sum() == 0
    assert counts[2:].min() > 60


@pytest.mark.parametrize(("concentration", "least", "most"), [(0.01, 1, 3), (100.0, 3, 6)])
def test_items_arrive_once_and_class_after_class(concentration, least, most):
    labels = np.random.default_rng(0).permutation(np.repeat(np.arange(6), 50))
    rows = study.arrivals(labels, concentration, 20, 0, range(30))
    for of_round in (rows[:15], rows[15:]):  # 300 rows are fifteen batches; then another order begins
        assert sorted(of_round.ravel()) == list(range(300))
    assert not (rows[:15] == rows[15:]).all()
    classes = np.mean([len(set(labels[batch])) for batch in rows])
    assert least < classes <= most
    np.testing.assert_array_equal(study.arrivals(labels, concentration, 20, 0, [17])[0], rows[17])


def named(n_classes=6):
    items = random_bank(n_classes=n_classes, least=30, most=40)
    rows = [int(np.flatnonzero(items.labels == k)[0]) for k in range(n_classes)]
    names = FeatureBank.from_arrays(items.features[rows], np.arange(n_classes), items.class_names)
    return study.Named(items, names)


def test_right_labels_are_counted_task_by_task():
    bank, range_of_two = named(), study.Setting("1–2", 20, 1, 2)
    truths = []

    def constant(task):
        truths.append(task.n_tasks)
        return torch.zeros(task.n_tasks, 20, dtype=torch.int64)

    together = bank.right(range_of_two, constant, 0, range(25))
    assert truths == [10, 10, 5]
    assert bank.right(range_of_two, constant, 0, [24]) == together[24:]
    assert 0 < sum(together) < 25 * 20
    assert set(together) & set(range(1, 21))


def test_every_contestant_labels_every_query():
    bank, small = named(), study.Setting("1–4", 10, 1, 4)
    for one in study.contestants({"em_dirichlet": 5.0, "transclip": 5.0, "stata": 5.0}):
        (right,) = bank.right(small, one.solve, 0, [0])
        assert 0 <= right <= 10, one.label


def test_rivals_run_as_published_and_tuned():
    labels = [one.label for one in study.contestants({"stata": 15.0})]
    assert labels[0] == study.NAMES_ALONE
    assert {"stata, published", "stata, tuned", "transclip, published"} <= set(labels)
    assert "transclip, tuned" not in labels
    assert len(labels) == len(set(labels))


def test_slow_methods_solve_some_of_the_same_tasks():
    quick, slow = (study.addresses(study.SETTINGS[0], slow=slow) for slow in (False, True))
    assert len(quick) == 60
    assert len(slow) == 12
    assert set(slow) < set(quick)


def test_differences_are_over_the_tasks_that_both_have():
    one = {"tasks": [0, 5, 10], "right": [40, 50, 60]}
    other = {"tasks": list(range(11)), "right": [30] + [0] * 4 + [41] + [0] * 4 + [48]}
    found = study.difference(one, other, 100)
    assert found.n == 3
    assert found.mean == pytest.approx((10 + 9 + 12) / 3)


def test_losses_are_listed():
    base = {"tasks": [0, 1, 2], "right": [40, 41, 40]}
    worse = {"tasks": [0, 1, 2], "right": [30, 31, 30]}
    unsure = {"tasks": [0], "right": [1]}  # one task has no interval
    kept = {"1–4": {study.NAMES_ALONE: base, "a": worse, "b": unsure}, "2–10": {study.NAMES_ALONE: base, "b": base}}
    assert [study.below({"made": kept}, label) for label in ("a", "b")] == [1, 0]


@pytest.fixture
def results(tmp_path, monkeypatch):
    kept = {
        one.name: {
            study.NAMES_ALONE: {"tasks": [0, 1], "right": [32, 40], "seconds": 0.001},
            "from_names": {"tasks": [0, 1], "right": [36, 42], "seconds": 0.02},
        }
        for one in study.SETTINGS
    }
    study.keep(tmp_path / "hwu64-minilm.json", kept)
    (tmp_path / "tuned.json").write_text(json.dumps({"stata": {"chosen": 15.0, "means": {}}}))
    (tmp_path / "published.json").write_text((study.RESULTS / "published.json").read_text(encoding="utf-8"))
    monkeypatch.setattr(study, "RESULTS", tmp_path)


@pytest.mark.usefixtures("results")
def test_the_page_has_what_was_measured_and_what_was_published():
    page = study.page()
    assert "| from_names | 60.9 |" in page.table
    assert "stata 15" in page.limits
    assert "hwu64-minilm,1–4,from_names,2,60.94," in page.tables()["stata_protocol.csv"]
    assert "StatA,70.4,69.3,67.4,69.7,69.8,69.0,69.9" in page.tables()["stata_protocol_published.csv"]
