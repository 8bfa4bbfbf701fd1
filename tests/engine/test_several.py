"""Chances that items hold several classes: the level of the scores comes from absent classes."""

import numpy as np
import pytest

from handful.engine.several import held, together


def made_up(rates=(0.5, 0.3, 0.1), n_items=300, n_classes=40, lead=4.0, level=-6.0, seed=0):
    """Scores whose log-likelihood ratio is known: N(lead, lead) against N(0, lead), and a level on top."""
    rng = np.random.default_rng(seed)
    truth = rng.random((n_items, n_classes)) < np.array([*rates, *[0.0] * (n_classes - len(rates))])
    return lead**0.5 * rng.normal(size=truth.shape) + lead * truth + level, truth


def first(n, n_classes=40):
    return (np.arange(n_classes) < n).astype(float)


def test_shares_and_chances_are_right_whatever_the_level():
    scores, truth = made_up()
    everything = np.ones(scores.shape, bool)
    chances = held(scores, first(3), everything)
    assert (chances.sum(0)[:3] / truth.sum(0)[:3]).tolist() == pytest.approx([1, 1, 1], abs=0.25)
    assert (chances[:, 3:] == 0).all()
    sure = (chances > 0.8) & (chances < 0.95)
    assert truth[sure].mean() == pytest.approx(chances[sure].mean(), abs=0.12)
    np.testing.assert_allclose(held(3 * scores + 9, first(3), everything), chances)


def test_classes_that_are_not_allowed_do_not_count():
    scores, _ = made_up(n_items=60)
    alone = held(scores, first(3), np.ones(scores.shape, bool))
    wider = np.column_stack([scores, np.full((60, 2), 50.0)])
    allowed = np.broadcast_to(np.arange(42) < 40, wider.shape)
    found = held(wider, np.append(first(3), [1, 1]), allowed)
    np.testing.assert_allclose(found[:, :40], alone)
    assert (found[:, 40:] == 0).all()


def test_where_all_classes_are_present_all_give_the_level():
    scores, _ = made_up((0.5, 0.5), n_classes=2, n_items=50)
    chances = held(scores, np.ones(2), np.ones(scores.shape, bool))
    assert ((chances >= 0) & (chances <= 1)).all()


def test_classes_that_always_occur_with_others_are_found_too():
    alone = np.array([10.0, 12.0, 9.0, 1.2, 3.0])
    found = together(np.array([0.9, 0.8, 0.1, 0.1, 0.1]), alone)
    assert (found >= 0.5).tolist() == [True, True, True, False, False]
    np.testing.assert_array_equal(together(np.full(5, 0.1), alone), np.full(5, 0.1))
