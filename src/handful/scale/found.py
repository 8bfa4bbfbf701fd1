"""What is found about groups of items: labels, and the figures of each group; from vectors to arrays.

Small groups of one size are labelled as stacks, among the classes that are near their items. A group that is too large
to be compared whole is decided by a sample of its items, and mapped block by block, like a batch that nobody holds.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from handful.estimators.certainty import certainty_of, most_certain
from handful.fitted import FittedModel
from handful.model.answer import JointAnswer
from handful.model.batch import BatchItems
from handful.model.knowledge import Knowledge, Prior, ToldShare
from handful.model.labelling import label_stack, stacks_of
from handful.model.labels import Decision
from handful.model.present_classes import listed_classes
from handful.model.stream import DecidedBatch, deciding_items, rows_at_a_time
from handful.model.summary import BatchSummary, BatchTotals, summarize
from handful.model.unknown_in_batch import UnknownCounts
from handful.shapes import Float, Int

ItemVectors = Float[np.ndarray, "item dim"]


@dataclass(frozen=True, eq=False)
class KnownOfAll:
    """What is known about every group alike: weights of the classes, and a Beta distribution of the unknown share."""

    weights: Float[np.ndarray, "class"] | None = None
    share: tuple[float, float] | None = None

    def of(self, n_groups: int, fitted: FittedModel) -> Knowledge:
        """Return the same as knowledge about a stack of groups."""
        prior = None
        if self.weights is not None:
            concentration = np.full(n_groups, fitted.settings.prior_concentration)
            one = Prior.of(self.weights[None], concentration[:1])
            prior = Prior(np.broadcast_to(one.shares, (n_groups, len(self.weights))), concentration)
        share = None
        if self.share is not None:
            a, b = (np.full(n_groups, end) for end in self.share)
            share = ToldShare(a, b, np.ones(n_groups, bool))
        return Knowledge(prior=prior, share=share)


class FoundItems(NamedTuple):
    """What is found about items: places of their classes, and the two chances."""

    codes: Int[np.ndarray, "item"]
    certainty: Float[np.ndarray, "item"]
    unknown: Float[np.ndarray, "item"]  # NaN if the model cannot tell

    @classmethod
    def empty(cls, n_items: int) -> FoundItems:
        """Return room for those of so many items, all zero."""
        return cls(np.zeros(n_items, np.int64), np.zeros(n_items), np.zeros(n_items))

    def put(
        self,
        rows: Any,
        q: npt.NDArray[np.floating[Any]],
        classes: Int[np.ndarray, "..."] | None,
        unknown: npt.NDArray[np.floating[Any]] | None,
        fitted: FittedModel,
    ) -> None:
        """Take the best of chances q [..., item, class] of some classes, all if there are None."""
        best = q.argmax(-1)
        chance = np.take_along_axis(q, best[..., None], -1)[..., 0]
        codes = best if classes is None else np.take_along_axis(classes, best, -1)
        strange = np.full(best.shape, np.nan) if unknown is None else unknown
        self.codes[rows] = codes
        self.unknown[rows] = strange
        certainty = certainty_of(chance.ravel(), strange.ravel(), most_certain(fitted.head.mass))
        self.certainty[rows] = certainty.reshape(best.shape)


@dataclass(frozen=True, eq=False)
class OfGroups:
    """The figures of groups, by number of the group; and of the classes that may be in one, row by row."""

    n_items: Int[np.ndarray, "group"]
    joint_weight: Float[np.ndarray, "group"]
    n_unknown: Int[np.ndarray, "group"]
    limit: Float[np.ndarray, "group"]
    confidence: Float[np.ndarray, "group"]
    n_zero: Int[np.ndarray, "group"]
    listed: list[npt.NDArray[np.void]] = field(default_factory=list)

    @classmethod
    def empty(cls, n_groups: int) -> OfGroups:
        """Return room for those of so many groups."""

        def whole() -> Int[np.ndarray, "group"]:
            return np.zeros(n_groups, np.int64)

        def part() -> Float[np.ndarray, "group"]:
            return np.zeros(n_groups)

        return cls(whole(), part(), whole(), part(), part(), whole())

    def put(self, groups: Int[np.ndarray, "some"], summary: BatchSummary, classes: Any, n_items: int) -> None:
        """Take what is said about some groups, as a whole and about their classes."""
        self.n_items[groups] = n_items
        self.joint_weight[groups] = summary.joint_weight
        self.n_unknown[groups] = summary.n_rejected
        self.limit[groups] = summary.limit
        self.confidence[groups] = summary.confidence
        self._list(groups, summary.expected_counts, summary.presence, classes)

    def put_answer(self, group: int, answer: JointAnswer) -> None:
        """Take what is said about one group."""
        self.n_items[group] = len(answer.unknown)
        self.joint_weight[group] = answer.joint_weight
        self.n_unknown[group] = answer.rejected.sum()
        self.limit[group] = answer.limit
        self.confidence[group] = answer.confidence.mean()
        self._list(np.array([group]), answer.expected_counts[None], answer.presence[None], None)

    def _list(self, groups: Any, counts: Any, presence: Any, classes: Any) -> None:
        place, column = listed_classes(counts, presence.copy())
        rows = np.empty(len(place), LISTED)
        rows["group"] = groups[place]
        rows["class"] = column if classes is None else classes[place, column]
        rows["expected_count"] = counts[place, column]
        rows["presence"] = presence[place, column]
        self.listed.append(rows)


LISTED = np.dtype([("group", "i8"), ("class", "i8"), ("expected_count", "f4"), ("presence", "f4")])


def label_groups(
    fitted: FittedModel, vectors: ItemVectors, sizes: Int[np.ndarray, "group"], known: KnownOfAll
) -> tuple[FoundItems, OfGroups]:
    """Label groups of so many vectors each, one group after the other; a group may be empty."""
    items = FoundItems.empty(len(vectors))
    groups = OfGroups.empty(len(sizes))
    starts = np.cumsum(sizes) - sizes
    groups.n_zero[:] = np.bincount(np.repeat(np.arange(len(sizes)), sizes), ~vectors.any(1), len(sizes))
    points = fitted.points(vectors)
    nonempty = np.flatnonzero(sizes)
    if fitted.only_names:  # their scale is that of the group
        for group in nonempty.tolist():
            rows = slice(int(starts[group]), int(starts[group] + sizes[group]))
            answer = fitted.label_points(points[rows], known.of(1, fitted))
            items.put(rows, answer.probabilities, None, None, fitted)
            groups.put_answer(group, answer)
        return items, groups
    reference = fitted.reference
    for places in stacks_of(sizes[nonempty], reference):
        some = nonempty[places]
        size = int(sizes[some[0]])
        rows = slice(int(starts[some[0]]), int(starts[some[0]]) + size)
        if size > deciding_items(reference.n_classes, reference.settings):
            batch = decide_points(fitted, points[rows], vectors[rows], known)
            totals = label_points(batch, fitted, points[rows], vectors[rows], known, items, rows.start)
            groups.put(some, summary_of(batch.decision, totals, fitted, known), None, size)
            continue
        of_stack = starts[some][:, None] + np.arange(size)
        stack = label_stack(points[of_stack], reference, known.of(len(some), fitted), vectors[rows], near=True)
        near = stack.labels.near
        classes = None if near is None else near.classes
        items.put(of_stack, stack.named.probabilities, classes, stack.named.unknown, fitted)
        groups.put(some, stack.summary, classes, size)
    return items, groups


def decide_points(fitted: FittedModel, points: ItemVectors, contents: ItemVectors, known: KnownOfAll) -> DecidedBatch:
    """Find out what a batch is like from a sample of these items, or all of them."""
    knowledge = known.of(1, fitted)

    def items_at(rows: Int[np.ndarray, "some"]) -> BatchItems:
        return BatchItems.of(points[None, rows], fitted.reference, knowledge, contents[rows])

    settings = fitted.settings
    nobody = np.empty(0, np.int64)
    return DecidedBatch.of(contents, fitted.n_classes, items_at, nobody, settings.most_counted, settings)


class PartTotals(NamedTuple):
    """Sums over the items of a part of a batch."""

    sums: BatchTotals
    unknown: UnknownCounts | None  # None if the model cannot tell
    n_zero: int

    @classmethod
    def added(cls, parts: Sequence[PartTotals]) -> PartTotals:
        """Add those of parts of a batch, in any order."""
        unknown = [part.unknown for part in parts if part.unknown is not None]
        sums = BatchTotals.added([part.sums for part in parts])
        return cls(sums, UnknownCounts.added(unknown) if unknown else None, sum(part.n_zero for part in parts))


def label_points(
    batch: DecidedBatch,
    fitted: FittedModel,
    points: ItemVectors,
    contents: ItemVectors,
    known: KnownOfAll,
    items: FoundItems,
    start: int = 0,
) -> PartTotals:
    """Label some items of a batch block by block into `items` from `start` on; return what they add up to."""
    size = rows_at_a_time(fitted.n_classes)
    knowledge = known.of(1, fitted)
    parts = []
    for at in range(0, len(points), size):
        block = slice(at, at + size)
        found = batch.label(BatchItems.of(points[None, block], fitted.reference, knowledge, contents[block]))
        rows = slice(start + at, start + at + found.confidence.shape[1])
        items.put(rows, found.probabilities[0], None, None if found.unknown is None else found.unknown[0], fitted)
        unknown = None if found.unknown is None else UnknownCounts.of(found.unknown)
        parts.append(PartTotals(BatchTotals.of(found), unknown, int((~contents[block].any(1)).sum())))
    return PartTotals.added(parts)


def summary_of(decision: Decision, totals: PartTotals, fitted: FittedModel, known: KnownOfAll) -> BatchSummary:
    """Say what a batch is like as a whole."""
    share = known.of(1, fitted).share
    return summarize(decision, totals.sums, fitted.n_classes, totals.unknown, share, fitted.settings)
