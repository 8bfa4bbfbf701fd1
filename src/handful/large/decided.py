"""What a run was decided to be like, from some of its rows; it labels any others, and is sent to workers."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from handful.engine.model import BatchItems, Context, DecidedBatch, Decision, Reference
from handful.engine.sizes import rows_at_a_time

Floats = npt.NDArray[np.floating]
Ints = npt.NDArray[np.integer]


class RowAnswers(NamedTuple):
    """The two most probable classes of some rows, their probabilities, and the chance to be unknown."""

    labels: Ints  # [row, 2], -1 if there is only one class
    values: Floats  # [row, 2]
    unknown: Floats  # [row], NaN if it is not known


class BatchTotals(NamedTuple):
    """What rows add up to; as one vector, parts of a batch add."""

    counts: Floats  # [class], Σ_n q_nk, unknown rows apart
    absent: Floats  # [2, class], as in `handful.engine.model.ItemLabels`
    confidence: float  # Σ_n of the largest probabilities under the head
    unknown: float  # Σ_n of the chances to be unknown

    def packed(self) -> Floats:
        """Return one vector."""
        return np.concatenate([self.counts, *self.absent, [self.confidence, self.unknown]])

    @classmethod
    def unpacked(cls, vector: Floats) -> BatchTotals:
        """Undo `packed`."""
        counts, *absent = vector[:-2].reshape(3, -1)
        return cls(counts, np.stack(absent), float(vector[-2]), float(vector[-1]))


@dataclass(frozen=True, eq=False)
class DecidedRun:
    """The decision about a run, and what is known about its classes."""

    batch: DecidedBatch
    context: Context

    @classmethod
    def of(cls, reference: Reference, n_rows: int, read: Callable[[Ints], Floats], context: Context) -> DecidedRun:
        """Decide; `read` returns the points of rows."""
        n_classes = len(reference.head.weights)
        return cls(DecidedBatch.of(n_rows, n_classes, lambda rows: BatchItems(read(rows), reference, context)), context)

    @property
    def decision(self) -> Decision:
        """Labels blocks of rows."""
        return self.batch.decision

    @cached_property
    def name(self) -> str:
        """Hash of it all: what shards add up to is kept under this name."""
        at, head = self.decision, self.decision.reference.head
        digest = hashlib.sha256(repr((at.roll.alone, at.gate, at.far)).encode())
        arrays = [head.weights, head.offsets, at.tilts, at.offset, *at.roll[:3], self.batch.rows, self.batch.given]
        if self.context.log_shares is not None:
            arrays.append(self.context.log_shares)
        for array in arrays if at.verdict is None else [*arrays, at.verdict.grid]:
            digest.update(np.ascontiguousarray(array).data)
        return digest.hexdigest()[:16]

    @property
    def block_rows(self) -> int:
        """Number of rows that are labelled at a time."""
        return rows_at_a_time(len(self.decision.reference.head.weights))

    def label(self, points: Floats, rows: range) -> tuple[RowAnswers, Floats]:
        """Label the rows of these numbers; return also their totals, packed."""
        found = self.batch.label(BatchItems(points, self.decision.reference, self.context), rows)
        q, verdict, unknown = found.probabilities, self.decision.verdict, np.full(len(points), np.nan)
        counting: Floats = np.ones(len(points))
        if verdict is not None and found.looks is not None:
            unknown = verdict.chances(found.looks.t, found.looks.sizes)
            counting = 1 - unknown if verdict.is_open else counting
        totals = BatchTotals(
            (counting.astype(q.dtype) @ q).astype(np.float64),
            found.absent,
            float(found.confidence.sum(dtype=np.float64)),
            unknown.sum(),
        )
        return RowAnswers(*_best_two(q), unknown), totals.packed()


def _best_two(q: Floats) -> tuple[Ints, Floats]:
    """Return the two largest of each row and where they are; writes over `q`."""
    each = np.arange(len(q))
    labels, values = np.full((len(q), 2), -1, np.int32), np.zeros((len(q), 2), np.float32)
    for place in range(min(2, q.shape[1])):
        labels[:, place] = q.argmax(1)
        values[:, place] = q[each, labels[:, place]]
        q[each, labels[:, place]] = -1
    return labels, values
