"""An offset is found as far as there is evidence, and shares follow the numbers of examples where the batch does."""

import numpy as np
import pytest

from handful.model.head import LinearHead
from handful.model.left_out import HeadCalibration
from handful.model.offset import BatchTilts, estimate_offset
from handful.model.reference import Reference
from handful.model.scores import Scores
from handful.model.settings import DEFAULT
from handful.model.vectors import Vectors


def batch(offset, n_items=200, seed=0):
    rng = np.random.default_rng(seed)
    means = rng.normal(size=(6, 12))
    points = means[rng.integers(0, 6, n_items)] + 0.3 * rng.normal(size=(n_items, 12)) + offset
    weights = means / 0.09
    scores = points @ weights.T - (means**2).sum(1) / 0.18
    return points, scores, weights, means


def offset_of(points, scores, weights, means, shots, spread):
    """The offset of a batch, its first axis left out."""
    examples, t, wrong, confidence = HeadCalibration.without_examples(1.0)
    offsets = np.zeros(len(means))
    head = LinearHead(weights, offsets, means, shots, spread, t, wrong, confidence, examples)
    possible = np.isfinite(scores).any(0)[None]
    nats = Scores(scores[None], shots, np.zeros((1, len(points)), bool), possible, True)
    found = estimate_offset(nats, Vectors(points[None], Reference(head)), DEFAULT)
    return BatchTilts(*(part[0] for part in found))


def test_an_offset_is_found():
    offset = 0.3 * np.ones(12)
    points, scores, weights, means = batch(offset)
    found = offset_of(points, scores, weights, means, np.full(6, 5.0), spread=12 * 0.09)
    assert np.abs(found.offset - offset).max() < 0.1
    assert np.allclose(found.total, -(weights @ found.offset))


def test_what_chance_gives_is_no_offset():
    points, scores, weights, means = batch(np.zeros(12), n_items=30)
    found = offset_of(points, scores, weights, means, np.full(6, 5.0), spread=12 * 0.09)
    assert np.abs(found.offset).max() < 0.03


def test_without_a_spread_and_with_equal_shots_nothing_changes():
    found = offset_of(*batch(np.ones(12)), np.full(6, 5.0), spread=0.0)
    assert not found.offset.any()
    assert not found.total.any()


@pytest.mark.parametrize("follow", [True, False])
def test_shares_follow_the_numbers_of_examples_where_the_batch_does(follow):
    rng, shots = np.random.default_rng(1), np.array([1.0, 2.0, 4.0, 8.0, 16.0, 32.0])
    truth = rng.choice(6, 400, p=shots / shots.sum() if follow else None)
    scores = 6 * np.eye(6)[truth] + rng.normal(size=(400, 6))
    tilts = offset_of(np.zeros((400, 2)), scores, np.zeros((6, 2)), np.zeros((6, 2)), shots, spread=0.0).total
    slope = np.polyfit(np.log(shots), tilts, 1)[0]
    assert abs(slope - (0.8 if follow else 0.0)) < 0.25


def test_a_class_that_is_ruled_out_stays_out():
    points, scores, weights, means = batch(np.zeros(12))
    scores[:, 2] = -np.inf
    found = offset_of(points, scores, weights, means, np.arange(1.0, 7.0), spread=1.0)
    assert np.isfinite(found.total).all()
    assert np.isfinite(found.offset).all()


def test_items_of_no_class_do_not_make_classes_with_few_examples_larger():
    """Their scores are flat and lean towards classes with one example; before, these classes took such batches."""
    rng = np.random.default_rng(0)
    shots = np.array([1.0, 1.0, 1.0, 10.0, 10.0, 10.0])
    known = rng.choice(6, 30, p=shots / shots.sum())
    scores = np.concatenate([8.0 * np.eye(6)[known], np.where(shots == 1, 1.0, 0.0) * np.ones((90, 1))])
    tilts = offset_of(np.zeros((120, 2)), scores, np.zeros((6, 2)), np.zeros((6, 2)), shots, spread=0.0).total
    assert tilts[3] > tilts[0]  # as many examples, as many items
