"""Weights of the classes: followed while the batch says nothing, and given up where it contradicts."""

import numpy as np
from scipy.special import softmax

from handful.engine.prior import CONCENTRATION, lean


def counted(scores):
    return lambda tilts: softmax(scores + tilts, axis=1).sum(0)


def test_an_item_that_says_nothing_follows_the_weights():
    shares = np.array([0.7, 0.2, 0.1])
    found = lean(np.log(shares), CONCENTRATION, 1, counted(np.zeros((1, 3))))
    assert np.allclose(softmax(found.tilts), shares, atol=0.02)
    assert found.trust > 0.9


def test_a_large_batch_contradicts():
    shares = np.array([0.98, 0.01, 0.01])
    scores = 8 * np.eye(3)[np.full(3000, 1)]
    found = lean(np.log(shares), CONCENTRATION, 3000, counted(scores))
    assert found.trust < 0.1
    assert found.tilts[1] > -0.2


def test_a_banned_class_has_no_tilt():
    banned = lean(np.array([np.log(0.9), np.log(0.1), -np.inf]), CONCENTRATION, 2, counted(np.zeros((2, 3))))
    assert banned.tilts[2] == 0
    assert banned.tilts[1] < banned.tilts[0]
