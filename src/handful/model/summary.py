"""What is said about a batch as a whole, from sums over its items: those of parts of a batch add."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from handful.model.arrays import Doubles, Floats, Ints
from handful.model.knowledge import ToldShare
from handful.model.labels import Decision, ItemLabels
from handful.model.presence import NearClasses, presence_probability
from handful.model.settings import DEFAULT, Settings
from handful.model.unknown_in_batch import UnknownCounts, rejection_limit


class BatchTotals(NamedTuple):
    """Sums over items, and the largest chances."""

    n_items: int
    counts: Doubles  # [batch, class], Σ_n q_nk, unknown items apart
    log_absence: Floats  # [batch, 2, class], as in `log_absence`
    confidence: Doubles  # [batch], Σ_n of the largest probability under the head
    largest: Doubles  # [batch, class], max_n q_nk of known items

    @classmethod
    def of(cls, labels: ItemLabels) -> BatchTotals:
        """Add up."""
        q = labels.probabilities
        known = labels.known.astype(q.dtype)
        counts = np.asarray((known[:, None] @ q)[:, 0], np.float64)
        confidence = labels.confidence.sum(-1, dtype=np.float64)
        largest = np.asarray((known[..., None] * q).max(1), np.float64)
        return cls(q.shape[1], counts, labels.log_absence, confidence, largest)

    @classmethod
    def added(cls, parts: Sequence[BatchTotals]) -> BatchTotals:
        """Add those of parts of a batch."""
        n_items, counts, absence, confidence, largest = zip(*parts, strict=True)
        return cls(sum(n_items), np.sum(counts, 0), np.sum(absence, 0), np.sum(confidence, 0), np.max(largest, 0))


@dataclass(frozen=True, eq=False)
class BatchSummary:
    """What is said about each batch as a whole; classes are those that have a name, or the near ones of each batch."""

    expected_counts: Doubles  # [batch, class]
    presence: Doubles  # [batch, class]
    joint_weight: Floats  # [batch]
    confidence: Floats  # [batch], mean over items of the largest probability under the head
    limit: Floats  # [batch], chance above which an item is rejected
    n_rejected: Ints  # [batch], items above it
    of_unnamed: Floats  # [batch], share of the classes without a name
    decision: Decision

    @cached_property
    def interval(self) -> Floats:
        """Interval of the share of unknown items, 90%, [batch, 2]; from zero to one if the catalogue cannot tell."""
        unknown = self.decision.unknown
        interval = np.tile([0.0, 1.0], (len(self.limit), 1)) if unknown is None else unknown.interval
        return np.asarray(self.of_unnamed[:, None] + (1 - self.of_unnamed[:, None]) * interval)


def summarize(
    decision: Decision,
    totals: BatchTotals,
    n_named: int,
    unknown: UnknownCounts | None = None,
    share: ToldShare | None = None,
    settings: Settings = DEFAULT,
    near: NearClasses | None = None,
) -> BatchSummary:
    """Say what each batch is like as a whole.

    Parameters
    ----------
    decision
        Which classes are present, and the share of unknown items.
    totals
        Sums over the items that count.
    n_named
        Classes that have a name; items of the others, which come last, are unknown.
    unknown, share
        Chances of the items to be unknown, if they are judged, and what was told about their share.
    settings
        Numbers of the model.
    near
        The classes that the totals are about; None if these are all classes.
    """
    n_batches = len(totals.counts)
    present = decision.present
    presence = presence_probability(present, totals.log_absence, float(totals.n_items), near)
    limit = np.full(n_batches, settings.rejected)
    n_rejected: Ints = np.zeros(n_batches, np.int64)
    if decision.unknown is not None:
        presence = np.minimum(presence, totals.counts)  # by Markov's inequality
    if unknown is not None:
        limit = rejection_limit(unknown, share, settings) if decision.unknown is not None else limit
        n_rejected = unknown.above(limit)
    presence = np.maximum(presence, totals.largest)  # one item that has the class is enough
    of_unnamed = np.zeros(n_batches)
    if near is None:
        of_unnamed = totals.counts[:, n_named:].sum(-1) / totals.n_items
    return BatchSummary(
        expected_counts=totals.counts if near is not None else totals.counts[:, :n_named],
        presence=presence if near is not None else presence[:, :n_named],
        joint_weight=1 - present.alone_weight,
        confidence=totals.confidence / totals.n_items,
        limit=limit,
        n_rejected=n_rejected,
        of_unnamed=of_unnamed,
        decision=decision,
    )
