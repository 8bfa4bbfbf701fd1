"""Tilts: constants per class that the batch as a whole, or what is known about it in advance, adds to the scores.

**Offset.** A common offset d of the items, and shares that follow the numbers of examples, `π_k ∝ s_k^η`. With q_k the
shares that the scores give and μ_k the class means, `r = z̄ - Σ_k q_k μ_k` is what the classes do not explain. Chance
alone makes `|r|²` about `V/m + V Σ_k q_k²/s_k`, from m items and from means of s_k examples; d is r, shrunk by twice
that. Both change a score by a constant per class: `S_nk - <d, W_k> + η ln s_k`.

**Prior.** What is known about a batch before it is seen. Weights w_k give shares `π_k ∝ w_k`, the base measure of a
Dirichlet of concentration c. With a weight of zero the class is left out of everything, as if the head did not have it.
All other weights are soft, in two ways.

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
from scipy.special import entr, log_softmax, softmax

from handful.engine.limits import EQUAL
from handful.engine.settings import DEFAULT, Settings
from handful.shapes import PerBatch

Floats = npt.NDArray[np.floating]


class OffsetTilt(NamedTuple):
    """Offset of a batch, and what it adds to the scores of each class; leading axes are the batches of a stack."""

    offset: Floats  # [..., dim]
    offset_tilts: Floats  # [..., class], -<d, W_k>
    tilts: Floats  # [..., class], that and η ln s_k


def estimate_offset(
    count: Callable[[Floats], Floats],
    typical_shares: Callable[[Floats], Floats],
    n_items: PerBatch,
    centre: Floats,
    allowed: npt.NDArray[np.bool_],
    weights: Floats,
    means: Floats,
    shots: Floats,
    spread: PerBatch,
    settings: Settings = DEFAULT,
) -> OffsetTilt:
    """Estimate offset and η of each batch of a stack.

    Parameters
    ----------
    count
        From constants per class [..., class] to `Σ_n p_nk`.
    typical_shares
        The same for shares of the items that look like some class: others favour classes of many examples.
    n_items, centre
        Number of the items [...], and their mean [..., dim] about the origin of the head.
    allowed
        Classes that are not ruled out, [..., class].
    weights, means, shots
        Of the head: [class, dim], [class, dim] and the number of examples of each class.
    spread
        V [...], the mean squared distance of an item from its class mean; if it is zero there is no offset.
    """
    log_shots = np.log(shots.astype(np.float64))
    log_shots = log_shots - (allowed * log_shots).sum(-1, keepdims=True) / allowed.sum(-1, keepdims=True)
    log_shots = np.where(allowed, log_shots, 0.0)
    uneven = np.abs(log_shots).max(-1) > EQUAL
    offset = np.zeros_like(centre)
    offset_tilts = np.zeros(allowed.shape)
    eta = np.zeros(allowed.shape[:-1])
    for _ in range(settings.offset_steps if np.any(spread) or uneven.any() else 0):
        tilts = offset_tilts + eta[..., None] * log_shots
        shares = count(tilts) / n_items[..., None]
        if uneven.any():
            eta = np.where(uneven, _eta(eta, log_shots, allowed, typical_shares(tilts), settings), 0.0)
        if np.any(spread):
            unexplained = centre - shares.astype(means.dtype) @ means
            noise = settings.offset_chance * spread * (1 / n_items + (shares**2 / shots).sum(-1))
            square = np.maximum((unexplained**2).sum(-1), np.finfo(np.float64).tiny)
            offset = np.maximum(0.0, 1 - noise / square)[..., None] * unexplained
            if not offset.any() and not offset_tilts.any() and not uneven.any():
                break
            offset_tilts = -(offset.astype(weights.dtype) @ weights.T).astype(np.float64)
    return OffsetTilt(offset, offset_tilts, offset_tilts + eta[..., None] * log_shots)


def _eta(
    eta: Floats, log_shots: Floats, allowed: npt.NDArray[np.bool_], shares: Floats, settings: Settings
) -> PerBatch:
    """Newton steps to the mode of η ~ N(0, 1) in [-½, 1½]; the shares are as many draws as classes they occupy."""
    precision = 1 / settings.eta_sd**2
    draws = np.exp(entr(shares).sum(-1))
    seen = (shares * log_shots).sum(-1)
    for _ in range(settings.newton_steps):
        expected = np.where(allowed, np.exp(eta[..., None] * log_shots), 0.0)
        expected /= expected.sum(-1, keepdims=True)
        mean = (expected * log_shots).sum(-1)
        variance = (expected * log_shots**2).sum(-1) - mean**2
        slope = draws * (seen - mean) - precision * eta
        eta = np.clip(eta + slope / (draws * variance + precision), settings.eta_least, settings.eta_most)
    return eta


@dataclass(frozen=True, eq=False)
class Prior:
    """Shares of the classes in each batch before it is seen; make one with `Prior.of`.

    Attributes
    ----------
    log_shares
        ln π_k [batch, class]; -inf for classes that are excluded.
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


class PriorTilt(NamedTuple):
    """What weights make of a batch; leading axes are the batches of a stack."""

    tilts: Floats  # [..., class], t_k; zero for excluded classes
    weight: PerBatch  # [...], γ


def tilt_by_prior(
    log_shares: Floats,
    concentration: PerBatch,
    n_items: PerBatch,
    count: Callable[[Floats], Floats],
    settings: Settings = DEFAULT,
) -> PriorTilt:
    """Weigh a prior against the batch; `count(tilts)` returns `Σ_n p_nk` under constants per class, none if excluded.

    Examples
    --------
    >>> one_of_each = lambda tilts: 2 * softmax(tilts)
    >>> tilt_by_prior(np.log([0.5, 0.5]), 300.0, 2, one_of_each).tilts.tolist()
    [0.0, 0.0]
    """
    excluded = np.isneginf(log_shares)
    log_weights = np.where(excluded, 0, log_shares - log_shares.max(-1, keepdims=True))

    def shares(weight: PerBatch) -> Floats:
        return np.asarray(softmax(np.where(excluded, -np.inf, weight[..., None] * log_weights), axis=-1))

    precision = 1 / settings.gamma_sd**2
    weight = np.zeros(log_weights.shape[:-1])
    for _ in range(settings.gamma_steps):
        seen = (count(weight[..., None] * log_weights) * log_weights).sum(-1)
        for _ in range(settings.newton_steps):
            expected = shares(weight)
            mean = (expected * log_weights).sum(-1)
            variance = (expected * log_weights**2).sum(-1) - mean**2
            slope = seen - n_items * mean - precision * (weight - 1)
            weight = np.clip(weight + slope / (n_items * variance + precision), 0.0, 1.0)
    expected = np.asarray(concentration)[..., None] * shares(weight)
    tilts = np.zeros_like(log_weights)
    for _ in range(settings.prior_steps):
        counts = count(tilts)
        ratio = (counts + expected) / (counts + expected.max(-1, keepdims=True))
        tilts = np.log(np.where(excluded, 1, ratio))
    return PriorTilt(tilts, weight)
