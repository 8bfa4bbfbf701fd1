"""Gains of moved class means, against the same written out for one item after the other."""

import numpy as np

from engine.positions import BELIEVED, PULL, gains


def test_equal_to_the_formula_with_every_item_left_out_of_its_own_class():
    rng = np.random.default_rng(0)
    n_items, n_classes, dim = 9, 4, 5
    points, means = rng.normal(size=(n_items, dim)), rng.normal(size=(n_classes, dim))
    weights, shots, spread = 2 * means + rng.normal(size=means.shape), np.array([1.0, 2.0, 5.0, 9.0]), 1.7
    given = rng.dirichlet(np.ones(n_classes), n_items)
    found = gains(points, given, weights, means, shots, spread)
    tilted, centred = weights - weights.mean(0), means - means.mean(0)
    for item in range(n_items):
        rest = np.arange(n_items) != item
        for k in range(n_classes):
            q, s = given[rest, k], shots[k]
            moved = (s * means[k] + PULL * q @ points[rest]) / (s + PULL * q.sum())
            noise = (s + PULL**2 * (q**2).sum()) / (s + PULL * q.sum()) ** 2
            slope = tilted[k] @ centred[k] / (centred[k] @ centred[k])
            after = points[item] @ moved - moved @ moved / 2
            before = points[item] @ means[k] - means[k] @ means[k] / 2
            expected = BELIEVED * slope * (after - before - spread / 2 * (1 / s - noise))
            assert np.isclose(found[item, k], expected)


def test_a_class_that_is_given_nothing_gains_nothing():
    rng = np.random.default_rng(1)
    points, means = rng.normal(size=(6, 3)), rng.normal(size=(3, 3))
    given = np.zeros((6, 3))
    given[:, 0] = 1
    found = gains(points, given, means, means, np.ones(3), None)
    assert np.allclose(found[:, 1:], 0)
    assert np.abs(found[:, 0]).min() > 0
