"""Batches: the items of every group, labelled jointly one group after the other, whatever they are compared with.

What a group is labelled does not depend on the other groups, unless they are pooled (`handful.engine.pooling`): then
all are labelled once alone, and again with what their siblings hold as a prior.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from handful.catalogue import Catalogue
from handful.engine.head import LinearHead
from handful.engine.model import Context, JointAnswer
from handful.errors import OptionError
from handful.estimators.answer import Answer
from handful.estimators.columns import column_of
from handful.estimators.containers import FrameOf, new_frame
from handful.estimators.context import BatchContexts, Known
from handful.estimators.diagnostics import diagnose
from handful.estimators.given import with_given
from handful.estimators.pooling import Pooling
from handful.estimators.proposals import Proposal
from handful.shapes import Bool, Float, Int


class GroupedItems(Protocol):
    """Items of all groups, and what they are compared with."""

    @property
    def classes(self) -> npt.NDArray[Any]:
        """Labels of the classes."""

    @property
    def head(self) -> LinearHead | None:
        """What the items are compared with; None if they come with their scores."""

    @property
    def several(self) -> bool:
        """Whether an item may hold several classes."""

    @property
    def given(self) -> Int[np.ndarray, "item"] | None:
        """Class of each item that has one for certain, else -1."""

    @property
    def unknown_reason(self) -> str | None:
        """Why unknown items cannot be judged; None if they can."""

    @property
    def zero(self) -> Bool[np.ndarray, "item"]:
        """Items without a direction that could be compared."""

    def __len__(self) -> int:
        """Return the number of items."""

    def label(
        self, rows: Int[np.ndarray, "some"], context: Context, unit_of: Int[np.ndarray, "some"] | None
    ) -> JointAnswer:
        """Label some of the items as one batch; with `unit_of`, one item per unit, in the order of the units."""


@dataclass(frozen=True, eq=False)
class CatalogueItems:
    """Items compared with a fitted catalogue; `given` is the class of items that have one for certain, else -1."""

    catalogue: Catalogue
    features: Float[np.ndarray, "item dim"]
    given: Int[np.ndarray, "item"] | None = None

    several = False

    @classmethod
    def of(
        cls, catalogue: Catalogue, features: Float[np.ndarray, "item dim"], given: Mapping[int, Any] | None
    ) -> CatalogueItems:
        """Add the items whose labels are given to the catalogue."""
        return cls(*with_given(catalogue, features, given or {}))

    @property
    def classes(self) -> npt.NDArray[Any]:
        """Labels of the classes."""
        return self.catalogue.classes

    @property
    def head(self) -> LinearHead | None:
        """The head of the catalogue."""
        return self.catalogue.head

    @property
    def unknown_reason(self) -> str | None:
        """Why the catalogue cannot judge unknown items; None if it can."""
        return self.catalogue.unknown_reason

    @property
    def zero(self) -> Bool[np.ndarray, "item"]:
        """Vectors of zeros, where only directions are compared."""
        return np.asarray(~self.features.any(1) & (self.catalogue.transform == "l2"))

    def __len__(self) -> int:
        """Return the number of items."""
        return len(self.features)

    def label(
        self, rows: Int[np.ndarray, "some"], context: Context, unit_of: Int[np.ndarray, "some"] | None = None
    ) -> JointAnswer:
        """Label some of the items as one batch, and look for unknown ones."""
        points = self.catalogue.points(self.features[rows])
        return self.catalogue.label_points(points if unit_of is None else mean_rows(points, unit_of), context)


def answered(items: GroupedItems, groups: Any, known: Known, frame_of: FrameOf = new_frame) -> Answer:
    """Label every group jointly, or all items as one batch."""
    batches = _Batches(items, groups, known)
    probabilities, of_groups = np.empty((len(items), len(items.classes))), list[JointAnswer]()
    unknown, rejected = np.empty(len(items)), np.empty(len(items), dtype=bool)
    for _, rows, found in batches.labelled():
        probabilities[rows], unknown[rows], rejected[rows] = found.probabilities, found.unknown, found.rejected
        of_groups.append(replace(found, probabilities=found.probabilities[:0]))  # one copy of a large table
    if not items.several:
        probabilities /= probabilities.sum(-1, keepdims=True)
    n_zero = np.bincount(batches.group_of, weights=items.zero, minlength=len(of_groups)).astype(np.int64)
    sizes = np.bincount(batches.group_of, minlength=len(of_groups))
    answer = Answer(
        classes=items.classes,
        labels=items.classes[probabilities.argmax(-1)],
        probabilities=probabilities,
        expected_counts=np.stack([found.expected_counts for found in of_groups]),
        presence=np.stack([found.presence for found in of_groups]),
        joint_weight=np.array([found.joint_weight for found in of_groups]),
        prior_weight=np.array([one.prior_weight for one in of_groups]) if batches.has_weights else None,
        unknown=unknown,
        rejected=rejected,
        unknown_interval=np.array([found.interval for found in of_groups]),
        unknown_reason=items.unknown_reason,
        proposals=tuple(tuple(Proposal.of(group, items.classes) for group in found.groups) for found in of_groups),
        diagnostics=tuple(
            diagnose(items.head, int(sizes[place]), float(one.confidence.mean()), n_zero=int(n_zero[place]))
            for place, one in enumerate(of_groups)
        ),
        groups=batches.names,
        group_of=batches.group_of,
        pooling=batches.pooling,
        frame_of=frame_of,
    )
    return answer if groups is not None else answer.at(0)


def by_group(
    items: GroupedItems, groups: Any, known: Known | None = None
) -> Iterator[tuple[int, Int[np.ndarray, "some"], JointAnswer]]:
    """Label every group as one joint batch: yield its place, the rows of its items, and the answer about it."""
    return _Batches(items, groups, known or Known()).labelled()


def labels_alone(items: GroupedItems, groups: Any, known: Known) -> tuple[npt.NDArray[Any], npt.NDArray[np.bool_]]:
    """Return the labels and the rejected items alone: probabilities are never held for all rows at once."""
    codes, rejected = np.empty(len(items), np.int64), np.empty(len(items), dtype=bool)
    for _, rows, found in _Batches(items, groups, known).labelled():
        codes[rows], rejected[rows] = found.probabilities.argmax(1), found.rejected
    return items.classes[codes], rejected


class _Batches:
    """The groups of some items, and what is known about each."""

    def __init__(self, items: GroupedItems, groups: Any, known: Known) -> None:
        self.items, self.pooling, n_items = items, None, len(items)
        self.names: npt.NDArray[Any] | None
        self.group_of: Int[np.ndarray, "item"]
        self.names, self.group_of = (
            (None, np.zeros(n_items, np.int64)) if groups is None else column_of(groups, n_items, "groups")
        )
        self.contexts = BatchContexts(known, items.classes, self.names, self.group_of, items.given)
        self.unit_of = None
        if "together" in known:
            if items.several:
                raise OptionError("together says that items have one class, and several says that they may have more")
            self.unit_of = column_of(known["together"], n_items, "together")[1]
        if self.contexts.siblings is not None:
            self._pool()

    @property
    def has_weights(self) -> bool:
        """Whether classes have weights, from the caller or from siblings."""
        return self.contexts.prior is not None

    def labelled(self) -> Iterator[tuple[int, Int[np.ndarray, "some"], JointAnswer]]:
        """Label every group as one joint batch: yield its place, the rows of its items, and the answer about it."""
        for place, rows in enumerate(rows_by_group(self.group_of)):
            context = self.contexts.of_group(place, rows)
            if self.unit_of is None:
                yield place, rows, self.items.label(rows, context, None)
                continue
            unit_of = np.unique(self.unit_of[rows], return_inverse=True)[1]
            yield place, rows, for_items(self.items.label(rows, for_units(context, unit_of), unit_of), unit_of)

    def _pool(self) -> None:
        """Label all groups alone, and take what siblings hold as a prior."""
        n_groups, n_classes = int(self.group_of.max()) + 1, len(self.items.classes)
        counts, labels = np.zeros((2, n_groups, n_classes))
        for place, _, found in self.labelled():
            counts[place] = found.expected_counts
            labels[place] = np.bincount(found.probabilities.argmax(1)[~found.rejected], minlength=n_classes)
        assert self.contexts.siblings is not None
        self.contexts.prior, self.pooling = self.contexts.siblings.prior(counts, labels, self.contexts.prior)

    pooling: Pooling | None


def rows_by_group(group_of: Int[np.ndarray, "item"]) -> list[Int[np.ndarray, "some"]]:
    """Rows of each group; groups are counted from zero."""
    order, sizes = np.argsort(group_of, kind="stable"), np.bincount(group_of)
    return np.split(order, np.cumsum(sizes)[:-1])


def mean_rows(rows: Float[np.ndarray, "item dim"], unit_of: Int[np.ndarray, "item"]) -> Float[np.ndarray, "unit dim"]:
    """Mean of the rows of each unit."""
    sums = np.zeros((int(unit_of.max()) + 1, rows.shape[1]))
    np.add.at(sums, unit_of, rows)
    return np.asarray(sums / np.bincount(unit_of)[:, None], dtype=rows.dtype)


def for_units(context: Context, unit_of: Int[np.ndarray, "item"]) -> Context:
    """Return what is known about units: a class must be allowed for all items, and one given label is that of all."""
    n_units, allowed, given = int(unit_of.max()) + 1, None, None
    if context.allowed is not None:
        allowed = np.ones((n_units, context.allowed.shape[1]), bool)
        np.logical_and.at(allowed, unit_of, context.allowed)
        possible = allowed if context.log_shares is None else allowed & ~np.isneginf(context.log_shares)
        allowed[~possible.any(1)] = True  # they contradict each other, and say nothing
    if context.given is not None:
        given = np.full(n_units, -1)
        known = np.flatnonzero(context.given != -1)
        given[unit_of[known]] = context.given[known]
        if (given[unit_of[known]] != context.given[known]).any():
            raise OptionError("items that belong together were given different labels; correct given or together")
    return replace(context, allowed=allowed, given=given)


def for_items(found: JointAnswer, unit_of: Int[np.ndarray, "item"]) -> JointAnswer:
    """Give every item the answer about its unit."""
    sizes = np.bincount(unit_of)
    chances = np.where(np.isnan(found.unknown) | ~np.array(found.is_open), 0, found.unknown)
    none = found.none if len(found.none) else np.zeros(len(sizes), bool)
    return replace(
        found,
        probabilities=found.probabilities[unit_of],
        confidence=found.confidence[unit_of],
        expected_counts=(sizes * (1 - np.where(none, 1, chances))) @ found.probabilities.astype(np.float64),
        unknown=found.unknown[unit_of],
        none=none[unit_of],
        groups=[group._replace(items=np.flatnonzero(np.isin(unit_of, group.items))) for group in found.groups],
    )
