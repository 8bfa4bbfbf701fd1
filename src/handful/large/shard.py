"""One shard of queries: it is labelled block by block; its answers are written, and what they add up to.

A worker has no state that another could not rebuild: where one died, another labels the same shard.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from handful.large.answers import COLUMNS, answers_of, write_answers
from handful.large.decided import DecidedRun
from handful.large.inputs import file_hash, read_rows
from handful.large.remote_rows import Rows
from handful.machine.folders import Folder
from handful.machine.threads import one_thread
from handful.runs.parts import Parts
from handful.shapes import Float, Int

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
        labels, values = np.empty((len(rows), 2), np.int32), np.empty((len(rows), 2), np.float32)
        unknown, total = np.empty(len(rows), np.float32), np.zeros(())
        for first in range(0, len(rows), decided.block_rows):
            block = slice(first, first + decided.block_rows)
            found, part = decided.label(self.points(np.asarray(rows[block])), rows[block])
            labels[block], values[block], unknown[block] = found
            total = total + part
        (label, runner_up), (certainty, runner_up_certainty) = labels.T, values.T
        columns = (np.asarray(rows), label, certainty, runner_up, runner_up_certainty, unknown)
        write_answers(self.folder, shard, dict(zip(COLUMNS, columns, strict=True)))
        made_of = self._labelled(shard, decided)
        assert made_of is not None
        self._sums.save(shard, total, made_of=made_of)
        return shard

    def totals(self, shard: int, decided: DecidedRun) -> Float[np.ndarray, "number"] | None:
        """Return what a shard adds up to if it was labelled by this decision, and its answers are there unchanged."""
        made_of = self._labelled(shard, decided)
        arrays = None if made_of is None else self._sums.load(shard, made_of)
        return None if arrays is None else arrays[0]

    @property
    def _sums(self) -> Parts:
        return Parts(self.folder, f"{SUMS}/{{:06d}}.npy", self.run_name)

    def _labelled(self, shard: int, decided: DecidedRun) -> str | None:
        """Tell the totals of a shard apart: by the decision and the bytes of the answers; None if there are none."""
        with self.folder.opened(answers_of(shard)) as file:
            return None if file is None else f"{decided.name}/{file_hash(file)}"
