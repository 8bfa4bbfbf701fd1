"""Prior: what is known about the shares of the classes before a batch is seen, weighed against the batch.

Shares π_k are the base measure of a Dirichlet of concentration c. With a share of zero the class is left out of
everything, as if the head did not have it. All other shares are soft, in two ways.

**The batch may contradict all of them.** The shares are taken to be `π_k ∝ w_k^γ`, with γ between 0, the weights say
nothing, and 1, they hold. γ is drawn towards one, `γ ~ N(1, 1/4)`, and is estimated from the batch by expectation
maximisation. That starts at γ = 0, so the batch decides first:

    N_k = Σ_n p_nk(γ),    γ = argmax Σ_k N_k ln π_k(γ) - 2 (γ - 1)².

**A single class may contradict its own.** With `a_k = c π_k`, a class is tilted by

    t_k = ln[ (N_k + a_k) / (N_k + max_j a_j) ]

and N_k follows from that, until both agree. A class of a small share loses as much as its share says while it holds
nothing, and nothing once it holds many more items than the prior expects of any class. So a small batch depends mostly
on the prior, and a large one on itself. Equal weights change nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from scipy.special import softmax

from handful.model.arrays import Floats
from handful.model.knowledge import Prior
from handful.model.settings import DEFAULT, Settings


class PriorTilt(NamedTuple):
    """What weights make of each batch."""

    tilts: Floats  # [batch, class], t_k; zero for excluded classes
    weight: Floats  # [batch], γ


def weigh_prior(
    prior: Prior, n_items: Floats, count: Callable[[Floats], Floats], settings: Settings = DEFAULT
) -> PriorTilt:
    """Weigh a prior against the batch.

    Parameters
    ----------
    prior
        What is known.
    n_items
        [batch], number of items.
    count
        Returns `Σ_n p_nk` [batch, class] under constants per class, none if excluded.
    settings
        Numbers of the model.

    Examples
    --------
    >>> prior = Prior.of(np.array([[1.0, 1.0]]), np.array([300.0]))
    >>> weigh_prior(prior, np.array([2.0]), lambda tilts: 2 * softmax(tilts, axis=-1)).tilts.tolist()
    [[0.0, 0.0]]
    """
    possible = prior.possible
    log_weights = np.log(np.where(possible, prior.shares / prior.shares.max(-1, keepdims=True), 1.0))

    def shares(weight: Floats) -> Floats:
        return np.asarray(softmax(np.where(possible, weight[:, None] * log_weights, -np.inf), axis=-1))

    precision = 1 / settings.gamma_sd**2
    weight = np.zeros(len(log_weights))
    for _ in range(settings.gamma_steps):
        seen = (count(weight[:, None] * log_weights) * log_weights).sum(-1)
        for _ in range(settings.newton_steps):
            expected = shares(weight)
            mean = (expected * log_weights).sum(-1)
            variance = (expected * log_weights**2).sum(-1) - mean**2
            slope = seen - n_items * mean - precision * (weight - 1)
            weight = np.clip(weight + slope / (n_items * variance + precision), 0.0, 1.0)
    expected = prior.concentration[:, None] * shares(weight)
    tilts = np.zeros_like(log_weights)
    for _ in range(settings.prior_steps):
        counts = count(tilts)
        ratio = (counts + expected) / (counts + expected.max(-1, keepdims=True))
        tilts = np.log(np.where(possible, ratio, 1))
    return PriorTilt(tilts, weight)
