"""Label a batch: `S = z Wᵀ + b`, its place, the classes present, class means that move once, and the classes again.

This file is the model from end to end; every step is one call. `decide` finds out what the batch is like from a part of
its items: where it lies, which classes are present, how class means move, and whether something is unknown. A
`Decision` then labels any items of the batch, each in one pass: a batch in memory, a block of a stream, or the part
itself, whose items are left out of the class means that they moved.

Batches of one size are labelled as one stack: arrays may have a leading axis, one entry per batch, and no entry changes
what is found for another. A single batch has no such axis, and nothing else is different.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from handful.engine.columns import pick, put
from handful.engine.head import LinearHead
from handful.engine.levels import QUARTER, Levels
from handful.engine.links import MOST_LINKED, Anchors, Links, NewGroup, copies_of, new_groups
from handful.engine.place import Place, place
from handful.engine.positions import Moved, slopes_of
from handful.engine.presence import (
    Alone,
    Roll,
    absent_of,
    call_roll,
    chance_of_any,
    labels_of,
    likelihoods_of,
)
from handful.engine.prior import CONCENTRATION, Prior, lean
from handful.engine.sizes import counted_rows, deciding_rows, rows_at_a_time, spread_rows, with_sizes
from handful.engine.unknown import REJECTED, Looks, Verdict, known_chances, limit_of, single_known_chances
from handful.shapes import PerBatch

Floats = npt.NDArray[np.floating]
Doubles = npt.NDArray[np.float64]
Ints = npt.NDArray[np.integer]

# Scores of a stack of batches, and of all stacks that are made of the batches of a run.
STACK_NUMBERS, WINDOW_NUMBERS = 2**18, 2**23
# Unknown items among which new groups are sought.
MOST_GATHERED = 2048
# Exponents are not smaller than this: they count for nothing.
LOWEST = -60.0
# Labels of a batch that is far from the catalogue are raised to `far` to minus this power.
CERTAINTY = 0.25
# An item counts at least this much, so that a batch of unknown items is still a batch.
LEAST_WEIGHT = 1e-3
# The given class of an item that is known to belong to none.
NO_CLASS = -2


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
    given
        The class of each item whose class is known for certain, `NO_CLASS` for one that is known to have none, and -1
        for all others, [..., item]; None if nothing is given.
    unknown_share
        a and b of a Beta distribution of the share of items of no class, [..., 2]; a = 0 if there are none, NaN for a
        batch of a stack about which this is not known, None if it is known about none.
    """

    log_shares: Floats | None = None
    concentration: PerBatch = CONCENTRATION
    allowed: npt.NDArray[np.bool_] | None = None
    given: Ints | None = None
    unknown_share: Floats | None = None

    @classmethod
    def of(cls, prior: Prior | None, place: int = 0, given: Ints | None = None) -> Context:
        """Make one for one of the batches of a prior."""
        if prior is None:
            return cls(given=given)
        return cls(prior.log_shares[place], float(prior.concentration[place]), given=given)

    @classmethod
    def stacked(cls, contexts: Sequence[Context]) -> Context:
        """Put those of several batches together, about all of which the same things are known."""
        names = ("log_shares", "concentration", "allowed", "given", "unknown_share")
        parts = {name: [getattr(one, name) for one in contexts] for name in names}
        return cls(**{name: np.stack(part) for name, part in parts.items() if part[0] is not None})

    @property
    def is_empty(self) -> bool:
        """Whether nothing is known about the classes of items."""
        return self.log_shares is None and self.allowed is None and self.given is None

    def rows(self, rows: Ints | slice) -> Context:
        """Return what is known about some of the items of a batch."""
        allowed = None if self.allowed is None else self.allowed[rows]
        return replace(self, allowed=allowed, given=None if self.given is None else self.given[rows])


@dataclass(frozen=True, eq=False)
class Reference:
    """What batches are compared with: a head, and what is known about items of no class."""

    head: LinearHead
    levels: Levels | None = None

    @cached_property
    def slopes(self) -> Floats:
        """κ of each class."""
        return slopes_of(self.head.weights, self.head.means)

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
        head, context, shape = self.reference.head, self.context, self.points.shape
        scores = (self.points.reshape(-1, shape[-1]) @ head.weights.T).reshape(*shape[:-1], -1)
        scores += head.offsets
        if context.log_shares is not None:
            np.copyto(scores, -np.inf, where=np.isneginf(context.log_shares)[..., None, :])
        if context.allowed is not None:
            scores[~context.allowed] = -np.inf
        if context.given is not None:
            fixed = context.given >= 0
            scores[fixed] = -np.inf
            scores[(*np.nonzero(fixed), context.given[fixed])] = 0
        return scores

    @cached_property
    def top(self) -> Floats:
        """The largest score of each item, [..., item, 1]."""
        return np.asarray(self.scores.max(-1, keepdims=True))

    @cached_property
    def table(self) -> Floats:
        """`exp S_nk`, by that of the best class; with no exponent below `LOWEST` unless it is -inf."""
        table = self.scores - self.top
        np.exp(np.maximum(table, LOWEST, out=table), out=table)
        if not self.context.is_empty:
            table[np.isneginf(self.scores)] = 0
        return table

    @cached_property
    def spread(self) -> PerBatch:
        """V; of a catalogue that cannot tell it, half the mean squared distance of an item from its nearest mean."""
        head, points = self.reference.head, self.points
        if head.spread is not None:
            return np.full(points.shape[:-2], head.spread)
        nearest = ((head.means**2).sum(1) - 2 * points @ head.means.T).min(-1)
        return np.asarray(((points**2).sum(-1) + nearest).mean(-1) / 2)

    @cached_property
    def typical(self) -> Floats:
        """Chance of each item to have a class, by its own distance and score, whatever the batch is like."""
        head, levels = self.reference.head, self.reference.levels
        if levels is None or np.ptp(head.mass) == 0:
            return np.ones(self.points.shape[:-1])
        best = self.scores.argmax(-1)
        away = (self.points**2).sum(-1) + self.reference.lengths[best] - 2 * (self.points * head.means[best]).sum(-1)
        return single_known_chances(levels, levels.statistic(away, self.top[..., 0]))

    @cached_property
    def allowed(self) -> npt.NDArray[np.bool_]:
        """Classes that some item may have, [..., class]."""
        if not self.context.is_empty:
            return np.asarray(self.table.any(-2))
        return np.ones((*self.points.shape[:-2], self.table.shape[-1]), bool)

    @cached_property
    def anchored(self) -> Ints:
        """Numbers of the items that are anchors."""
        return spread_rows(self.points.shape[-2], MOST_LINKED)

    @cached_property
    def anchors(self) -> Anchors:
        """Items that all others are linked with."""
        assert self.reference.levels is not None
        centre, pair_odds, told = self.reference.centre, self.reference.levels.pair_odds, self.told[..., self.anchored]
        return Anchors.of(self.points[..., self.anchored, :], centre, pair_odds, told)

    @cached_property
    def links(self) -> Links:
        """Which items belong together."""
        places = np.full(self.points.shape[-2], -1)
        places[self.anchored] = np.arange(len(self.anchored))
        return self.anchors.link(self.points, places)

    @cached_property
    def copies(self) -> Floats:
        """How often each item occurs, [..., item]."""
        return copies_of(self.points)[1]

    def rows(self, rows: slice) -> BatchItems:
        """Return some of the items of a batch."""
        return BatchItems(self.points[rows], self.reference, self.context.rows(rows))

    @property
    def none(self) -> npt.NDArray[np.bool_]:
        """Items that are known to belong to no class."""
        given = self.context.given
        return np.zeros(self.points.shape[:-1], bool) if given is None else given == NO_CLASS

    @property
    def told(self) -> Floats:
        """1 for items that are known to have no class, 0 for those that have one, NaN for all others."""
        return np.where(self.judged, np.nan, self.none)

    @property
    def judged(self) -> npt.NDArray[np.bool_]:
        """Items about which nothing is given."""
        given = self.context.given
        return np.ones(self.points.shape[:-1], bool) if given is None else given == -1


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
    far
        Squared distance from its class that a quarter of the items keeps, by that of left-out examples; one if it is
        not known.
    unknown, interval
        Chance of each item to belong to no class, NaN if the catalogue cannot tell; and an interval for their share.
    limit
        Chance above which an item is rejected.
    groups
        Unknown items that belong together.
    none
        Items that are known to belong to no class.
    """

    probabilities: Floats
    confidence: Floats
    expected_counts: Doubles
    presence: Doubles
    joint_weight: float
    prior_weight: float
    far: float
    unknown: Doubles
    interval: tuple[float, float]
    limit: float = REJECTED
    groups: list[NewGroup] = field(default_factory=list)
    none: npt.NDArray[np.bool_] = field(default_factory=lambda: np.zeros(0, bool))

    @property
    def rejected(self) -> npt.NDArray[np.bool_]:
        """Items above the limit, and those known to belong to no class."""
        return np.asarray((self.unknown > self.limit) | self.none)


class LinkedValues(NamedTuple):
    """What is averaged over groups of items; leading axes are the batches of a stack."""

    along: Floats  # [..., item, 1], <z - c, c - d>, with c the centre of the class means and d the offset
    scores: Floats  # [..., item, 1], of the item's own classes
    dots: Floats  # [..., item, column], of items and the means of the classes called

    def rows(self, rows: Ints) -> LinkedValues:
        """Return those of some items."""
        return LinkedValues(*(values[..., rows, :] for values in self))


class ItemLabels(NamedTuple):
    """Labels of some items of a batch; leading axes are the batches of a stack."""

    probabilities: Floats  # q [..., item, class]
    confidence: Floats  # [..., item]
    absent: Floats  # [..., 2, class], as in `absent_of`
    unknown: Floats  # [..., item], NaN if the catalogue cannot tell


@dataclass(frozen=True, eq=False)
class Decision:
    """What a batch is like, or each batch of a stack; labels any of its items."""

    reference: Reference
    n_classes: PerBatch  # [...], that are not ruled out
    place: Place
    tilts: Floats  # [..., class], what place and prior add to the scores
    prior_weight: PerBatch  # [...], γ
    roll: Roll = field(
        default_factory=lambda: Roll.of_classes(np.zeros(0, np.intp), np.zeros((1, 0)), np.zeros(0), 1.0)
    )
    moved: Moved | None = None
    moving: npt.NDArray[np.intp] | None = None  # [..., column], classes that move
    gate: PerBatch = 0.0  # [...], how far they do
    far: PerBatch = 1.0  # [...]
    verdict: Verdict | None = None

    @property
    def offset(self) -> Floats:
        """Offset of the items, [..., dim]."""
        return self.place.offset

    def near(self, items: BatchItems, given: Floats | None) -> Alone:
        """Chance of each class when an item is labelled alone; `given` as in `Moved.gains`."""
        factors = _factors(self.tilts)[..., None, :].astype(items.table.dtype)
        table = items.table * factors
        if self.moved is not None and self.moving is not None:
            gains = self.moved.gains(items.points - self.offset[..., None, :], given)
            logits = np.asarray(self.gate, gains.dtype)[..., None, None] * gains + np.log(pick(factors, self.moving))
            logits += pick(items.scores, self.moving) - items.top
            there = pick(items.table, self.moving) > 0
            put(table, self.moving, np.exp(logits.clip(LOWEST, -LOWEST)) * there)
        return Alone.of(table)

    def label(
        self,
        items: BatchItems,
        given: Floats | None = None,
        near: Alone | None = None,
        linked: tuple[Links, LinkedValues] | None = None,
    ) -> ItemLabels:
        """Label items; `given` says how far they moved the class means themselves, and `near` is theirs if known.

        `linked` are their links, and the anchors' values; by default items of the same batch are linked.
        """
        near = near or self.near(items, given)
        few, others = labels_of(near, self.roll, self.n_classes)
        unknown, joint = np.where(items.none, 1.0, np.nan), 1 - self.roll.alone[..., None]
        if self.verdict is not None:
            unknown = self.unknown(items, self.looks(items, few, self.dots(items), linked))
            joint = joint * (1 - unknown)  # an item of no class is labelled alone
        alone = (1 - joint).astype(few.dtype)
        own = (1 - alone[..., None]) * few + alone[..., None] * near.columns(self.roll.columns)
        q = near.spread((1 - alone) * others + alone, self.roll.columns, own)
        if np.any(np.asarray(self.far) > 1):
            # A batch that is farther from the catalogue than its own examples is labelled with less certainty.
            q **= (np.maximum(self.far, 1) ** -CERTAINTY)[..., None, None].astype(q.dtype)
            q /= q.sum(-1, keepdims=True)
        return ItemLabels(q, 1 / items.table.sum(-1), absent_of(near, others), unknown)

    def dots(self, items: BatchItems) -> Floats:
        """`<z_n - d, μ_k>` of the classes called, [..., item, column]."""
        means = self.reference.head.means[self.roll.columns]
        return np.asarray(items.points @ means.swapaxes(-1, -2) - (means @ self.offset[..., None]).swapaxes(-1, -2))

    def values(self, items: BatchItems, few: Floats, dots: Floats) -> LinkedValues:
        """Return what is averaged over groups of items."""
        columns, own, centre = self.roll.columns, self._shares(few), self.reference.centre
        scores = np.maximum(pick(items.scores, columns), items.top + LOWEST)
        scores = (own * (scores + pick(self.place.moved, columns)[..., None, :].astype(own.dtype))).sum(-1)
        along = (items.points - centre) @ (centre - self.offset)[..., None]
        return LinkedValues(along, scores[..., None], dots)

    def looks(
        self, items: BatchItems, few: Floats, dots: Floats, linked: tuple[Links, LinkedValues] | None = None
    ) -> Looks:
        """Compare the group of each item with the classes of the item; `linked` as in `label`."""
        levels, spread = self.reference.levels, self.reference.head.spread or 0.0
        assert levels is not None
        mine, lengths = self.values(items, few, dots), self.reference.lengths[self.roll.columns][..., None, :]
        links, others = linked or (items.links, mine.rows(items.anchored))
        along, scores, dots = (links.means(of, at) for of, at in zip(others, mine, strict=True))
        # |Σ_m w_nm z_m - d|², and from there the squared distance from the class.
        away = links.squares + 2 * along[..., 0] + ((self.reference.centre - self.offset) ** 2).sum(-1)[..., None]
        away = away + (self._shares(few) * (lengths - 2 * dots)).sum(-1)
        t = levels.statistic(away + (spread - spread / links.sizes), scores[..., 0])
        return Looks(t, links.sizes, 1 / links.sizes, items.told, links.with_none, links.with_known)

    def unknown(self, items: BatchItems, looks: Looks) -> Floats:
        """Chance of each item to belong to no class, [..., item].

        It shares its class with an item that is known to have none, with one that is known to have one, or with
        neither of them; then only its looks tell.
        """
        assert self.verdict is not None
        with_none, with_known = looks.with_none * (1 - looks.with_known), looks.with_known * (1 - looks.with_none)
        neither = (1 - looks.with_none) * (1 - looks.with_known)
        chances = with_none + neither * self.verdict.chances(looks.t, looks.sizes)
        chances /= np.maximum(with_none + with_known + neither, LEAST_WEIGHT)
        return np.asarray(np.where(items.judged, chances, items.none))

    def distance(self, items: BatchItems, few: Floats, dots: Floats) -> PerBatch:
        """Squared distance from its class that a quarter of the items keeps, by that of left-out examples, [...]."""
        judged, levels = items.judged, self.reference.levels
        if levels is None:
            return np.ones(judged.shape[:-1])
        inside = items.points - self.offset[..., None, :]
        lengths = self.reference.lengths[self.roll.columns][..., None, :]
        away = (inside**2).sum(-1) + (self._shares(few) * (lengths - 2 * dots)).sum(-1)
        # Items that are not judged come last, and are not counted.
        largest = np.finfo(away.dtype).max
        away, last = np.sort(np.where(judged, away, largest), axis=-1), judged.sum(-1, keepdims=True) - 1
        at = QUARTER * np.maximum(last, 0)
        lower, upper = (np.take_along_axis(away, end.astype(np.intp), -1) for end in (np.floor(at), np.ceil(at)))
        quarter = np.where(last < 0, levels.quarter, lower + (at - np.floor(at)) * (upper - lower))[..., 0]
        return np.maximum(quarter / levels.quarter, 0.0)

    def _shares(self, few: Floats) -> Floats:
        """Shares of the classes called, by the labels of each item, [..., item, column]."""
        own = few * self.roll.called[..., None, :]
        return np.asarray(own / np.maximum(own.sum(-1, keepdims=True), np.finfo(own.dtype).tiny))


def decide(items: BatchItems) -> tuple[Decision, Floats]:
    """Find out what a batch is like, or each batch of a stack, from its items or from a part of them.

    Returns also how far each item was given to the classes that moved, [..., item, column].
    """
    at, given, _ = _decided(items)
    return at, given


def _decided(items: BatchItems) -> tuple[Decision, Floats, Alone]:
    """Return also the chance of each class when an item is labelled alone."""
    reference, head, levels = items.reference, items.reference.head, items.reference.levels
    at, weights, unknown = _placed(items, np.ones(items.points.shape[:-1])), items.judged.astype(np.float64), None
    near = at.near(items, None)
    at = replace(at, roll=call_roll(near, head.mass, at.n_classes))
    few, _ = labels_of(near, at.roll, at.n_classes)
    dots = at.dots(items)
    at = replace(at, far=at.distance(items, few, dots))
    if levels is not None:
        looks = at.looks(items, few, dots)
        verdict = Verdict.of(levels, looks._replace(weights=looks.weights / items.copies), items.context.unknown_share)
        at = replace(at, verdict=verdict)
        weights = np.maximum(1 - at.unknown(items, looks) ** 2, LEAST_WEIGHT)
        if (weights < 1).any():
            unknown = (1 / weights - 1) * likelihoods_of(near, at.roll, at.n_classes)
            there = _placed(items, weights)
            at = replace(at, place=there.place, tilts=there.tilts, prior_weight=there.prior_weight)
            near = at.near(items, None)
            weights *= items.judged  # what a person labelled is an example already
    columns, gate = at.roll.columns, 1 - at.roll.alone
    if not gate.any() and unknown is None:  # nothing moves, and nothing would change
        return at, np.zeros_like(few), near
    given = few * (weights[..., None] * at.roll.called[..., None, :] * (gate > 0)[..., None, None]).astype(few.dtype)
    means, shots, slopes = head.means[columns], head.mass[columns], reference.slopes[columns]
    moved = Moved.of(items.points - at.offset[..., None, :], given, slopes, means, shots, items.spread)
    at = replace(at, moved=moved, moving=columns, gate=gate)
    near = at.near(items, given)
    at = replace(at, roll=call_roll(near, head.mass, at.n_classes, unknown))
    return at, given, near


@dataclass(frozen=True, eq=False)
class DecidedBatch:
    """What a large batch is like, by some of its items; labels all of them, in memory or streamed.

    Attributes
    ----------
    decision
        Labels any items.
    rows, given
        Numbers of the items that decided, in increasing order, and how far each of them moved the class means; it is
        left out of them again when it is labelled itself.
    linked
        Numbers of the items that all others are linked with, these items, and their values; None if nothing is said
        about unknown items.
    """

    decision: Decision
    rows: Ints
    given: Floats
    linked: tuple[Ints, Anchors, LinkedValues] | None

    @classmethod
    def of(cls, n_items: int, n_classes: int, items_at: Callable[[Ints], BatchItems], labelled: Ints) -> DecidedBatch:
        """Decide by some of the items and those that a person labelled, and count more of them.

        `items_at` returns items of these numbers; `labelled` are numbers of those about which something is given.
        """
        rows = deciding_rows(n_items, n_classes)
        rows = np.union1d(rows, labelled[spread_rows(len(labelled), len(rows))])
        items = items_at(rows)
        decision, given = decide(items)
        if len(rows) < n_items:
            # Read once: at a URL each row is a request.
            counted, size = items_at(counted_rows(n_items, n_classes)), rows_at_a_time(n_classes)
            starts = range(0, counted.points.shape[0], size)
            decision = with_sizes(decision, lambda: (counted.rows(slice(at, at + size)) for at in starts))
        linked = None
        if decision.reference.levels is not None:
            near = decision.near(items, given)
            few, _ = labels_of(near, decision.roll, decision.n_classes)
            values = decision.values(items, few, decision.dots(items))
            linked = rows[items.anchored], items.anchors, values.rows(items.anchored)
        return cls(decision, rows, given, linked)

    def label(self, items: BatchItems, rows: range) -> ItemLabels:
        """Label the items of these numbers."""
        mine = slice(*np.searchsorted(self.rows, (rows.start, rows.stop)).tolist())
        given = None
        if mine.start < mine.stop:
            given = np.zeros((len(rows), self.given.shape[1]), self.given.dtype)
            given[self.rows[mine] - rows.start] = self.given[mine]
        if self.linked is None:
            return self.decision.label(items, given)
        anchored, anchors, values = self.linked
        places, mine = np.full(len(rows), -1), slice(*np.searchsorted(anchored, (rows.start, rows.stop)).tolist())
        places[anchored[mine] - rows.start] = np.arange(mine.start, mine.stop)
        return self.decision.label(items, given, linked=(anchors.link(items.points, places), values))


def label_batch(points: Floats, reference: Reference, context: Context | None = None) -> JointAnswer:
    """Label the items [item, dim] of one batch jointly; they have the origin of the head.

    Examples
    --------
    >>> from handful.engine.head import fit_head
    >>> rng = np.random.default_rng(0)
    >>> centres, codes = rng.normal(size=(30, 16)), np.repeat(np.arange(30), 5)
    >>> head = fit_head(centres[codes] + rng.normal(size=(150, 16)), codes, 30)
    >>> truth = np.repeat([2, 11, 17], 8)
    >>> found = label_batch(centres[truth] + rng.normal(size=(24, 16)), Reference(head))
    >>> bool((found.probabilities.argmax(1) == truth).mean() > 0.9), np.flatnonzero(found.presence > 0.5).tolist()
    (True, [2, 11, 17])
    """
    return next(label_batches([(points, context or Context())], reference))


def label_batches(batches: Iterable[tuple[Floats, Context]], reference: Reference) -> Iterator[JointAnswer]:
    """Label batches, about all of which the same things are known; those of one size are labelled as stacks.

    So many of them are read at a time that their scores have `WINDOW_NUMBERS` numbers.
    """
    read, n_classes, n_items = list[tuple[Floats, Context]](), len(reference.head.weights), 0
    for batch in batches:
        read.append(batch)
        n_items += len(batch[0])
        if n_items * n_classes > WINDOW_NUMBERS:
            yield from _in_stacks(read, reference)
            read, n_items = [], 0
    yield from _in_stacks(read, reference)


def _in_stacks(batches: Sequence[tuple[Floats, Context]], reference: Reference) -> list[JointAnswer]:
    """Label batches of any sizes."""
    sizes, found = np.array([len(points) for points, _ in batches], int), dict[int, JointAnswer]()
    for size in np.unique(sizes).tolist():
        places = np.flatnonzero(sizes == size).tolist()
        most = max(1, STACK_NUMBERS // (size * len(reference.head.weights)))
        for some in (places[at : at + most] for at in range(0, len(places), most)):
            found |= zip(some, _labelled([batches[place] for place in some], reference), strict=True)
    return [found[place] for place in range(len(sizes))]


def _labelled(batches: Sequence[tuple[Floats, Context]], reference: Reference) -> list[JointAnswer]:
    """Label batches of one size."""
    points, context = batches[0]
    n_items, n_classes = len(points), len(reference.head.weights)
    if len(deciding_rows(n_items, n_classes)) == n_items:
        if len(batches) > 1:
            points, context = np.stack([one for one, _ in batches]), Context.stacked([one for _, one in batches])
        stack = BatchItems(points, reference, context)
        decision, given, near = _decided(stack)
        return joined(decision, [decision.label(stack, given, near)], stack)
    if len(batches) > 1:
        return [found for batch in batches for found in _labelled([batch], reference)]

    def items_at(rows: Ints | slice) -> BatchItems:
        return BatchItems(points[rows], reference, context.rows(rows))

    labelled = np.flatnonzero(np.zeros(0) if context.given is None else context.given != -1)
    decided, size = DecidedBatch.of(n_items, n_classes, items_at, labelled), rows_at_a_time(n_classes)
    starts = range(0, n_items, size)
    blocks = [decided.label(items_at(slice(at, at + size)), range(at, min(at + size, n_items))) for at in starts]
    return joined(decided.decision, blocks, BatchItems(points, reference, context))


def joined(decision: Decision, blocks: list[ItemLabels], items: BatchItems) -> list[JointAnswer]:
    """Put the labels of all items of a batch together, or of each batch of a stack."""
    q = blocks[0].probabilities if len(blocks) == 1 else np.concatenate([block.probabilities for block in blocks], -2)
    n_items, lead, verdict, none = q.shape[-2], q.shape[:-2], decision.verdict, items.none
    unknown = np.concatenate([block.unknown for block in blocks], -1).astype(np.float64)
    interval, limit = np.broadcast_to([0.0, 1.0], (*lead, 2)), np.full(lead, REJECTED)
    if verdict is not None:
        interval, limit = verdict.interval, limit_of(unknown * items.judged, items.context.unknown_share)
    counting = known_chances(unknown)
    counts = np.asarray((counting.astype(q.dtype)[..., None, :] @ q)[..., 0, :], np.float64)
    absent, shots = np.sum([block.absent for block in blocks], 0), decision.reference.head.mass
    presence = chance_of_any(decision.roll, shots, absent, counts, float(n_items))
    if verdict is not None or none.any():
        presence = np.minimum(presence, counts)  # by Markov's inequality
    confidence = np.concatenate([block.confidence for block in blocks], -1)
    joint, prior, far = (
        np.broadcast_to(each, lead) for each in (1 - decision.roll.alone, decision.prior_weight, decision.far)
    )
    return [
        JointAnswer(
            probabilities=q[place],
            confidence=confidence[place],
            expected_counts=counts[place],
            presence=presence[place],
            joint_weight=float(joint[place]),
            prior_weight=float(prior[place]),
            far=float(far[place]),
            unknown=unknown[place],
            interval=(float(interval[place][0]), float(interval[place][1])),
            limit=float(limit[place]),
            groups=_groups(items, unknown, place, float(limit[place])),
            none=none[place],
        )
        for place in np.ndindex(lead)
    ]


def _placed(items: BatchItems, weights: Floats) -> Decision:
    """Estimate offset and shares, and then what is known about the shares in advance; no class is called yet."""
    table, head, context, allowed = items.table, items.reference.head, items.context, items.allowed
    n_items = np.asarray(weights.sum(-1))

    def count(tilts: Floats, weights: Floats = weights) -> Floats:
        t = _factors(tilts).astype(table.dtype)
        each = (weights / (table @ t[..., None])[..., 0]).astype(table.dtype)
        return np.asarray((each[..., None, :] @ table)[..., 0, :] * t, dtype=np.float64)

    centre = (weights[..., None, :] @ items.points)[..., 0, :] / n_items[..., None]
    looks_known = weights * items.typical

    def typical(tilts: Floats) -> Floats:
        return np.asarray(count(tilts, looks_known) / np.maximum(looks_known.sum(-1), LEAST_WEIGHT)[..., None])

    there = place(count, typical, n_items, centre, allowed, head.weights, head.means, head.mass, items.spread)
    tilts, prior_weight = there.tilts, np.ones_like(n_items)
    if context.log_shares is not None:
        before = tilts
        leaning = lean(context.log_shares, context.concentration, n_items, lambda extra: count(before + extra))
        tilts, prior_weight = tilts + leaning.tilts, leaning.trust
    there = there._replace(offset=there.offset.astype(items.points.dtype))
    return Decision(items.reference, allowed.sum(-1), there, tilts, prior_weight)


def _factors(tilts: Floats) -> Floats:
    """`exp t_k`, by the largest, with no exponent below `LOWEST`."""
    return np.asarray(np.exp(np.maximum(tilts - tilts.max(-1, keepdims=True), LOWEST)))


def _groups(items: BatchItems, chances: Floats, place: tuple[int, ...], limit: float) -> list[NewGroup]:
    """Gather the items of a batch that are rejected."""
    points, reference, unknown = items.points[place], items.reference, (chances * items.judged)[place]
    places = np.flatnonzero(unknown > limit)
    if len(places) > MOST_GATHERED:
        places = np.sort(np.argsort(-unknown, kind="stable")[:MOST_GATHERED])
    if len(places) == 0:
        return []
    some = BatchItems(points[places], reference)
    assert reference.levels is not None
    together = Anchors.of(some.points, reference.centre, reference.levels.pair_odds)
    log_odds = together.odds(together.products, together.lengths)
    found = new_groups(log_odds, some.points, unknown[places], some.scores, together.which)
    return [group._replace(items=places[group.items]) for group in found]
