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

Floats = npt.NDArray[np.floating]

# An offset counts as far as it exceeds this many times what chance gives.
CHANCE = 2.0
# η is normal around zero with deviation one, and lies between these.
LEAST_ETA, MOST_ETA = -0.5, 1.5
# Updates of offset and η; each η takes some Newton steps.
ROUNDS, NEWTON_STEPS = 6, 4


class Place(NamedTuple):
    """Offset of a batch, and what it adds to the scores of each class."""

    offset: Floats  # [dim]
    tilts: Floats  # [class]


def place(
    count: Callable[[Floats], Floats],
    n_items: float,
    centre: Floats,
    allowed: npt.NDArray[np.bool_],
    weights: Floats,
    means: Floats,
    shots: Floats,
    spread: float | None,
) -> Place:
    """Estimate offset and η of one batch.

    Parameters
    ----------
    count
        From constants per class to `Σ_n p_nk`.
    n_items, centre
        Number of the items, and their mean about the origin of the head.
    allowed
        Classes that are not ruled out.
    weights, means, shots
        Of the head: [class, dim], [class, dim] and the number of examples of each class.
    spread
        V, the mean squared distance of an item from its class mean; without it there is no offset.
    """
    log_shots = np.log(shots.astype(np.float64))
    log_shots = np.where(allowed, log_shots - log_shots[allowed].mean(), 0.0)
    uneven = bool(np.abs(log_shots).max() > 1e-6)
    offset, moved, eta = np.zeros_like(centre), np.zeros(len(means)), 0.0
    if not uneven and not spread:
        return Place(offset, moved)
    for _ in range(ROUNDS):
        shares = count(moved + eta * log_shots) / n_items
        if uneven:
            eta = _eta(eta, log_shots, allowed, shares)
        if spread:
            unexplained = centre - shares.astype(means.dtype) @ means
            noise = CHANCE * spread * (1 / n_items + float((shares**2 / shots).sum()))
            square = max(float(unexplained @ unexplained), np.finfo(np.float64).tiny)
            offset = max(0.0, 1 - noise / square) * unexplained
            moved = -(weights @ offset.astype(weights.dtype)).astype(np.float64)
            if not offset.any() and not uneven:
                break
    return Place(offset, moved + eta * log_shots)


def _eta(eta: float, log_shots: Floats, allowed: npt.NDArray[np.bool_], shares: Floats) -> float:
    """Newton steps to the mode of η; the shares speak for as many draws as classes they occupy."""
    draws = float(np.exp(-(shares * np.log(np.maximum(shares, 1e-300))).sum()))
    seen = float(shares @ log_shots)
    for _ in range(NEWTON_STEPS):
        expected = np.where(allowed, np.exp(eta * log_shots), 0.0)
        expected /= expected.sum()
        mean = float(expected @ log_shots)
        variance = float(expected @ log_shots**2) - mean**2
        eta = float(np.clip(eta + (draws * (seen - mean) - eta) / (draws * variance + 1), LEAST_ETA, MOST_ETA))
    return eta
