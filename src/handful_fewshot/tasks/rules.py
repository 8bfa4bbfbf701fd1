"""Rules: which labelled rows a task has, how the rows to label are spread over the classes that occur, and the draws.

Each task has its own streams of random numbers, so it is the same drawn alone or among others.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import IntEnum
from typing import NamedTuple, SupportsInt, TypeAlias

import numpy as np

from handful.arguments import whole
from handful.errors import TaskError
from handful.shapes import Bool, Float, Int

# Draws of Dirichlet proportions before a task is considered impossible.
MOST_REDRAWS = 1000
# Label of a query whose class is not in the support.
UNKNOWN = -1

Indices: TypeAlias = Int[np.ndarray, "task"]
Counts: TypeAlias = Int[np.ndarray, "task present"]  # rows of each of a task's query classes


class Stream(IntEnum):
    """What a stream is for. Streams are separate, so that the support does not depend on the query rule."""

    CLASSES = 0
    SUPPORT = 1
    QUERY_CLASSES = 2
    QUERY = 3
    QUERY_COUNTS = 4
    UNKNOWN_CLASSES = 5
    UNKNOWN_QUERY = 6
    CLASS_COUNT = 7
    SLOTS = 8


def generator(seed: int, index: int, stream: int) -> np.random.Generator:
    """Start a stream of task `index`: Philox with key (seed, index) and the stream as the top word of its counter."""
    # The dtype is given because NumPy converts a list of a seed of 2⁶³ or more and a small number to floats.
    key = np.array([seed, index], dtype=np.uint64)
    return np.random.Generator(np.random.Philox(key=key, counter=[0, 0, 0, stream]))


def uniforms(seed: int, indices: Int[np.ndarray, "task"], stream: int, size: int) -> Float[np.ndarray, "task size"]:
    """`size` numbers in [0, 1) for each task."""
    out = np.empty((len(indices), size))
    for row, index in zip(out, indices.tolist(), strict=True):
        generator(seed, index, stream).random(out=row)
    return out


def distinct(
    uniform: Float[np.ndarray, "*set step"], population: Int[np.ndarray, "*#set"], count: Int[np.ndarray, "*#set"] | int
) -> Int[np.ndarray, "*set step"]:
    """Draw `count` distinct numbers of 0 … population-1 for each set; all such subsets are equally likely.

    Floyd's algorithm: with j = population - count + i, step i takes t = ⌊u (j+1)⌋, or j itself if t is already taken.
    It needs one random number per draw, regardless of the population. If `count` is less than the number of steps, the
    rest is -1.
    """
    steps = uniform.shape[-1]
    chosen = np.full(uniform.shape, -1, dtype=np.int64)
    first = np.asarray(population) - count
    for i in range(steps):
        last = first + i
        candidate = (uniform[..., i] * (last + 1)).astype(np.int64)
        taken = (chosen[..., :i] == candidate[..., None]).any(-1)
        chosen[..., i] = np.where(i < np.asarray(count), np.where(taken, last, candidate), -1)
    return chosen


@dataclass(frozen=True, eq=False)
class ClassRows:
    """Row numbers ordered by class: those of class k are `order[starts[k] : starts[k] + sizes[k]]`, increasing."""

    order: Int[np.ndarray, "row"]
    starts: Int[np.ndarray, "class"]
    sizes: Int[np.ndarray, "class"]

    @classmethod
    def of(
        cls, labels: Int[np.ndarray, "row"], n_classes: int, rows: Int[np.ndarray, "row"] | None = None
    ) -> ClassRows:
        """Order rows by their labels; `rows` gives the row numbers if they are not 0, 1, 2 and so on."""
        # NumPy sorts 16-bit integers in linear time, which matters for ten million rows.
        keys = labels.astype(np.uint16) if n_classes <= 2**16 else labels
        order = np.argsort(keys, kind="stable")
        sizes = np.bincount(labels, minlength=n_classes)
        return cls(order if rows is None else rows[order], np.cumsum(sizes) - sizes, sizes)

    def rows_at(self, classes: Int[np.ndarray, "*set"], offsets: Int[np.ndarray, "*set"]) -> Int[np.ndarray, "*set"]:
        """Row number of the offset-th row of each class."""
        rows: np.ndarray = self.order[self.starts[classes] + offsets]
        return rows


class Support(NamedTuple):
    """The support of some tasks, class by class.

    `offsets` are the positions of the support within the rows of its classes, which the query must skip; None if these
    rows were removed in advance. `labels` number the task's own classes, 0 … K-1.
    """

    rows: Int[np.ndarray, "#task support"]
    labels: Int[np.ndarray, "#task support"]
    mask: Bool[np.ndarray, "#task support"] | None
    offsets: Int[np.ndarray, "task class shots"] | None


@dataclass(frozen=True)
class ShotsPerClass:
    """The same number of rows for every class, drawn without replacement."""

    shots: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "shots", whole("shots", self.shots, least=1, error=TaskError))

    def draw(
        self, pool: ClassRows, classes: Int[np.ndarray, "#task class"], seed: int, indices: Int[np.ndarray, "task"]
    ) -> Support:
        """Draw the support of these tasks."""
        scarce = np.flatnonzero(pool.sizes < self.shots)
        if len(scarce):
            raise TaskError(
                f"class {scarce[0]} has {pool.sizes[scarce[0]]} rows, fewer than the {self.shots} shots asked for "
                f"({len(scarce)} such classes); ask for fewer shots, or leave these classes out with bank.classes(...)"
            )
        n_tasks = len(indices)
        n_classes = classes.shape[1]
        uniform = uniforms(seed, indices, Stream.SUPPORT, n_classes * self.shots)
        sizes = np.broadcast_to(pool.sizes[classes], (n_tasks, n_classes))
        offsets = distinct(uniform.reshape(n_tasks, n_classes, self.shots), sizes, self.shots)
        rows = pool.order[pool.starts[classes][..., None] + offsets]
        labels = np.repeat(np.arange(n_classes), self.shots)[None]
        return Support(rows.reshape(n_tasks, -1), labels, None, offsets)


@dataclass(frozen=True, init=False)
class FixedSupport:
    """The same rows for every task; classes may have different numbers of rows.

    Attributes
    ----------
    rows : tuple of int
        Row numbers. Without `labels` they refer to the bank that queries come from, and these rows are never queries.
        With `labels` they refer to another bank.
    labels : tuple of int, optional
        Classes of these rows in another bank, which must number its classes like the bank of the query. None means
        that the rows belong to the bank of the query.
    """

    rows: tuple[int, ...]
    labels: tuple[int, ...] | None = None

    def __init__(self, rows: Iterable[SupportsInt], labels: Iterable[SupportsInt] | None = None) -> None:
        object.__setattr__(self, "rows", tuple(int(r) for r in rows))
        object.__setattr__(self, "labels", None if labels is None else tuple(int(k) for k in labels))
        if not self.rows or len(set(self.rows)) != len(self.rows) or min(self.rows) < 0:
            raise TaskError("rows of a fixed support must be distinct row numbers, at least one")
        if self.labels is not None and (len(self.labels) != len(self.rows) or min(self.labels) < 0):
            raise TaskError(
                f"labels of a fixed support must be one class number for each of its {len(self.rows)} rows, "
                f"got {len(self.labels)}"
            )

    @classmethod
    def whole(cls, labels: Iterable[SupportsInt]) -> FixedSupport:
        """Use all rows of another bank, given its labels."""
        numbers = [int(k) for k in labels]
        return cls(range(len(numbers)), numbers)

    @property
    def elsewhere(self) -> bool:
        """Whether the rows belong to another bank."""
        return self.labels is not None

    def draw(self, library: ClassRows, classes: Int[np.ndarray, "#task class"], *, every_class: bool) -> Support:
        """Pick the rows of each task's classes from `library`, the fixed rows ordered by class."""
        empty = np.flatnonzero(library.sizes == 0)
        if len(empty):
            raise TaskError(
                f"the fixed support has no row of class {empty[0]} ({len(empty)} such classes); every class needs one: "
                "add rows, or leave these classes out of both banks with bank.classes(...)"
            )
        if every_class:
            labels = np.repeat(np.arange(len(library.sizes)), library.sizes)
            return Support(library.order[None], labels[None], None, None)
        sizes = library.sizes[classes]
        width = int(sizes.sum(-1).max())
        rows = np.zeros((len(classes), width), np.int64)
        labels = np.zeros_like(rows)
        mask = np.zeros(rows.shape, bool)
        for t, (chosen, counts) in enumerate(zip(classes, sizes, strict=True)):
            n = int(counts.sum())
            within = np.arange(n) - np.repeat(np.cumsum(counts) - counts, counts)
            rows[t, :n] = library.rows_at(np.repeat(chosen, counts), within)
            labels[t, :n] = np.repeat(np.arange(len(chosen)), counts)
            mask[t, :n] = True
        return Support(rows, labels, mask, None)


SupportRule: TypeAlias = ShotsPerClass | FixedSupport


class Picks(NamedTuple):
    """Queries as pairs (index of one of the task's query classes, index of a free row of that class)."""

    present: Int[np.ndarray, "task query"]
    offsets: Int[np.ndarray, "task query"]


@dataclass(frozen=True)
class UniformOverPool:
    """|Q| rows without replacement from the pooled rows of `k_eff` classes: counts follow the sizes of the classes.

    This is the paper's rule. A class may get no row by chance, so at most `k_eff` classes occur. A pair `(low, high)`
    draws this number for each task, from low to high, all equally likely.
    """

    k_eff: int | tuple[int, int]

    def __post_init__(self) -> None:
        given = self.k_eff if isinstance(self.k_eff, tuple | list) else (self.k_eff,)
        ends = tuple(whole("k_eff", end, least=1, error=TaskError) for end in given)
        if len(ends) not in (1, 2) or ends[0] > ends[-1]:
            raise TaskError(f"k_eff must be a number of classes or a pair (low, high) with low <= high, got {given!r}")
        object.__setattr__(self, "k_eff", ends[0] if ends[0] == ends[-1] else ends)

    @property
    def possible(self) -> range:
        """Numbers of classes that a query may be drawn from."""
        low, high = self.k_eff if isinstance(self.k_eff, tuple) else (self.k_eff, self.k_eff)
        return range(low, high + 1)

    @property
    def k_eff_text(self) -> str:
        """`5`, or `2-10` for a range, as plans and the command line write it."""
        return "-".join(str(end) for end in sorted({self.possible[0], self.possible[-1]}))

    def class_counts(self, seed: int, indices: Indices) -> Indices:
        """Return the number of classes of each query."""
        if len(self.possible) == 1:
            return np.full(len(indices), self.possible[0])
        uniform = uniforms(seed, indices, Stream.CLASS_COUNT, 1)[:, 0]
        return self.possible[0] + (uniform * len(self.possible)).astype(np.int64)

    def catalogue_of(self, indices: Indices) -> Indices:
        """Return the address of what tasks may share: their classes and support. Here, each task has its own."""
        return indices

    def pick(self, free: Counts, n_query: int, seed: int, indices: Indices) -> Picks:
        """Pick queries among the `free` rows of each class."""
        return pick_pooled(free, n_query, seed, indices, Stream.QUERY, self._pool)

    @property
    def _pool(self) -> str:
        return f"the pool of its query's {self.k_eff_text} classes"


@dataclass(frozen=True)
class Balanced(UniformOverPool):
    """|Q| / `k_eff` rows of each of `k_eff` classes, without replacement."""

    def pick(self, free: Counts, n_query: int, seed: int, indices: Indices) -> Picks:
        """Pick queries among the `free` rows of each class."""
        n_classes = self.class_counts(seed, indices)
        occurs = np.arange(free.shape[-1]) < n_classes[:, None]
        each = n_query // n_classes
        fewest = free.min(-1, where=occurs, initial=int(free.max()))
        _refuse_scarcity(fewest, each, indices, "a class of its query")
        return _pick_counts(each[:, None] * occurs, free, n_query, seed, indices)


@dataclass(frozen=True)
class Dirichlet(UniformOverPool):
    """Counts in proportions p ~ Dirichlet(concentration · 1) over `k_eff` classes, then rows without replacement.

    Proportions that need more rows of a class than it has are drawn again.
    """

    concentration: float = 2.0

    def __post_init__(self) -> None:
        super().__post_init__()
        _refuse_concentration(self.concentration)

    def pick(self, free: Counts, n_query: int, seed: int, indices: Indices) -> Picks:
        """Pick queries among the `free` rows of each class."""
        _refuse_scarcity(free.sum(-1), n_query, indices, self._pool)
        counts = np.zeros_like(free)
        for t, (index, n) in enumerate(zip(indices.tolist(), self.class_counts(seed, indices), strict=True)):
            counts[t, :n] = self._counts(free[t, :n], n_query, seed, index)
        return _pick_counts(counts, free, n_query, seed, indices)

    def _counts(self, free: Int[np.ndarray, "present"], n_query: int, seed: int, index: int) -> np.ndarray:
        rng = generator(seed, index, Stream.QUERY_COUNTS)
        for _ in range(MOST_REDRAWS):
            counts = round_to_sum(rng.dirichlet(np.full(len(free), self.concentration)), n_query)
            if (counts <= free).all():
                return counts
        raise TaskError(
            f"task {index}: {MOST_REDRAWS} draws of Dirichlet proportions all needed more rows of a class than it has "
            f"(the classes have {free.tolist()} rows); ask for fewer queries than {n_query}, or raise the concentration"
        )


@dataclass(frozen=True)
class CorrelatedStream(UniformOverPool):
    """Task i is batch `i mod batches` of stream `⌊i / batches⌋`; the batches of a stream share classes and support.

    A stream has `batches` · |Q| rows without replacement from the pooled rows of `k_eff` classes. Those of each class
    are spread over `slots` slots in proportions p ~ Dirichlet(concentration · 1). Slots follow one another; within a
    slot, classes follow one another in random order. The smaller the concentration, the fewer classes a batch has. With
    one slot, all items of a class come at once.
    """

    slots: int = 100
    concentration: float = 0.1
    batches: int = 20

    def __post_init__(self) -> None:
        super().__post_init__()
        _refuse_concentration(self.concentration)
        for name in ("slots", "batches"):
            object.__setattr__(self, name, whole(name, getattr(self, name), least=1, error=TaskError))

    def catalogue_of(self, indices: Indices) -> Indices:
        """Return the number of each task's stream."""
        return indices // self.batches

    def pick(self, free: Counts, n_query: int, seed: int, indices: Indices) -> Picks:
        """Pick each stream once, and of it the batches asked for."""
        of_stream = self.batches * n_query
        _refuse_scarcity(free.sum(-1), of_stream, indices, self._pool)
        streams, first, which = np.unique(self.catalogue_of(indices), return_index=True, return_inverse=True)
        picks = pick_pooled(free[first], of_stream, seed, streams, Stream.QUERY, self._pool)
        orders = [self._order(row, seed, s) for row, s in zip(picks.present, streams.tolist(), strict=True)]
        places = (indices % self.batches)[:, None] * n_query + np.arange(n_query)
        chosen = np.stack(orders)[which[:, None], places]
        return Picks(picks.present[which[:, None], chosen], picks.offsets[which[:, None], chosen])

    def _order(self, present: Int[np.ndarray, "item"], seed: int, stream: int) -> Int[np.ndarray, "item"]:
        """Order the items of a stream by slot, then by class."""
        rng = generator(seed, stream, Stream.SLOTS)
        counts = np.bincount(present)
        ends = np.cumsum(rng.dirichlet(np.full(self.slots, self.concentration), len(counts)), -1)[:, :-1]
        # Rank of each item among those of its class, in random order: item r of n is at (r + ½) / n.
        by_class = np.lexsort([rng.random(len(present)), present])
        rank = np.empty_like(present)
        rank[by_class] = np.arange(len(present)) - np.repeat(np.cumsum(counts) - counts, counts)
        slot = (ends[present] <= ((rank + 0.5) / counts[present])[:, None]).sum(-1)
        turns = rng.random((self.slots, len(counts)))
        return np.lexsort([rank, turns[slot, present], slot])


@dataclass(frozen=True)
class UnknownClasses:
    """`round(share · |Q|)` queries of `count` classes that the task takes out of its support; their label is -1.

    The classes are drawn for each task, before those of the support, and their queries from their pooled rows. The
    same tasks at another share have the same classes and the same support; a share of 0 only takes the classes out.
    """

    count: int
    share: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "count", whole("count of unknown classes", self.count, least=1, error=TaskError))
        if not 0 <= self.share <= 1:
            raise TaskError(f"the share of unknown items must lie in 0 … 1, got {self.share}")

    def n_items(self, n_query: int) -> int:
        """Return the number of unknown items among `n_query`; a half is rounded up."""
        return int(np.floor(self.share * n_query + 0.5))

    def pick(self, sizes: Counts, n_query: int, seed: int, indices: Indices) -> Picks:
        """Pick the unknown items of a query of `n_query` rows; `sizes` are the rows of each unknown class."""
        pool = f"the pool of its {self.count} unknown classes"
        return pick_pooled(sizes, self.n_items(n_query), seed, indices, Stream.UNKNOWN_QUERY, pool)


def round_to_sum(proportions: Float[np.ndarray, "present"], total: int) -> Int[np.ndarray, "present"]:
    """Whole numbers near `total · p` that sum to `total`.

    Each is rounded. If the sum is then too large (or too small), those rounded up (or down) whose fractional part is
    nearest ½ are rounded the other way, as in the public code of α-TIM.
    """
    exact = proportions * total
    counts = np.round(exact).astype(np.int64)
    excess = int(counts.sum()) - total
    if excess:
        way = np.sign(excess)
        # Distance of each fractional part from ½, where it would have been rounded the other way.
        beyond = np.where(way * (counts - exact) > 0, 0.5 - np.abs(counts - exact), np.inf)
        counts[np.argsort(beyond, kind="stable")[: abs(excess)]] -= way
    return counts


def pick_pooled(free: Counts, n_query: int, seed: int, indices: Indices, stream: Stream, pool: str) -> Picks:
    """Pick distinct rows from the pooled rows of all classes; `pool` names them in an error if they are too few."""
    pooled = free.sum(-1)
    _refuse_scarcity(pooled, n_query, indices, pool)
    position = distinct(uniforms(seed, indices, stream, n_query), pooled, n_query)
    ends = np.cumsum(free, axis=-1)
    present = (position[..., None] >= ends[:, None]).sum(-1)
    return Picks(present, position - np.take_along_axis(ends - free, present, axis=-1))


def _pick_counts(counts: Counts, free: Counts, n_query: int, seed: int, indices: Indices) -> Picks:
    """Pick `counts` distinct rows of each class."""
    uniform = uniforms(seed, indices, Stream.QUERY, n_query)
    n_tasks, n_present = counts.shape
    steps = np.arange(int(counts.max()))
    # The n_query random numbers of a task are assigned to its classes one class after another. Steps past the count of
    # a class read an arbitrary number, which is not used.
    assigned = np.minimum((np.cumsum(counts, -1) - counts)[..., None] + steps, n_query - 1)
    per_class = np.take_along_axis(uniform, assigned.reshape(n_tasks, -1), axis=-1).reshape(assigned.shape)
    offsets = distinct(per_class, free, counts)
    real = offsets >= 0
    present = np.broadcast_to(np.arange(n_present)[:, None], real.shape)
    return Picks(present[real].reshape(n_tasks, n_query), offsets[real].reshape(n_tasks, n_query))


def _refuse_scarcity(
    there: Int[np.ndarray, "task"], wanted: Int[np.ndarray, "task"] | int, indices: Indices, pool: str
) -> None:
    if (scarce := there < wanted).any():
        t = int(scarce.argmax())
        raise TaskError(
            f"task {indices[t]}: without the support, {pool} has {there[t]} rows left, fewer than the "
            f"{np.broadcast_to(wanted, there.shape)[t]} queries asked for; ask for fewer queries or fewer shots, or "
            "change k_eff"
        )


def _refuse_concentration(concentration: float) -> None:
    if not 0 < concentration < np.inf:
        raise TaskError(f"concentration must be a positive number, got {concentration}")


QueryRule: TypeAlias = UniformOverPool | Balanced | Dirichlet | CorrelatedStream
