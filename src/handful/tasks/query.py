"""Query rules: how the rows to label are spread over the few classes that occur."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

import numpy as np

from handful.arguments import whole
from handful.errors import TaskError
from handful.shapes import Float, Int
from handful.tasks.randomness import Stream, distinct, generator, uniforms

# Draws of Dirichlet proportions before a task is considered impossible.
MOST_REDRAWS = 1000


class Picks(NamedTuple):
    """Queries as pairs (index of one of the task's query classes, index of a free row of that class)."""

    present: Int[np.ndarray, "task query"]
    offsets: Int[np.ndarray, "task query"]


@dataclass(frozen=True)
class UniformOverPool:
    """|Q| rows without replacement from the pooled rows of `k_eff` classes: counts follow the sizes of the classes.

    This is the paper's rule. A class may get no row by chance, so at most `k_eff` classes occur.

    Examples
    --------
    >>> import handful
    >>> labels = [0] * 10 + [1] * 10 + [2] * 10
    >>> spec = handful.TaskSpec(handful.ShotsPerClass(2), UniformOverPool(k_eff=2), n_query=6)
    >>> len(set(handful.draw(labels, spec, seed=0, indices=[0]).query_labels[0].tolist())) <= 2
    True
    """

    k_eff: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "k_eff", whole("k_eff", self.k_eff, least=1, error=TaskError))

    def pick(
        self, free: Int[np.ndarray, "task present"], n_query: int, seed: int, indices: Int[np.ndarray, "task"]
    ) -> Picks:
        """Pick queries among the `free` rows of each class."""
        who = f"the pool of its query's {self.k_eff} classes"
        return pick_pooled(free, n_query, seed, indices, Stream.QUERY, who)


@dataclass(frozen=True)
class Balanced:
    """|Q| / `k_eff` rows of each of `k_eff` classes, without replacement.

    Examples
    --------
    >>> import handful
    >>> labels = [0] * 10 + [1] * 10 + [2] * 10
    >>> spec = handful.TaskSpec(handful.ShotsPerClass(2), Balanced(k_eff=3), n_query=6)
    >>> sorted(handful.draw(labels, spec, seed=0, indices=[0]).query_labels[0].tolist())
    [0, 0, 1, 1, 2, 2]
    """

    k_eff: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "k_eff", whole("k_eff", self.k_eff, least=1, error=TaskError))

    def pick(
        self, free: Int[np.ndarray, "task present"], n_query: int, seed: int, indices: Int[np.ndarray, "task"]
    ) -> Picks:
        """Pick queries among the `free` rows of each class."""
        each = n_query // self.k_eff
        fewest = free.min(-1)
        _refuse_scarcity(fewest < each, indices, fewest, each, "a class of its query")
        return _pick_counts(np.full_like(free, each), free, n_query, seed, indices)


@dataclass(frozen=True)
class Dirichlet:
    """Counts in proportions p ~ Dirichlet(concentration · 1) over `k_eff` classes, then rows without replacement.

    Proportions that need more rows of a class than it has are drawn again.

    Examples
    --------
    >>> import handful
    >>> labels = [0] * 20 + [1] * 20 + [2] * 20
    >>> spec = handful.TaskSpec(handful.ShotsPerClass(2), Dirichlet(k_eff=3, concentration=1.0), n_query=12)
    >>> handful.draw(labels, spec, seed=0, indices=range(4)).query.shape
    (4, 12)
    """

    k_eff: int
    concentration: float = 2.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "k_eff", whole("k_eff", self.k_eff, least=1, error=TaskError))
        if not 0 < self.concentration < np.inf:
            raise TaskError(f"concentration must be a positive number, got {self.concentration}")

    def pick(
        self, free: Int[np.ndarray, "task present"], n_query: int, seed: int, indices: Int[np.ndarray, "task"]
    ) -> Picks:
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


def pick_pooled(
    free: Int[np.ndarray, "task present"],
    n_query: int,
    seed: int,
    indices: Int[np.ndarray, "task"],
    stream: Stream,
    who: str,
) -> Picks:
    """Pick distinct rows from the pooled rows of all classes; `who` names the pool if it is too small."""
    pooled = free.sum(-1)
    _refuse_scarcity(pooled < n_query, indices, pooled, n_query, who)
    position = distinct(uniforms(seed, indices, stream, n_query), pooled, n_query)
    ends = np.cumsum(free, axis=-1)
    present = (position[..., None] >= ends[:, None]).sum(-1)
    return Picks(present, position - np.take_along_axis(ends - free, present, axis=-1))


def _pick_counts(
    counts: Int[np.ndarray, "task present"],
    free: Int[np.ndarray, "task present"],
    n_query: int,
    seed: int,
    indices: Int[np.ndarray, "task"],
) -> Picks:
    """Pick `counts` distinct rows of each class."""
    uniform = uniforms(seed, indices, Stream.QUERY, n_query)
    n_tasks, n_present = counts.shape
    steps = np.arange(int(counts.max()))
    # The n_query random numbers of a task are dealt to its classes in turn. Steps past the count of a class read an
    # arbitrary number, which is not used.
    dealt = np.minimum((np.cumsum(counts, -1) - counts)[..., None] + steps, n_query - 1)
    per_class = np.take_along_axis(uniform, dealt.reshape(n_tasks, -1), axis=-1).reshape(dealt.shape)
    offsets = distinct(per_class, free, counts)
    real = offsets >= 0
    present = np.broadcast_to(np.arange(n_present)[:, None], real.shape)
    return Picks(present[real].reshape(n_tasks, n_query), offsets[real].reshape(n_tasks, n_query))


def _refuse_scarcity(
    scarce: np.ndarray, indices: Int[np.ndarray, "task"], there: np.ndarray, wanted: int, who: str
) -> None:
    if scarce.any():
        t = int(scarce.argmax())
        raise TaskError(
            f"task {indices[t]}: without the support, {who} has {there[t]} rows left, fewer than the {wanted} queries "
            "asked for; ask for fewer queries or fewer shots, or change k_eff"
        )


QueryRule: TypeAlias = UniformOverPool | Balanced | Dirichlet
