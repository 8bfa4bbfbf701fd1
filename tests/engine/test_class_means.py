"""Class means: whitened where that helps, as they are where it does not."""

import numpy as np
import pytest
import torch

from handful.engine.class_means import fit_means
from handful.engine.head import LinearHead
from tests.engine.catalogues_at_hand import accuracy, drawn, means_of


def test_means_are_compared_where_classes_are_round():
    """Items vary along a few directions that do not tell classes apart."""
    rng = np.random.default_rng(0)
    codes, truth = np.arange(40).repeat(8), np.arange(40).repeat(10)
    centres = rng.normal(size=(40, 16))
    stretch = np.where(np.arange(16) < 3, 6.0, 0.5)
    points, items = (centres[y] + stretch * rng.normal(size=(len(y), 16)) for y in (codes, truth))
    means, shots = means_of(points, codes)
    head = LinearHead.of_means(means, shots, points, codes)
    to_means = ((items[:, None] - means) ** 2).sum(2).argmin(1)
    assert accuracy(head, items, truth) > (to_means == truth).mean() + 0.2
    some = LinearHead.of_means(means, shots, points[:160], codes[:160])
    assert accuracy(some, items, truth) > (to_means == truth).mean() + 0.2


def test_without_a_reason_means_stay_where_they_are():
    points, codes, _, _ = drawn(40, 3, 24, 0.8, dtype=torch.float64)
    means, shots = means_of(points, codes)
    found = fit_means(means, shots, points, codes)
    within = ((points - means[codes]) ** 2).sum() / (len(codes) - 40)
    np.testing.assert_allclose(found.weights / np.linalg.norm(found.weights), means / np.linalg.norm(means), atol=0.02)
    assert found.spread == pytest.approx(within, rel=0.02)
    nothing = fit_means(means, shots, points[:0], codes[:0])
    np.testing.assert_allclose(nothing.weights / np.linalg.norm(nothing.weights), means / np.linalg.norm(means))
    assert (nothing.spread, nothing.judged.temperature, nothing.judged.confidence) == (None, 1.0, None)
