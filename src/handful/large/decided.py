"""What a run was decided to be like, from some of its rows; it labels any others, and is sent to workers."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from handful.engine.model import BatchItems, BatchTotals, Context, DecidedBatch, Decision, Reference, rows_at_a_time
from handful.estimators.answer import best_two
from handful.estimators.certainty import certainty_of, most_certain

Floats = npt.NDArray[np.floating]
Ints = npt.NDArray[np.integer]


class RowAnswers(NamedTuple):
    """The two most probable classes of some rows, the chance that each is right, and the chance to be unknown."""

    labels: Ints  # [row, 2], -1 if there is only one class
    values: Floats  # [row, 2]
    unknown: Floats  # [row], NaN if it is not known


def packed(totals: BatchTotals) -> npt.NDArray[np.float64]:
    """Return the sums over rows as one vector, so that parts of a batch add."""
    return np.concatenate([totals.counts, *totals.log_absence, [totals.confidence, totals.unknown]])


def unpacked(vector: npt.NDArray[np.float64]) -> BatchTotals:
    """Undo `packed`."""
    counts, *absence = vector[:-2].reshape(3, -1)
    return BatchTotals(counts, np.stack(absence), vector[-2], vector[-1])


class GivenRows(NamedTuple):
    """Rows whose class is known for certain, in increasing order, and these classes, as in `Context.fixed_labels`."""

    rows: Ints
    classes: Ints

    def at(self, rows: Ints) -> Ints | None:
        """Return the classes of these rows, -1 where none is given; None if there are none at all."""
        if len(self.rows) == 0:
            return None
        places = np.searchsorted(self.rows, rows).clip(max=len(self.rows) - 1)
        return np.where(self.rows[places] == rows, self.classes[places], -1)


NOTHING_GIVEN = GivenRows(np.zeros(0, np.int64), np.zeros(0, np.int64))


@dataclass(frozen=True, eq=False)
class DecidedRun:
    """The decision about a run, and what is known about its classes and rows."""

    batch: DecidedBatch
    context: Context
    given: GivenRows

    @classmethod
    def of(
        cls, reference: Reference, n_rows: int, read: Callable[[Ints], Floats], context: Context, given: GivenRows
    ) -> DecidedRun:
        """Decide; `read` returns the points of rows."""

        def items_at(rows: Ints) -> BatchItems:
            return BatchItems(read(rows), reference, replace(context, fixed_labels=given.at(rows)))

        return cls(DecidedBatch.of(n_rows, len(reference.head.weights), items_at, given.rows), context, given)

    @property
    def decision(self) -> Decision:
        """Labels blocks of rows."""
        return self.batch.decision

    @cached_property
    def name(self) -> str:
        """Hash of it all: what shards add up to is kept under this name."""
        at, head = self.decision, self.decision.reference.head
        digest = hashlib.sha256(repr((at.samples.alone_weight, at.move_weight, at.distance)).encode())
        arrays = [head.weights, head.offsets, head.mass, at.tilts, at.offset, *at.samples[:3]]
        arrays += [self.batch.rows, self.batch.responsibilities]
        if self.context.log_shares is not None:
            arrays.append(self.context.log_shares)
        for array in arrays if at.unknown_posterior is None else [*arrays, at.unknown_posterior.grid]:
            digest.update(np.ascontiguousarray(array).data)
        return digest.hexdigest()[:16]

    @property
    def block_rows(self) -> int:
        """Number of rows that are labelled at a time."""
        return rows_at_a_time(len(self.decision.reference.head.weights))

    def label(self, points: Floats, rows: range) -> tuple[RowAnswers, Floats]:
        """Label the rows of these numbers; return also their totals, packed."""
        context = replace(self.context, fixed_labels=self.given.at(np.asarray(rows)))
        items = BatchItems(points, self.decision.reference, context)
        found = self.batch.label(items, rows)
        unknown = np.asarray(found.unknown, np.float64)
        labels, values = best_two(found.probabilities)
        most = np.where(items.unlabelled, most_certain(self.decision.reference.head.mass), 1.0)
        return RowAnswers(labels, certainty_of(values, unknown, most), unknown), packed(found.totals())
