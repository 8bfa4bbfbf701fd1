"""Held-out examples: copies share a fold, wrong labels are found."""

import numpy as np
import pytest

from handful.model.head import LinearHead, fit_head
from handful.model.left_out import Fold, HeadCalibration, assign_folds
from tests.model.catalogues_at_hand import doubtful, drawn, means_of


def test_copies_share_a_fold_and_do_not_vouch_for_one_another():
    points = np.random.default_rng(0).normal(size=(60, 200)).astype(np.float32)
    points /= np.linalg.norm(points, axis=1, keepdims=True)
    twice, codes = np.vstack([points, points]), np.tile(np.arange(60) % 6, 2)
    folds = assign_folds(twice, codes, np.zeros(6, dtype=bool))
    assert (folds[:60] == folds[60:]).all()
    assert set(folds) == {0, 1, 2, 3, 4}
    for head in (fit_head(twice, codes, 6), LinearHead.of_means(*means_of(twice, codes), twice, codes)):
        assert len(head.left_out.rows) == 120
        assert (head.left_out.lead < 0).mean() < 0.4


def test_wrong_labels_are_found_and_count_less():
    points, codes, _, _ = drawn(20, 6, noise=0.7)
    points, given, wrong = doubtful(points, codes)
    head = fit_head(points, given, 20)
    found = set(head.left_out.rows[head.left_out.right < 0.5])
    assert len(found & set(wrong)) >= 0.8 * len(wrong)
    assert len(found - set(wrong)) <= 0.2 * len(found)
    assert head.mass.sum() < 120 - 0.6 * len(wrong)


@pytest.mark.parametrize("scale", [0.3, 1.0, 40.0])
def test_some_examples_tell_where_all_are_compared(scale, monkeypatch):
    rng = np.random.default_rng(0)
    means = rng.normal(size=(12, 6))
    own = np.arange(600) % 12
    points = means[own] + rng.normal(size=(600, 6))
    weights = scale * means
    fold = Fold(np.arange(600), points, own, weights, -0.5 * scale * (means**2).sum(1), np.zeros(12))
    whole = HeadCalibration.of_folds([fold], np.full(12, 50.0))
    monkeypatch.setattr("handful.model.left_out.TEMPERATURE_EXAMPLES", 40)
    part = HeadCalibration.of_folds([fold], np.full(12, 50.0))
    assert (part.temperature, part.wrong_share) == (whole.temperature, whole.wrong_share)
    np.testing.assert_array_equal(part.examples.right, whole.examples.right)
