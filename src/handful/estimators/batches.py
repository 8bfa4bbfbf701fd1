"""Batches: the items of every group, labelled jointly, whatever they are compared with.

What a group is labelled does not depend on the other groups, unless they are pooled (`handful.engine.pooling`): then
all are labelled once alone, and again with what their siblings hold as a prior.
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Iterable, Iterator
from copy import copy
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from handful.catalogue import Catalogue
from handful.engine.head import LinearHead
from handful.engine.model import Context, JointAnswer, label_batches
from handful.estimators.answer import Answer, best_two
from handful.estimators.certainty import certainty_of, in_doubt, most_certain
from handful.estimators.coarse import Coarse
from handful.estimators.containers import FrameOf, new_frame
from handful.estimators.context import BatchContexts, Known
from handful.estimators.diagnostics import diagnose
from handful.estimators.given import with_given
from handful.estimators.pooling import Pooling
from handful.estimators.proposals import Proposal
from handful.estimators.sequences import averaged
from handful.shapes import Bool, Float, Int

# Rows of a batch, and what is known about it.
Batch = tuple[Int[np.ndarray, "some"], Context]


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

    @property
    def alone(self) -> Int[np.ndarray, "item"]:
        """The most probable class of each item by itself."""

    def rows(self, rows: Int[np.ndarray, "some"]) -> GroupedItems:
        """Return some of the items."""

    def label(self, rows: Int[np.ndarray, "some"], context: Context) -> JointAnswer:
        """Label some of the items as one batch."""


@dataclass(frozen=True, eq=False)
class CatalogueItems:
    """Items compared with a fitted catalogue; `given` is the class of items that have one for certain, else -1.

    `names` are the labels of the classes if those of the catalogue are positions.
    """

    catalogue: Catalogue
    features: Float[np.ndarray, "item dim"]
    given: Int[np.ndarray, "item"] | None = None
    names: npt.NDArray[Any] | None = None

    several = False

    @classmethod
    def of(cls, catalogue: Catalogue, features: Float[np.ndarray, "item dim"], known: Known) -> CatalogueItems:
        """Add the items whose labels are given to the catalogue."""
        return cls(*with_given(catalogue, features, known.get("given"), known.get("new_classes")))

    @property
    def classes(self) -> npt.NDArray[Any]:
        """Labels of the classes."""
        return self.catalogue.classes if self.names is None else self.names

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

    @cached_property
    def points(self) -> Float[np.ndarray, "item dim"]:
        """The transformed items: siblings, questions and explanations need them again."""
        return self.catalogue.points(self.features)

    @property
    def alone(self) -> Int[np.ndarray, "item"]:
        """The most probable class of each item under the head."""
        return np.asarray(self.catalogue.head.scores(self.points).argmax(1))

    @property
    def examples(self) -> tuple[Float[np.ndarray, "row dim"], Int[np.ndarray, "row"]]:
        """The examples that the catalogue keeps, comparable with `points`, and their classes."""
        examples = self.catalogue.examples
        about = np.zeros_like(self.catalogue.origin) if self.catalogue.only_names else self.catalogue.origin
        return examples.points - about, self.catalogue.example_codes

    def rows(self, rows: Int[np.ndarray, "some"]) -> CatalogueItems:
        """Return some of the items."""
        given = None if self.given is None else self.given[rows]
        some = CatalogueItems(self.catalogue, self.features[rows], given, self.names)
        if "points" in vars(self):
            vars(some)["points"] = self.points[rows]
        return some

    def label(self, rows: Int[np.ndarray, "some"], context: Context) -> JointAnswer:
        """Label some of the items as one batch, and look for unknown ones."""
        return self.catalogue.label_points(self.points[rows], context)

    def label_all(self, batches: Iterable[Batch]) -> Iterator[JointAnswer]:
        """Label batches, those of one size as stacks."""
        if self.catalogue.only_names or self.given is not None:
            return (self.label(*batch) for batch in batches)
        points = ((self.points[rows], context) for rows, context in batches)
        return label_batches(points, self.catalogue.reference)


def answered(
    items: GroupedItems, groups: Any, known: Known, frame_of: FrameOf = new_frame, *, keep: bool = True
) -> Answer:
    """Label every group jointly, or all items as one batch, see `Batches.answer`."""
    return Batches.of(items, groups, known).answer(frame_of, keep=keep)


def by_group(
    items: GroupedItems, groups: Any, known: Known | None = None
) -> Iterator[tuple[int, Int[np.ndarray, "some"], JointAnswer]]:
    """Label every group as one joint batch: yield its place, the rows of its items, and the answer about it."""
    return Batches.of(items, groups, known or Known()).labelled()


def predict_codes(
    items: GroupedItems, groups: Any, known: Known
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.bool_]]:
    """Return the class of each item and which are rejected; probabilities are never in memory for all rows at once."""
    codes, rejected = np.empty(len(items), np.int64), np.empty(len(items), dtype=bool)
    for _, rows, found in Batches.of(items, groups, known).labelled():
        codes[rows], rejected[rows] = found.probabilities.argmax(1), found.rejected
    return codes, rejected


class _Kept(NamedTuple):
    """The answer about a group, in the order of doubt: groups with most items in doubt first."""

    less_doubt: int
    place: int
    found: JointAnswer


class Batches:
    """The items of every group, and what is known about them; without groups, all items are one.

    Parameters
    ----------
    items : GroupedItems
        All items.
    contexts : BatchContexts
        Their groups, and what is known about them.
    """

    def __init__(self, items: GroupedItems, contexts: BatchContexts) -> None:
        self.items, self.contexts = items, contexts
        self.pooling: Pooling | None = None
        self.in_doubt: dict[int, JointAnswer] = {}
        self.rows_of = rows_by_group(contexts.group_of)
        if contexts.siblings is not None:
            self._pool()

    @classmethod
    def of(cls, items: GroupedItems, groups: Any, known: Known) -> Batches:
        """Check what is known about the items; `groups` is the group of each, None for a single batch."""
        return cls(items, BatchContexts(known, items.classes, len(items), groups, items.given, several=items.several))

    @cached_property
    def most_certain(self) -> Float[np.ndarray, "item"]:
        """The largest certainty that the label of each item can have; 1 if it was given."""
        head, given = self.items.head, self.contexts.given
        most = np.full(len(self.items), 1.0 if head is None else most_certain(head.mass))
        if given is not None:
            most[given != -1] = 1
        return most

    def labelled(self) -> Iterator[tuple[int, Int[np.ndarray, "some"], JointAnswer]]:
        """Label every group: yield its place, the rows of its items, and the answer about it."""
        batches = [(rows, self.contexts.of_group(place, rows)) for place, rows in enumerate(self.rows_of)]
        if isinstance(self.items, CatalogueItems):
            answers = self.items.label_all(batches)
        else:
            answers = (self.items.label(*batch) for batch in batches)
        for place, ((rows, context), found) in enumerate(zip(batches, answers, strict=True)):
            if self.contexts.sequence_of is not None:
                sequence_of = np.unique(self.contexts.sequence_of[rows], return_inverse=True)[1]
                found = averaged(found, sequence_of, context.unknown_share)
            yield place, rows, found

    def answer(self, frame_of: FrameOf = new_frame, *, keep: bool = True, most_in_doubt: int = 0) -> Answer:
        """Label all groups; `keep` says whether the answer has the probabilities of all classes.

        Of groups with most doubt, up to `most_in_doubt` items in all, the answers stay in `in_doubt`.
        """
        kept = list[_Kept]()
        items, n_items, names = self.items, len(self.items), self.contexts.groups
        coarse = None if self.contexts.coarse is None else Coarse.of(self.contexts.coarse, n_items)
        table = np.empty((n_items, len(items.classes))) if keep else None
        codes, certainties, of_groups = np.empty((n_items, 2), np.int64), np.empty((n_items, 2)), list[JointAnswer]()
        unknown, rejected = np.empty(n_items), np.empty(n_items, dtype=bool)
        for place, rows, found in self.labelled():
            q = found.probabilities.astype(np.float64)
            if not items.several:
                q /= q.sum(-1, keepdims=True)
            codes[rows], best = best_two(q)
            unknown[rows], rejected[rows] = found.unknown, found.rejected
            # Of several classes, each has its chance by itself.
            none = np.zeros(len(rows)) if items.several else found.unknown
            certainties[rows] = certainty_of(best, none, self.most_certain[rows])
            if coarse is not None:
                coarse.put(rows, q, none, self.most_certain[rows])
            if table is not None:
                table[rows] = q
            of_groups.append(replace(found, probabilities=q[:0].copy()))  # one copy of a large table
            if most_in_doubt:
                doubt = int((in_doubt(certainties[rows], rejected[rows]) | rejected[rows]).sum())
                insort(kept, _Kept(-doubt, place, replace(found, probabilities=found.probabilities.copy())))
                while len(kept) > 1 and sum(len(one.found.probabilities) for one in kept) > most_in_doubt:
                    kept.pop()
        self.in_doubt = {one.place: one.found for one in kept}
        n_zero = np.bincount(self.contexts.group_of, weights=items.zero, minlength=len(of_groups)).astype(np.int64)
        answer = Answer(
            classes=items.classes,
            codes=codes,
            certainties=certainties,
            table=table,
            expected_counts=np.stack([found.expected_counts for found in of_groups]),
            presence=np.stack([found.presence for found in of_groups]),
            joint_weight=np.array([found.joint_weight for found in of_groups]),
            prior_weight=None if self.contexts.prior is None else np.array([found.prior_weight for found in of_groups]),
            unknown=unknown,
            rejected=rejected,
            unknown_interval=np.array([found.interval for found in of_groups]),
            unknown_reason=items.unknown_reason,
            proposals=tuple(tuple(Proposal.of(group, items.classes) for group in found.groups) for found in of_groups),
            diagnostics=tuple(
                diagnose(
                    items.head,
                    len(rows),
                    float(found.confidence.mean()),
                    n_zero=int(zero),
                    unknown_share=self.contexts.of_group(place, rows[:0]).unknown_share,
                    unknown_reason=items.unknown_reason,
                )
                for place, (rows, found, zero) in enumerate(zip(self.rows_of, of_groups, n_zero, strict=True))
            ),
            groups=names,
            group_of=self.contexts.group_of,
            pooling=self.pooling,
            coarse=coarse,
            items=items if keep else None,
            frame_of=frame_of,
        )
        return answer if names is not None else answer.at(0)

    def _pool(self) -> None:
        """Label all groups alone, and take what siblings hold as a prior."""
        counts, labels = np.zeros((2, len(self.rows_of), len(self.items.classes)))
        for place, _, found in self.labelled():
            counts[place] = found.expected_counts
            labels[place] = np.bincount(found.probabilities.argmax(1)[~found.rejected], minlength=counts.shape[1])
        assert self.contexts.siblings is not None
        prior, self.pooling = self.contexts.siblings.prior(counts, labels, self.contexts.prior)
        self.contexts = copy(self.contexts)  # the caller's stays as it is
        self.contexts.prior = prior


def rows_by_group(group_of: Int[np.ndarray, "item"]) -> list[Int[np.ndarray, "some"]]:
    """Rows of each group; groups are counted from zero."""
    order, sizes = np.argsort(group_of, kind="stable"), np.bincount(group_of)
    return np.split(order, np.cumsum(sizes)[:-1])
