"""One shard of queries, labelled block by block by what was decided from some rows of the run; answers are written.

A worker has no state that another could not rebuild: where one died, another labels the same shard.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from handful.estimators.answer import best_two
from handful.estimators.certainty import certainty_of, most_certain
from handful.estimators.given import GivenRows
from handful.large.inputs import Rows, file_hash, read_rows
from handful.large.solution import COLUMNS, answers_of, write_answers
from handful.machine.folders import Folder
from handful.machine.threads import one_thread
from handful.model.arrays import spread_rows
from handful.model.batch import BatchItems
from handful.model.knowledge import Knowledge
from handful.model.labels import Decision, fold_unnamed
from handful.model.reference import Reference
from handful.model.stream import DecidedBatch, rows_at_a_time
from handful.model.summary import BatchTotals
from handful.runs.parts import Parts
from handful.shapes import Float, Int

# Sums that a shard has of each class: counts, two of absence, and the largest chance. [sums; convention]
SUMS_OF_CLASS = 4
# Digits of a hash that tells decisions apart. [digits; convention]
HASH_DIGITS = 16

Floats = npt.NDArray[np.floating]
Ints = npt.NDArray[np.integer]
Bools = npt.NDArray[np.bool_]


class RowAnswers(NamedTuple):
    """The two most probable classes of some rows, the chance that each is right, and the chance to be unknown."""

    labels: Ints  # [row, 2], -1 if there is only one class
    values: Floats  # [row, 2]
    unknown: Floats  # [row], NaN if it is not known
    none_of_these: Bools  # [row], whether it has a class without a name


def packed(totals: BatchTotals) -> npt.NDArray[np.float64]:
    """Return the sums over rows as one vector."""
    sums = [totals.counts[0], *totals.log_absence[0], totals.largest[0], totals.confidence]
    return np.concatenate([*sums, [totals.n_items]])


def unpacked(vector: npt.NDArray[np.float64]) -> BatchTotals:
    """Undo `packed`."""
    counts, *absence, largest = vector[:-2].reshape(SUMS_OF_CLASS, -1)
    return BatchTotals(int(vector[-1]), counts[None], np.stack(absence)[None], vector[-2:-1], largest[None])


@dataclass(frozen=True, eq=False)
class DecidedRun:
    """The decision about a run, and what is known about its classes and rows."""

    batch: DecidedBatch
    reference: Reference
    knowledge: Knowledge
    given: GivenRows

    @classmethod
    def of(
        cls, reference: Reference, n_rows: int, read: Callable[[Ints], Floats], knowledge: Knowledge, given: GivenRows
    ) -> DecidedRun:
        """Decide; `read` returns the points of rows, and `knowledge` is about the classes that have a name."""
        knowledge = knowledge.with_unnamed(reference.n_unnamed)

        settings = reference.settings
        some = np.union1d(spread_rows(n_rows, max(settings.most_counted, settings.most_deciding)), given.rows)
        points = read(some)

        def items_at(rows: Ints) -> BatchItems:
            return BatchItems.of(points[None, rows], reference, replace(knowledge, labels=given.at(some[rows])))

        labelled = np.flatnonzero(np.isin(some, given.rows))
        batch = DecidedBatch.of(points, reference.n_classes, items_at, labelled, settings.most_counted, settings)
        return cls(batch, reference, knowledge, given)

    @property
    def decision(self) -> Decision:
        """Labels blocks of rows."""
        return self.batch.decision

    @cached_property
    def name(self) -> str:
        """Hash of it all: what shards add up to is kept under this name."""
        at = self.decision
        head = self.reference.head
        present = at.present
        arrays: list[npt.NDArray[Any]] = [
            head.weights,
            head.offsets,
            head.mass,
            at.tilts.total,
            at.tilts.of_batch.offset,
            at.distance,
        ]
        arrays += [
            present.columns,
            present.states,
            present.weights,
            present.presence,
            present.alone_weight,
        ]
        if self.batch.moved is not None:
            arrays.append(self.batch.moved.responsibilities)
        if self.knowledge.prior is not None:
            arrays.append(self.knowledge.prior.shares)
        if at.unknown is not None:
            arrays.append(at.unknown.grid)
        digest = hashlib.sha256()
        for array in arrays:
            digest.update(np.ascontiguousarray(array).data)
        return digest.hexdigest()[:HASH_DIGITS]

    @property
    def block_rows(self) -> int:
        """Number of rows that are labelled at a time."""
        return rows_at_a_time(self.reference.n_classes)

    def label(self, points: Floats, rows: range) -> tuple[RowAnswers, BatchTotals]:
        """Label the rows of these numbers; return also their totals."""
        knowledge = replace(self.knowledge, labels=self.given.at(np.asarray(rows)))
        items = BatchItems.of(points[None], self.reference, knowledge)
        found = self.batch.label(items)
        named = fold_unnamed(found, self.reference.n_named, self.reference.settings)
        unknown = np.full(len(rows), np.nan) if named.unknown is None else named.unknown[0]
        labels, values = best_two(named.probabilities[0])
        most = np.where(items.scores.labelled[0], 1.0, most_certain(self.reference.head.mass))
        answers = RowAnswers(labels, certainty_of(values, unknown, most), unknown, named.unnamed[0] >= 0)
        return answers, BatchTotals.of(found)


# Folder with what shards add up to.
SUMS = "sums"


@dataclass(frozen=True, eq=False)
class Work:
    """Where the queries of a run are, and where answers go; it is sent to workers. `run_name` tells runs apart."""

    queries: Rows
    origin: Float[np.ndarray, "dim"]
    transform: str
    folder: Folder
    run_name: str
    shard_rows: int

    @property
    def n_shards(self) -> int:
        """Number of shards; it depends on the run, not on the executor."""
        return -(-self.queries.n_rows // self.shard_rows)

    def points(self, rows: Int[np.ndarray, "row"]) -> Float[np.ndarray, "row dim"]:
        """Return some rows of the queries, transformed, about the origin."""
        found: Float[np.ndarray, "row dim"] = read_rows(self.queries, rows, self.transform) - self.origin
        return found

    @one_thread()  # so that sums have a fixed order
    def label(self, shard: int, decided: DecidedRun) -> int:
        """Label the queries of a shard and write answers and totals, unless that was done; return its number."""
        if self.totals(shard, decided) is not None:
            return shard
        start = shard * self.shard_rows
        rows = range(start, min(start + self.shard_rows, self.queries.n_rows))
        # Memory is allocated once: small results kept from every block would fragment the heap between the large
        # arrays of the next ones, and it would grow by one array per block.
        labels = np.empty((len(rows), 2), np.int32)
        values = np.empty((len(rows), 2), np.float32)
        unknown = np.empty(len(rows), np.float32)
        none_of_these = np.empty(len(rows), bool)
        parts = []
        for first in range(0, len(rows), decided.block_rows):
            block = slice(first, first + decided.block_rows)
            found, part = decided.label(self.points(np.asarray(rows[block])), rows[block])
            labels[block], values[block], unknown[block], none_of_these[block] = found
            parts.append(part)
        (label, runner_up) = labels.T
        (certainty, runner_up_certainty) = values.T
        columns = (np.asarray(rows), label, certainty, runner_up, runner_up_certainty, unknown, none_of_these)
        write_answers(self.folder, shard, dict(zip(COLUMNS, columns, strict=True)))
        made_of = self._labelled(shard, decided)
        assert made_of is not None
        self._sums.save(shard, packed(BatchTotals.added(parts)), made_of=made_of)
        return shard

    def totals(self, shard: int, decided: DecidedRun) -> BatchTotals | None:
        """Return what a shard adds up to if it was labelled by this decision, and its answers are there unchanged."""
        made_of = self._labelled(shard, decided)
        arrays = None if made_of is None else self._sums.load(shard, made_of)
        return None if arrays is None else unpacked(arrays[0])

    @property
    def _sums(self) -> Parts:
        return Parts(self.folder, f"{SUMS}/{{:06d}}.npy", self.run_name)

    def _labelled(self, shard: int, decided: DecidedRun) -> str | None:
        """Tell the totals of a shard apart: by the decision and the bytes of the answers; None if there are none."""
        with self.folder.opened(answers_of(shard)) as file:
            return None if file is None else f"{decided.name}/{file_hash(file)}"
