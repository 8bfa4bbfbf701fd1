"""Class means that move with their items: what a score gains, with every item left out of its own class."""

import numpy as np

from handful.model.means import MovedMeans, class_slopes
from handful.model.settings import DEFAULT


def moved_means(*parts):
    """Of one batch."""
    return MovedMeans.of(*(np.asarray(part)[None] for part in parts))


def test_equal_to_the_formula_with_every_item_left_out_of_its_own_class():
    rng = np.random.default_rng(0)
    n_items, n_classes, dim = 9, 4, 5
    points, means = rng.normal(size=(n_items, dim)), rng.normal(size=(n_classes, dim))
    weights, shots, spread = 2 * means + rng.normal(size=means.shape), np.array([1.0, 2.0, 5.0, 9.0]), 1.7
    responsibilities = rng.dirichlet(np.ones(n_classes), n_items)
    found = moved_means(points, responsibilities, class_slopes(weights, means), means, shots, spread)
    found = found.gains(points[None], responsibilities[None])[0]
    tilted, centred = weights - weights.mean(0), means - means.mean(0)
    for item in range(n_items):
        rest = np.arange(n_items) != item
        for k in range(n_classes):
            q, s = responsibilities[rest, k], shots[k]
            moved = (s * means[k] + DEFAULT.pull * q @ points[rest]) / (s + DEFAULT.pull * q.sum())
            noise = (s + DEFAULT.pull**2 * (q**2).sum()) / (s + DEFAULT.pull * q.sum()) ** 2
            slope = tilted[k] @ centred[k] / (centred[k] @ centred[k])
            after = points[item] @ moved - moved @ moved / 2
            before = points[item] @ means[k] - means[k] @ means[k] / 2
            expected = DEFAULT.believed * slope * (after - before - spread / 2 * (1 / s - noise))
            assert np.isclose(found[item, k], expected)


def test_a_class_that_is_given_nothing_gains_nothing():
    rng = np.random.default_rng(1)
    points, means = rng.normal(size=(6, 3)), rng.normal(size=(3, 3))
    responsibilities = np.zeros((6, 3))
    responsibilities[:, 0] = 1
    found = moved_means(points, responsibilities, class_slopes(means, means), means, np.ones(3), 1.0)
    found = found.gains(points[None], responsibilities[None])[0]
    assert np.allclose(found[:, 1:], 0)
    assert np.abs(found[:, 0]).min() > 0


def test_items_that_were_not_given_to_any_class_see_the_means_of_all_others():
    rng = np.random.default_rng(2)
    points, means, responsibilities = rng.normal(size=(6, 3)), rng.normal(size=(2, 3)), rng.dirichlet(np.ones(2), 6)
    with_last = np.vstack([responsibilities[:5], np.zeros(2)])
    whole = moved_means(points, with_last, np.ones(2), means, np.ones(2), 1.0)
    part = moved_means(points[:5], responsibilities[:5], np.ones(2), means, np.ones(2), 1.0)
    assert np.allclose(whole.gains(points[None], with_last[None])[0, 5], part.gains(points[None, 5:])[0, 0])
