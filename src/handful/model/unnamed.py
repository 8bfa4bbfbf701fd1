"""Classes without a name are less likely, the more so the farther the batch is from the catalogue.

A person opens such a class with items of the batch itself. Few examples attract more than their share; and in a batch
from elsewhere all items look more like them than like the classes of the catalogue, whatever they are. With f how many
times as far the batch is as left-out examples, their scores are lowered by `0.4 + 3 ln f` nats, f at least one.
"""

from __future__ import annotations

import numpy as np

from handful.model.arrays import Floats
from handful.model.evidence import distance_ratio, find_places
from handful.model.labels import label_alone
from handful.model.presence import find_sets, joint_labels
from handful.model.scores import Scores
from handful.model.settings import Settings
from handful.model.tilts import Tilts
from handful.model.vectors import Vectors


def nats_of_unnamed(scores: Scores, vectors: Vectors | None, tilts: Tilts, settings: Settings) -> Floats:
    """Return the nats by which each class is less likely, [batch, class]; zero for all that have a name."""
    if vectors is None or vectors.reference.n_unnamed == 0:
        return np.broadcast_to(0.0, tilts.total.shape)
    unnamed = vectors.reference.is_unnamed
    first = tilts.lowered(settings.unnamed_first * unnamed)
    alone = label_alone(scores, first)
    present = find_sets(alone, scores.shots, scores.n_possible, settings)
    joint = joint_labels(alone, present, scores.n_possible, settings)
    places = find_places(vectors, first.of_batch, present, joint)
    distance = distance_ratio(scores, vectors, first.of_batch, places)
    nats = settings.unnamed + settings.unnamed_elsewhere * np.log(np.maximum(distance, 1.0))
    return np.asarray(nats[:, None] * unnamed)
