"""How long a plan will take, said before it starts: measured seconds of each method, scaled to the shapes of its tasks.

A task of a method costs about `a + b x` seconds, where x is the size of its largest product in millions: `K (|S| + |Q|)
d` if the method reads the support at every step, `K |Q| d` if it sums it once. The constants are the line through two
settings of `python perf/costs.py`: 20 classes with 5 shots, and 160 classes with 20. They were measured on a busy
machine with the methods' default options, so they say whether a plan takes minutes, hours or weeks, and no more. While
a run goes on, the time left comes from its own tasks.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType

from handful_fewshot.benchmark.completion import CellProgress
from handful_fewshot.benchmark.plan import Cell
from handful_fewshot.tasks import ShotsPerClass

# CPU seconds of a task: a fixed part, and for each million of x.
LAWS: Mapping[str, tuple[float, float]] = MappingProxyType(
    {
        "alpha_tim": (0.19, 0.062),
        "baseline": (0.013, 0.0069),
        "bd_cspn": (0.0, 0.0034),
        "ici": (0.30, 0.037),
        "nearest_prototype": (0.0002, 0.0001),
        "paddle": (0.0009, 0.0065),
        "paddle_gd": (0.07, 0.22),
        "prior_em": (0.0002, 0.0004),
        "soft_kmeans": (0.0003, 0.0007),
        "tim": (0.37, 0.13),
    }
)
READ_THE_SUPPORT = frozenset({"alpha_tim", "baseline", "ici", "tim"})


def estimated_seconds(cell: Cell) -> float | None:
    """CPU seconds of a task of the cell; None for a method that was not measured."""
    law = LAWS.get(cell.method)
    if law is None or not cell.bank_shape[1]:
        return None
    n_classes = cell.spec.n_classes or cell.bank_shape[0]
    points = cell.spec.n_query
    if cell.method in READ_THE_SUPPORT:
        support = cell.spec.support
        points += support.shots * n_classes if isinstance(support, ShotsPerClass) else len(support.rows)
    fixed, each = law
    return fixed + each * n_classes * points * cell.bank_shape[1] / 1e6


def estimated_hours(states: Sequence[CellProgress]) -> str:
    """Say how many CPU hours the rest of a run will take, and which methods that leaves out."""
    seconds = 0.0
    unknown = []
    for state in states:
        left = max(0, state.wanted - state.done)
        each = estimated_seconds(state.cell)
        if left and each is None:
            unknown.append(state.cell.method)
        elif left and each is not None:
            budget = state.cell.cpu_budget
            seconds += left * each if budget is None else min(left * each, max(0.0, budget - state.cpu_seconds))
    without = f", without {', '.join(sorted(set(unknown)))}, of which nothing is known yet" if unknown else ""
    return f"about {seconds / 3600:.2g} CPU hours are left, by what tasks of such sizes took elsewhere{without}"
