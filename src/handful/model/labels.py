"""Labels of items: each alone, jointly, and among the classes that have a name."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from handful.model.arrays import ClassColumns, Doubles, Floats, Ints, put_columns, take_columns
from handful.model.evidence import Linked, find_places, gather_evidence
from handful.model.knowledge import FixedLabels
from handful.model.limits import LOWEST, SAME_CHANCE
from handful.model.means import MovedMeans
from handful.model.presence import AloneLabels, NearClasses, Presence, joint_labels, log_absence
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
    near: NearClasses | None = None  # the classes of each batch; None if these are all classes

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
    if not tilts.total.any():
        return AloneLabels(scores.likelihood, scores.confidence)
    factors = class_factors(tilts.total)[:, None].astype(scores.likelihood.dtype)
    return AloneLabels.of(scores.likelihood * factors)


def label_alone_after_move(
    alone: AloneLabels, scores: Scores, vectors: Vectors, tilts: Tilts, move: Move, responsibilities: Floats | None
) -> AloneLabels:
    """`E_nk` with what scores gain by moved means; `responsibilities` as in `MovedMeans.gains`."""
    factors = class_factors(tilts.total)[:, None].astype(scores.likelihood.dtype)
    likelihood = alone.likelihood.copy()
    gains = move.means.gains(vectors.without(tilts.of_batch.offset), responsibilities)
    logits = gains + np.log(take_columns(factors, move.columns))
    logits += take_columns(scores.nats, move.columns) - scores.top
    possible = take_columns(scores.likelihood, move.columns) > 0
    put_columns(likelihood, alone.places(move.columns), np.exp(logits.clip(LOWEST, -LOWEST)) * possible)
    return AloneLabels.of(likelihood, alone.near)


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
        evidence = decision.unknown.evidence
        if scores.n_items > 1 or linked is not None:  # what a single item decided is what is known about it
            places = find_places(vectors, of_batch, present, joint)
            evidence = gather_evidence(scores, vectors, of_batch, present, places, labels, linked)
        unknown = np.where(scores.labelled, 0.0, decision.unknown.of_items(evidence))
    alone_weight = present.alone_weight[:, None].astype(joint.columns.dtype)
    of_columns = alone.of_columns(present.columns)
    own = (1 - alone_weight[..., None]) * joint.columns + alone_weight[..., None] * of_columns
    factors = (1 - alone_weight) * joint.others + alone_weight
    q = alone.with_columns(factors, present.columns, own)
    if (decision.distance > 1).any():
        # A batch that is farther from the catalogue than its own examples is labelled with less certainty.
        power = np.maximum(decision.distance, 1) ** -settings.less_certain
        q = less_certain(q, power[:, None].astype(q.dtype), factors * alone.scale, alone.near)
    return ItemLabels(q, scores.confidence, log_absence(alone, joint.others), unknown, alone.near)


def less_certain(q: Floats, power: Floats, scale: Floats, near: NearClasses | None) -> Floats:
    """`q^p / Σ_k q_k^p` with p [batch, 1]; classes that are not near have `q = scale exp(S + t)`.

    Examples
    --------
    >>> q = np.array([[[0.64, 0.32, 0.04]]])
    >>> near = NearClasses(np.array([[0, 1]]), np.array([[0.04]]), q)
    >>> half, one = np.array([[0.5]]), np.array([[1.0]])
    >>> less_certain(q, half, one, None)[..., :2].round(3).tolist()
    [[[0.511, 0.361]]]
    >>> less_certain(q[..., :2], half, one, near).round(3).tolist()
    [[[0.511, 0.361]]]
    """
    powered = q ** power[..., None]
    total = powered.sum(-1)
    if near is not None:
        each = np.broadcast_to(power, total.shape)
        rest = scale * near.rest
        total += np.where(each < 1, 0, rest)
        # Equal shares of the rest are the most that its powers can add up to.
        some = (each < 1) & (near.n_others ** (1 - each) * rest**each > SAME_CHANCE)
        if some.any():
            total[some] += scale[some] ** each[some] * near.rest_of_powers(each, some)
    return np.asarray(powered / total[..., None])


def fold_unnamed(labels: ItemLabels, n_named: int, settings: Settings) -> NamedLabels:
    """Fold the classes without a name, which come last, into the chance to be unknown: `1 - (1 - u)(1 - Σ q)`."""
    q = labels.probabilities
    if labels.near is not None or q.shape[-1] == n_named:
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
