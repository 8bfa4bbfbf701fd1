"""How long the rest of a run will take, cell by cell: the cost of a task differs by a factor of 1,000 among methods."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from handful.fewshot.benchmark.completion import CellProgress


class TimeLeft(NamedTuple):
    """Processor seconds that are left, and the number of cells without an estimate.

    Attributes
    ----------
    cpu_seconds : float
        `Σ (wanted - done) · seconds per task` over the cells for which that is known; at most what is left of a cell's
        budget.
    unknown_cells : int
        Cells that have not begun, and whose method has not been timed in another cell either.
    """

    cpu_seconds: float
    unknown_cells: int


def time_left(states: Sequence[CellProgress]) -> TimeLeft:
    """Estimate from the tasks of each cell or, if it has not begun, from other cells of its method.

    Examples
    --------
    >>> from handful.fewshot import ShotsPerClass, TaskSpec, UniformOverPool
    >>> from handful.fewshot.benchmark import Cell
    >>> spec = TaskSpec(ShotsPerClass(5), UniformOverPool(k_eff=5))
    >>> quick, slow = (Cell("clinc150", spec, method) for method in ("paddle", "tim"))
    >>> time_left([CellProgress(quick, 1000, 0, 1000, 5.0), CellProgress(slow, 10, 0, 1000, 30.0)])
    TimeLeft(cpu_seconds=2970.0, unknown_cells=0)
    """
    spent: dict[str, tuple[float, int]] = {}
    for state in states:
        seconds, tasks = spent.get(state.cell.method, (0.0, 0))
        spent[state.cell.method] = seconds + state.cpu_seconds, tasks + _timed(state)
    total, unknown = 0.0, 0
    for state in states:
        left = max(0, state.wanted - state.done)
        seconds, tasks = (state.cpu_seconds, _timed(state)) if _timed(state) else spent[state.cell.method]
        if left and not tasks:
            unknown += 1
        elif left:
            needed = left * seconds / tasks
            budget = state.cell.cpu_budget
            total += needed if budget is None else min(needed, max(0.0, budget - state.cpu_seconds))
    return TimeLeft(total, unknown)


def _timed(state: CellProgress) -> int:
    """Tasks that have a time: failures have none."""
    return state.done - state.failed
