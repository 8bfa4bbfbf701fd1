"""Labels of items: each alone, jointly, and among the classes that have a name."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from handful.model.arrays import ClassColumns, Doubles, Floats, Ints, put_columns, take_columns
from handful.model.evidence import Linked, find_places, gather_evidence
from handful.model.knowledge import FixedLabels
from handful.model.limits import LOWEST
from handful.model.means import MovedMeans
from handful.model.presence import AloneLabels, Presence, joint_labels, log_absence
from handful.model.scores import Scores, class_factors
from handful.model.settings import Settings
from handful.model.tilts import Tilts
from handful.model.unknown_in_batch import UnknownPosterior
from handful.model.vectors import Vectors


class Move(NamedTuple):
    """Class means that moved with the items of each batch."""

    means: MovedMeans
    columns: ClassColumns  # [batch, column], classes that moved


class Decision(NamedTuple):
    """What each batch is like; labels any of its items."""

    n_classes: Ints  # [batch], that are not ruled out
    tilts: Tilts
    present: Presence
    distance: Floats  # [batch], f, see `distance_ratio`
    move: Move | None  # None if nothing moves
    unknown: UnknownPosterior | None  # None if the catalogue cannot tell


class ItemLabels(NamedTuple):
    """Labels of some items of each batch."""

    probabilities: Floats  # q [batch, item, class]
    confidence: Floats  # [batch, item]
    log_absence: Floats  # [batch, 2, class], as in `log_absence`
    unknown: Doubles | None  # [batch, item]; None if the catalogue cannot tell

    @property
    def known(self) -> Doubles:
        """Chance of each item to have a class, [batch, item]; one if the catalogue cannot tell."""
        return np.ones(self.confidence.shape) if self.unknown is None else 1 - self.unknown

    @classmethod
    def joined(cls, parts: Sequence[ItemLabels]) -> ItemLabels:
        """Put those of parts of a batch one after the other."""
        if len(parts) == 1:
            return parts[0]
        unknown = [part.unknown for part in parts if part.unknown is not None]
        return cls(
            np.concatenate([part.probabilities for part in parts], 1),
            np.concatenate([part.confidence for part in parts], 1),
            np.sum([part.log_absence for part in parts], 0),
            np.concatenate(unknown, 1) if unknown else None,
        )


class NamedLabels(NamedTuple):
    """Labels of some items among the classes that have a name."""

    probabilities: Floats  # [batch, item, class], as if every item had one of them
    unknown: Doubles | None  # [batch, item], chance to have none of them; None if the catalogue cannot tell
    unnamed: Ints  # [batch, item], the class without a name that it likely has, -1 if none


def label_alone(scores: Scores, tilts: Tilts) -> AloneLabels:
    """`E_nk ∝ exp(S_nk + t_k)`."""
    factors = class_factors(tilts.total)[:, None].astype(scores.likelihood.dtype)
    return AloneLabels.of(scores.likelihood * factors)


def label_alone_after_move(
    scores: Scores, vectors: Vectors, tilts: Tilts, move: Move, responsibilities: Floats | None
) -> AloneLabels:
    """`E_nk` with what scores gain by moved means; `responsibilities` as in `MovedMeans.gains`."""
    factors = class_factors(tilts.total)[:, None].astype(scores.likelihood.dtype)
    likelihood = scores.likelihood * factors
    gains = move.means.gains(vectors.without(tilts.of_batch.offset), responsibilities)
    logits = gains + np.log(take_columns(factors, move.columns))
    logits += take_columns(scores.nats, move.columns) - scores.top
    possible = take_columns(scores.likelihood, move.columns) > 0
    put_columns(likelihood, move.columns, np.exp(logits.clip(LOWEST, -LOWEST)) * possible)
    return AloneLabels.of(likelihood)


def label_items(
    decision: Decision,
    scores: Scores,
    vectors: Vectors | None,
    alone: AloneLabels,
    labels: FixedLabels | None,
    settings: Settings,
    linked: Linked | None = None,
) -> ItemLabels:
    """Label items of the batches that were decided.

    Parameters
    ----------
    decision
        What each batch is like.
    scores, vectors, labels
        The items, and the classes that a person gave to some of them.
    alone
        Their labels alone.
    settings
        Numbers of the model.
    linked
        Their links, and the anchors' values; by default items of the same batch are linked.
    """
    present = decision.present
    joint = joint_labels(alone, present, decision.n_classes, settings)
    unknown: Doubles | None = None
    if decision.unknown is not None and vectors is not None:
        of_batch = decision.tilts.of_batch
        places = find_places(vectors, of_batch, present, joint)
        evidence = gather_evidence(scores, vectors, of_batch, present, places, labels, linked)
        unknown = np.where(scores.labelled, 0.0, decision.unknown.of_items(evidence))
    alone_weight = present.alone_weight[:, None].astype(joint.columns.dtype)
    of_columns = alone.of_columns(present.columns)
    own = (1 - alone_weight[..., None]) * joint.columns + alone_weight[..., None] * of_columns
    q = alone.with_columns((1 - alone_weight) * joint.others + alone_weight, present.columns, own)
    if (decision.distance > 1).any():
        # A batch that is farther from the catalogue than its own examples is labelled with less certainty.
        power = np.maximum(decision.distance, 1) ** -settings.less_certain
        q **= power[:, None, None].astype(q.dtype)
        q /= q.sum(-1, keepdims=True)
    return ItemLabels(q, scores.confidence, log_absence(alone, joint.others), unknown)


def fold_unnamed(labels: ItemLabels, n_named: int, settings: Settings) -> NamedLabels:
    """Fold the classes without a name, which come last, into the chance to be unknown: `1 - (1 - u)(1 - Σ q)`."""
    q = labels.probabilities
    if q.shape[-1] == n_named:
        return NamedLabels(q, labels.unknown, np.full(labels.confidence.shape, -1))
    of_unnamed = q[..., n_named:]
    known = labels.known
    total = np.clip(1 - known * (1 - of_unnamed.sum(-1, dtype=np.float64)), 0, 1)
    best = of_unnamed.argmax(-1)
    likely = known * np.take_along_axis(of_unnamed, best[..., None], -1)[..., 0]
    unnamed = np.where((total > settings.rejected) & (likely > 1 - known), best, -1)
    among_named = q[..., :n_named]
    of_named = among_named.sum(-1, keepdims=True)
    # An item without any chance of a named class is as likely each of them.
    shares = np.divide(among_named, of_named, out=np.full_like(among_named, 1 / n_named), where=of_named > 0)
    return NamedLabels(shares, total, unnamed)
