"""Linear scores: the minimum of logistic regression, class means in round spaces, and class means that move."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import logsumexp, softmax

from handful.model.head import LinearHead
from handful.model.linear import (
    fit_class_means,
    logistic,
    logistic_near,
    nearest_classes,
)
from handful.model.settings import DEFAULT
from tests.model.catalogues_at_hand import accuracy, drawn, means_of
from tests.worlds import Clouds


def labelled_rows(n=60, dim=12, n_classes=6, seed=0):
    rng = np.random.default_rng(seed)
    codes = np.arange(n) % n_classes
    return rng.normal(size=(n_classes, dim))[codes] + rng.normal(size=(n, dim)), codes


@pytest.mark.parametrize("dim", [12, 90])
def test_the_gradient_is_zero_at_the_minimum(dim):
    x, y = labelled_rows(dim=dim)
    each = np.linspace(0.2, 2, len(x))
    w, b = logistic(x, y, 6, each, replace(DEFAULT, inverse_ridge=3.0, head_tolerance=1e-9))
    p = np.exp(x @ w.T + b)
    off = (p / p.sum(1, keepdims=True) - np.eye(6)[y]) * each[:, None]
    np.testing.assert_allclose(off.T @ x + w / 3, 0, atol=1e-6)
    np.testing.assert_allclose(off.sum(0), 0, atol=1e-6)


def test_a_weight_of_two_is_a_copy():
    x, y = labelled_rows()
    x /= np.linalg.norm(x, axis=1, keepdims=True)
    each = np.where(np.arange(60) < 20, 2.0, 1.0)
    weighted, copied = logistic(x, y, 6, each), logistic(np.vstack([x, x[:20]]), np.append(y, y[:20]), 6)
    np.testing.assert_allclose(weighted[0], copied[0], atol=1e-2 * np.abs(copied[0]).max())


@pytest.mark.parametrize(("dim", "n_rivals"), [(12, 6), (12, 3), (90, 3)])
def test_near_classes_reach_the_minimum(dim, n_rivals):
    x, y = labelled_rows(dim=dim)
    x /= np.linalg.norm(x, axis=1, keepdims=True)
    means = np.stack([x[y == k].mean(0) for k in range(6)])
    start, near = np.column_stack([5 * means, -2.5 * (means**2).sum(1)]), nearest_classes(means, n_rivals)

    with_one = np.column_stack([x, np.ones(len(x))])

    def loss(at):
        """Return the loss and its gradient."""
        table = at.reshape(start.shape)
        logits = np.take_along_axis(with_one @ table.T, near[y], 1)
        off = softmax(logits, axis=1) - (np.arange(n_rivals) == 0)
        slope = (table - start) / 30.0
        np.add.at(slope, near[y], off[..., None] * with_one[:, None])
        value = (logsumexp(logits, axis=1) - logits[:, 0]).sum() + ((table - start) ** 2).sum() / (2 * 30.0)
        return value, slope.ravel()

    w, b = logistic_near(x, y, near, (start[:, :-1], start[:, -1]), settings=replace(DEFAULT, head_tolerance=1e-6))
    assert np.abs(w - start[:, :-1]).max() > 0.5
    assert (near[:, 0] == np.arange(6)).all()
    assert loss(np.column_stack([w, b]).ravel())[0] <= minimize(loss, start.ravel(), jac=True).fun + 1e-3


def test_single_precision_stays_single():
    x, y = labelled_rows()
    x /= np.linalg.norm(x, axis=1, keepdims=True)
    w, b = logistic(x.astype(np.float32), y, 6)
    assert w.dtype == b.dtype == np.float32
    np.testing.assert_allclose(w, logistic(x, y, 6)[0], atol=1e-2 * np.abs(w).max())


def test_means_are_compared_where_classes_are_round():
    """Items vary along a few directions that do not tell classes apart."""
    codes, truth = np.arange(40).repeat(8), np.arange(40).repeat(10)
    clouds = Clouds(40, 16)
    stretch = np.where(np.arange(16) < 3, 6.0, 0.5)
    points, items = (clouds.around(y, stretch) for y in (codes, truth))
    means, shots = means_of(points, codes)
    head = LinearHead.of_means(means, shots, points, codes)
    to_means = ((items[:, None] - means) ** 2).sum(2).argmin(1)
    assert accuracy(head, items, truth) > (to_means == truth).mean() + 0.2
    some = LinearHead.of_means(means, shots, points[:160], codes[:160])
    assert accuracy(some, items, truth) > (to_means == truth).mean() + 0.2


def test_without_a_reason_means_stay_where_they_are():
    points, codes, _, _ = drawn(40, 3, 24, 0.8, dtype=np.float64)
    means, shots = means_of(points, codes)
    found = fit_class_means(means, shots, points, codes)
    within = ((points - means[codes]) ** 2).sum() / (len(codes) - 40)
    np.testing.assert_allclose(found.weights / np.linalg.norm(found.weights), means / np.linalg.norm(means), atol=0.02)
    assert found.spread == pytest.approx(within, rel=0.02)
    nothing = fit_class_means(means, shots, points[:0], codes[:0])
    np.testing.assert_allclose(nothing.weights / np.linalg.norm(nothing.weights), means / np.linalg.norm(means))
    assert (nothing.spread, nothing.calibration.temperature, nothing.calibration.confidence) == (None, 1.0, None)
