"""Tilts: constants per class that the batch as a whole, or what is known about it in advance, adds to the scores."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from handful.model.arrays import Floats
from handful.model.knowledge import Prior
from handful.model.offset import BatchTilts, estimate_offset
from handful.model.prior import weigh_prior
from handful.model.scores import Scores
from handful.model.settings import Settings
from handful.model.vectors import Vectors


class Tilts(NamedTuple):
    """What is added to the scores of each class."""

    of_batch: BatchTilts
    total: Floats  # [batch, class], of offset, numbers of examples and prior
    prior_weight: Floats  # [batch], γ; one without a prior

    def lowered(self, nats: Floats) -> Tilts:
        """Return the same with some classes less likely, by nats [batch, class]."""
        return self._replace(total=self.total - nats) if nats.any() else self


def estimate_tilts(scores: Scores, vectors: Vectors | None, prior: Prior | None, settings: Settings) -> Tilts:
    """Estimate the offset, then how far the prior holds."""
    of_batch = estimate_offset(scores, vectors, settings)
    n_batches = len(scores.labelled)
    if prior is None:
        return Tilts(of_batch, of_batch.total, np.ones(n_batches))

    def counts(tilts: Floats) -> Floats:
        return scores.counts(of_batch.total + tilts)

    found = weigh_prior(prior, np.full(n_batches, float(scores.n_items)), counts, settings)
    return Tilts(of_batch, of_batch.total + found.tilts, found.weight)
