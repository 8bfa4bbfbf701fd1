"""Tilts: an offset is found as far as there is evidence, and a prior is followed until the batch contradicts."""

import numpy as np
import pytest
from scipy.special import softmax

from handful.engine.settings import DEFAULT
from handful.engine.tilt import estimate_offset, tilt_by_prior


def batch(offset, n_items=200, seed=0):
    rng = np.random.default_rng(seed)
    means = rng.normal(size=(6, 12))
    points = means[rng.integers(0, 6, n_items)] + 0.3 * rng.normal(size=(n_items, 12)) + offset
    weights = means / 0.09
    scores = points @ weights.T - (means**2).sum(1) / 0.18
    return points, scores, weights, means


def offset_of(points, scores, weights, means, shots, spread):
    allowed = np.isfinite(scores).any(0)

    def count(tilts):
        near = np.exp(scores + tilts - (scores + tilts).max(1, keepdims=True))
        return (near / near.sum(1, keepdims=True)).sum(0)

    return estimate_offset(
        count,
        lambda tilts: count(tilts) / len(points),
        np.array(len(points)),
        points.mean(0),
        allowed,
        weights,
        means,
        shots,
        spread,
    )


def test_an_offset_is_found():
    offset = 0.3 * np.ones(12)
    points, scores, weights, means = batch(offset)
    found = offset_of(points, scores, weights, means, np.full(6, 5.0), spread=12 * 0.09)
    assert np.abs(found.offset - offset).max() < 0.1
    assert np.allclose(found.tilts, -(weights @ found.offset))


def test_what_chance_gives_is_no_offset():
    points, scores, weights, means = batch(np.zeros(12), n_items=30)
    found = offset_of(points, scores, weights, means, np.full(6, 5.0), spread=12 * 0.09)
    assert np.abs(found.offset).max() < 0.03


def test_without_a_spread_and_with_equal_shots_nothing_changes():
    found = offset_of(*batch(np.ones(12)), np.full(6, 5.0), spread=0.0)
    assert not found.offset.any()
    assert not found.tilts.any()


@pytest.mark.parametrize("follow", [True, False])
def test_shares_follow_the_numbers_of_examples_where_the_batch_does(follow):
    rng, shots = np.random.default_rng(1), np.array([1.0, 2.0, 4.0, 8.0, 16.0, 32.0])
    truth = rng.choice(6, 400, p=shots / shots.sum() if follow else None)
    scores = 6 * np.eye(6)[truth] + rng.normal(size=(400, 6))
    tilts = offset_of(np.zeros((400, 2)), scores, np.zeros((6, 2)), np.zeros((6, 2)), shots, spread=None).tilts
    slope = np.polyfit(np.log(shots), tilts, 1)[0]
    assert abs(slope - (0.8 if follow else 0.0)) < 0.25


def test_a_class_that_is_ruled_out_stays_out():
    points, scores, weights, means = batch(np.zeros(12))
    scores[:, 2] = -np.inf
    found = offset_of(points, scores, weights, means, np.arange(1.0, 7.0), spread=1.0)
    assert np.isfinite(found.tilts).all()
    assert np.isfinite(found.offset).all()


def counted(scores):
    return lambda tilts: softmax(scores + tilts, axis=1).sum(0)


def test_an_item_that_says_nothing_follows_the_weights():
    shares = np.array([0.7, 0.2, 0.1])
    found = tilt_by_prior(np.log(shares), DEFAULT.prior_concentration, 1, counted(np.zeros((1, 3))))
    assert np.allclose(softmax(found.tilts), shares, atol=0.02)
    assert found.weight > 0.9


def test_a_large_batch_contradicts():
    shares = np.array([0.98, 0.01, 0.01])
    scores = 8 * np.eye(3)[np.full(3000, 1)]
    found = tilt_by_prior(np.log(shares), DEFAULT.prior_concentration, 3000, counted(scores))
    assert found.weight < 0.1
    assert found.tilts[1] > -0.2


def test_a_banned_class_has_no_tilt():
    excluded = tilt_by_prior(
        np.array([np.log(0.9), np.log(0.1), -np.inf]), DEFAULT.prior_concentration, 2, counted(np.zeros((2, 3)))
    )
    assert excluded.tilts[2] == 0
    assert excluded.tilts[1] < excluded.tilts[0]
