"""What a run was decided to be like, from some of its rows; it labels any others, and is sent to workers."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from handful.engine.links import MOST_LINKED
from handful.engine.model import BLOCK_ITEMS, MOST_DECIDED, BatchItems, Context, Decision, Reference, decide
from handful.engine.sizes import COUNTED_NUMBERS, MOST_COUNTED, with_sizes

Floats = npt.NDArray[np.floating]
Ints = npt.NDArray[np.integer]

# Numbers in a block of scores; labelling takes some arrays of this size, 8 MB each, and is faster with blocks that
# caches hold in part. And the fewest rows of a block.
LABELLED_NUMBERS, FEWEST_LABELLED = 2**21, 16
# Numbers in the scores of the rows that decide.
DECIDED_NUMBERS = 2**25


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
    """The decision, and the rows that it comes from.

    Attributes
    ----------
    decision : Decision
        Labels blocks of rows.
    rows, given : arrays
        Numbers of the rows that decided, in increasing order, and how far each of them moved the class means; it is
        left out of them again when it is labelled itself.
    context : Context
        What is known about the classes.
    """

    decision: Decision
    rows: Ints
    given: Floats
    context: Context

    @classmethod
    def of(cls, reference: Reference, n_rows: int, read: Callable[[Ints], Floats], context: Context) -> DecidedRun:
        """Decide by some of the rows, and count more of them; `read` returns the points of rows."""
        n_classes = len(reference.head.weights)
        rows = spread_rows(n_rows, max(FEWEST_LABELLED, min(MOST_DECIDED, DECIDED_NUMBERS // n_classes)))
        decision, given = decide(BatchItems(read(rows), reference, context))
        if len(rows) < n_rows:
            # Read once: at a URL each row is a request.
            points = read(spread_rows(n_rows, max(len(rows), min(MOST_COUNTED, COUNTED_NUMBERS // n_classes))))
            size = max(FEWEST_LABELLED, min(BLOCK_ITEMS, LABELLED_NUMBERS // n_classes))
            parts = range(0, len(points), size)
            decision = with_sizes(
                decision, lambda: (BatchItems(points[start : start + size], reference, context) for start in parts)
            )
        return cls(decision, rows, given, context)

    @cached_property
    def name(self) -> str:
        """Hash of it all: what shards add up to is kept under this name."""
        at, head = self.decision, self.decision.reference.head
        digest = hashlib.sha256(repr((at.roll.alone, at.gate, at.far)).encode())
        arrays = [head.weights, head.offsets, at.tilts, at.offset, *at.roll[:3], self.rows, self.given]
        if self.context.log_shares is not None:
            arrays.append(self.context.log_shares)
        for array in arrays if at.verdict is None else [*arrays, at.verdict.grid]:
            digest.update(np.ascontiguousarray(array).data)
        return digest.hexdigest()[:16]

    @property
    def block_rows(self) -> int:
        """Number of rows that are labelled at a time; if some may be unknown, as many as are linked with another."""
        reference = self.decision.reference
        fewest = FEWEST_LABELLED if reference.levels is None else MOST_LINKED
        return max(fewest, min(BLOCK_ITEMS, LABELLED_NUMBERS // len(reference.head.weights)))

    def label(self, points: Floats, rows: range) -> tuple[RowAnswers, Floats]:
        """Label the rows of these numbers; return also their totals, packed."""
        found = self.decision.label(BatchItems(points, self.decision.reference, self.context), self._given_by(rows))
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

    def _given_by(self, rows: range) -> Floats | None:
        """Return how far rows moved the class means; None if none of them did."""
        mine = slice(*np.searchsorted(self.rows, (rows.start, rows.stop)).tolist())
        if mine.start == mine.stop:
            return None
        given = np.zeros((len(rows), self.given.shape[1]), self.given.dtype)
        given[self.rows[mine] - rows.start] = self.given[mine]
        return given


def spread_rows(n_rows: int, most: int) -> Ints:
    """Return numbers of rows: one from each of `most` equal parts, at places that look random, or all of them.

    Examples
    --------
    >>> spread_rows(3, 1024).tolist(), (spread_rows(1000, 4) // 250).tolist()
    ([0, 1, 2], [0, 1, 2, 3])
    """
    if n_rows <= most:
        return np.arange(n_rows)
    places = np.random.default_rng(0).random(most)
    return np.minimum(((np.arange(most) + places) * (n_rows / most)).astype(np.int64), n_rows - 1)


def _best_two(q: Floats) -> tuple[Ints, Floats]:
    """Return the two largest of each row and where they are; writes over `q`."""
    each = np.arange(len(q))
    labels, values = np.full((len(q), 2), -1, np.int32), np.zeros((len(q), 2), np.float32)
    for place in range(min(2, q.shape[1])):
        labels[:, place] = q.argmax(1)
        values[:, place] = q[each, labels[:, place]]
        q[each, labels[:, place]] = -1
    return labels, values
