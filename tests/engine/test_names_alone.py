"""Names alone: the scale of the items, few and many classes, candidates."""

import math

import numpy as np
import pytest

from handful.engine.model import Context
from handful.engine.names_alone import label_by_names


def batch(classes, n_items=60, n_classes=80, dim=24, noise=1.3, seed=0, domain=0.0):
    """Names, and unit vectors of items of some classes, with their truth."""
    rng = np.random.default_rng(seed)
    centres = rng.normal(size=(n_classes, dim)) + domain
    names = centres + 0.9 * rng.normal(size=centres.shape)
    truth = np.array(classes)[np.arange(n_items) % len(classes)]
    points = centres[truth] + noise * rng.normal(size=(n_items, dim))
    return *(rows / np.linalg.norm(rows, axis=1, keepdims=True) for rows in (names, points)), truth


def gains(batches):
    """How far joint labels are ahead of the nearest name, in each batch."""
    return np.array(
        [
            (label_by_names(points, names).probabilities.argmax(1) == truth).mean()
            - ((points @ names.T).argmax(1) == truth).mean()
            for names, points, truth in batches
        ]
    )


def test_few_classes_are_found_together():
    assert gains(batch([k, k + 9, k + 30], seed=k) for k in range(8)).mean() > 0.08


@pytest.mark.parametrize(("n_present", "noise"), [(80, 0.7), (80, 1.3), (30, 1.3), (20, 1.6)])
def test_many_classes_lose_nothing_even_if_names_are_weak(n_present, noise):
    found = gains(batch(list(range(n_present)), 80, noise=noise, seed=seed) for seed in range(8))
    assert found.mean() > -0.01


@pytest.mark.parametrize("domain", [1.0, 3.0])
@pytest.mark.parametrize("n_present", [2, 16])
def test_items_of_one_domain_do_not_all_join_the_largest_class(domain, n_present):
    found = gains(batch(list(range(n_present)), 200, n_classes=16, domain=domain, seed=seed) for seed in range(6))
    assert found.mean() > (0.05 if n_present == 2 else -0.01)


def test_a_class_whose_name_is_second_to_another_is_not_lost_for_certain():
    """All items are a little nearer to the name of another class than to their own, and far from all others."""
    rng = np.random.default_rng(0)
    names = rng.normal(size=(77, 48))
    points = names[3] + 1.05 * names[4] + 1.5 * rng.normal(size=(20, 48))
    found = label_by_names(points, names).probabilities
    assert (found.argmax(1) == 4).all()
    assert (found.max(1) < 0.98).mean() > 0.6


def test_a_factor_on_names_changes_nothing():
    names, points, _ = batch([3, 7, 20])
    expected = label_by_names(points, names).probabilities
    np.testing.assert_allclose(label_by_names(points, 0.2 * names).probabilities, expected, atol=1e-3)


def test_candidates_are_the_only_classes():
    names, points, truth = batch([3, 7, 20])
    left = np.isin(np.arange(80), [3, 7, *range(20, 30)])
    found = label_by_names(points, names, Context(np.where(left, -math.log(12), -np.inf))).probabilities
    assert found[:, ~left].sum() == 0
    everything = label_by_names(points, names).probabilities
    assert (found.argmax(1) == truth).mean() >= (everything.argmax(1) == truth).mean()
    allowed = np.broadcast_to(left, everything.shape)
    assert label_by_names(points, names, Context(allowed=allowed)).probabilities[:, ~left].sum() == 0


def test_one_class_and_equal_names_are_no_trouble():
    names, points, _ = batch([3, 7, 20])
    assert label_by_names(points, names[:1]).probabilities.min() > 0.999
    np.testing.assert_allclose(label_by_names(points, names[[0, 0, 0, 0]]).probabilities, 0.25)
