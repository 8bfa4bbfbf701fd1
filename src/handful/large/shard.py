"""What is done with one shard of queries, block by block: label, compare, sum, answer. Every result adds.

A worker has no state that another could not rebuild: rows are read from where the queries are, and lists from files on
a local disk, where they are made again if they are missing. So a worker that died is replaced by one that reads the
same shard again.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from handful.errors import FileFormatError
from handful.large.answers import answers_of, write_answers
from handful.large.candidates import (
    FEWEST_ROWS,
    SCORE_BLOCK_NUMBERS,
    Contenders,
    FaissIndex,
    Lists,
    exact_lists,
    faiss_lists,
)
from handful.large.decided import DecidedRun
from handful.large.inputs import file_hash, read_rows
from handful.large.remote_rows import Rows
from handful.machine.folders import Folder, LocalFolder
from handful.machine.sealed import check_seal, open_sealed, seal
from handful.methods import paddle
from handful.numerics.moments import soft_moments
from handful.numerics.simplex import softmax
from handful.shapes import Float, Int

# A smaller share of one query than this moves no prototype.
NEGLIGIBLE_WEIGHT = 1e-7
# Folder with what shards add up to.
SUMS = "sums"


class Dropped(NamedTuple):
    """What shortlists leave out, over the queries for which it was measured."""

    n_measured: int
    mass: float  # sum of 1 - Σ_list / Σ_all
    largest: float

    def with_part(self, other: Dropped) -> Dropped:
        """Add what is left out for other queries."""
        return Dropped(self.n_measured + other.n_measured, self.mass + other.mass, max(self.largest, other.largest))


class Sums(NamedTuple):
    """Moments of the classes that hold any queries."""

    classes: Int[Tensor, "some"]
    mass: Float[Tensor, "some"]
    sums: Float[Tensor, "some dim"]

    def with_part(self, other: Sums) -> Sums:
        """Add moments of other queries, in double precision."""
        classes, places = torch.unique(torch.cat([self.classes, other.classes]), return_inverse=True)
        mass = torch.zeros(len(classes), dtype=torch.float64)
        sums = torch.zeros(len(classes), self.sums.shape[-1], dtype=torch.float64)
        for part, own in ((self, places[: len(self.classes)]), (other, places[len(self.classes) :])):
            mass[own] += part.mass
            sums[own] += part.sums
        return Sums(classes, mass, sums)


class Best(NamedTuple):
    """The two most probable classes of every query of a shard.

    Memory is allocated once: small results kept from every block would fragment the heap between the large arrays of
    the next ones, and it would grow by one array per block.
    """

    labels: Int[Tensor, "query 2"]
    values: Float[Tensor, "query 2"]

    @classmethod
    def room(cls, n_query: int) -> Best:
        """Return it empty."""
        return cls(torch.empty(n_query, 2, dtype=torch.int32), torch.empty(n_query, 2))

    def fill(self, start: int, labels: Int[Tensor, "block top"], values: Float[Tensor, "block top"]) -> None:
        """Store the results of a block; if there is only one class, the runner-up is -1."""
        block = slice(start, start + len(labels))
        self.labels[block], self.values[block] = -1, 0
        self.labels[block, : labels.shape[-1]] = labels.int()
        self.values[block, : values.shape[-1]] = values


@dataclass(frozen=True, eq=False)
class Work:
    """Where the queries of a run are, and the operations on a shard of them; it is sent to workers.

    Answers go to `folder`, shortlists to `lists`, on a disk of the worker. `run_name` tells runs apart.
    """

    queries: Rows
    origin: Float[Tensor, "dim"]
    transform: str
    folder: Folder
    lists: Path
    run_name: str
    shard_rows: int
    list_length: int
    index: FaissIndex | None = None

    @property
    def n_shards(self) -> int:
        """Number of shards; it depends on the run, not on the executor."""
        return -(-self.queries.n_rows // self.shard_rows)

    # -- label -------------------------------------------------------------------------------------------------------

    def label(self, shard: int, decided: DecidedRun) -> Float[Tensor, "number"]:
        """Label the queries of a shard and write the answers, unless that was done; return their totals, packed."""
        done = self._totals(shard, decided)
        if done is not None:
            return done
        rows, total = self._rows(shard), torch.zeros((), dtype=torch.float64)
        best, unknown = Best.room(len(rows)), np.empty(len(rows), np.float32)
        for block, points in self._blocks(shard, decided.block_rows):
            found, part = decided.label(points.numpy(), rows[block])
            best.fill(block.start, torch.from_numpy(found.labels), torch.from_numpy(found.values))
            unknown[block], total = found.unknown, total + torch.from_numpy(part)
        self._write(shard, best, unknown)
        self._save(self.folder, _sums_of(shard), total.numpy(), self._labelled(shard, decided))
        return total

    def _totals(self, shard: int, decided: DecidedRun) -> Float[Tensor, "number"] | None:
        """Return what a shard adds up to if it was labelled by this decision, and its answers are there unchanged."""
        with self.folder.opened(_sums_of(shard)) as file:
            what = None if file is None else self._labelled(shard, decided)
            if what is None:
                return None
            try:
                check_seal(file, what)
            except FileFormatError:
                return None
            return torch.from_numpy(np.array(open_sealed(file)))

    def _labelled(self, shard: int, decided: DecidedRun) -> str | None:
        """Tell the totals of shards apart: by run, decision, and the bytes of the answers; None if there are none."""
        with self.folder.opened(answers_of(shard)) as file:
            return None if file is None else f"{self.run_name}/{decided.name}/{shard}/{file_hash(file)}"

    # -- compare -----------------------------------------------------------------------------------------------------

    def compare(self, shard: int, name: str, contenders: Contenders) -> Dropped:
        """Write the shortlists of a shard under a name, unless they exist; return what they drop."""
        file = self._file(name, shard)
        if file.exists():
            check_seal(file, self._what(file))
        else:
            n_listed = min(self.list_length, contenders.n_classes)
            words = np.empty((len(self._rows(shard)), 2 * n_listed + 1), np.int32)
            for block, points in self._blocks(shard, contenders.rows_at_once(self.index)):
                if self.index is not None:
                    lists = faiss_lists(points, contenders, self.list_length, self.index)
                else:
                    lists = exact_lists(points, contenders, self.list_length)
                words[block] = lists.packed()
            self._save(LocalFolder(self.lists), str(file.relative_to(self.lists)), words, self._what(file))
        n_measured, mass, largest = 0, 0.0, 0.0
        for _, lists in self._lists(shard, name):
            measured = ~lists.log_totals.isnan()
            ratio = lists.scores[measured].logsumexp(-1).double() - lists.log_totals[measured].double()
            outside = -ratio.clamp(max=0).expm1()  # rounding can make it larger than zero
            n_measured += int(measured.sum())
            mass += float(outside.sum())
            largest = max([largest, *outside.tolist()])
        return Dropped(n_measured, mass, largest)

    # -- sum over shortlists ------------------------------------------------------------------------------------------

    def moments(self, shard: int, name: str, tilts: Float[Tensor, "class"]) -> Sums:
        """`Σ_n u_nk` and `Σ_n u_nk z_n` of the classes that hold any queries, with u as in `count`."""
        mass = torch.zeros(len(tilts), dtype=torch.float64)
        sums = torch.zeros(len(tilts), len(self.origin))
        for block, lists in self._lists(shard, name):
            points = self._points(shard, block)
            weights = softmax(lists.of_classes(tilts) + lists.scores).weights
            mass += lists.by_class(weights, len(tilts))
            query, place = (weights > NEGLIGIBLE_WEIGHT).nonzero(as_tuple=True)
            # Only the classes in this block: a sum over all would cost more than the points.
            classes, own = torch.unique(lists.classes[query, place], return_inverse=True)
            order = own.argsort(stable=True)
            u = torch.sparse_coo_tensor(
                torch.stack([own, query])[:, order],
                weights[query, place][order],
                (len(classes), len(points)),
                is_coalesced=True,
                check_invariants=False,
            )
            sums[classes] += torch.sparse.mm(u, points)
        some = mass.nonzero().squeeze(-1)
        return Sums(some, mass[some], sums[some])

    # -- prototypes that moved ---------------------------------------------------------------------------------------

    def step(
        self, shard: int, contenders: Contenders, dual: Float[Tensor, "class"], tilt: float
    ) -> tuple[Float[Tensor, "class"], Float[Tensor, "class dim"]]:
        """PADDLE's U of a shard against all contenders, and its moments."""
        n_classes = contenders.n_classes
        mass = torch.zeros(n_classes, dtype=torch.float64)
        sums = torch.zeros(n_classes, len(self.origin), dtype=torch.float64)
        for _, points in self._blocks(shard, contenders.rows_at_once()):
            scores = contenders.scores(points)[:, :n_classes]
            u = paddle.assign(scores[None], dual[None], torch.tensor([tilt]))
            part = soft_moments(points[None], u.weights)
            mass += u.weights[0].sum(0, dtype=torch.float64)
            sums += part.sums[0]
        return mass, sums

    def growth(
        self,
        shard: int,
        everyone: str,
        contenders: Contenders,
        tilts: Float[Tensor, "living"],
        outside: Int[Tensor, "class"],
    ) -> Float[Tensor, "class"]:
        """`Σ_n p(z_n|k) / Σ_j π_j p(z_n|j)` of classes that left, from the lists of `everyone`.

        `tilts` are `1 + ln π_j`; `outside` is one where class k has left, zero where it is living.
        """
        grown = torch.zeros(len(outside), dtype=torch.float64)
        for block, lists in self._lists(shard, everyone):
            points = self._points(shard, block)
            parts = [
                softmax(contenders.scores(points[part])[:, : contenders.n_classes] + tilts).log_normaliser()
                for part in _parts(len(points), contenders.rows_at_once())
            ]
            log_ratio = lists.scores + (1 - torch.cat(parts)).unsqueeze(-1)
            grown += lists.by_class(log_ratio.double().clamp(max=300).exp() * lists.of_classes(outside), len(outside))
        return grown

    def answer_all(
        self, shard: int, contenders: Contenders, tilts: Float[Tensor, "class"], classes: Int[Tensor, "class"]
    ) -> tuple[Float[Tensor, "class"], Float[Tensor, "class"]]:
        """Compare every query with all contenders, and write its answer; return `Σ_n u_nk` and `Σ_n ln(1 - u_nk)`.

        `classes` are the numbers of the contenders in the catalogue.
        """
        counts = torch.zeros(contenders.n_classes, dtype=torch.float64)
        log_absence = torch.zeros_like(counts)
        best = Best.room(len(self._rows(shard)))
        for block, points in self._blocks(shard, contenders.rows_at_once()):
            u = softmax(contenders.scores(points)[:, : contenders.n_classes] + tilts)
            counts += u.weights.sum(0, dtype=torch.float64)
            top = u.weights.topk(min(2, contenders.n_classes))
            best.fill(block.start, classes[top.indices], top.values)
            log_absence += u.weights.neg_().log1p_().sum(0, dtype=torch.float64)
        self._write(shard, best)
        return counts, log_absence

    @staticmethod
    def _save(folder: Folder, name: str, numbers: np.ndarray, what: str | None) -> None:
        assert what is not None
        with folder.written(name) as place:
            with place.open("wb") as stream:
                np.save(stream, numbers)
            seal(place, what)

    def _write(self, shard: int, best: Best, unknown: np.ndarray | None = None) -> None:
        rows = self._rows(shard)
        write_answers(
            self.folder,
            shard,
            {
                "row": np.arange(rows.start, rows.stop),
                "label": best.labels[:, 0].numpy(),
                "probability": best.values[:, 0].numpy(),
                "runner_up": best.labels[:, 1].numpy(),
                "runner_up_probability": best.values[:, 1].numpy(),
                "unknown": np.full(len(rows), np.nan, np.float32) if unknown is None else unknown,
            },
        )

    # ----------------------------------------------------------------------------------------------------------------

    def _rows(self, shard: int) -> range:
        start = shard * self.shard_rows
        return range(start, min(start + self.shard_rows, self.queries.n_rows))

    def _file(self, name: str, shard: int) -> Path:
        return self.lists / f"lists-{name}" / f"{shard:06d}.npy"

    def _what(self, file: Path) -> str:
        """Tell the files of a run apart for their seals: by comparison and shard."""
        return f"{self.run_name}/{file.parent.name}/{file.name}"

    def listed(self) -> list[int]:
        """Return the shards that have shortlists on this disk."""
        return sorted({int(file.stem) for file in self.lists.glob("lists-*/[0-9]*.npy")})

    def points(self, rows: np.ndarray) -> np.ndarray:
        """Return some rows of the queries, transformed, about the origin."""
        return read_rows(self.queries, rows, self.transform).sub_(self.origin).numpy()

    def _points(self, shard: int, block: slice) -> Float[Tensor, "query dim"]:
        rows = self._rows(shard)[block]
        return read_rows(self.queries, np.arange(rows.start, rows.stop), self.transform).sub_(self.origin)

    def _blocks(self, shard: int, size: int) -> Iterator[tuple[slice, Float[Tensor, "query dim"]]]:
        n_rows = len(self._rows(shard))
        for start in range(0, n_rows, size):
            block = slice(start, min(start + size, n_rows))
            yield block, self._points(shard, block)

    def _lists(self, shard: int, name: str) -> Iterator[tuple[slice, Lists]]:
        words = open_sealed(self._file(name, shard))
        size = max(FEWEST_ROWS, SCORE_BLOCK_NUMBERS // 8 // (2 * self.list_length + 1))
        for start in range(0, len(words), size):
            block = slice(start, min(start + size, len(words)))
            yield block, Lists.unpacked(words[block])


def _sums_of(shard: int) -> str:
    return f"{SUMS}/{shard:06d}.npy"


def _parts(length: int, size: int) -> list[slice]:
    return [slice(start, min(start + size, length)) for start in range(0, length, size)]
