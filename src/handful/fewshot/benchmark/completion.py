"""complete: subtract what the journal has from what the plan wants, give the rest to an executor, write the rows."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from handful.errors import PlanError
from handful.fewshot.benchmark.journal import Journal, remaining
from handful.fewshot.benchmark.method_file import refuse_another_file
from handful.fewshot.benchmark.plan import Banks, Cell, Plan
from handful.fewshot.benchmark.run import MACHINE, Material, Row, lost_range, run_range
from handful.fewshot.benchmark.versions import changes_since, code_version, versions_text
from handful.machine.executors import Executor, Shared, in_process

# Rows are written when this many wait, or when the oldest has waited this long; a kill loses no more than that.
WAITING_ROWS, WAITING_SECONDS = 4096, 5.0


@dataclass
class CellProgress:
    """How far a cell is."""

    cell: Cell
    done: int  # tasks that need not be tried again
    failed: int  # those of them that the method failed on
    wanted: int  # tasks to be done; equals `done` once the budget is used up
    cpu_seconds: float
    machine_failed: int = 0  # tasks that the machine failed on, when last tried; a resumed run tries them again

    @property
    def timed(self) -> int:
        """Number of tasks that have a time; failures have none."""
        return self.done - self.failed

    @property
    def over_budget(self) -> bool:
        """Whether no further tasks will be started."""
        return self.cell.cpu_budget is not None and self.cpu_seconds >= self.cell.cpu_budget


def progress(journal: Journal) -> list[CellProgress]:
    """How far each cell of a run is, in the order of the plan."""
    return [state for state, _, _ in _states(journal.plan, journal.columns())]


def time_left(states: Sequence[CellProgress]) -> tuple[float, int]:
    """Return the processor seconds left, `Σ (wanted - done) · seconds per task`, and the cells without an estimate.

    The cost of a task differs by a factor of 1,000 among methods. It is taken from the tasks of each cell or, if it has
    not begun, from other cells of its method; a budget bounds the rest of its cell.

    Examples
    --------
    >>> from handful.fewshot import ShotsPerClass, TaskSpec, UniformOverPool
    >>> spec = TaskSpec(ShotsPerClass(5), UniformOverPool(k_eff=5))
    >>> quick, slow = (Cell("clinc150", spec, method) for method in ("paddle", "tim"))
    >>> time_left([CellProgress(quick, 1000, 0, 1000, 5.0), CellProgress(slow, 10, 0, 1000, 30.0)])
    (2970.0, 0)
    """
    spent: dict[str, tuple[float, int]] = {}
    for state in states:
        seconds, tasks = spent.get(state.cell.method, (0.0, 0))
        spent[state.cell.method] = seconds + state.cpu_seconds, tasks + state.timed
    total, unknown = 0.0, 0
    for state in states:
        left = max(0, state.wanted - state.done)
        seconds, tasks = (state.cpu_seconds, state.timed) if state.timed else spent[state.cell.method]
        if left and not tasks:
            unknown += 1
        elif left:
            needed = left * seconds / tasks
            budget = state.cell.cpu_budget
            total += needed if budget is None else min(needed, max(0.0, budget - state.cpu_seconds))
    return total, unknown


def complete(
    journal: Journal,
    banks: Banks,
    executor: Executor | None = None,
    *,
    mix_versions: bool = False,
    on_progress: Callable[[CellProgress], None] | None = None,
) -> None:
    """Run what is left of a run.

    A task that the machine failed on (memory, disk, a dead worker) is tried again; its row then says how often it was
    tried. A task that the method failed on keeps its row.

    Parameters
    ----------
    journal : Journal
        The run; its plan must be bound to these banks.
    banks : Mapping[str, FeatureBank]
        Banks by the names that the plan uses.
    executor : callable, optional
        `in_process(...)` of `handful.machine.executors`, the default, or its `on_ray(...)`.
    mix_versions : bool
        Continue even if existing rows were made by other versions, or by other code of a method that has tasks left.
        Otherwise that is a `PlanError`.
    on_progress : callable, optional
        Called with a cell's progress whenever rows of it come in.

    Examples
    --------
    >>> import tempfile
    >>> from handful.fewshot import ShotsPerClass, TaskSpec, UniformOverPool
    >>> from handful.fewshot.benchmark.plan import bound_plan
    >>> from handful.datasets import load_clinc150
    >>> banks = {"clinc150": load_clinc150()}
    >>> cell = Cell("clinc150", TaskSpec(ShotsPerClass(5), UniformOverPool(k_eff=5)), "nearest_prototype", n_tasks=3)
    >>> journal = Journal.create(tempfile.mkdtemp() + "/run", bound_plan([cell], banks))
    >>> complete(journal, banks)
    >>> [(state.done, state.wanted) for state in progress(journal)]
    [(3, 3)]
    """
    with journal.writing():
        if not mix_versions:
            refuse_a_mix(journal, journal.plan)
        states = list(_states(journal.plan, journal.columns()))
        for one, done, _ in states:
            if len(done) < one.wanted:
                refuse_another_file(one.cell.method, one.cell.method_hash)
        by_cell = {state.cell.content_hash: (state, attempts) for state, _, attempts in states}
        waiting: list[Row] = []
        oldest = time.monotonic()
        try:
            for rows in (executor or in_process())(run_range, _ranges(states, banks), lost_range):
                if not waiting:
                    oldest = time.monotonic()
                state, attempts = by_cell[rows[0]["cell"]]
                if not mix_versions:
                    _refuse_others(rows)
                for row in rows:
                    row["attempts"] = 1 + attempts.get(row["task"], 0)
                _count(state, rows, attempts)
                waiting += rows
                if len(waiting) >= WAITING_ROWS or time.monotonic() - oldest >= WAITING_SECONDS:
                    # Cleared first: if this is interrupted after the shard was written, it must not be written again.
                    full, waiting = waiting, []
                    journal.append(full)
                if on_progress is not None:
                    on_progress(state)
        finally:
            journal.append(waiting)


def refuse_a_mix(journal: Journal, plan: Plan) -> None:
    """Refuse to add rows of this plan to those of other versions; if nothing is left to do, none are added."""
    rows = journal.columns()
    left = [state.cell.method for state, done, _ in _states(plan, rows) if len(done) < state.wanted]
    mine = np.isin(rows["cell"].astype(str), [cell.content_hash for cell in plan])
    if left and (changes := changes_since({name: values[mine] for name, values in rows.items()}, left)):
        raise PlanError(
            f"continuing {journal.folder} would mix rows of different versions: {'; '.join(changes)}. Continue with "
            "the versions it was made with, start another run, or allow it with --mix-versions (mix_versions=True)"
        )


class _State(NamedTuple):
    """A cell's progress, its finished tasks, and how often each task that the machine failed on was tried."""

    progress: CellProgress
    done: np.ndarray
    attempts: dict[int, int]


def _states(plan: Plan, columns: dict[str, np.ndarray]) -> Iterator[_State]:
    by_machine = columns["failed_by"] == MACHINE
    failed = np.array([error is not None for error in columns["error"]], dtype=bool)
    for cell in plan:
        mine = columns["cell"] == cell.content_hash
        again = mine & by_machine
        done = columns["task"][mine & ~by_machine]
        attempts = dict(zip(columns["task"][again].tolist(), columns["attempts"][again].tolist(), strict=True))
        spent = float(np.nansum(columns["cpu_seconds"][mine]))
        n_failed = int((failed & mine & ~by_machine).sum())
        state = CellProgress(cell, len(done), n_failed, cell.n_tasks, spent, len(attempts))
        if state.over_budget and (len(done) == 0 or int(done.max()) == len(done) - 1):
            state.wanted = len(done)
        yield _State(state, done, attempts)


def _count(state: CellProgress, rows: list[Row], attempts: dict[int, int]) -> None:
    """Add rows to a cell's progress; tasks in `attempts` were failures of the machine before."""
    by_machine = sum(row["failed_by"] == MACHINE for row in rows)
    state.done += len(rows) - by_machine
    state.failed += sum(row["error"] is not None for row in rows) - by_machine
    state.machine_failed += by_machine - sum(row["task"] in attempts for row in rows)
    state.cpu_seconds += sum(row["cpu_seconds"] or 0.0 for row in rows)


def _refuse_others(rows: list[Row]) -> None:
    """Refuse rows that a remote worker made with other versions than this process has."""
    made, here = (rows[0]["versions"], rows[0]["code"]), (versions_text(), code_version(rows[0]["method"]))
    if made != here:
        raise PlanError(
            f"a worker has other versions than this process: {made[0]} and code {made[1]} there, {here[0]} and code "
            f"{here[1]} here; install the same on all machines, or allow it with --mix-versions (mix_versions=True)"
        )


def _ranges(states: list[_State], banks: Banks) -> Iterator[tuple[Any, ...]]:
    """Yield ranges without rows, cell by cell, for `run_range`; if a budget is used up, only gaps are filled.

    Gaps are left by a killed run that worked out of order: once filled, the tasks done are the first of the list.
    """
    materials: dict[tuple[str, ...], Shared] = {}
    for state, done, attempts in states:
        cell = state.cell
        if cell.bound(banks).bank_hash != cell.bank_hash:
            raise PlanError(
                f"the bank {cell.bank!r} is not the one this run was started with: its content hash differs; give that "
                "bank, or start another run"
            )
        key = (cell.bank, cell.split, cell.support_bank)
        if key not in materials:
            materials[key] = Shared(Material.of(cell, banks), Material.in_memory)
        begun = max([*done.tolist(), *attempts], default=-1)
        for indices in remaining(cell, done):
            if state.over_budget and indices[0] > begun:
                state.wanted = state.done
                break
            yield cell, materials[key], indices
