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


class Picks(NamedTuple):
    """Queries as pairs (index of one of the task's query classes, index of a free row of that class)."""

    present: Int[np.ndarray, "task query"]
    offsets: Int[np.ndarray, "task query"]


Indices: TypeAlias = Int[np.ndarray, "task"]
Counts: TypeAlias = Int[np.ndarray, "task present"]  # rows of each of a task's query classes


@dataclass(frozen=True)
class SomeClasses:
    """What the rules share: `k_eff`, the largest number of classes that occur in a query."""

    k_eff: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "k_eff", whole("k_eff", self.k_eff, least=1, error=TaskError))


@dataclass(frozen=True)
class UniformOverPool(SomeClasses):
    """|Q| rows without replacement from the pooled rows of `k_eff` classes: counts follow the sizes of the classes.

    This is the paper's rule. A class may get no row by chance, so at most `k_eff` classes occur.

    Examples
    --------
    >>> from handful import fewshot
    >>> labels = [0] * 10 + [1] * 10 + [2] * 10
    >>> spec = fewshot.TaskSpec(fewshot.ShotsPerClass(2), UniformOverPool(k_eff=2), n_query=6)
    >>> len(set(fewshot.draw(labels, spec, seed=0, indices=[0]).query_labels[0].tolist())) <= 2
    True
    """

    def pick(self, free: Counts, n_query: int, seed: int, indices: Indices) -> Picks:
        """Pick queries among the `free` rows of each class."""
        who = f"the pool of its query's {self.k_eff} classes"
        return pick_pooled(free, n_query, seed, indices, Stream.QUERY, who)


@dataclass(frozen=True)
class RangeOverPool(SomeClasses):
    """|Q| rows as in `UniformOverPool`, of a number of classes that is drawn for each task from `least` … `k_eff`.

    Zanella et al. (CVPR 2025) draw it from 1 … 4, 2 … 10 and 5 … 25 for batches of 64, and from 5 … 25, 25 … 50 and
    50 … 100 for batches of 1,000.

    Examples
    --------
    >>> from handful import fewshot
    >>> labels = [0] * 10 + [1] * 10 + [2] * 10
    >>> spec = fewshot.TaskSpec(fewshot.ShotsPerClass(2), RangeOverPool(k_eff=3, least=2), n_query=6)
    >>> tasks = fewshot.draw(labels, spec, seed=0, indices=range(20))
    >>> sorted({len(set(labels)) for labels in tasks.query_labels.tolist()})
    [2, 3]
    """

    least: int = 1

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "least", whole("least", self.least, least=1, error=TaskError))
        if self.least > self.k_eff:
            raise TaskError(
                f"a range of classes must begin at or below its end, got least={self.least} and k_eff={self.k_eff}"
            )

    def pick(self, free: Counts, n_query: int, seed: int, indices: Indices) -> Picks:
        """Pick queries among the `free` rows of some of the classes."""
        uniform = uniforms(seed, indices, Stream.QUERY_RANGE, 1 + self.k_eff)
        count = self.least + (uniform[:, :1] * (self.k_eff - self.least + 1)).astype(np.int64)
        rank = uniform[:, 1:].argsort(-1).argsort(-1)
        who = f"the pool of its query's {self.least} to {self.k_eff} classes"
        return pick_pooled(np.where(rank < count, free, 0), n_query, seed, indices, Stream.QUERY, who)


@dataclass(frozen=True)
class Arrivals(SomeClasses):
    """Task i is the i-th batch of |Q| items in the order in which they arrive, class after class.

    The order consists of `k_eff` slots. Each class spreads its rows over the slots in proportions
    p ~ Dirichlet(concentration · 1). In a slot, the classes follow each other in random order. So at a small
    concentration a batch has few classes, and the next batch nearly the same. Rows at the end that do not fill a batch
    are left out; then another order of the same rows begins.

    `k_eff` must be the number of all classes. All tasks of a seed are batches of the same order. Give a fixed support:
    a support that is drawn takes other rows away for each task, so that a row may arrive twice.

    Examples
    --------
    >>> from handful import fewshot
    >>> labels = [0] * 12 + [1] * 12 + [2] * 12
    >>> spec = fewshot.TaskSpec(fewshot.ShotsPerClass(2), Arrivals(k_eff=3, concentration=0.01), n_query=10)
    >>> tasks = fewshot.draw(labels, spec, seed=1, indices=range(3))
    >>> [len(set(labels)) for labels in tasks.query_labels.tolist()]
    [1, 1, 1]
    """

    concentration: float = 0.1

    def __post_init__(self) -> None:
        super().__post_init__()
        _refuse_concentration(self.concentration)

    def pick(self, free: Counts, n_query: int, seed: int, indices: Indices) -> Picks:
        """Pick the batches; the classes and their `free` rows must be the same for all tasks."""
        pooled = free.sum(-1)
        _refuse_scarcity(pooled < n_query, indices, pooled, n_query, "the pool of all classes")
        rounds, batches = np.divmod(indices, pooled // n_query)
        orders = {number: self._order(free[0], seed, number) for number in set(rounds.tolist())}
        picked = [
            orders[number][:, first : first + n_query]
            for number, first in zip(rounds.tolist(), (batches * n_query).tolist(), strict=True)
        ]
        present, offsets = np.stack(picked, 1)
        return Picks(present, offsets)

    def _order(self, free: Int[np.ndarray, "present"], seed: int, number: int) -> Int[np.ndarray, "2 row"]:
        """Class and row within the class of every item, in the order of the given round."""
        rng = generator(seed, number, Stream.ARRIVALS)
        turns = rng.random((self.k_eff, self.k_eff))  # [slot, class]
        rows = []
        for k, size in enumerate(free.tolist()):
            counts = round_to_sum(rng.dirichlet(np.full(self.k_eff, self.concentration)), size)
            slots = np.repeat(np.arange(self.k_eff), counts)
            rows.append(np.stack([slots, turns[slots, k], np.full(size, k), rng.permutation(size)]))
        slots, turn, classes, offsets = np.concatenate(rows, 1)
        return np.stack([classes, offsets])[:, np.lexsort((turn, slots))].astype(np.int64)


@dataclass(frozen=True)
class Balanced(SomeClasses):
    """|Q| / `k_eff` rows of each of `k_eff` classes, without replacement.

    Examples
    --------
    >>> from handful import fewshot
    >>> labels = [0] * 10 + [1] * 10 + [2] * 10
    >>> spec = fewshot.TaskSpec(fewshot.ShotsPerClass(2), Balanced(k_eff=3), n_query=6)
    >>> sorted(fewshot.draw(labels, spec, seed=0, indices=[0]).query_labels[0].tolist())
    [0, 0, 1, 1, 2, 2]
    """

    def pick(self, free: Counts, n_query: int, seed: int, indices: Indices) -> Picks:
        """Pick queries among the `free` rows of each class."""
        each = n_query // self.k_eff
        fewest = free.min(-1)
        _refuse_scarcity(fewest < each, indices, fewest, each, "a class of its query")
        return _pick_counts(np.full_like(free, each), free, n_query, seed, indices)


@dataclass(frozen=True)
class Dirichlet(SomeClasses):
    """Counts in proportions p ~ Dirichlet(concentration · 1) over `k_eff` classes, then rows without replacement.

    Proportions that need more rows of a class than it has are drawn again.

    Examples
    --------
    >>> from handful import fewshot
    >>> labels = [0] * 20 + [1] * 20 + [2] * 20
    >>> spec = fewshot.TaskSpec(fewshot.ShotsPerClass(2), Dirichlet(k_eff=3, concentration=1.0), n_query=12)
    >>> fewshot.draw(labels, spec, seed=0, indices=range(4)).query.shape
    (4, 12)
    """

    concentration: float = 2.0

    def __post_init__(self) -> None:
        super().__post_init__()
        _refuse_concentration(self.concentration)

    def pick(self, free: Counts, n_query: int, seed: int, indices: Indices) -> Picks:
        """Pick queries among the `free` rows of each class."""
        pooled = free.sum(-1)
        _refuse_scarcity(pooled < n_query, indices, pooled, n_query, f"the pool of its query's {self.k_eff} classes")
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

    The classes are drawn for each task, before those of the support. Their queries are drawn without replacement from
    their pooled rows. The same tasks at another share have the same classes and the same support.

    Attributes
    ----------
    count : int
        Number of classes without a support.
    share : float
        Their share of the query, 0 … 1. With 0 the classes are taken out of the support, and the query has none of
        them.

    Examples
    --------
    >>> from handful import fewshot
    >>> labels = [0] * 10 + [1] * 10 + [2] * 10 + [3] * 10
    >>> unknown = UnknownClasses(count=1, share=0.25)
    >>> spec = fewshot.TaskSpec(fewshot.ShotsPerClass(2), fewshot.Balanced(k_eff=2), n_query=8, unknown=unknown)
    >>> task = fewshot.draw(labels, spec, seed=0, indices=[0])
    >>> task.n_classes, sorted(task.query_labels[0].tolist())
    (3, [-1, -1, 1, 1, 1, 2, 2, 2])
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
        who = f"the pool of its {self.count} unknown classes"
        return pick_pooled(sizes, self.n_items(n_query), seed, indices, Stream.UNKNOWN_QUERY, who)


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


def pick_pooled(free: Counts, n_query: int, seed: int, indices: Indices, stream: Stream, who: str) -> Picks:
    """Pick distinct rows from the pooled rows of all classes; `who` names the pool if it is too small."""
    pooled = free.sum(-1)
    _refuse_scarcity(pooled < n_query, indices, pooled, n_query, who)
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
    dealt = np.minimum((np.cumsum(counts, -1) - counts)[..., None] + steps, n_query - 1)
    per_class = np.take_along_axis(uniform, dealt.reshape(n_tasks, -1), axis=-1).reshape(dealt.shape)
    offsets = distinct(per_class, free, counts)
    real = offsets >= 0
    present = np.broadcast_to(np.arange(n_present)[:, None], real.shape)
    return Picks(present[real].reshape(n_tasks, n_query), offsets[real].reshape(n_tasks, n_query))


def _refuse_concentration(concentration: float) -> None:
    if not 0 < concentration < np.inf:
        raise TaskError(f"concentration must be a positive number, got {concentration}")


def _refuse_scarcity(scarce: np.ndarray, indices: Indices, there: np.ndarray, wanted: int, who: str) -> None:
    if scarce.any():
        t = int(scarce.argmax())
        raise TaskError(
            f"task {indices[t]}: without the support, {who} has {there[t]} rows left, fewer than the {wanted} queries "
            "asked for; ask for fewer queries or fewer shots, or change k_eff"
        )


QueryRule: TypeAlias = UniformOverPool | RangeOverPool | Balanced | Dirichlet | Arrivals
