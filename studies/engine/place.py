"""Where a batch lies: a common offset d of its items, and shares that follow the numbers of examples, `π_k ∝ s_k^η`.

With q_k the shares that the scores give and μ_k the class means, `r = z̄ - Σ_k q_k μ_k` is what the classes do not
explain. Chance alone makes `|r|²` about `V/m + V Σ_k q_k²/s_k`, from m items and from means of s_k examples; d is r,
shrunk by twice that. Both change a score by a constant per class: `S_nk - <d, W_k> + η ln s_k`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]

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


def place(points: Floats, scores: Floats, weights: Floats, means: Floats, shots: Floats, spread: float | None) -> Place:
    """Estimate offset and η of one batch.

    Parameters
    ----------
    points, scores
        Items [item, dim] about the origin of the head, and their scores [item, class]; -inf for a class that is ruled
        out.
    weights, means, shots
        Of the head: [class, dim], [class, dim] and the number of examples of each class.
    spread
        V, the mean squared distance of an item from its class mean; without it there is no offset.

    Examples
    --------
    >>> means = np.eye(3)
    >>> points = np.repeat(means, 20, axis=0) + np.array([0.0, 0.0, 1.0])
    >>> found = place(points, 5 * points @ means.T, 5 * means, means, np.ones(3), spread=0.01)
    >>> found.offset.round(1).tolist()
    [0.0, 0.0, 1.0]
    """
    allowed: npt.NDArray[np.bool_] = np.any(np.isfinite(scores), axis=0)
    log_shots = np.log(shots.astype(np.float64))
    log_shots = np.where(allowed, log_shots - log_shots[allowed].mean(), 0.0)
    uneven = bool(np.abs(log_shots).max() > 1e-6)
    centre, n_items = points.mean(0, dtype=np.float64), len(points)
    offset, moved, eta = np.zeros_like(centre), np.zeros(len(means)), 0.0
    if not uneven and not spread:
        return Place(offset, moved)
    for _ in range(ROUNDS):
        shares = _shares(scores + (moved + eta * log_shots))
        if uneven:
            eta = _eta(eta, log_shots, allowed, shares)
        if spread:
            unexplained = centre - shares @ means
            noise = CHANCE * spread * (1 / n_items + float((shares**2 / shots).sum()))
            square = max(float(unexplained @ unexplained), np.finfo(np.float64).tiny)
            offset = max(0.0, 1 - noise / square) * unexplained
            moved = -(weights @ offset)
    return Place(offset, moved + eta * log_shots)


def _shares(scores: Floats) -> Floats:
    """Mean over the items of `softmax_k S_nk`."""
    likely = np.exp(scores - scores.max(1, keepdims=True))
    return np.asarray((likely / likely.sum(1, keepdims=True)).mean(0), dtype=np.float64)


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
