"""Offset: what all items of a batch have in common, and shares that follow the numbers of examples.

A common offset d of the items, and shares that follow `s_k^η`. With π_k the shares that the scores give and μ_k the
class means, `r = x̄ - Σ_k π_k μ_k` is what the classes do not explain. Chance alone makes `|r|²` about
`V/m + V Σ_k π_k²/s_k`, from m items and from means of s_k examples; d is r, shrunk by twice that. Both change a score
by a constant per class: `S_nk - <d, W_k> + η ln s_k`.

η follows from `Σ_n p_nk²`, not from `Σ_n p_nk`. An item of no class has a flat p, which leans towards classes with one
example: these have the shortest weights, so their scores fall least. Many such items would say that shares fall with
the numbers of examples, and a class with one example would take the batch.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from handful.model.arrays import Bools, Floats
from handful.model.limits import EQUAL
from handful.model.presence import occupied
from handful.model.scores import Scores
from handful.model.settings import Settings
from handful.model.vectors import Vectors


class BatchTilts(NamedTuple):
    """What all items of each batch have in common: their offset, and what is added to the scores of each class."""

    offset: Floats  # [batch, dim], d; no dimension without vectors
    of_offset: Floats  # [batch, class], -<d, W_k>
    total: Floats  # [batch, class], that and η ln s_k


def estimate_offset(scores: Scores, vectors: Vectors | None, settings: Settings) -> BatchTilts:
    """Estimate d and η of each batch; scores alone have no offset, and a single item has nothing in common."""
    possible = scores.possible
    n_batches = len(possible)
    if vectors is None or scores.n_items == 1:
        nothing = np.broadcast_to(0.0, possible.shape)
        dim = 0 if vectors is None else vectors.points.shape[-1]
        dtype = np.float64 if vectors is None else vectors.points.dtype
        return BatchTilts(np.zeros((n_batches, dim), dtype), nothing, nothing)
    log_shots = np.log(scores.shots.astype(np.float64))
    log_shots = log_shots - (possible * log_shots).sum(-1, keepdims=True) / possible.sum(-1, keepdims=True)
    log_shots = np.where(possible, log_shots, 0.0)
    uneven = np.abs(log_shots).max(-1) > EQUAL
    of_offset: Floats = np.broadcast_to(0.0, possible.shape)
    eta = np.zeros(n_batches)
    head = vectors.reference.head
    spread = vectors.spread
    centre = vectors.points.mean(1)
    offset = np.zeros_like(centre)
    tilts = of_offset
    for _ in range(settings.offset_steps if spread.any() or uneven.any() else 0):
        shares = scores.counts(tilts) / scores.n_items
        if uneven.any():
            certain = scores.certain_counts(tilts)
            certain /= certain.sum(-1, keepdims=True)
            eta = np.where(uneven, _eta(eta, log_shots, possible, certain, settings), 0.0)
        if spread.any():
            unexplained = centre - shares.astype(head.means.dtype) @ head.means
            noise = settings.offset_chance * spread * (1 / scores.n_items + (shares**2 / head.mass).sum(-1))
            square = np.maximum((unexplained**2).sum(-1), np.finfo(np.float64).tiny)
            offset = np.maximum(0.0, 1 - noise / square)[:, None] * unexplained
            if not offset.any() and not of_offset.any() and not uneven.any():
                break
            of_offset = -(offset.astype(head.weights.dtype) @ head.weights.T).astype(np.float64)
        tilts = of_offset + eta[:, None] * log_shots if uneven.any() else of_offset
    return BatchTilts(offset.astype(vectors.points.dtype), of_offset, tilts)


def _eta(eta: Floats, log_shots: Floats, possible: Bools, shares: Floats, settings: Settings) -> Floats:
    """Newton steps to the mode of η ~ N(0, 1) in [-½, 1½]; the shares are as many draws as classes they occupy."""
    precision = 1 / settings.eta_sd**2
    draws = occupied(shares)
    seen = (shares * log_shots).sum(-1)
    for _ in range(settings.newton_steps):
        expected = np.where(possible, np.exp(eta[:, None] * log_shots), 0.0)
        expected /= expected.sum(-1, keepdims=True)
        mean = (expected * log_shots).sum(-1)
        variance = (expected * log_shots**2).sum(-1) - mean**2
        slope = draws * (seen - mean) - precision * eta
        eta = np.clip(eta + slope / (draws * variance + precision), settings.eta_least, settings.eta_most)
    return eta
