"""Batches: the items of every group, labelled jointly, whatever they are compared with.

What a group is labelled does not depend on the other groups, unless they are pooled (`handful.model.pooling`): then
all are labelled once alone, and again with what their siblings hold as a prior.
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Iterator
from copy import copy
from dataclasses import replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from handful.estimators.answer import Answer, best_two, group_at
from handful.estimators.certainty import certainty_of, in_doubt, most_certain
from handful.estimators.coarse import Coarse
from handful.estimators.containers import FrameOf, new_frame, rows_by_group
from handful.estimators.context import BatchContexts, Known
from handful.estimators.diagnostics import Diagnostic, diagnose
from handful.estimators.given import with_given
from handful.estimators.items import ItemsToLabel, ModelItems
from handful.estimators.pooling import Pooling
from handful.estimators.proposals import Proposal
from handful.estimators.sequences import averaged
from handful.fitted import FittedModel
from handful.model.answer import JointAnswer
from handful.progress import Reporter, bars
from handful.shapes import Bool, Float, Int


@bars("label")
def predict_codes(
    batches: Batches,
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.bool_], npt.NDArray[np.bool_]]:
    """Return the class of each item, which are rejected, and which of these a person called none of the classes.

    Probabilities are never in memory for all rows at once.
    """
    n_items = len(batches.items)
    codes = np.empty(n_items, np.int64)
    rejected = np.empty(n_items, dtype=bool)
    none_of_these = np.empty(n_items, dtype=bool)
    for _, rows, found in batches.labelled():
        codes[rows] = found.probabilities.argmax(1)
        rejected[rows] = found.rejected
        none_of_these[rows] = found.unnamed >= 0
    return codes, rejected, none_of_these


class _Kept(NamedTuple):
    """The answer about a group, in the order of doubt: groups with most items in doubt first."""

    less_doubt: int
    place: int
    found: JointAnswer


class Batches:
    """The items of every group, and what is known about them; without groups, all items are one.

    Parameters
    ----------
    items : ItemsToLabel
        All items.
    contexts : BatchContexts
        Their groups, and what is known about them.
    """

    def __init__(self, items: ItemsToLabel, contexts: BatchContexts) -> None:
        self.items = items
        self.contexts = contexts
        self.pooling: Pooling | None = None
        self.in_doubt: dict[int, JointAnswer] = {}
        self.rows_of = rows_by_group(contexts.group_of)
        if contexts.siblings is not None:
            self._pool()

    @classmethod
    def of(cls, items: ItemsToLabel, groups: Any = None, known: Known | None = None) -> Batches:
        """Check what is known about the items but labels; `groups` is the group of each, None for a single batch."""
        known = Known() if known is None else known
        several = items.several
        return cls(
            items, BatchContexts(known, items.classes, len(items), groups, several=several, settings=items.settings)
        )

    @classmethod
    def of_catalogue(
        cls,
        catalogue: FittedModel,
        features: Float[np.ndarray, "item dim"],
        groups: Any = None,
        known: Known | None = None,
        *,
        excluded: Bool[np.ndarray, "item"] | None = None,
    ) -> Batches:
        """Check all that is known about items of a catalogue; those with a label that is given are its examples."""
        known = Known() if known is None else known
        found = with_given(catalogue, features, known.get("given"), known.get("new_classes"))
        items = ModelItems(found.catalogue, features, found.classes if found.catalogue.n_unnamed else None)
        codes = found.given.of_items(len(features))
        contexts = BatchContexts(
            known,
            items.classes,
            len(features),
            groups,
            codes,
            new=found.new,
            excluded=excluded,
            settings=items.settings,
        )
        return cls(items, contexts)

    @cached_property
    def most_certain(self) -> Float[np.ndarray, "item"]:
        """The largest certainty that the label of each item can have; 1 if it was given."""
        head = self.items.head
        given = self.contexts.given
        most = np.full(len(self.items), 1.0 if head is None else most_certain(head.mass))
        if given is not None:
            most[given != -1] = 1
        return most

    def labelled(self) -> Iterator[tuple[int, Int[np.ndarray, "some"], JointAnswer]]:
        """Label every group: yield its place, the rows of its items, and the answer about it."""
        excluded = self.contexts.excluded
        counted = self.rows_of if excluded is None else [rows[~excluded[rows]] for rows in self.rows_of]
        # A group that is left out as a whole is labelled all the same, for its shape.
        counted = [some if len(some) else rows for some, rows in zip(counted, self.rows_of, strict=True)]
        batches = [(rows, self.contexts.of_group(place, rows)) for place, rows in enumerate(counted)]
        report = Reporter().stage("label", len(self.items), unit="items")
        for place, ((some, known), found) in enumerate(zip(batches, self.items.label(batches), strict=True)):
            if self.contexts.sequence_of is not None:
                sequence_of = np.unique(self.contexts.sequence_of[some], return_inverse=True)[1]
                found = averaged(found, sequence_of, known.share)
            rows = self.rows_of[place]
            if excluded is not None and excluded[rows].any():
                found = found.with_excluded(excluded[rows])
            yield place, rows, found
            report(len(rows))

    @bars("label")
    def answer(self, frame_of: FrameOf = new_frame, *, keep: bool = True, most_in_doubt: int = 0) -> Answer:
        """Label all groups; `keep` says whether the answer has the probabilities of all classes.

        Of groups with most doubt, up to `most_in_doubt` items in all, the answers stay in `in_doubt`.
        """
        kept = list[_Kept]()
        items = self.items
        n_items = len(self.items)
        names = self.contexts.groups
        coarse = None if self.contexts.coarse is None else Coarse.of(self.contexts.coarse, n_items)
        table = np.empty((n_items, len(items.classes))) if keep else None
        codes = np.empty((n_items, 2), np.int64)
        certainties = np.empty((n_items, 2))
        of_groups = list[JointAnswer]()
        unknown = np.empty(n_items)
        rejected = np.empty(n_items, dtype=bool)
        none_of_these = np.empty(n_items, dtype=bool)
        for place, numbers, found in self.labelled():
            rows = numbers if len(self.rows_of) > 1 else slice(None)
            q = found.probabilities.astype(np.float64)
            if not items.several:
                q /= q.sum(-1, keepdims=True)
            codes[rows], best = best_two(q)
            unknown[rows] = found.unknown
            rejected[rows] = found.rejected
            none_of_these[rows] = found.unnamed >= 0
            if self.contexts.excluded is not None:
                none_of_these[rows] |= self.contexts.excluded[rows]
            # Of several classes, each has its chance by itself.
            none = np.zeros(len(q)) if items.several else found.unknown
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
        answer = Answer(
            classes=items.classes,
            codes=codes,
            _certainties=certainties,
            _table=table,
            expected_counts=np.stack([found.expected_counts for found in of_groups]),
            presence=np.stack([found.presence for found in of_groups]),
            joint_weight=np.array([found.joint_weight for found in of_groups]),
            prior_weight=None if self.contexts.prior is None else np.array([found.prior_weight for found in of_groups]),
            unknown=unknown,
            rejected=rejected,
            _none_of_these=none_of_these,
            unknown_interval=np.array([found.interval for found in of_groups]),
            unknown_reason=items.unknown_reason,
            proposals=tuple(tuple(Proposal.of(group, items.classes) for group in found.groups) for found in of_groups),
            diagnostics=self._diagnosed(of_groups),
            groups=names,
            _group_of=self.contexts.group_of,
            pooling=self.pooling,
            coarse=coarse,
            _items=items,
            _frame_of=frame_of,
        )
        return answer if names is not None else group_at(answer, 0)

    def _diagnosed(self, of_groups: list[JointAnswer]) -> tuple[tuple[Diagnostic, ...], ...]:
        """Say what looks wrong with each group."""
        n_zero = np.bincount(self.contexts.group_of, weights=self.items.zero, minlength=len(of_groups))
        return tuple(
            diagnose(
                self.items.head,
                len(rows),
                float(found.confidence.mean()),
                n_zero=int(n_zero[place]),
                unknown_share=None if self.contexts.unknown_share is None else self.contexts.unknown_share[place],
                unknown_reason=self.items.unknown_reason,
                equal=self.items.equal_classes(found.expected_counts),
            )
            for place, (rows, found) in enumerate(zip(self.rows_of, of_groups, strict=True))
        )

    def _pool(self) -> None:
        """Label all groups alone, and take what siblings hold as a prior."""
        counts, labels = np.zeros((2, len(self.rows_of), len(self.items.classes)))
        for place, _, found in self.labelled():
            counts[place] = found.expected_counts
            labels[place] = np.bincount(found.probabilities.argmax(1)[~found.rejected], minlength=counts.shape[1])
        assert self.contexts.siblings is not None
        prior, self.pooling = self.contexts.siblings.prior(counts, labels, self.contexts.prior, self.items.settings)
        self.contexts = copy(self.contexts)  # the caller's stays as it is
        self.contexts.prior = prior
