"""Label a batch: `S = z Wᵀ + b`, its place, the classes present, class means that move once, and the classes again.

This file is the model from end to end; every step is one call. `decide` finds out what the batch is like from a part of
its items: where it lies, which classes are present, how class means move, and whether something is unknown. A
`Decision` then labels any items of the batch, each in one pass: a batch in memory, a block of a stream, or the part
itself, whose items are left out of the class means that they moved.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from handful.engine.head import LinearHead
from handful.engine.levels import QUARTER, Levels
from handful.engine.links import MOST_LINKED, Links, NewGroup, copies_of, link, new_groups
from handful.engine.place import place
from handful.engine.positions import Moved, slopes_of
from handful.engine.presence import Roll, call_roll, chance_of_any, class_noise, labels_of, likelihoods_of
from handful.engine.prior import CONCENTRATION, Prior, lean
from handful.engine.unknown import REJECTED, Looks, Verdict

Floats = npt.NDArray[np.floating]
Doubles = npt.NDArray[np.float64]
Ints = npt.NDArray[np.integer]

# Items from which a batch is decided, and items that are labelled at a time.
MOST_DECIDED, BLOCK_ITEMS = 1024, 4096
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
    """What is known about a batch in advance.

    Attributes
    ----------
    log_shares, concentration
        Shares of the classes [class], as logarithms, -inf for a class that cannot occur; and how closely the batch is
        expected to follow them, as a number of items. None if nothing is known.
    allowed
        Classes that each item may have, [item, class]; None if it may have all.
    given
        The class of each item whose class is known for certain, `NO_CLASS` for one that is known to have none, and -1
        for all others; None if nothing is given.
    """

    log_shares: Floats | None = None
    concentration: float = CONCENTRATION
    allowed: npt.NDArray[np.bool_] | None = None
    given: Ints | None = None

    @classmethod
    def of(cls, prior: Prior | None, place: int = 0, given: Ints | None = None) -> Context:
        """Make one for one of the batches of a prior."""
        if prior is None:
            return cls(given=given)
        return cls(prior.log_shares[place], float(prior.concentration[place]), given=given)

    def rows(self, rows: npt.NDArray[np.intp] | slice) -> Context:
        """Return what is known about some of the items."""
        allowed = None if self.allowed is None else self.allowed[rows]
        return Context(self.log_shares, self.concentration, allowed, None if self.given is None else self.given[rows])


@dataclass(frozen=True, eq=False)
class Reference:
    """What batches are compared with: a head, and what is known about items of no class."""

    head: LinearHead
    levels: Levels | None = None

    @cached_property
    def noise(self) -> Floats:
        """Noise of each class, for the chains."""
        return class_noise(self.head.means)

    @cached_property
    def slopes(self) -> Floats:
        """κ of each class."""
        return slopes_of(self.head.weights, self.head.means)

    @cached_property
    def centre(self) -> Floats:
        """Centre of the class means."""
        return np.asarray(self.head.means.mean(0))


@dataclass(frozen=True, eq=False)
class BatchItems:
    """Items of a batch, [item, dim] about the origin of the head, what is known about them, and their comparisons."""

    points: Floats
    reference: Reference
    context: Context = field(default_factory=Context)

    @cached_property
    def scores(self) -> Floats:
        """`S_nk`; -inf where an item cannot have the class. The only product of items and classes."""
        head, context = self.reference.head, self.context
        scores = np.asarray(self.points @ head.weights.T)
        scores += head.offsets
        if context.log_shares is not None:
            scores[:, np.isneginf(context.log_shares)] = -np.inf
        if context.allowed is not None:
            scores[~context.allowed] = -np.inf
        if context.given is not None:
            fixed = np.flatnonzero(context.given >= 0)
            scores[fixed] = -np.inf
            scores[fixed, context.given[fixed]] = 0
        return scores

    @cached_property
    def links(self) -> list[tuple[slice, Links]]:
        """Which items belong together, within parts that are assigned in turn: a batch is often sorted."""
        levels, n_parts = self.reference.levels, -(-len(self.points) // MOST_LINKED)
        assert levels is not None
        parts = (slice(part, len(self.points), n_parts) for part in range(n_parts))
        return [(mine, link(self.points[mine], self.reference.centre, levels.pair_odds)) for mine in parts]

    @property
    def judged(self) -> npt.NDArray[np.bool_]:
        """Items about which nothing is given."""
        given = self.context.given
        return np.ones(len(self.points), bool) if given is None else given == -1


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
    is_open
        Whether there is evidence for something unknown.
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
    is_open: bool
    groups: list[NewGroup] = field(default_factory=list)
    none: npt.NDArray[np.bool_] = field(default_factory=lambda: np.zeros(0, bool))

    @property
    def rejected(self) -> npt.NDArray[np.bool_]:
        """Items that are more likely unknown than known, in open batches, and those known to belong to no class."""
        return np.asarray((self.unknown > REJECTED) & self.is_open | self.none)


class ItemLabels(NamedTuple):
    """Labels of some items of a batch."""

    probabilities: Floats  # q [item, class]
    confidence: Floats  # [item]
    absent: Floats  # [2, class], Σ_n ln(1 - chance of the class), as a stray and alone
    looks: Looks | None


@dataclass(frozen=True, eq=False)
class Decision:
    """What a batch is like; labels any of its items."""

    reference: Reference
    n_classes: int  # that are not ruled out
    tilts: Floats  # [class], what place and prior add to the scores
    offset: Floats  # [dim]
    prior_weight: float  # γ
    roll: Roll = field(default_factory=Roll.nobody)
    moved: Moved | None = None
    moving: npt.NDArray[np.intp] | None = None  # classes that move
    gate: float = 0.0  # how far they do
    far: float = 1.0
    verdict: Verdict | None = None

    def near(self, items: BatchItems, given: Floats | None) -> Floats:
        """Chance of each class when an item is labelled alone; `given` as in `Moved.gains`."""
        near = items.scores + self.tilts.astype(items.scores.dtype)
        if self.moved is not None:
            near[:, self.moving] += self.gate * self.moved.gains(items.points - self.offset, given)
        return _normalised(near)

    def label(self, items: BatchItems, given: Floats | None = None) -> ItemLabels:
        """Label items; `given` says how far they moved the class means themselves."""
        near, scores = self.near(items, given), items.scores
        few, strays = labels_of(near, self.roll, self.n_classes)
        looks = None if self.reference.levels is None else self.looks(items, few)
        absent = np.stack([np.log1p(-part.clip(max=1 - 1e-6)).sum(0, dtype=np.float64) for part in (strays, near)])
        q = (1 - self.roll.alone) * few + self.roll.alone * near
        if self.far > 1:
            # A batch that is farther from the catalogue than its own examples is labelled with less certainty.
            q **= self.far**-CERTAINTY
            q /= q.sum(1, keepdims=True)
        confidence = 1 / np.exp(np.maximum(scores - scores.max(1, keepdims=True), LOWEST)).sum(1)
        return ItemLabels(q, confidence, absent, looks)

    def looks(self, items: BatchItems, few: Floats) -> Looks:
        """Compare the group of each item with the classes of the item."""
        head, levels, columns = self.reference.head, self.reference.levels, self.roll.columns
        assert levels is not None
        assert head.spread is not None
        inside, own, scores = items.points - self.offset, few[:, columns], items.scores
        means, weights = head.means[columns], head.weights[columns]
        own /= np.maximum(own.sum(1, keepdims=True), np.finfo(own.dtype).tiny)
        lengths, near = (means**2).sum(1) - head.spread / head.mass[columns], inside @ means.T
        said = np.maximum(scores[:, columns], scores.max(1, keepdims=True) + LOWEST) - weights @ self.offset
        said = (own * said).sum(1)
        t, sizes, copies = np.empty((3, len(own)))
        for mine, links in items.links:
            away = ((links.weights @ inside[mine]) ** 2).sum(1)
            away += (own[mine] * (lengths - 2 * (links.weights @ near[mine]))).sum(1)
            noise = head.spread - head.spread / links.sizes
            t[mine] = levels.statistic(away + noise, links.weights @ said[mine])
            sizes[mine], copies[mine] = links.sizes, links.copies
        return Looks(t, sizes, items.judged / (sizes * copies))

    def distance(self, items: BatchItems, few: Floats) -> float:
        """Squared distance from its class that a quarter of the items keeps, by that of left-out examples."""
        head, columns, some = self.reference.head, self.roll.columns, items.judged
        if self.reference.levels is None or head.spread is None or not some.any():
            return 1.0
        inside, own, means = items.points[some] - self.offset, few[some][:, columns], head.means[columns]
        lengths = (means**2).sum(1) - head.spread / head.mass[columns]
        own = own / np.maximum(own.sum(1, keepdims=True), np.finfo(own.dtype).tiny)
        away = (inside**2).sum(1) + (own * (lengths - 2 * inside @ means.T)).sum(1)
        return max(float(np.quantile(away, QUARTER)) / self.reference.levels.quarter, 0.0)


def decide(items: BatchItems) -> tuple[Decision, Floats]:
    """Find out what a batch is like, from its items or from a part of them.

    Returns also how far each item was given to the classes that moved.
    """
    reference, head, levels = items.reference, items.reference.head, items.reference.levels
    at, weights, unknown = _placed(items, np.ones(len(items.points))), items.judged.astype(np.float64), None
    near = at.near(items, None)
    at = replace(at, roll=call_roll(near, reference.noise, head.mass, at.n_classes))
    few, _ = labels_of(near, at.roll, at.n_classes)
    far = at.distance(items, few)
    if levels is not None:
        looks = at.looks(items, few)
        verdict = Verdict.of(levels, looks, far)
        at = replace(at, verdict=verdict)
        if verdict.is_open:
            chances = verdict.chances(looks.t, looks.sizes) * items.judged
            weights = np.maximum(1 - chances, LEAST_WEIGHT)
            unknown = (1 / weights - 1) * likelihoods_of(near, at.roll, at.n_classes)
            at = replace(_placed(items, weights), roll=at.roll, verdict=verdict)
            weights *= items.judged  # what a person labelled is an example already
    columns, at = at.roll.columns, replace(at, far=far)
    if at.roll.alone == 1:  # nothing moves, and nothing would change
        return at, np.zeros((len(few), len(columns)), few.dtype)
    given = few[:, columns] * weights[:, None].astype(few.dtype)
    means, shots, slopes = head.means[columns], head.mass[columns], reference.slopes[columns]
    moved = Moved.of(items.points - at.offset, given, slopes, means, shots, head.spread)
    at = replace(at, moved=moved, moving=columns, gate=1 - at.roll.alone)
    near = at.near(items, given)
    at = replace(at, roll=call_roll(near, reference.noise, head.mass, at.n_classes, unknown))
    return at, given


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
    everything = BatchItems(points, reference, context or Context())
    n_items, context = len(points), everything.context
    if n_items <= MOST_DECIDED:
        decision, given = decide(everything)
        return joined(decision, [decision.label(everything, given)], everything)
    # By a number that depends on the row alone: neither the order of the items nor how they are sorted matters.
    part = np.sort(np.argsort(_fractions(points), kind="stable")[:MOST_DECIDED])
    decision, some = decide(BatchItems(points[part], reference, context.rows(part)))
    given = np.zeros((n_items, some.shape[1]), some.dtype)
    given[part] = some
    blocks = []
    for start in range(0, n_items, BLOCK_ITEMS):
        rows = slice(start, start + BLOCK_ITEMS)
        blocks.append(decision.label(BatchItems(points[rows], reference, context.rows(rows)), given[rows]))
    return joined(decision, blocks, everything)


def joined(decision: Decision, blocks: list[ItemLabels], items: BatchItems) -> JointAnswer:
    """Put the labels of all items of a batch together."""
    q, n_items, given = (
        np.concatenate([block.probabilities for block in blocks]),
        len(items.points),
        items.context.given,
    )
    unknown, interval, groups, is_open = np.full(n_items, np.nan), (0.0, 1.0), list[NewGroup](), False
    if (verdict := decision.verdict) is not None:
        t, sizes = (np.concatenate([getattr(block.looks, name) for block in blocks]) for name in ("t", "sizes"))
        unknown, interval, is_open = verdict.chances(t, sizes), verdict.interval, verdict.is_open
        unknown[~items.judged] = 0
        groups = _groups(items, unknown) if is_open else groups
    none = np.zeros(n_items, bool) if given is None else given == NO_CLASS
    unknown[none] = 1
    counting = 1 - unknown if is_open else (~none).astype(np.float64)
    counts = counting @ q.astype(np.float64)
    absent, shots = np.sum([block.absent for block in blocks], 0), decision.reference.head.mass
    presence = chance_of_any(decision.roll, shots, absent, counts, float(n_items))
    return JointAnswer(
        probabilities=q,
        confidence=np.concatenate([block.confidence for block in blocks]),
        expected_counts=counts,
        presence=np.minimum(presence, counts) if is_open or none.any() else presence,  # by Markov's inequality
        joint_weight=1 - decision.roll.alone,
        prior_weight=decision.prior_weight,
        far=decision.far,
        unknown=unknown,
        interval=interval,
        is_open=is_open,
        groups=groups,
        none=none,
    )


def _placed(items: BatchItems, weights: Floats) -> Decision:
    """Estimate offset and shares, and then what is known about the shares in advance; no class is called yet."""
    scores, points, head, context = items.scores, items.points, items.reference.head, items.context
    near = np.exp(np.maximum(scores - scores.max(1, keepdims=True), LOWEST))
    near[np.isneginf(scores)] = 0
    allowed, n_items = near.any(0), float(weights.sum())

    def count(tilts: Floats) -> Floats:
        t = np.exp(np.maximum(tilts - tilts[allowed].max(), LOWEST)).astype(near.dtype)
        return np.asarray((weights / (near @ t)).astype(near.dtype) @ near * t, dtype=np.float64)

    centre = (weights @ points) / n_items
    offset, tilts = place(count, n_items, centre, allowed, head.weights, head.means, head.mass, head.spread)
    prior_weight = 1.0
    if context.log_shares is not None:
        before = tilts
        leaning = lean(context.log_shares, context.concentration, n_items, lambda extra: count(before + extra))
        tilts, prior_weight = tilts + leaning.tilts, leaning.trust
    return Decision(items.reference, int(allowed.sum()), tilts, offset.astype(points.dtype), prior_weight)


def _normalised(logits: Floats) -> Floats:
    """Softmax over classes, with no exponent below `LOWEST` unless it is -inf."""
    banned = np.isneginf(logits)
    near = np.exp(np.maximum(logits - logits.max(1, keepdims=True), LOWEST))
    near[banned] = 0
    return np.asarray(near / near.sum(1, keepdims=True))


def _groups(items: BatchItems, unknown: Floats) -> list[NewGroup]:
    """Gather the items that are more likely unknown than known."""
    places = np.flatnonzero((unknown > REJECTED) & items.judged)
    if len(places) > MOST_GATHERED:
        places = np.sort(np.argsort(-unknown, kind="stable")[:MOST_GATHERED])
    if len(places) == 0:
        return []
    some = BatchItems(items.points[places], items.reference)
    levels = items.reference.levels
    assert levels is not None
    links = link(some.points, items.reference.centre, levels.pair_odds)
    found = new_groups(links.log_odds, some.points, unknown[places], some.scores, copies_of(some.points)[0])
    return [group._replace(items=places[group.items]) for group in found]


def _fractions(points: Floats) -> Floats:
    """Return a number between zero and one for each row, equal for equal rows."""
    rng = np.random.default_rng(0)
    return np.asarray((1e4 * points.astype(np.float64) @ rng.normal(size=points.shape[1])) % 1)
