"""Logistic regression in NumPy: the minimum, the span, weights of examples, near classes."""

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import logsumexp

from handful.engine.logistic import logistic, logistic_near, nearest_classes


def rows(n=60, dim=12, n_classes=6, seed=0):
    rng = np.random.default_rng(seed)
    codes = np.arange(n) % n_classes
    return rng.normal(size=(n_classes, dim))[codes] + rng.normal(size=(n, dim)), codes


@pytest.mark.parametrize("dim", [12, 90])
def test_the_gradient_is_zero_at_the_minimum(dim, monkeypatch):
    monkeypatch.setattr("handful.engine.logistic.TOLERANCE", 1e-9)
    x, y = rows(dim=dim)
    each = np.linspace(0.2, 2, len(x))
    w, b = logistic(x, y, 6, 3.0, each)
    p = np.exp(x @ w.T + b)
    off = (p / p.sum(1, keepdims=True) - np.eye(6)[y]) * each[:, None]
    np.testing.assert_allclose(off.T @ x + w / 3, 0, atol=1e-6)
    np.testing.assert_allclose(off.sum(0), 0, atol=1e-6)


def test_a_weight_of_two_is_a_copy():
    x, y = rows()
    each = np.where(np.arange(60) < 20, 2.0, 1.0)
    weighted, copied = logistic(x, y, 6, 30.0, each), logistic(np.vstack([x, x[:20]]), np.append(y, y[:20]), 6, 30.0)
    np.testing.assert_allclose(weighted[0], copied[0], atol=1e-2 * np.abs(copied[0]).max())


@pytest.mark.parametrize(("dim", "n_rivals"), [(12, 6), (12, 3), (90, 3)])
def test_near_classes_reach_the_minimum(dim, n_rivals, monkeypatch):
    monkeypatch.setattr("handful.engine.logistic.TOLERANCE", 1e-9)
    x, y = rows(dim=dim)
    x /= np.linalg.norm(x, axis=1, keepdims=True)
    means = np.stack([x[y == k].mean(0) for k in range(6)])
    start, near = np.column_stack([5 * means, -2.5 * (means**2).sum(1)]), nearest_classes(means, n_rivals)

    def loss(at):
        table = at.reshape(start.shape)
        logits = np.take_along_axis(x @ table[:, :-1].T + table[:, -1], near[y], 1)
        return (logsumexp(logits, axis=1) - logits[:, 0]).sum() + ((table - start) ** 2).sum() / (2 * 30.0)

    w, b = logistic_near(x, y, near, (start[:, :-1], start[:, -1]), 30.0)
    assert np.abs(w - start[:, :-1]).max() > 0.5
    assert (near[:, 0] == np.arange(6)).all()
    assert loss(np.column_stack([w, b]).ravel()) <= minimize(loss, start.ravel()).fun + 1e-3


def test_single_precision_stays_single():
    x, y = rows()
    w, b = logistic(x.astype(np.float32), y, 6, 30.0)
    assert w.dtype == b.dtype == np.float32
    np.testing.assert_allclose(w, logistic(x, y, 6, 30.0)[0], atol=1e-2 * np.abs(w).max())
