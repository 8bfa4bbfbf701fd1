"""Tilts: constants per class that the batch as a whole, or what is known about it in advance, adds to the scores."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from handful.engine.arrays import Floats
from handful.engine.knowledge import Prior
from handful.engine.offset import Offset, estimate_offset
from handful.engine.prior import weigh_prior
from handful.engine.scores import Scores
from handful.engine.settings import Settings
from handful.engine.vectors import Vectors


class Tilts(NamedTuple):
    """What is added to the scores of each class."""

    offset: Offset
    total: Floats  # [batch, class], of offset, numbers of examples and prior
    prior_weight: Floats  # [batch], γ; one without a prior

    def lowered(self, nats: Floats) -> Tilts:
        """Return the same with some classes less likely, by nats [batch, class]."""
        return self._replace(total=self.total - nats)


def estimate_tilts(
    scores: Scores, vectors: Vectors | None, prior: Prior | None, weights: Floats, typical: Floats, settings: Settings
) -> Tilts:
    """Estimate the offset, then how far the prior holds, from items of these weights; see `estimate_offset`."""
    offset = estimate_offset(scores, vectors, weights, typical, settings)
    if prior is None:
        return Tilts(offset, offset.tilts, np.ones(len(weights)))

    def counts(tilts: Floats) -> Floats:
        return scores.counts(offset.tilts + tilts, weights[:, None])[:, 0]

    found = weigh_prior(prior, weights.sum(-1), counts, settings)
    return Tilts(offset, offset.tilts + found.tilts, found.weight)
