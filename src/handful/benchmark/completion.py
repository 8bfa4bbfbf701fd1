"""complete: subtract what the journal has from what the plan wants, hand the rest to an executor, write what comes."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from handful.benchmark.journal import Journal, remaining
from handful.benchmark.local import in_process
from handful.benchmark.plan import Banks, Cell
from handful.benchmark.run import Job, Material, Row
from handful.errors import PlanError

Executor: TypeAlias = Callable[[Iterable[Job]], Iterator[list[Row]]]
# Rows are written when so many wait, or when the oldest has waited so long: all that a kill can cost.
WAITING_ROWS, WAITING_SECONDS = 4096, 5.0


@dataclass
class Progress:
    """How far a cell is.

    Attributes
    ----------
    cell : Cell
        Which.
    done, failed : int
        Tasks that have a row, and those of them that have an error in it.
    wanted : int
        Tasks to be done; falls to `done` when the budget is used up.
    cpu_seconds : float
        Processor time spent on it.
    """

    cell: Cell
    done: int
    failed: int
    wanted: int
    cpu_seconds: float

    @property
    def over_budget(self) -> bool:
        """Whether no further tasks are to be begun."""
        return self.cell.cpu_budget is not None and self.cpu_seconds >= self.cell.cpu_budget


def progress(journal: Journal) -> list[Progress]:
    """How far each cell of a run is, in the order of the plan."""
    return [state for state, _ in _states(journal)]


def complete(
    journal: Journal,
    banks: Banks,
    executor: Executor | None = None,
    *,
    on_progress: Callable[[Progress], None] | None = None,
) -> None:
    """Run what is left of a run.

    Parameters
    ----------
    journal : Journal
        The run; its plan must be bound to these banks.
    banks : Mapping[str, FeatureBank]
        Banks by the names that the plan uses.
    executor : callable, optional
        `handful.benchmark.local.in_process(...)`, the default, or `handful.benchmark.on_ray.on_ray(...)`.
    on_progress : callable, optional
        Called with a cell's progress whenever rows of it come in.

    Examples
    --------
    >>> import tempfile
    >>> from handful import ShotsPerClass, TaskSpec, UniformOverPool
    >>> from handful.benchmark.plan import bound_plan
    >>> from handful.datasets import load_clinc150
    >>> banks = {"clinc150": load_clinc150()}
    >>> cell = Cell("clinc150", TaskSpec(ShotsPerClass(5), UniformOverPool(k_eff=5)), "nearest_prototype", n_tasks=3)
    >>> journal = Journal.create(tempfile.mkdtemp() + "/run", bound_plan([cell], banks))
    >>> complete(journal, banks)
    >>> [(state.done, state.wanted) for state in progress(journal)]
    [(3, 3)]
    """
    with journal.writing():
        states = {state.cell.content_hash: (state, done) for state, done in _states(journal)}
        waiting: list[Row] = []
        oldest = time.monotonic()
        try:
            for rows in (executor or in_process())(_jobs(list(states.values()), banks)):
                if not waiting:
                    oldest = time.monotonic()
                waiting += rows
                state = states[rows[0]["cell"]][0]
                state.done += len(rows)
                state.failed += sum(row["error"] is not None for row in rows)
                state.cpu_seconds += sum(row["cpu_seconds"] or 0.0 for row in rows)
                if len(waiting) >= WAITING_ROWS or time.monotonic() - oldest >= WAITING_SECONDS:
                    journal.append(waiting)
                    waiting = []
                if on_progress is not None:
                    on_progress(state)
        finally:
            journal.append(waiting)


def _states(journal: Journal) -> Iterator[tuple[Progress, np.ndarray]]:
    columns = journal.columns()
    failed = np.array([error is not None for error in columns["error"]], dtype=bool)
    for cell in journal.plan:
        mine = columns["cell"] == cell.content_hash
        done = columns["task"][mine]
        spent = float(np.nansum(columns["cpu_seconds"][mine]))
        state = Progress(cell, len(done), int(failed[mine].sum()), cell.n_tasks, spent)
        if state.over_budget and (len(done) == 0 or int(done.max()) == len(done) - 1):
            state.wanted = len(done)
        yield state, done


def _jobs(states: list[tuple[Progress, np.ndarray]], banks: Banks) -> Iterator[Job]:
    """Ranges without rows, cell by cell; a cell whose budget is used up only gets its gaps filled.

    Gaps are what a killed run had begun out of order: once filled, the tasks done are the first of the list.
    """
    materials: dict[tuple[str, ...], Material] = {}
    for state, done in states:
        cell = state.cell
        if cell.bound(banks).bank_hash != cell.bank_hash:
            raise PlanError(
                f"the bank {cell.bank!r} is not the one this run was started with: its content hash differs; give that "
                "bank, or start another run"
            )
        key = (cell.bank, cell.split, cell.support_bank)
        if key not in materials:
            materials[key] = Material.of(cell, banks)
        begun = int(done.max()) if len(done) else -1
        for indices in remaining(cell, done):
            if state.over_budget and indices[0] > begun:
                state.wanted = state.done
                break
            yield Job(cell, materials[key], indices)
