"""Where a batch lies: a common offset d of its items, and shares that follow the numbers of examples, `π_k ∝ s_k^η`.

With q_k the shares that the scores give and μ_k the class means, `r = z̄ - Σ_k q_k μ_k` is what the classes do not
explain. Chance alone makes `|r|²` about `V/m + V Σ_k q_k²/s_k`, from m items and from means of s_k examples; d is r,
shrunk by twice that. Both change a score by a constant per class: `S_nk - <d, W_k> + η ln s_k`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.special import entr

from handful.shapes import PerBatch

Floats = npt.NDArray[np.floating]

# An offset counts as far as it exceeds this many times what chance gives.
CHANCE = 2.0
# η is normal around zero with deviation one, and lies between these.
LEAST_ETA, MOST_ETA = -0.5, 1.5
# Updates of offset and η; each η takes some Newton steps.
ROUNDS, NEWTON_STEPS = 6, 4


class Place(NamedTuple):
    """Offset of a batch, and what it adds to the scores of each class; leading axes are the batches of a stack."""

    offset: Floats  # [..., dim]
    moved: Floats  # [..., class], -<d, W_k>
    tilts: Floats  # [..., class], that and η ln s_k


def place(
    count: Callable[[Floats], Floats],
    typical: Callable[[Floats], Floats],
    n_items: PerBatch,
    centre: Floats,
    allowed: npt.NDArray[np.bool_],
    weights: Floats,
    means: Floats,
    shots: Floats,
    spread: PerBatch,
) -> Place:
    """Estimate offset and η of each batch of a stack.

    Parameters
    ----------
    count
        From constants per class [..., class] to `Σ_n p_nk`.
    typical
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
    uneven = np.abs(log_shots).max(-1) > 1e-6
    offset, moved, eta = np.zeros_like(centre), np.zeros(allowed.shape), np.zeros(allowed.shape[:-1])
    for _ in range(ROUNDS if np.any(spread) or uneven.any() else 0):
        tilts = moved + eta[..., None] * log_shots
        shares = count(tilts) / n_items[..., None]
        if uneven.any():
            eta = np.where(uneven, _eta(eta, log_shots, allowed, typical(tilts)), 0.0)
        if np.any(spread):
            unexplained = centre - shares.astype(means.dtype) @ means
            noise = CHANCE * spread * (1 / n_items + (shares**2 / shots).sum(-1))
            square = np.maximum((unexplained**2).sum(-1), np.finfo(np.float64).tiny)
            offset = np.maximum(0.0, 1 - noise / square)[..., None] * unexplained
            if not offset.any() and not moved.any() and not uneven.any():
                break
            moved = -(offset.astype(weights.dtype) @ weights.T).astype(np.float64)
    return Place(offset, moved, moved + eta[..., None] * log_shots)


def _eta(eta: Floats, log_shots: Floats, allowed: npt.NDArray[np.bool_], shares: Floats) -> PerBatch:
    """Newton steps to the mode of η, [...]; the shares speak for as many draws as classes they occupy."""
    draws, seen = np.exp(entr(shares).sum(-1)), (shares * log_shots).sum(-1)
    for _ in range(NEWTON_STEPS):
        expected = np.where(allowed, np.exp(eta[..., None] * log_shots), 0.0)
        expected /= expected.sum(-1, keepdims=True)
        mean = (expected * log_shots).sum(-1)
        variance = (expected * log_shots**2).sum(-1) - mean**2
        eta = np.clip(eta + (draws * (seen - mean) - eta) / (draws * variance + 1), LEAST_ETA, MOST_ETA)
    return eta
