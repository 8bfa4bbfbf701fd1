"""The arithmetic behind the tables of harm, on made-up answers."""

from types import SimpleNamespace

import numpy as np
import pytest
import torch

import side_by_side
from handful import fewshot

Batch, Outcome = side_by_side.Batch, side_by_side.Outcome


def outcome(ours, alone, catalogue=0, items=None, diagnostics=()):
    """Answers of the default and, the same for all others, of each item alone."""
    others = dict.fromkeys(("prototype", "head", "logistic"), np.array(alone, bool))
    places = np.arange(len(ours)) if items is None else np.array(items)
    return Outcome(catalogue, places, {**others, "roll_call": np.array(ours, bool)}, diagnostics=diagnostics)


def test_the_interval_is_over_batches_where_catalogues_are_few():
    ones = [outcome([1, 1], [0, 0], catalogue=0), outcome([1, 0], [1, 0], catalogue=1)]
    found = side_by_side.estimated(ones, "head", over_items=False)
    assert (found.mean, found.n) == (50.0, 2)


def test_the_interval_is_over_catalogues_where_there_are_five():
    gains = [(c, c % 2) for c in range(5) for _batch in range(10)]
    ones = [outcome([1, 1], [1, 1 - gain], catalogue=number) for number, gain in gains]
    found = side_by_side.estimated(ones, "head", over_items=False)
    assert (found.mean, found.n) == (20.0, 5)
    # Batches of a catalogue agree here, so ten times as many of them say nothing more.
    assert found.half_width == pytest.approx(2.776 * np.std([0, 50, 0, 50, 0], ddof=1) / 5**0.5, rel=1e-3)


def test_an_item_that_comes_in_several_batches_counts_once():
    ones = [outcome([1, 1], [0, 1], items=[7, 8]), outcome([1, 0], [0, 1], items=[7, 9])]
    found = side_by_side.estimated(ones, "head", over_items=True)
    assert found.n == 3
    assert found.mean == pytest.approx((100 + 0 - 100) / 3)


def test_a_cell_compares_with_the_best_rule_for_single_items():
    one = outcome([1, 1, 1, 0], [1, 0, 0, 0])
    one.right["logistic"] = np.array([1, 1, 0, 0], bool)
    row = side_by_side.cell([one, one, outcome([], [])])
    assert row["alone"] == "logistic"
    assert row["batches"] == 2
    assert row["accuracy"]["roll_call"] == 75
    assert row["ahead"]["logistic"] == [25, 0]
    assert row["ahead"]["prototype"] == [50, 0]


def test_harm_is_counted_against_the_rule_of_the_cell_and_of_the_batch():
    good, bad = outcome([1] * 10, [1] * 10), outcome([1] * 8 + [0, 0], [1] * 9 + [0], diagnostics=("one", "two"))
    lucky = outcome([1] * 9 + [0], [1] * 9 + [0])
    lucky.right["prototype"] = np.ones(10, bool)
    bad.right["prototype"] = np.zeros(10, bool)
    found = side_by_side.warnings_of([good, bad, lucky])
    assert found["cell"] == {"harmed": [1, 1], "others": [2, 0]}
    assert found["batch"] == {"harmed": [2, 1], "others": [1, 0]}
    assert found["diagnostics"] == {"one": [1, 0], "two": [1, 0]}


def test_exactly_five_points_are_no_harm():
    right = [1] * 20
    assert not outcome([1] * 19 + [0], right).harmed(["head"])
    assert outcome([1] * 18 + [0, 0], right).harmed(["head"])


def test_bins_of_presence():
    said, there = np.array([0.02, 0.04, 0.55, 1.0]), np.array([False, True, True, True])
    assert side_by_side.presence_bins(said, there) == [
        {"bin": 0, "cases": 2, "said": 3.0, "there": 50.0},
        {"bin": 5, "cases": 1, "said": 55.0, "there": 100.0},
        {"bin": 9, "cases": 1, "said": 100.0, "there": 100.0},
    ]


def test_calibration_error():
    assert side_by_side.calibration_error(np.array([0.9, 0.9, 0.3]), np.array([True, False, False])) == pytest.approx(
        (2 * 0.4 + 0.3) / 3
    )


def test_em_for_the_proportions_is_that_of_the_package():
    torch.manual_seed(0)
    centres = torch.randn(6, 4)
    support, labels = (
        centres.repeat_interleave(3, 0)[None] + 0.1 * torch.randn(1, 18, 4),
        torch.arange(6).repeat_interleave(3),
    )
    query = centres[[0] * 9 + [2] * 3][None] + 0.9 * torch.randn(2, 12, 4)
    task = fewshot.TaskBatch(support, labels[None], query, 6)
    means = support[0].reshape(6, 3, 4).mean(1)
    scores = -0.5 * torch.cdist(query, means) ** 2
    wanted = fewshot.solve("prior_em", task).log_assignments.exp()
    torch.testing.assert_close(side_by_side.proportions_by_em(scores), wanted, atol=2e-3, rtol=0)


class Fixed:
    """Stands in for a classifier: always the second class, which it calls present."""

    method = "fixed"

    def fit(self, examples, labels):
        n_classes, dim = len(np.unique(labels)), examples.shape[1]
        head = SimpleNamespace(
            weights=np.eye(n_classes, dim, dtype=np.float32),
            offsets=np.zeros(n_classes, np.float32),
            temperature=0.5,
            mass=np.array([1.0, 3.0], np.float32),
        )
        self.catalogue_ = SimpleNamespace(head=head, origin=np.zeros(dim, np.float32))
        return self

    def infer(self, batch):
        return SimpleNamespace(
            labels=np.full(len(batch), 30),
            probabilities=np.tile([0.25, 0.75], (len(batch), 1)),
            presence=np.array([0.1, 0.9]),
            present_classes=np.array([30]),
            diagnostics=(SimpleNamespace(name="something"),),
        )


def test_a_batch_is_labelled_by_every_rule(monkeypatch):
    monkeypatch.setattr(side_by_side, "BatchClassifier", Fixed)
    examples = np.array([[1, 0], [0, 1], [0, 1], [0, 1]], np.float32)
    catalogue = side_by_side.Catalogue(examples, np.array([10, 30, 30, 30]), number=4)
    points = np.array([[1, 0], [0, 1], [0.72, 0.69], [0, 1]], np.float32)
    batch = Batch(points, np.array([10, 30, 10, 20]), np.array([5, 6, 7, 8]))
    (one,) = catalogue.outcomes([batch], side_by_side.Sharpness(1.0, 5.0))
    assert one.catalogue == 4
    assert one.items.tolist() == [5, 6, 7]  # 20 is no class of the catalogue
    assert one.right["prototype"].tolist() == [True, True, True]
    assert one.right["head"].tolist() == [True, True, True]
    assert one.right["logistic"].tolist() == [False, True, False]  # three times as many examples: ln 3 more
    assert one.right["roll_call"].tolist() == [False, True, False]
    assert one.said["roll_call"].tolist() == [0.75] * 3
    assert np.exp(-one.loss["roll_call"]) == pytest.approx([0.25, 0.75, 0.25])
    assert one.there.tolist() == [True, True]
    assert one.called.tolist() == [False, True]
    assert one.diagnostics == ("something",)
    assert one.doubt.tolist() == [0.25] * 4
    assert set(one.right) == {"prototype", "head", "logistic", "head_emq", "prototype_emq", "roll_call"}


def test_batches_of_several_sizes_keep_their_order(monkeypatch):
    monkeypatch.setattr(side_by_side, "BatchClassifier", Fixed)
    monkeypatch.setattr(side_by_side, "STACK", 8)
    catalogue = side_by_side.Catalogue(np.eye(2, dtype=np.float32).repeat(2, 0), np.array([10, 10, 30, 30]))
    batches = [
        Batch(np.eye(2, dtype=np.float32)[[0] * size], np.full(size, 10), np.arange(size)) for size in (2, 3, 2, 3, 2)
    ]
    assert [len(one.items) for one in catalogue.outcomes(batches)] == [2, 3, 2, 3, 2]
