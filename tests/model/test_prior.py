"""A prior is followed until the batch contradicts."""

import numpy as np
from scipy.special import softmax

from handful.model.knowledge import Prior
from handful.model.prior import weigh_prior
from handful.model.settings import DEFAULT


def prior_of(shares):
    return Prior.of(shares[None], np.array([DEFAULT.prior_concentration]))


def counted(scores):
    return lambda tilts: softmax(scores + tilts, axis=1).sum(0, keepdims=True)


def test_an_item_that_says_nothing_follows_the_weights():
    shares = np.array([0.7, 0.2, 0.1])
    found = weigh_prior(prior_of(shares), np.array([1]), counted(np.zeros((1, 3))))
    assert np.allclose(softmax(found.tilts[0]), shares, atol=0.02)
    assert found.weight > 0.9


def test_a_large_batch_contradicts():
    shares = np.array([0.98, 0.01, 0.01])
    scores = 8 * np.eye(3)[np.full(3000, 1)]
    found = weigh_prior(prior_of(shares), np.array([3000]), counted(scores))
    assert found.weight < 0.1
    assert found.tilts[0, 1] > -0.2


def test_a_banned_class_has_no_tilt():
    excluded = weigh_prior(prior_of(np.array([0.9, 0.1, 0.0])), np.array([2]), counted(np.zeros((2, 3))))
    assert excluded.tilts[0, 2] == 0
    assert excluded.tilts[0, 1] < excluded.tilts[0, 0]
