"""Label a batch: `S = z Wᵀ + b`, its offset, the classes present, class means that move once, and the classes again.

This file is the model from end to end; every step is one call. `decide` finds out what the batch is like from a part of
its items: its offset, which classes are present, how class means move, and whether something is unknown. A `Decision`
then labels any items of the batch, each in one pass: a batch in memory, a block of a stream, or the part itself, whose
items are left out of the class means that they moved. `summarize` says the rest, from sums over items.

Batches of one size are labelled as one stack: arrays may have a leading axis, one entry per batch, and no entry changes
the answer about another. A single batch has no such axis, and nothing else is different.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from handful.engine.head import LinearHead
from handful.engine.limits import BLOCK_ROWS, FEWEST_AT_A_TIME, IN_BLOCK, IN_MEMORY, IN_STACK, LEAST_TYPICAL, LOWEST
from handful.engine.links import Anchors, Links, NewGroup, find_copies, new_groups
from handful.engine.means import MovedMeans, class_slopes
from handful.engine.presence import (
    ItemPosterior,
    PresenceSamples,
    class_sizes,
    joint_posterior,
    log_absence,
    mean_likelihood,
    presence_probability,
    put_columns,
    sample_presence,
    take_columns,
)
from handful.engine.settings import DEFAULT, Settings
from handful.engine.tilt import OffsetTilt, Prior, estimate_offset, tilt_by_prior
from handful.engine.unknown import UnknownModel
from handful.engine.unknown_items import (
    UnknownEvidence,
    UnknownPosterior,
    known_probability,
    rejection_limit,
    single_known_probability,
)
from handful.shapes import PerBatch

Floats = npt.NDArray[np.floating]
Doubles = npt.NDArray[np.float64]
Ints = npt.NDArray[np.integer]
Bools = npt.NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Context:
    """What is known about a batch in advance, or about each batch of a stack.

    Attributes
    ----------
    log_shares, concentration
        Shares of the classes [..., class], as logarithms, -inf for a class that cannot occur; and how closely the batch
        is expected to follow them, as a number of items. None if nothing is known.
    allowed
        Classes that each item may have, [..., item, class]; None if it may have all.
    fixed_labels
        The class of each item that a person labelled, and -1 for all others, [..., item]; None if nobody labelled any.
    unknown_share
        a and b of a Beta distribution of the share of items of no class, [..., 2]; a = 0 if there are none, NaN for a
        batch of a stack about which this is not known, None if it is known about none.
    """

    log_shares: Floats | None = None
    concentration: PerBatch = DEFAULT.prior_concentration
    allowed: Bools | None = None
    fixed_labels: Ints | None = None
    unknown_share: Floats | None = None

    @classmethod
    def of(cls, prior: Prior | None, batch: int = 0, fixed_labels: Ints | None = None) -> Context:
        """Make one for one of the batches of a prior."""
        if prior is None:
            return cls(fixed_labels=fixed_labels)
        return cls(prior.log_shares[batch], float(prior.concentration[batch]), fixed_labels=fixed_labels)

    @classmethod
    def stacked(cls, contexts: Sequence[Context]) -> Context:
        """Put those of several batches together, about all of which the same things are known."""
        names = ("log_shares", "concentration", "allowed", "fixed_labels", "unknown_share")
        parts = {name: [getattr(one, name) for one in contexts] for name in names}
        return cls(**{name: np.stack(part) for name, part in parts.items() if part[0] is not None})

    @property
    def is_empty(self) -> bool:
        """Whether nothing is known about the classes of items."""
        return self.log_shares is None and self.allowed is None and self.fixed_labels is None

    def with_unnamed(self, n_unnamed: int) -> Context:
        """Return the same with classes without a name at the end: all items may have them, at the mean weight."""
        if n_unnamed == 0:
            return self
        allowed = self.allowed
        log_shares = self.log_shares
        if allowed is not None:
            allowed = np.concatenate([allowed, np.ones((*allowed.shape[:-1], n_unnamed), bool)], -1)
        if log_shares is not None:
            weights = np.exp(log_shares)
            usual = 1 / (weights > 0).sum(-1, keepdims=True)  # of shares that add up to one
            weights = np.concatenate([weights, np.repeat(usual, n_unnamed, -1)], -1)
            with np.errstate(divide="ignore"):
                log_shares = np.log(weights / weights.sum(-1, keepdims=True))
        return replace(self, allowed=allowed, log_shares=log_shares)

    def rows(self, rows: Ints | slice) -> Context:
        """Return what is known about some of the items of a batch."""
        allowed = None if self.allowed is None else self.allowed[rows]
        fixed_labels = None if self.fixed_labels is None else self.fixed_labels[rows]
        return replace(self, allowed=allowed, fixed_labels=fixed_labels)


@dataclass(frozen=True, eq=False)
class Reference:
    """What batches are compared with: a head, and what items of no class look like.

    The last `n_unnamed` classes of the head have no name: a person said of their examples that they are none of the
    others. They take part like all classes, and are unknown items in the answer.
    """

    head: LinearHead
    unknown_model: UnknownModel | None = None
    n_unnamed: int = 0
    settings: Settings = DEFAULT

    @property
    def n_named(self) -> int:
        """Number of classes that have a name."""
        return len(self.head.weights) - self.n_unnamed

    @cached_property
    def slopes(self) -> Floats:
        """κ of each class."""
        return class_slopes(self.head.weights, self.head.means)

    @cached_property
    def centre(self) -> Floats:
        """Centre of the class means."""
        return np.asarray(self.head.means.mean(0))

    @cached_property
    def lengths(self) -> Floats:
        """Squared length of each class mean, less noise."""
        return np.asarray((self.head.means**2).sum(1) - (self.head.spread or 0.0) / self.head.mass)


@dataclass(frozen=True, eq=False)
class BatchItems:
    """Items [..., item, dim] about the origin of the head, what is known about them, and their comparisons."""

    points: Floats
    reference: Reference
    context: Context = field(default_factory=Context)

    @cached_property
    def scores(self) -> Floats:
        """`S_nk`; -inf where an item cannot have the class. The only product of items and classes."""
        head = self.reference.head
        context = self.context
        shape = self.points.shape
        scores = (self.points.reshape(-1, shape[-1]) @ head.weights.T).reshape(*shape[:-1], -1)
        scores += head.offsets
        if context.log_shares is not None:
            np.copyto(scores, -np.inf, where=np.isneginf(context.log_shares)[..., None, :])
        if context.allowed is not None:
            scores[~context.allowed] = -np.inf
        if context.fixed_labels is not None:
            fixed = context.fixed_labels >= 0
            unnamed = context.fixed_labels >= self.reference.n_named
            scores[fixed & ~unnamed] = -np.inf
            # Of an item that is none of these, which class is nearest is still worth knowing.
            scores[unnamed] -= scores[unnamed].max(-1, keepdims=True) + self.reference.settings.ruled_out
            scores[(*np.nonzero(fixed), context.fixed_labels[fixed])] = 0
        return scores

    @cached_property
    def top(self) -> Floats:
        """The largest score of each item, [..., item, 1]."""
        return np.asarray(self.scores.max(-1, keepdims=True))

    @cached_property
    def likelihood(self) -> Floats:
        """`exp S_nk`, by that of the best class; with no exponent below `LOWEST` unless it is -inf."""
        likelihood = self.scores - self.top
        np.exp(np.maximum(likelihood, LOWEST, out=likelihood), out=likelihood)
        if not self.context.is_empty:
            likelihood[np.isneginf(self.scores)] = 0
        return likelihood

    @cached_property
    def spread(self) -> PerBatch:
        """V; of a catalogue that cannot tell it, half the mean squared distance of an item from its nearest mean."""
        head = self.reference.head
        points = self.points
        if head.spread is not None:
            return np.full(points.shape[:-2], head.spread)
        nearest = ((head.means**2).sum(1) - 2 * points @ head.means.T).min(-1)
        return np.asarray(((points**2).sum(-1) + nearest).mean(-1) / 2)

    @cached_property
    def typicality(self) -> Floats:
        """Chance of each item to have a class, by its own distance and score, whatever the batch is like."""
        head = self.reference.head
        model = self.reference.unknown_model
        if model is None or np.ptp(head.mass) == 0:
            return np.ones(self.points.shape[:-1])
        best = self.scores.argmax(-1)
        away = (self.points**2).sum(-1) + self.reference.lengths[best] - 2 * (self.points * head.means[best]).sum(-1)
        return single_known_probability(
            model, model.statistic(away, self.top[..., 0]), self.restriction, self.reference.settings
        )

    @cached_property
    def allowed(self) -> Bools:
        """Classes that some item may have, [..., class]."""
        if not self.context.is_empty:
            return np.asarray(self.likelihood.any(-2))
        return np.ones((*self.points.shape[:-2], self.likelihood.shape[-1]), bool)

    @cached_property
    def anchor_rows(self) -> Ints:
        """Numbers of the items that are anchors."""
        return spread_rows(self.points.shape[-2], self.reference.settings.most_anchors)

    @cached_property
    def anchors(self) -> Anchors:
        """Items that all others are linked with."""
        model = self.reference.unknown_model
        rows = self.anchor_rows
        assert model is not None
        some = slice(None) if len(rows) == self.points.shape[-2] else rows  # a copy of all would take longer
        copy_of = self.copies[0][..., some]
        reference = self.reference
        return Anchors.of(self.points[..., some, :], reference.centre, model.pair_odds, copy_of, reference.settings)

    @cached_property
    def links(self) -> Links:
        """Which items belong together."""
        anchor_of = np.full(self.points.shape[-2], -1)
        anchor_of[self.anchor_rows] = np.arange(len(self.anchor_rows))
        return self.anchors.link(self.points, anchor_of)

    @cached_property
    def restriction(self) -> Floats:
        """`1 - ln c / ln K` if c of K classes are allowed, [..., item]: `t` of unknown items grows in proportion."""
        n_classes = self.scores.shape[-1]
        if self.context.is_empty or n_classes == 1:
            return np.zeros(self.points.shape[:-1])
        allowed = np.where(self.unlabelled, np.isfinite(self.scores).sum(-1), n_classes)
        return np.asarray(1 - np.log(allowed) / np.log(n_classes))

    @cached_property
    def copies(self) -> tuple[npt.NDArray[np.intp], Floats]:
        """The first item that is equal to each, and how often it occurs, [..., item]."""
        return find_copies(self.points)

    def rows(self, rows: slice) -> BatchItems:
        """Return some of the items of a batch."""
        return BatchItems(self.points[rows], self.reference, self.context.rows(rows))

    @property
    def unlabelled(self) -> Bools:
        """Items that nobody labelled."""
        labels = self.context.fixed_labels
        return np.ones(self.points.shape[:-1], bool) if labels is None else labels == -1


class BatchTotals(NamedTuple):
    """Sums over items, and the largest chances: those of parts of a batch add. Leading axes are those of a stack."""

    counts: Doubles  # [..., class], Σ_n q_nk, unknown items apart
    log_absence: Floats  # [..., 2, class], as in `log_absence`
    confidence: PerBatch  # [...], Σ_n of the largest probability under the head
    largest: Doubles  # [..., class], max_n q_nk of known items

    @classmethod
    def added(cls, parts: Sequence[BatchTotals]) -> BatchTotals:
        """Add those of parts of a batch."""
        counts, absence, confidence, largest = zip(*parts, strict=True)
        return cls(np.sum(counts, 0), np.sum(absence, 0), np.sum(confidence, 0), np.max(largest, 0))


class ItemLabels(NamedTuple):
    """Labels of some items of a batch; leading axes are the batches of a stack."""

    probabilities: Floats  # q [..., item, class]
    confidence: Floats  # [..., item]
    log_absence: Floats  # [..., 2, class], as in `log_absence`
    unknown: Floats  # [..., item], NaN if the catalogue cannot tell

    def totals(self) -> BatchTotals:
        """Add up."""
        q = self.probabilities
        known = known_probability(self.unknown).astype(q.dtype)
        counts = np.asarray((known[..., None, :] @ q)[..., 0, :], np.float64)
        confidence = self.confidence.sum(-1, dtype=np.float64)
        largest = np.asarray((known[..., None] * q).max(-2), np.float64)
        return BatchTotals(counts, self.log_absence, confidence, largest)

    def named(self, n_named: int, settings: Settings = DEFAULT) -> NamedLabels:
        """Fold the classes without a name, which come last, into the chance to be unknown: `1 - (1 - u)(1 - Σ q)`."""
        q = self.probabilities
        unknown = self.unknown
        if q.shape[-1] == n_named:
            return NamedLabels(q, unknown, np.full(unknown.shape, -1))
        of_unnamed = q[..., n_named:]
        known = known_probability(unknown)
        total = np.clip(1 - known * (1 - of_unnamed.sum(-1, dtype=np.float64)), 0, 1)
        best = of_unnamed.argmax(-1)
        likely = known * np.take_along_axis(of_unnamed, best[..., None], -1)[..., 0]
        unnamed = np.where((total > settings.rejected) & (likely > 1 - known), best, -1)
        among_named = np.maximum(q[..., :n_named], np.finfo(q.dtype).tiny)
        return NamedLabels(among_named / among_named.sum(-1, keepdims=True), total, unnamed)

    @classmethod
    def joined(cls, parts: Sequence[ItemLabels]) -> ItemLabels:
        """Put those of parts of a batch one after the other."""
        if len(parts) == 1:
            return parts[0]
        q, confidence, absence, unknown = zip(*parts, strict=True)
        return cls(
            np.concatenate(q, -2), np.concatenate(confidence, -1), np.sum(absence, 0), np.concatenate(unknown, -1)
        )


class NamedLabels(NamedTuple):
    """Labels of some items among the classes that have a name; leading axes are the batches of a stack."""

    probabilities: Floats  # [..., item, class], as if every item had one of them
    unknown: Floats  # [..., item], chance to have none of them, NaN if the catalogue cannot tell
    unnamed: Ints  # [..., item], the class without a name that it likely has, -1 if none


class BatchSummary(NamedTuple):
    """What is said about a batch as a whole; leading axes are the batches of a stack."""

    expected_counts: Doubles  # [..., class]
    presence: Doubles  # [..., class]
    joint_weight: PerBatch  # [...]
    interval: Floats  # [..., 2], of the share of unknown items
    limit: PerBatch  # [...], chance above which an item is rejected


def summarize(
    samples: PresenceSamples,
    shots: Floats,
    totals: BatchTotals,
    n_items: PerBatch,
    posterior: UnknownPosterior | None = None,
    unknown: Floats | None = None,
    unknown_share: Floats | None = None,
    n_unnamed: int = 0,
    settings: Settings = DEFAULT,
) -> BatchSummary:
    """Say what a batch is like as a whole, in memory, of a stream, or of scores.

    Parameters
    ----------
    samples, shots
        Which classes are present, and their numbers of examples.
    totals, n_items
        Sums over the items that count, and how many these are.
    posterior
        What is known about the share of unknown items; None if the catalogue cannot tell.
    unknown, unknown_share
        Chance of each item to be unknown, and its share as in `Context`.
    n_unnamed
        Classes without a name, which come last: their items are unknown, and they are not listed.
    """
    lead = totals.counts.shape[:-1]
    presence = presence_probability(samples, shots, totals.log_absence, totals.counts, n_items, settings)
    if posterior is not None:
        presence = np.minimum(presence, totals.counts)  # by Markov's inequality
    presence = np.maximum(presence, totals.largest)  # one item that has the class is enough
    limit = np.full(lead, settings.rejected)
    if posterior is not None and unknown is not None:
        limit = rejection_limit(unknown, unknown_share, settings)
    interval = np.broadcast_to([0.0, 1.0], (*lead, 2)) if posterior is None else posterior.interval
    n_named = totals.counts.shape[-1] - n_unnamed
    if n_unnamed:
        of_unnamed = (totals.counts[..., n_named:].sum(-1) / n_items)[..., None]
        interval = of_unnamed + (1 - of_unnamed) * interval
    return BatchSummary(
        totals.counts[..., :n_named],
        presence[..., :n_named],
        np.broadcast_to(1 - samples.alone_weight, lead),
        interval,
        limit,
    )


@dataclass(frozen=True, eq=False)
class JointAnswer:
    """The answer about one batch.

    Attributes
    ----------
    probabilities
        q [item, class], as if every item had a class.
    confidence
        [item], the largest probability under the head, before anything is learned from the batch.
    expected_counts, presence
        [class], expected number of items, unknown ones apart, and the chance that there is one.
    joint_weight
        Chance that few classes with about equal shares describe the batch; else each item is labelled alone.
    prior_weight
        γ: how far the weights of the classes hold.
    unknown, interval
        Chance of each item to belong to no class, NaN if the catalogue cannot tell; and an interval for their share.
    unnamed
        [item], the class without a name that a person opened and that the item likely has; -1 for all others.
    limit
        Chance above which an item is rejected.
    groups
        Unknown items that belong together.
    """

    probabilities: Floats
    confidence: Floats
    expected_counts: Doubles
    presence: Doubles
    joint_weight: float
    prior_weight: float
    unknown: Doubles
    unnamed: Ints
    interval: tuple[float, float]
    limit: float
    groups: list[NewGroup] = field(default_factory=list)

    @classmethod
    def of(
        cls,
        labels: ItemLabels,
        named: NamedLabels,
        summary: BatchSummary,
        prior_weight: PerBatch,
        batch: tuple[int, ...] = (),
    ) -> JointAnswer:
        """Make that of one batch of a stack, or of a single batch."""
        low, high = summary.interval[batch]
        return cls(
            probabilities=named.probabilities[batch],
            confidence=labels.confidence[batch],
            expected_counts=summary.expected_counts[batch],
            presence=summary.presence[batch],
            joint_weight=float(summary.joint_weight[batch]),
            prior_weight=float(prior_weight[batch]),
            unknown=named.unknown[batch].astype(np.float64),
            unnamed=named.unnamed[batch],
            interval=(float(low), float(high)),
            limit=float(summary.limit[batch]),
        )

    def with_excluded(self, excluded: Bools) -> JointAnswer:
        """Put items that were left out back to their places: they are unknown, and count for nothing."""
        n_items = len(excluded)
        if excluded.all():
            nothing = np.zeros_like(self.presence)
            same = replace(self, expected_counts=nothing, presence=nothing, groups=[])
            return replace(same, unknown=np.ones(n_items), interval=(1.0, 1.0))
        places = np.flatnonzero(~excluded)

        def put(values: npt.NDArray[Any], other: float) -> npt.NDArray[Any]:
            table = np.full((n_items, *values.shape[1:]), other, values.dtype)
            table[places] = values
            return table

        share = float(excluded.mean())
        low, high = (share + (1 - share) * end for end in self.interval)
        return replace(
            self,
            probabilities=put(self.probabilities, 1 / self.probabilities.shape[1]),
            confidence=put(self.confidence, float(self.confidence.mean())),
            unknown=put(self.unknown, 1.0),
            unnamed=put(self.unnamed, -1),
            interval=(low, high),
            groups=[group._replace(items=places[group.items]) for group in self.groups],
        )

    @property
    def rejected(self) -> Bools:
        """Items above the limit."""
        return np.asarray(self.unknown > self.limit)


def _no_samples() -> PresenceSamples:
    return PresenceSamples.of_batch(np.zeros(0, np.intp), np.zeros((1, 0)), np.zeros(0), 1.0)


@dataclass(frozen=True, eq=False)
class Decision:
    """What a batch is like, or each batch of a stack; labels any of its items."""

    reference: Reference
    n_classes: PerBatch  # [...], that are not ruled out
    offset_tilt: OffsetTilt
    tilts: Floats  # [..., class], what offset and prior add to the scores
    prior_weight: PerBatch  # [...], γ
    unnamed_tilts: PerBatch = 0.0  # [..., class], by which classes without a name are less likely; part of the tilts
    samples: PresenceSamples = field(default_factory=_no_samples)
    moved_means: MovedMeans | None = None
    moved_columns: npt.NDArray[np.intp] | None = None  # [..., column], classes that move
    move_weight: PerBatch = 0.0  # [...], how far they do
    distance: PerBatch = 1.0  # [...], see `distance_ratio`
    unknown_posterior: UnknownPosterior | None = None
    told_posterior: UnknownPosterior | None = None  # the same with the share that was told, if one was

    @property
    def offset(self) -> Floats:
        """Offset of the items, [..., dim]."""
        return self.offset_tilt.offset

    def inside(self, items: BatchItems) -> Floats:
        """Return items without the offset, [..., item, dim]."""
        return np.asarray(items.points - self.offset[..., None, :]) if self.offset.any() else items.points

    def item_posterior(self, items: BatchItems, responsibilities: Floats | None) -> ItemPosterior:
        """Chance of each class when an item is labelled alone; `responsibilities` as in `MovedMeans.gains`."""
        factors = _factors(self.tilts)[..., None, :].astype(items.likelihood.dtype)
        likelihood = items.likelihood * factors
        if self.moved_means is not None and self.moved_columns is not None:
            columns = self.moved_columns
            gains = self.moved_means.gains(self.inside(items), responsibilities)
            weight = np.asarray(self.move_weight, gains.dtype)[..., None, None]
            logits = weight * gains + np.log(take_columns(factors, columns))
            logits += take_columns(items.scores, columns) - items.top
            possible = take_columns(items.likelihood, columns) > 0
            put_columns(likelihood, columns, np.exp(logits.clip(LOWEST, -LOWEST)) * possible)
        return ItemPosterior.of(likelihood)

    def label(
        self,
        items: BatchItems,
        responsibilities: Floats | None = None,
        posterior: ItemPosterior | None = None,
        linked: tuple[Links, Floats] | None = None,
    ) -> ItemLabels:
        """Label items.

        `responsibilities` say how far they moved the class means themselves, and `posterior` is theirs if it is known.
        `linked` are their links, and the anchors' values; by default items of the same batch are linked.
        """
        posterior = posterior or self.item_posterior(items, responsibilities)
        joint, others = joint_posterior(posterior, self.samples, self.n_classes, self.reference.settings)
        unknown = np.full(items.points.shape[:-1], np.nan)
        joint_weight = 1 - self.samples.alone_weight[..., None]
        if self.unknown_posterior is not None:
            evidence = self.unknown_evidence(items, joint, self.dots(items), linked)
            unknown = np.where(items.unlabelled, self.unknown_posterior.of_items(evidence), 0.0)
            joint_weight = joint_weight * (1 - unknown)  # an item of no class is labelled alone
            if self.told_posterior is not None:
                unknown = np.where(items.unlabelled, self.told_posterior.of_items(evidence), 0.0)
        alone = (1 - joint_weight).astype(joint.dtype)
        columns = self.samples.columns
        own = (1 - alone[..., None]) * joint + alone[..., None] * posterior.of_columns(columns)
        q = posterior.with_columns((1 - alone) * others + alone, columns, own)
        if np.any(np.asarray(self.distance) > 1):
            # A batch that is farther from the catalogue than its own examples is labelled with less certainty.
            power = np.maximum(self.distance, 1) ** -self.reference.settings.less_certain
            q **= power[..., None, None].astype(q.dtype)
            q /= q.sum(-1, keepdims=True)
        return ItemLabels(q, 1 / items.likelihood.sum(-1), log_absence(posterior, others), unknown)

    def dots(self, items: BatchItems) -> Floats:
        """`<z_n - d, μ_k>` of the candidate classes, [..., item, column]."""
        means = self.reference.head.means[self.samples.columns]
        return np.asarray(items.points @ means.swapaxes(-1, -2) - (means @ self.offset[..., None]).swapaxes(-1, -2))

    def linked_values(self, items: BatchItems, joint: Floats, dots: Floats) -> Floats:
        """Return what is averaged over groups of items, [..., item, number].

        That is `<z - c, c - d>`, with c the centre of the class means and d the offset; the score of the item's own
        classes; and the products of the item and the means of the candidate classes.
        """
        columns = self.samples.columns
        shares = self._shares(joint)
        centre = self.reference.centre
        scores = np.maximum(take_columns(items.scores, columns), items.top + LOWEST)
        tilts = take_columns(self.offset_tilt.offset_tilts, columns)[..., None, :].astype(shares.dtype)
        scores = (shares * (scores + tilts)).sum(-1)
        direction = (centre - self.offset)[..., None]
        along = items.points @ direction - centre[None] @ direction
        return np.concatenate([along, scores[..., None], dots], -1)

    def unknown_evidence(
        self, items: BatchItems, joint: Floats, dots: Floats, linked: tuple[Links, Floats] | None = None
    ) -> UnknownEvidence:
        """Compare the group of each item with the classes of the item; `linked` as in `label`."""
        model = self.reference.unknown_model
        spread = self.reference.head.spread or 0.0
        assert model is not None
        mine = self.linked_values(items, joint, dots)
        lengths = self.reference.lengths[self.samples.columns]
        links, others = linked or (items.links, mine[..., items.anchor_rows, :])
        means = links.means(others, mine)
        along = means[..., 0]
        scores = means[..., 1]
        dots = means[..., 2:]
        # |Σ_m w_nm z_m - d|², and from there the squared distance from the class.
        away = links.squares + 2 * along + ((self.reference.centre - self.offset) ** 2).sum(-1)[..., None]
        away = away + (self._shares(joint) * (lengths[..., None, :] - 2 * dots)).sum(-1)
        t = model.statistic(away + (spread - spread / links.sizes), scores)
        sizes = links.sizes
        weights = 1 / sizes
        labelled = ~items.unlabelled
        if labelled.any():
            t = t.copy()
            sizes = np.where(labelled, 1, sizes)
            weights = np.where(labelled, 1, weights)
            t[labelled], weights[labelled] = self._left_out_statistic(items, labelled)
        return UnknownEvidence(t, sizes, weights, labelled, items.restriction)

    def _left_out_statistic(self, items: BatchItems, labelled: Bools) -> tuple[Floats, Floats]:
        """`t` of the items that a person labelled, as if they were no examples, and its weight.

        With m examples of the class, the mean without z is `μ - (z - μ)/(m - 1)`. The weight is 0 if that cannot be
        known, and for a class without a name.
        """
        head = self.reference.head
        model = self.reference.unknown_model
        labels = items.context.fixed_labels
        assert model is not None
        assert labels is not None
        codes = labels[labelled]
        points = items.points[labelled].astype(np.float64)
        others = head.mass[codes].astype(np.float64) - 1
        alone = (others < 0.5) | (codes >= self.reference.n_named)
        others = np.where(others < 0.5, 1, others)
        offset = np.broadcast_to(self.offset[..., None, :], items.points.shape)[labelled]
        away = (points - head.means[codes]) * (1 + 1 / others)[:, None] - offset
        scores = ((points - offset) * head.weights[codes]).sum(-1) + head.offsets[codes] - model.gain
        t = model.statistic((away**2).sum(-1) - (head.spread or 0.0) / others, scores)
        return np.where(alone, 0, t), np.where(alone, 0.0, 1.0)

    def distance_ratio(self, items: BatchItems, joint: Floats, dots: Floats) -> PerBatch:
        """Squared distance from its class that a quarter of the items keeps, by that of left-out examples, [...]."""
        unlabelled = items.unlabelled
        model = self.reference.unknown_model
        if model is None:
            return np.ones(unlabelled.shape[:-1])
        inside = self.inside(items)
        lengths = self.reference.lengths[self.samples.columns][..., None, :]
        away = np.einsum("...d,...d->...", inside, inside) + (self._shares(joint) * (lengths - 2 * dots)).sum(-1)
        # Items that a person labelled come last, and are not counted.
        largest = np.finfo(away.dtype).max
        away = np.sort(np.where(unlabelled, away, largest), axis=-1)
        last = unlabelled.sum(-1, keepdims=True) - 1
        at = self.reference.settings.near_part * np.maximum(
            last, 0
        )  # unknown items are rarely among the nearest quarter
        lower, upper = (np.take_along_axis(away, end.astype(np.intp), -1) for end in (np.floor(at), np.ceil(at)))
        quarter = np.where(last < 0, model.quarter, lower + (at - np.floor(at)) * (upper - lower))[..., 0]
        return np.maximum(quarter / model.quarter, 0.0)

    def _shares(self, joint: Floats) -> Floats:
        """Shares of the candidate classes, by the labels of each item, [..., item, column]."""
        own = joint * self.samples.valid[..., None, :]
        return np.asarray(own / np.maximum(own.sum(-1, keepdims=True), np.finfo(own.dtype).tiny))


def decide(items: BatchItems) -> tuple[Decision, Floats]:
    """Find out what a batch is like, or each batch of a stack, from its items or from a part of them.

    Returns also the responsibilities of the classes that moved for each item, [..., item, column].
    """
    decision, responsibilities, _ = _decided(items)
    return decision, responsibilities


def _decided(items: BatchItems) -> tuple[Decision, Floats, ItemPosterior]:
    """Return also the chance of each class when an item is labelled alone."""
    reference = items.reference
    head = items.reference.head
    model = items.reference.unknown_model
    settings = items.reference.settings
    at = _tilted(items, np.ones(items.points.shape[:-1]))
    weights = items.unlabelled.astype(np.float64)
    unknown = None
    if reference.n_unnamed:
        at = _with_unnamed(at, items)
    posterior = at.item_posterior(items, None)
    at = replace(at, samples=sample_presence(posterior, head.mass, at.n_classes, settings=settings))
    joint, _ = joint_posterior(posterior, at.samples, at.n_classes, settings)
    dots = at.dots(items)
    at = replace(at, distance=at.distance_ratio(items, joint, dots))
    if model is not None:
        evidence = at.unknown_evidence(items, joint, dots)
        each = evidence._replace(weights=evidence.weights / items.copies[1])
        told = items.context.unknown_share
        # A share that is told says which items are unknown, and changes no label, unless it is zero.
        none = None if told is None else np.where(told[..., :1] == 0, told, np.nan)
        of = UnknownPosterior.of(model, each, none, settings)
        at = replace(at, unknown_posterior=of)
        if told is not None:
            at = replace(at, told_posterior=UnknownPosterior.of(model, each, told, settings))
        # A batch of unknown items is still a batch.
        weights = np.maximum(1 - np.where(items.unlabelled, of.of_evidence, 0.0) ** 2, settings.least_weight)
        if (weights < 1).any():
            unknown = (1 / weights - 1) * mean_likelihood(posterior, at.samples, at.n_classes, settings)
            again = _tilted(items, weights)
            tilts = again.tilts - at.unnamed_tilts
            at = replace(at, offset_tilt=again.offset_tilt, tilts=tilts, prior_weight=again.prior_weight)
            posterior = at.item_posterior(items, None)
            weights *= items.unlabelled  # what a person labelled is an example already
    columns = at.samples.columns
    move_weight = 1 - at.samples.alone_weight
    if not move_weight.any() and unknown is None:  # nothing moves, and nothing would change
        return at, np.zeros_like(joint), posterior
    moves = weights[..., None] * at.samples.valid[..., None, :] * (move_weight > 0)[..., None, None]
    responsibilities = joint * moves.astype(joint.dtype)
    means = head.means[columns]
    shots = head.mass[columns]
    slopes = reference.slopes[columns]
    moved = MovedMeans.of(at.inside(items), responsibilities, slopes, means, shots, items.spread, settings)
    at = replace(at, moved_means=moved, moved_columns=columns, move_weight=move_weight)
    posterior = at.item_posterior(items, responsibilities)
    at = replace(at, samples=sample_presence(posterior, head.mass, at.n_classes, unknown, settings))
    return at, responsibilities, posterior


def _with_unnamed(at: Decision, items: BatchItems) -> Decision:
    """Make classes without a name less likely, the more so the farther the batch is from the catalogue.

    Their examples come from the batch itself. In a batch from elsewhere all items look more like them than like the
    classes of the catalogue, whatever they are.
    """
    settings = items.reference.settings
    unnamed = np.arange(at.tilts.shape[-1]) >= items.reference.n_named
    first = replace(at, tilts=at.tilts - settings.unnamed_first * unnamed)
    posterior = first.item_posterior(items, None)
    samples = sample_presence(posterior, items.reference.head.mass, at.n_classes, settings=settings)
    first = replace(first, samples=samples)
    joint, _ = joint_posterior(posterior, first.samples, at.n_classes, settings)
    distance = np.asarray(first.distance_ratio(items, joint, first.dots(items)))
    nats = settings.unnamed + settings.unnamed_elsewhere * np.log(np.maximum(distance, 1.0))
    tilts = nats[..., None] * unnamed
    return replace(at, tilts=at.tilts - tilts, unnamed_tilts=tilts)


@dataclass(frozen=True, eq=False)
class DecidedBatch:
    """What a large batch is like, by some of its items; labels all of them, in memory or streamed.

    Attributes
    ----------
    decision
        Labels any items.
    rows, responsibilities
        Numbers of the items that decided, in increasing order, and how far each of them moved the class means; it is
        left out of them again when it is labelled itself.
    linked
        Numbers of the items that all others are linked with, these items, and their values; None if nothing is said
        about unknown items.
    """

    decision: Decision
    rows: Ints
    responsibilities: Floats
    linked: tuple[Ints, Anchors, Floats] | None

    @classmethod
    def of(
        cls,
        n_items: int,
        n_classes: int,
        items_at: Callable[[Ints], BatchItems],
        labelled: Ints,
        settings: Settings,
    ) -> DecidedBatch:
        """Decide by some of the items and those that a person labelled, and count more of them.

        `items_at` returns items of these numbers; `labelled` are numbers of those that a person labelled.
        """
        rows = deciding_rows(n_items, n_classes, settings)
        rows = np.union1d(rows, labelled[spread_rows(len(labelled), len(rows))])
        items = items_at(rows)
        decision, responsibilities = decide(items)
        if len(rows) < n_items:
            # Read once: at a URL each row is a request.
            decision = with_sizes(decision, items_at(counted_rows(n_items, n_classes, settings)))
        linked = None
        if decision.reference.unknown_model is not None:
            posterior = decision.item_posterior(items, responsibilities)
            joint, _ = joint_posterior(posterior, decision.samples, decision.n_classes, settings)
            values = decision.linked_values(items, joint, decision.dots(items))
            linked = rows[items.anchor_rows], items.anchors, values[items.anchor_rows]
        return cls(decision, rows, responsibilities, linked)

    def label(self, items: BatchItems, rows: range) -> ItemLabels:
        """Label the items of these numbers."""
        mine = slice(*np.searchsorted(self.rows, (rows.start, rows.stop)).tolist())
        responsibilities = None
        if mine.start < mine.stop:
            responsibilities = np.zeros((len(rows), self.responsibilities.shape[1]), self.responsibilities.dtype)
            responsibilities[self.rows[mine] - rows.start] = self.responsibilities[mine]
        if self.linked is None:
            return self.decision.label(items, responsibilities)
        anchored, anchors, values = self.linked
        anchor_of = np.full(len(rows), -1)
        mine = slice(*np.searchsorted(anchored, (rows.start, rows.stop)).tolist())
        anchor_of[anchored[mine] - rows.start] = np.arange(mine.start, mine.stop)
        return self.decision.label(items, responsibilities, linked=(anchors.link(items.points, anchor_of), values))


def with_sizes(decision: Decision, items: BatchItems) -> Decision:
    """Return the decision, or one with the class sizes that these items have, see `class_sizes`.

    A decision comes from about a thousand items. In a batch with as many classes, or with very uneven ones, these do
    not show all classes, and a class that they do not show is nearly ruled out for the rest.

    Examples
    --------
    >>> from handful.engine.head import fit_head
    >>> rng = np.random.default_rng(0)
    >>> centres, codes = rng.normal(size=(50, 16)), np.repeat(np.arange(50), 5)
    >>> reference = Reference(fit_head(centres[codes] + rng.normal(size=(250, 16)), codes, 50))
    >>> truth = np.minimum(rng.geometric(0.1, size=2000), 50) - 1
    >>> items = BatchItems(centres[truth] + rng.normal(size=(2000, 16)), reference)
    >>> some, _ = decide(items.rows(slice(40)))
    >>> counted = with_sizes(some, items)
    >>> bool(np.abs(counted.samples.states[0][:5] - 0.1 * 0.9 ** np.arange(5)).max() < 0.03)
    True
    """
    head = decision.reference.head
    size = rows_at_a_time(len(decision.tilts))
    bare = replace(decision, moved_means=None, move_weight=0.0)

    def posteriors() -> Iterator[ItemPosterior]:
        for at in range(0, len(items.points), size):
            yield bare.item_posterior(items.rows(slice(at, at + size)), None)

    kept = list(posteriors()) if len(items.points) * len(decision.tilts) <= IN_MEMORY else None
    sizes = class_sizes(
        lambda: kept or posteriors(), decision.samples, head.mass, decision.n_classes, decision.reference.settings
    )
    return decision if sizes is None else replace(bare, samples=sizes)


def spread_rows(n_rows: int, most: int) -> Ints:
    """Return numbers of rows: one from each of `most` equal parts, at places that look random, or all of them.

    A batch is often sorted, and may have copies. Numbers depend on those of rows and parts alone, so a batch in memory,
    a group and a stream are decided by the same items.

    Examples
    --------
    >>> spread_rows(3, 1024).tolist(), (spread_rows(1000, 4) // 250).tolist()
    ([0, 1, 2], [0, 1, 2, 3])
    """
    if n_rows <= most:
        return np.arange(n_rows)
    within = np.random.default_rng(0).random(most)
    return np.minimum(((np.arange(most) + within) * (n_rows / most)).astype(np.int64), n_rows - 1)


def deciding_rows(n_rows: int, n_classes: int, settings: Settings) -> Ints:
    """Return the numbers of the items that decide."""
    most = min(settings.most_deciding, settings.deciding_scores // n_classes)
    return spread_rows(n_rows, max(settings.fewest_rows, most))


def counted_rows(n_rows: int, n_classes: int, settings: Settings) -> Ints:
    """Return the numbers of the items that are counted."""
    most = min(settings.most_counted, settings.counted_scores // n_classes)
    return spread_rows(n_rows, max(settings.fewest_rows, most))


def rows_at_a_time(n_classes: int) -> int:
    """Return how many items are labelled at a time: several arrays of 8 MB, which caches hold in part."""
    return max(FEWEST_AT_A_TIME, min(BLOCK_ROWS, FEWEST_AT_A_TIME, IN_BLOCK // n_classes))


def label_batch(points: Floats, reference: Reference, context: Context | None = None) -> JointAnswer:
    """Label the items [item, dim] of one batch jointly; they have the origin of the head.

    Examples
    --------
    >>> from handful.engine.head import fit_head
    >>> rng = np.random.default_rng(0)
    >>> centres, codes = rng.normal(size=(30, 16)), np.repeat(np.arange(30), 5)
    >>> head = fit_head(centres[codes] + rng.normal(size=(150, 16)), codes, 30)
    >>> truth = np.repeat([2, 11, 17], 8)
    >>> answer = label_batch(centres[truth] + rng.normal(size=(24, 16)), Reference(head))
    >>> bool((answer.probabilities.argmax(1) == truth).mean() > 0.9), np.flatnonzero(answer.presence > 0.9).tolist()
    (True, [2, 11, 17])
    """
    return next(label_batches([(points, context or Context())], reference))


def label_batches(
    batches: Iterable[tuple[Floats, Context]], reference: Reference, numbers: int = IN_MEMORY
) -> Iterator[JointAnswer]:
    """Label batches, about all of which the same things are known; those of one size are labelled as stacks.

    They are read until their scores have more than `numbers` numbers, then labelled, and so on.
    """
    read = list[tuple[Floats, Context]]()
    n_classes = len(reference.head.weights)
    n_items = 0
    for batch in batches:
        read.append(batch)
        n_items += len(batch[0])
        if n_items * n_classes > numbers:
            yield from _in_stacks(read, reference)
            read = []
            n_items = 0
    yield from _in_stacks(read, reference)


def _in_stacks(batches: Sequence[tuple[Floats, Context]], reference: Reference) -> list[JointAnswer]:
    """Label batches of any sizes, in stacks whose scores fit a cache."""
    sizes = np.array([len(points) for points, _ in batches], int)
    answers = dict[int, JointAnswer]()
    for size in np.unique(sizes).tolist():
        numbers = np.flatnonzero(sizes == size).tolist()
        most = max(1, IN_STACK // (size * len(reference.head.weights)))
        for some in (numbers[at : at + most] for at in range(0, len(numbers), most)):
            answers |= zip(some, _labelled([batches[number] for number in some], reference), strict=True)
    return [answers[number] for number in range(len(sizes))]


def _labelled(batches: Sequence[tuple[Floats, Context]], reference: Reference) -> list[JointAnswer]:
    """Label batches of one size."""
    points, context = batches[0]
    n_items = len(points)
    n_classes = len(reference.head.weights)
    if len(deciding_rows(n_items, n_classes, reference.settings)) == n_items:
        if len(batches) > 1:
            points = np.stack([one for one, _ in batches])
            context = Context.stacked([one for _, one in batches])
        stack = BatchItems(points, reference, context)
        decision, responsibilities, posterior = _decided(stack)
        return _answers(decision, [decision.label(stack, responsibilities, posterior)], stack)
    if len(batches) > 1:
        return [answer for batch in batches for answer in _labelled([batch], reference)]

    def items_at(rows: Ints | slice) -> BatchItems:
        return BatchItems(points[rows], reference, context.rows(rows))

    labelled = np.flatnonzero(np.zeros(0) if context.fixed_labels is None else context.fixed_labels != -1)
    decided = DecidedBatch.of(n_items, n_classes, items_at, labelled, reference.settings)
    size = rows_at_a_time(n_classes)
    starts = range(0, n_items, size)
    blocks = [decided.label(items_at(slice(at, at + size)), range(at, min(at + size, n_items))) for at in starts]
    return _answers(decided.decision, blocks, BatchItems(points, reference, context))


def _answers(decision: Decision, blocks: Sequence[ItemLabels], items: BatchItems) -> list[JointAnswer]:
    """Return the answer about each batch of a stack, or about one, from the labels of all items."""
    reference = decision.reference
    labels = ItemLabels.joined(blocks)
    named = labels.named(reference.n_named, reference.settings)
    summary = summarize(
        decision.samples,
        reference.head.mass,
        BatchTotals.added([block.totals() for block in blocks]),
        float(items.points.shape[-2]),
        decision.told_posterior or decision.unknown_posterior,
        named.unknown,
        items.context.unknown_share,
        reference.n_unnamed,
        reference.settings,
    )
    lead = items.points.shape[:-2]
    prior_weight = np.broadcast_to(decision.prior_weight, lead)
    rejected = named.unknown > summary.limit[..., None]
    some = rejected.any(-1)
    answers = []
    for batch in np.ndindex(lead):
        answer = JointAnswer.of(labels, named, summary, prior_weight, batch)
        if some[batch]:
            groups = _new_groups(items.points[batch], answer.unknown, rejected[batch], answer.unnamed, reference)
            answer = replace(answer, groups=groups)
        answers.append(answer)
    return answers


def _tilted(items: BatchItems, weights: Floats) -> Decision:
    """Estimate offset and shares, and then what is known about the shares in advance; no class is sampled yet."""
    likelihood = items.likelihood
    head = items.reference.head
    context = items.context
    allowed = items.allowed
    n_items = np.asarray(weights.sum(-1))

    def count(tilts: Floats, weights: Floats = weights) -> Floats:
        t = _factors(tilts).astype(likelihood.dtype)
        each = (weights / (likelihood @ t[..., None])[..., 0]).astype(likelihood.dtype)
        return np.asarray((each[..., None, :] @ likelihood)[..., 0, :] * t, dtype=np.float64)

    centre = (weights[..., None, :] @ items.points)[..., 0, :] / n_items[..., None]
    typical = weights * items.typicality

    def typical_shares(tilts: Floats) -> Floats:
        return np.asarray(count(tilts, typical) / np.maximum(typical.sum(-1), LEAST_TYPICAL)[..., None])

    settings = items.reference.settings
    offset_tilt = estimate_offset(
        count, typical_shares, n_items, centre, allowed, head.weights, head.means, head.mass, items.spread, settings
    )
    tilts = offset_tilt.tilts
    prior_weight = np.ones_like(n_items)
    if context.log_shares is not None:
        before = tilts
        prior = tilt_by_prior(
            context.log_shares, context.concentration, n_items, lambda extra: count(before + extra), settings
        )
        tilts = tilts + prior.tilts
        prior_weight = prior.weight
    offset_tilt = offset_tilt._replace(offset=offset_tilt.offset.astype(items.points.dtype))
    return Decision(items.reference, allowed.sum(-1), offset_tilt, tilts, prior_weight)


def _factors(tilts: Floats) -> Floats:
    """`exp t_k`, by the largest, with no exponent below `LOWEST`."""
    return np.asarray(np.exp(np.maximum(tilts - tilts.max(-1, keepdims=True), LOWEST)))


def _new_groups(
    points: Floats, unknown: Floats, rejected: Bools, unnamed: Ints, reference: Reference
) -> list[NewGroup]:
    """Gather the rejected items: classes without a name first, then those of other items that belong together."""
    rows = np.flatnonzero(rejected & (unnamed == -1))
    most = reference.settings.most_gathered
    if len(rows) > most:
        rows = rows[np.sort(np.argsort(-unknown[rows], kind="stable")[:most])]
    of_unnamed = [np.flatnonzero(rejected & (unnamed == number)) for number in range(reference.n_unnamed)]
    found = [_as_group(members, points, unknown, reference) for members in of_unnamed if len(members)]
    if reference.unknown_model is None or len(rows) == 0:
        return found
    some = BatchItems(points[rows], reference)
    copy_of, _ = some.copies
    pair_odds = reference.unknown_model.pair_odds
    anchors = Anchors.of(some.points, reference.centre, pair_odds, copy_of, reference.settings)
    scores = some.scores[:, : reference.n_named]
    log_odds = anchors.odds(anchors.cosines)
    groups = new_groups(log_odds, some.points, unknown[rows], scores, copy_of, reference.settings)
    return found + [group._replace(items=rows[group.items]) for group in groups]


def _as_group(members: Ints, points: Floats, unknown: Floats, reference: Reference) -> NewGroup:
    """Return a class without a name as a group; the chance that two of its items share a class is that of both."""
    inside = points[members]
    order = ((inside - inside.mean(0)) ** 2).sum(1).argsort(kind="stable")
    nearest = BatchItems(inside, reference).scores[:, : reference.n_named].mean(0).argmax()
    cohesion = float(unknown[members].mean() ** 2)
    return NewGroup(members[order], cohesion, float(unknown[members].sum()) * cohesion, int(nearest))
