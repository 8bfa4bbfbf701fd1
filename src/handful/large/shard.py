"""What is done with one shard of queries, block by block: compare, count, sum, answer. Every result adds.

A worker has no state that another could not rebuild: rows are read from the bank, lists from files in the run's folder.
So a worker that died is replaced by one that reads the same shard again.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from handful.banks import FeatureBank
from handful.large.answers import write_answers
from handful.large.candidates import (
    FEWEST_ROWS,
    SCORE_BLOCK_NUMBERS,
    Contenders,
    FaissIndex,
    Lists,
    exact_lists,
    faiss_lists,
)
from handful.large.inputs import read_rows
from handful.large.sealed import check_seal, open_sealed, seal
from handful.machine.whole_file import written_whole
from handful.methods import paddle
from handful.numerics.moments import soft_moments
from handful.numerics.simplex import softmax
from handful.shapes import Float, Int

# A smaller share of one query than this moves no prototype.
NEGLIGIBLE_WEIGHT = 1e-7
# Comparing a query with the classes of its list, gathered one by one, takes as long as comparing it with this many
# times as many classes in one matrix product.
PRODUCT_ADVANTAGE = 64


class Dropped(NamedTuple):
    """What shortlists leave out, over the queries for which it was measured."""

    n_measured: int
    mass: float  # sum of 1 - Σ_list / Σ_all
    largest: float
    log_ratio: float  # sum of ln(Σ_all / Σ_list)


class Counts(NamedTuple):
    """Expected counts of the contending classes, and `Σ_n ln Σ_k exp(logit_nk)`."""

    counts: Float[Tensor, "class"]
    log_normaliser: float


class Sums(NamedTuple):
    """Moments of the classes that hold any queries."""

    classes: Int[Tensor, "some"]
    mass: Float[Tensor, "some"]
    sums: Float[Tensor, "some dim"]


class Held(NamedTuple):
    """What the contending classes hold in the end."""

    counts: Float[Tensor, "class"]  # Σ_n u_nk
    log_absence: Float[Tensor, "class"]  # Σ_n ln(1 - u_nk)


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
    """Where the queries of a run are, and the operations on a shard of them; it is sent to workers."""

    queries: FeatureBank
    origin: Float[Tensor, "dim"]
    transform: str
    folder: Path
    shard_rows: int
    list_length: int
    index: FaissIndex | None = None

    @property
    def n_shards(self) -> int:
        """Number of shards; it depends on the run, not on the executor."""
        return -(-self.queries.n_rows // self.shard_rows)

    # -- compare -----------------------------------------------------------------------------------------------------

    def compare(self, shard: int, name: str, contenders: Contenders, by_index: bool) -> Dropped:
        """Write the shortlists of a shard under a name, unless they exist; return what they drop."""
        file = self._file(name, shard)
        if file.exists():
            check_seal(file)
        else:
            n_listed = min(self.list_length, contenders.n_classes)
            words = np.empty((len(self._rows(shard)), 2 * n_listed + 1), np.int32)
            index = self.index if by_index else None
            for block, points in self._blocks(shard, contenders.rows_at_once(index)):
                if index is not None:
                    lists = faiss_lists(points, contenders, self.list_length, index)
                else:
                    lists = exact_lists(points, contenders, self.list_length)
                words[block] = lists.packed()
            file.parent.mkdir(exist_ok=True)
            with written_whole(file) as place:
                with place.open("wb") as stream:
                    np.save(stream, words)
                seal(place)
        n_measured, mass, largest, log_ratio = 0, 0.0, 0.0, 0.0
        for _, lists in self._lists(shard, name):
            measured = ~lists.log_totals.isnan()
            ratio = lists.scores[measured].logsumexp(-1).double() - lists.log_totals[measured].double()
            ratio = ratio.clamp(max=0)  # rounding
            outside = -ratio.expm1()
            n_measured += int(measured.sum())
            mass += float(outside.sum())
            largest = max([largest, *outside.tolist()])
            log_ratio -= float(ratio.sum())
        return Dropped(n_measured, mass, largest, log_ratio)

    # -- count and sum over shortlists -------------------------------------------------------------------------------

    def count(self, shard: int, name: str, tilts: Float[Tensor, "class"], factor: float) -> Counts:
        """`Σ_n u_nk` with `u_n = softmax_k(factor · score_nk + tilt_k)` over the shortlists."""
        counts = torch.zeros(len(tilts), dtype=torch.float64)
        log_normaliser = 0.0
        for _, lists in self._lists(shard, name):
            u = softmax(torch.add(lists.of_classes(tilts), lists.scores, alpha=factor))
            counts += lists.by_class(u.weights, len(tilts))
            log_normaliser += float(u.log_normaliser().sum(dtype=torch.float64))
        return Counts(counts, log_normaliser)

    def moments(self, shard: int, name: str, tilts: Float[Tensor, "class"], factor: float) -> Sums:
        """`Σ_n u_nk` and `Σ_n u_nk z_n` of the classes that hold any queries, with u as in `count`."""
        mass = torch.zeros(len(tilts), dtype=torch.float64)
        sums = torch.zeros(len(tilts), len(self.origin))
        for block, lists in self._lists(shard, name):
            points = self._points(shard, block)
            weights = softmax(torch.add(lists.of_classes(tilts), lists.scores, alpha=factor)).weights
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

    def returning(
        self,
        shard: int,
        everyone: str,
        name: str,
        tilts: Float[Tensor, "class"],
        factor: float,
        living: Int[Tensor, "living"],
    ) -> Float[Tensor, "class"]:
        """Sum what each class outside the working set would take: `Σ_n exp(logit_nk) / Σ_{j living} exp(logit_nj)`.

        `tilts` are those of all classes. The lists of `everyone` tell which classes are near, those of `name` hold the
        living.
        """
        taken = torch.zeros(len(tilts), dtype=torch.float64)
        outside = torch.ones(len(tilts)).index_fill_(0, living, 0)
        for (_, first), (_, last) in zip(self._lists(shard, everyone), self._lists(shard, name), strict=True):
            normaliser = softmax(last.scores * factor + last.of_classes(tilts[living])).log_normaliser()
            logits = first.scores * factor + first.of_classes(tilts) - normaliser.unsqueeze(-1)
            taken += first.by_class(logits.clamp(max=0).exp() * first.of_classes(outside), len(tilts))
        return taken

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

    def answer(
        self,
        shard: int,
        name: str,
        contenders: Contenders,
        tilts: Float[Tensor, "class"],
        classes: Int[Tensor, "class"],
    ) -> Held:
        """Write label, probability and runner-up of every query; return what the classes hold.

        `classes` are the numbers of the contenders in the catalogue. Queries are compared with all contenders where
        that is cheaper, else with those of their lists.
        """
        if contenders.n_classes <= PRODUCT_ADVANTAGE * self.list_length:
            return self.answer_all(shard, contenders, tilts, classes)
        counts = torch.zeros(contenders.n_classes, dtype=torch.float64)
        log_absence = torch.zeros_like(counts)
        best = Best.room(len(self._rows(shard)))
        for block, lists in self._lists(shard, name):
            points = self._points(shard, block)
            gathered = lists.classes.shape[-1] * points.shape[-1]
            for part in _parts(len(points), max(1, SCORE_BLOCK_NUMBERS // gathered)):
                listed = lists.classes[part].long()
                scores = torch.bmm(contenders.prototypes[listed], points[part].unsqueeze(-1)).squeeze(-1)
                logits = scores - contenders.half_norms[listed] + tilts[listed]
                # Entries that fill up a short list are -inf, and stay so.
                u = softmax(logits.where(lists.scores[part] > -torch.inf, -torch.inf))
                counts += torch.bincount(listed.flatten(), u.weights.double().flatten(), len(counts))
                absent = torch.log1p(-u.weights.double())
                log_absence += torch.bincount(listed.flatten(), absent.flatten(), len(counts))
                top = u.weights.topk(min(2, listed.shape[-1]))
                best.fill(block.start + part.start, classes[listed.gather(-1, top.indices)], top.values)
        self._write(shard, best)
        return Held(counts, log_absence)

    def answer_all(
        self, shard: int, contenders: Contenders, tilts: Float[Tensor, "class"], classes: Int[Tensor, "class"]
    ) -> Held:
        """As `answer`, comparing every query with all contenders."""
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
        return Held(counts, log_absence)

    def _write(self, shard: int, best: Best) -> None:
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
            },
        )

    # ----------------------------------------------------------------------------------------------------------------

    def _rows(self, shard: int) -> range:
        start = shard * self.shard_rows
        return range(start, min(start + self.shard_rows, self.queries.n_rows))

    def _file(self, name: str, shard: int) -> Path:
        return self.folder / f"lists-{name}" / f"{shard:06d}.npy"

    def _points(self, shard: int, block: slice) -> Float[Tensor, "query dim"]:
        rows = self._rows(shard)[block]
        return read_rows(self.queries, rows.start, rows.stop, self.transform).sub_(self.origin)

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


def _parts(length: int, size: int) -> list[slice]:
    return [slice(start, min(start + size, length)) for start in range(0, length, size)]
