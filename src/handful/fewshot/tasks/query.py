"""Query rules: how the rows to label are spread over the few classes that occur, and over unknown ones."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

import numpy as np

from handful.arguments import whole
from handful.errors import TaskError
from handful.fewshot.tasks.randomness import Stream, distinct, generator, uniforms
from handful.shapes import Float, Int

# Draws of Dirichlet proportions before a task is considered impossible.
MOST_REDRAWS = 1000
# Label of a query whose class is not in the support.
UNKNOWN = -1

Indices: TypeAlias = Int[np.ndarray, "task"]
Counts: TypeAlias = Int[np.ndarray, "task present"]  # rows of each of a task's query classes


class Picks(NamedTuple):
    """Queries as pairs (index of one of the task's query classes, index of a free row of that class)."""

    present: Int[np.ndarray, "task query"]
    offsets: Int[np.ndarray, "task query"]


@dataclass(frozen=True)
class UniformOverPool:
    """|Q| rows without replacement from the pooled rows of `k_eff` classes: counts follow the sizes of the classes.

    This is the paper's rule. A class may get no row by chance, so at most `k_eff` classes occur.
    """

    k_eff: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "k_eff", whole("k_eff", self.k_eff, least=1, error=TaskError))

    def pick(self, free: Counts, n_query: int, seed: int, indices: Indices) -> Picks:
        """Pick queries among the `free` rows of each class."""
        return pick_pooled(free, n_query, seed, indices, Stream.QUERY, self._pool)

    @property
    def _pool(self) -> str:
        return f"the pool of its query's {self.k_eff} classes"


@dataclass(frozen=True)
class Balanced(UniformOverPool):
    """|Q| / `k_eff` rows of each of `k_eff` classes, without replacement."""

    def pick(self, free: Counts, n_query: int, seed: int, indices: Indices) -> Picks:
        """Pick queries among the `free` rows of each class."""
        each = n_query // self.k_eff
        _refuse_scarcity(free.min(-1), each, indices, "a class of its query")
        return _pick_counts(np.full_like(free, each), free, n_query, seed, indices)


@dataclass(frozen=True)
class Dirichlet(UniformOverPool):
    """Counts in proportions p ~ Dirichlet(concentration · 1) over `k_eff` classes, then rows without replacement.

    Proportions that need more rows of a class than it has are drawn again.
    """

    concentration: float = 2.0

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 < self.concentration < np.inf:
            raise TaskError(f"concentration must be a positive number, got {self.concentration}")

    def pick(self, free: Counts, n_query: int, seed: int, indices: Indices) -> Picks:
        """Pick queries among the `free` rows of each class."""
        _refuse_scarcity(free.sum(-1), n_query, indices, self._pool)
        counts = np.stack([self._counts(f, n_query, seed, i) for f, i in zip(free, indices.tolist(), strict=True)])
        return _pick_counts(counts, free, n_query, seed, indices)

    def _counts(self, free: Int[np.ndarray, "present"], n_query: int, seed: int, index: int) -> np.ndarray:
        rng = generator(seed, index, Stream.QUERY_COUNTS)
        for _ in range(MOST_REDRAWS):
            counts = round_to_sum(rng.dirichlet(np.full(self.k_eff, self.concentration)), n_query)
            if (counts <= free).all():
                return counts
        raise TaskError(
            f"task {index}: {MOST_REDRAWS} draws of Dirichlet proportions all needed more rows of a class than it has "
            f"(the classes have {free.tolist()} rows); ask for fewer queries than {n_query}, or raise the concentration"
        )


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


def _refuse_scarcity(there: Int[np.ndarray, "task"], wanted: int, indices: Indices, pool: str) -> None:
    if (scarce := there < wanted).any():
        t = int(scarce.argmax())
        raise TaskError(
            f"task {indices[t]}: without the support, {pool} has {there[t]} rows left, fewer than the {wanted} queries "
            "asked for; ask for fewer queries or fewer shots, or change k_eff"
        )


QueryRule: TypeAlias = UniformOverPool | Balanced | Dirichlet
