"""What is said about a batch as a whole, from sums over its items: those of parts of a batch add."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from handful.model.arrays import Doubles, Floats
from handful.model.knowledge import ToldShare
from handful.model.labels import Decision, ItemLabels
from handful.model.presence import presence_probability
from handful.model.settings import DEFAULT, Settings
from handful.model.unknown_in_batch import rejection_limit


class BatchTotals(NamedTuple):
    """Sums over items, and the largest chances."""

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
        return cls(counts, labels.log_absence, confidence, largest)

    @classmethod
    def added(cls, parts: Sequence[BatchTotals]) -> BatchTotals:
        """Add those of parts of a batch."""
        counts, absence, confidence, largest = zip(*parts, strict=True)
        return cls(np.sum(counts, 0), np.sum(absence, 0), np.sum(confidence, 0), np.max(largest, 0))


class BatchSummary(NamedTuple):
    """What is said about each batch as a whole; classes are those that have a name."""

    expected_counts: Doubles  # [batch, class]
    presence: Doubles  # [batch, class]
    joint_weight: Floats  # [batch]
    interval: Floats  # [batch, 2], of the share of unknown items
    limit: Floats  # [batch], chance above which an item is rejected


def summarize(
    decision: Decision,
    totals: BatchTotals,
    n_items: int,
    n_named: int,
    unknown: Floats | None = None,
    share: ToldShare | None = None,
    settings: Settings = DEFAULT,
) -> BatchSummary:
    """Say what each batch is like as a whole.

    Parameters
    ----------
    decision
        Which classes are present, and the share of unknown items.
    totals, n_items
        Sums over the items that count, and how many these are.
    n_named
        Classes that have a name; items of the others, which come last, are unknown.
    unknown, share
        Chance of each item to be unknown, if it is judged, and what was told about their share.
    settings
        Numbers of the model.
    """
    n_batches = len(totals.counts)
    present = decision.present
    presence = presence_probability(present, totals.log_absence, float(n_items))
    limit = np.full(n_batches, settings.rejected)
    interval: Floats = np.tile([0.0, 1.0], (n_batches, 1))
    if decision.unknown is not None:
        presence = np.minimum(presence, totals.counts)  # by Markov's inequality
        interval = decision.unknown.interval
        if unknown is not None:
            limit = rejection_limit(unknown, share, settings)
    presence = np.maximum(presence, totals.largest)  # one item that has the class is enough
    if n_named < totals.counts.shape[-1]:
        of_unnamed = totals.counts[:, n_named:].sum(-1, keepdims=True) / n_items
        interval = of_unnamed + (1 - of_unnamed) * interval
    return BatchSummary(totals.counts[:, :n_named], presence[:, :n_named], 1 - present.alone_weight, interval, limit)
