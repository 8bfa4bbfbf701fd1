"""Weights of the classes: what is known about a batch before it is seen.

Weights w_k give shares `π_k ∝ w_k`, the base measure of a Dirichlet of concentration c. A weight of zero is a ban: the
class is left out of everything, as if the head did not have it. All other weights are soft, in two ways.

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
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.special import log_softmax, softmax

from handful.shapes import PerBatch

Floats = npt.NDArray[np.floating]

# c of weights that a user gives.
CONCENTRATION = 300.0
# Precision of γ around one, updates of γ, and Newton steps in each.
PRECISION, TRUST_STEPS, NEWTON_STEPS = 4.0, 8, 4
# Updates of the counts that weaken the prior class by class.
FADE_STEPS = 8


@dataclass(frozen=True, eq=False)
class Prior:
    """Shares of the classes in each batch before it is seen; make one with `Prior.of`.

    Attributes
    ----------
    log_shares
        ln π_k [batch, class]; -inf for classes that are banned.
    concentration
        c [batch].
    """

    log_shares: Floats
    concentration: PerBatch

    @classmethod
    def of(cls, weights: Floats, concentration: PerBatch) -> Prior:
        """Make one from weights [batch, class], of which at least one per batch is positive."""
        with np.errstate(divide="ignore"):
            return cls(log_softmax(np.log(weights.astype(np.float64)), axis=-1), concentration)


class Leaning(NamedTuple):
    """What weights make of a batch; leading axes are the batches of a stack."""

    tilts: Floats  # [..., class], t_k; zero for banned classes
    trust: PerBatch  # [...], γ


def lean(log_shares: Floats, concentration: PerBatch, n_items: PerBatch, count: Callable[[Floats], Floats]) -> Leaning:
    """Weigh a prior against the batch; `count(tilts)` returns `Σ_n p_nk` under constants per class, none if banned.

    Examples
    --------
    >>> one_of_each = lambda tilts: 2 * softmax(tilts)
    >>> lean(np.log([0.5, 0.5]), 300.0, 2, one_of_each).tilts.tolist()
    [0.0, 0.0]
    """
    banned = np.isneginf(log_shares)
    log_weights = np.where(banned, 0, log_shares - log_shares.max(-1, keepdims=True))

    def shares(trust: PerBatch) -> Floats:
        return np.asarray(softmax(np.where(banned, -np.inf, trust[..., None] * log_weights), axis=-1))

    trust = np.zeros(log_weights.shape[:-1])
    for _ in range(TRUST_STEPS):
        seen = (count(trust[..., None] * log_weights) * log_weights).sum(-1)
        for _ in range(NEWTON_STEPS):
            expected = shares(trust)
            mean = (expected * log_weights).sum(-1)
            variance = (expected * log_weights**2).sum(-1) - mean**2
            slope = seen - n_items * mean - PRECISION * (trust - 1)
            trust = np.clip(trust + slope / (n_items * variance + PRECISION), 0.0, 1.0)
    expected = np.asarray(concentration)[..., None] * shares(trust)
    tilts = np.zeros_like(log_weights)
    for _ in range(FADE_STEPS):
        counts = count(tilts)
        ratio = (counts + expected) / (counts + expected.max(-1, keepdims=True))
        tilts = np.log(np.where(banned, 1, ratio))
    return Leaning(tilts, trust)
