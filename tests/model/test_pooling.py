"""Siblings, on counts drawn from what the rules assume, and from the opposite."""

import numpy as np
import pytest

from handful.model.pooling import pooled
from handful.model.settings import DEFAULT

N_CLASSES = 40


def drawn(pools, visits, size, kind, seed=0, concentration=1000.0):
    """Counts of batches: pools of visits that share classes and shares, or have nothing in common."""
    rng = np.random.default_rng(seed)
    rows = []
    for _ in range(pools):
        base = np.zeros(N_CLASSES)
        for visit in range(visits):
            if visit == 0 or kind == "fresh" or (kind == "jump" and visit % 5 == 0):
                base = np.zeros(N_CLASSES)
                base[rng.choice(N_CLASSES, 5, replace=False)] = rng.dirichlet(np.ones(5))
            shares = rng.dirichlet(concentration * base + 1e-9)
            rows.append(rng.multinomial(size, shares / shares.sum()))
    counts = np.array(rows, np.float64)
    base = np.full_like(counts, 1 / N_CLASSES)
    return counts, base, np.arange(pools).repeat(visits), np.tile(np.arange(visits), pools)


def test_siblings_with_something_in_common_are_used():
    counts, base, pool_of, _ = drawn(8, 10, 6, "same")
    found = pooled(counts, counts, base, pool_of, None)
    assert found.used.all()
    assert (found.gain > 0.5).all()
    np.testing.assert_allclose(found.shares.sum(1), np.ones(80))
    # What others of the pool hold, on top of one item of the base.
    expected = (counts[:10].sum(0) - counts[3] + base[3]) / (counts[:10].sum() - counts[3].sum() + 1)
    np.testing.assert_allclose(found.shares[3], expected)


def test_siblings_with_nothing_in_common_are_not():
    for seed in range(5):
        counts, base, pool_of, step_of = drawn(8, 10, 6, "fresh", seed)
        for order in (None, step_of):
            found = pooled(counts, counts, base, pool_of, order)
            assert not found.used.any()
            np.testing.assert_allclose(found.shares, base)


def test_every_pool_is_judged_by_itself():
    same, fresh = drawn(4, 10, 6, "same"), drawn(4, 10, 6, "fresh", 1)
    counts, base = np.concatenate([same[0], fresh[0]]), np.concatenate([same[1], fresh[1]])
    found = pooled(counts, counts, base, np.concatenate([same[2], fresh[2] + 4]), None)
    assert found.used.tolist() == [True] * 4 + [False] * 4


def test_the_concentration_is_found():
    for truth in (4.0, 64.0):
        counts, base, pool_of, _ = drawn(40, 20, 60, "same", concentration=truth)
        found = pooled(counts, counts, base, pool_of, None).concentration
        assert found in DEFAULT.concentrations
        assert truth / 4 <= found <= truth * 4


def test_the_past_is_forgotten_as_fast_as_it_changes():
    steady, jumping = (drawn(20, 20, 10, kind) for kind in ("same", "jump"))
    kept, forgotten = (
        pooled(counts, counts, base, pool_of, step_of).forgetting
        for counts, base, pool_of, step_of in (steady, jumping)
    )
    assert kept >= 0.95
    assert forgotten <= 0.8


def test_only_earlier_siblings_count_in_an_order():
    counts, base, pool_of, step_of = drawn(3, 6, 8, "same")
    found = pooled(counts, counts, base, pool_of, step_of)
    np.testing.assert_allclose(found.shares[0], base[0])  # the first has none
    past = sum(found.forgetting ** (3 - step) * counts[step] for step in range(3))
    np.testing.assert_allclose(found.shares[3], (past + base[3]) / (past.sum() + 1))


def test_batches_of_the_same_step_say_nothing_about_each_other():
    counts, base, pool_of, _ = drawn(1, 4, 8, "same")
    found = pooled(counts, counts, base, pool_of, np.zeros(4, np.int64))
    assert found.gain.tolist() == pytest.approx([0.0], abs=1e-9)
    assert not found.used.any()


def test_the_order_of_groups_changes_nothing():
    counts, base, pool_of, step_of = drawn(5, 8, 6, "same")
    mixed = np.random.default_rng(0).permutation(len(counts))
    for order in (None, step_of):
        here = pooled(counts, counts, base, pool_of, order)
        there = pooled(counts[mixed], counts[mixed], base, pool_of[mixed], None if order is None else order[mixed])
        np.testing.assert_allclose(here.shares[mixed], there.shares)
        assert (here.concentration, here.forgetting) == (there.concentration, there.forgetting)


def test_a_batch_without_siblings_is_alone():
    counts, base, _, _ = drawn(6, 1, 8, "same")
    found = pooled(counts, counts, base, np.arange(6), None)
    assert not found.used.any()
    np.testing.assert_allclose(found.shares, base)


def test_banned_classes_stay_banned():
    counts, base, pool_of, _ = drawn(2, 10, 6, "same")
    largest = int(counts[:10].sum(0).argmax())
    counts[0, largest] = 0
    base[0, largest] = 0  # in one batch, while its siblings hold the class
    base /= base.sum(1, keepdims=True)
    found = pooled(counts, counts, base, pool_of, None)
    assert found.used.all()
    assert found.shares[0, largest] == 0
    assert found.shares[1, largest] > 0.1
    np.testing.assert_allclose(found.shares.sum(1), np.ones(20))
