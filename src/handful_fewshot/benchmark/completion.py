"""complete: subtract what the journal has from what the plan wants, give the rest to workers, write the rows."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from handful.arguments import counted
from handful.errors import HandfulWarning
from handful.progress import Reporter, bars
from handful.shapes import Int
from handful.workers import Shared, Workers, here
from handful_fewshot.benchmark.journal import Journal, remaining, rows_of_cells
from handful_fewshot.benchmark.plan import Banks, Cell, Plan, refuse_another_file
from handful_fewshot.benchmark.run import CPU, Material, Row, lost_range, run_range, versions_text
from handful_fewshot.errors import PlanError

# Rows are written when this many wait, or when the oldest has waited this long; a kill loses no more than that.
WAITING_ROWS = 4096
WAITING_SECONDS = 5.0


@dataclass
class CellProgress:
    """How far a cell is."""

    cell: Cell
    done: int  # tasks that have a row
    failed: int  # those of them that the method failed on
    wanted: int  # tasks to be done; equals `done` once the budget is used up
    cpu_seconds: float
    tasks: Int[np.ndarray, "task"] = field(default_factory=lambda: np.empty(0, np.int64))  # done when the run began
    lost: list[str] = field(default_factory=list)  # errors of the machine, of tasks without a row

    @property
    def timed(self) -> int:
        """Number of tasks that have a time; failures have none."""
        return self.done - self.failed

    @property
    def over_budget(self) -> bool:
        """Whether no further tasks will be started."""
        return self.cell.cpu_budget is not None and self.cpu_seconds >= self.cell.cpu_budget

    def add(self, rows: Sequence[Row]) -> list[Row]:
        """Count what came in; return the rows to be kept."""
        kept = [row for row in rows if not row["lost"]]
        self.done += len(kept)
        self.failed += sum(row["error"] is not None for row in kept)
        self.lost += [row["error"] for row in rows if row["lost"]]
        self.cpu_seconds += sum(row["cpu_seconds"] or 0.0 for row in kept)
        return kept


def progress(journal: Journal) -> list[CellProgress]:
    """How far each cell of a run is, in the order of the plan."""
    return _states(journal.plan, journal.columns())


def time_left(states: Sequence[CellProgress]) -> tuple[float, int]:
    """Return the processor seconds left, `Σ (wanted - done) · seconds per task`, and the cells without an estimate.

    The cost of a task differs by a factor of 1,000 among methods. It is taken from the tasks of each cell or, if it has
    not begun, from other cells of its method; a budget bounds the rest of its cell.
    """
    total = 0.0
    unknown = 0
    for state in states:
        left = max(0, state.wanted - state.done)
        known = [state] if state.timed else [one for one in states if one.cell.method == state.cell.method]
        tasks = sum(one.timed for one in known)
        if left and not tasks:
            unknown += 1
        elif left:
            needed = left * sum(one.cpu_seconds for one in known) / tasks
            budget = state.cell.cpu_budget
            total += needed if budget is None else min(needed, max(0.0, budget - state.cpu_seconds))
    return total, unknown


def _reports(states: Sequence[CellProgress]) -> Callable[[int], None]:
    """Return what is told how many tasks of all cells were done; the time left is that of `time_left`."""
    done = sum(state.done for state in states)
    wanted = sum(state.wanted for state in states)
    begun = time.monotonic()
    spent_before = sum(state.cpu_seconds for state in states)
    stage = Reporter().stage(f"run {counted(len(states), 'cell')}", wanted, done, "tasks")

    def report(more: int) -> None:
        spent = sum(state.cpu_seconds for state in states) - spent_before
        seconds, not_timed = time_left(states)
        # Methods run at the same time, and not all the time is theirs.
        stage(more, None if not_timed or spent <= 0 else seconds * (time.monotonic() - begun) / spent)

    return report


def complete(
    journal: Journal,
    banks: Banks,
    workers: Workers | None = None,
    *,
    device: str = CPU,
    on_progress: Callable[[CellProgress], None] | None = None,
) -> None:
    """Run what is left of a run.

    A task that the method fails on has a row with the error. A task that the machine fails on (memory, disk, a dead
    worker) has none, which a warning says; a resumed run tries it again.

    Parameters
    ----------
    journal : Journal
        The run; its plan must be bound to these banks.
    banks : Mapping[str, FeatureBank]
        Banks by the names that the plan uses.
    workers : callable, optional
        `here(processes)` of `handful.workers`, by default this process alone, or its `on_ray(address)`.
    device : str
        Where tasks are solved, as torch names it: `cpu`, `cuda`, `cuda:1`.
    on_progress : callable, optional
        Called with a cell's progress whenever rows of it come in. On a terminal and in a notebook there is a bar, too.

    Examples
    --------
    >>> import tempfile
    >>> from handful_fewshot import ShotsPerClass, TaskSpec, UniformOverPool
    >>> from handful_fewshot.benchmark.plan import bound_plan, refuse_another_file
    >>> from handful.datasets import load_clinc150
    >>> banks = {"clinc150": load_clinc150()}
    >>> cell = Cell("clinc150", TaskSpec(ShotsPerClass(5), UniformOverPool(k_eff=5)), "nearest_prototype", n_tasks=3)
    >>> journal = Journal.create(tempfile.mkdtemp() + "/run", bound_plan([cell], banks))
    >>> complete(journal, banks)
    >>> [(state.done, state.wanted) for state in progress(journal)]
    [(3, 3)]
    """
    with journal.writing(), bars("run the benchmark"):
        refuse_a_mix(journal, journal.plan)
        states = {state.cell.content_hash: state for state in progress(journal)}
        report = _reports(list(states.values()))
        waiting: list[Row] = []
        oldest = time.monotonic()
        try:
            for rows in (workers or here())(run_range, _ranges(states.values(), banks, device), lost_range):
                _refuse_other_worker(rows[0])
                if not waiting:
                    oldest = time.monotonic()
                state = states[rows[0]["cell"]]
                waiting += state.add(rows)
                if len(waiting) >= WAITING_ROWS or time.monotonic() - oldest >= WAITING_SECONDS:
                    # Cleared first: if this is interrupted after the shard was written, it must not be written again.
                    full = waiting
                    waiting = []
                    journal.append(full)
                report(len(rows))
                if on_progress is not None:
                    on_progress(state)
        finally:
            journal.append(waiting)
    if lost := [error for state in states.values() for error in state.lost]:
        warnings.warn(
            f"the machine failed on {len(lost)} tasks, first with {lost[0]}; resume the run to try them again",
            HandfulWarning,
            stacklevel=2,
        )


def refuse_a_mix(journal: Journal, plan: Plan) -> None:
    """Refuse to add rows of this plan to those of other versions; if nothing is left to do, none are added."""
    rows = journal.columns()
    if all(state.done >= state.wanted for state in _states(plan, rows)):
        return
    mine = np.isin(rows["cell"].astype(str), [cell.content_hash for cell in plan])
    now = versions_text()
    for then in sorted(set(rows["versions"][mine]) - {now}):
        parts = [", ".join(sorted(set(a.split(", ")) - set(b.split(", ")))) for a, b in ((then, now), (now, then))]
        raise PlanError(
            f"continuing {journal.folder} would mix rows of different versions: rows were made with {parts[0]}, but "
            f"this is {parts[1]}. Continue with the versions it was made with, or start another run"
        )


def _refuse_other_worker(row: Row) -> None:
    """Refuse rows that a remote worker made with other versions than this process has."""
    if row["versions"] != versions_text():
        raise PlanError(
            f"a worker has other versions than this process: {row['versions']} there, {versions_text()} here; install "
            "the same on all machines"
        )


def _states(plan: Plan, columns: dict[str, np.ndarray]) -> list[CellProgress]:
    failed = np.array([error is not None for error in columns["error"]], dtype=bool)
    rows = rows_of_cells(columns)
    none = np.empty(0, np.int64)
    states = []
    for cell in plan:
        mine = rows.get(cell.content_hash, none)
        tasks = columns["task"][mine]
        spent = float(np.nansum(columns["cpu_seconds"][mine]))
        state = CellProgress(cell, len(tasks), int(failed[mine].sum()), cell.n_tasks, spent, tasks)
        if state.over_budget and (len(tasks) == 0 or int(tasks.max()) == len(tasks) - 1):
            state.wanted = len(tasks)
        states.append(state)
    return states


def _ranges(states: Iterable[CellProgress], banks: Banks, device: str) -> Iterator[tuple[Any, ...]]:
    """Yield ranges without rows, cell by cell, for `run_range`; if a budget is used up, only gaps are filled.

    Gaps are left by a killed run that worked out of order: once filled, the tasks done are the first of the list.
    """
    materials: dict[tuple[str, ...], Shared] = {}
    for state in states:
        cell = state.cell
        begun = max(state.tasks.tolist(), default=-1)
        if cell.bound(banks).bank_hash != cell.bank_hash:
            raise PlanError(
                f"the bank {cell.bank!r} is not the one this run was started with: its content hash differs; give that "
                "bank, or start another run"
            )
        if state.done < state.wanted:
            refuse_another_file(cell.method, cell.method_hash)
        key = (cell.bank, cell.split, cell.support_bank)
        if key not in materials:
            materials[key] = Shared(Material.of(cell, banks), Material.in_memory)
        for indices in remaining(cell, state.tasks):
            if state.over_budget and indices[0] > begun:
                state.wanted = state.done
                break
            yield cell, materials[key], indices, device
