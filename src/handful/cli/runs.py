"""Runs of the benchmark: start or continue one, draw its progress, and say how to go on after an interruption."""

from __future__ import annotations

import shlex
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from handful.cli.options import HERE, executor_at, refuse
from handful.cli.task_options import named_place
from handful.cli.terminal import Interrupted
from handful.errors import OptionError

if TYPE_CHECKING:
    from handful.fewshot.benchmark.completion import CellProgress
    from handful.fewshot.benchmark.journal import Journal
    from handful.fewshot.benchmark.plan import Banks, Plan


def carry_out(
    context: typer.Context, given: Mapping[str, Any], ask: Callable[[], tuple[dict[str, str], Banks, Plan | None]]
) -> Journal:
    """Start or continue the run in a folder, as the options of `bench run` and `bench tune` say.

    `ask` returns the paths of the banks, the banks and the plan; None if the run continues with its own.
    """
    from handful.fewshot.benchmark.completion import complete, progress, refuse_a_mix
    from handful.fewshot.benchmark.journal import PLAN_FILE, Journal
    from handful.machine.outputs import refuse_overwriting

    out, on, workers = Path(given["out"]), given.get("on", HERE), given.get("workers", 1)
    resume, mix_versions = given.get("resume", False), given.get("mix_versions", False)
    if not resume:
        refuse(context, ("--mix-versions",), "a new run has no rows of other versions")
    executor = executor_at(on, workers, {"--workers": workers != 1}, join=False)
    in_files = [method for method in given.get("method", ()) if ".py:" in method]
    if in_files and on != HERE:
        raise OptionError(f"a cluster needs methods in a package; leave out --on, or install {', '.join(in_files)}")
    refuse_overwriting(_read(given, in_files), {"run": out})
    begun, there = False, (out / PLAN_FILE).exists()
    try:
        places, banks, cells = ask()
        absolute = {name: str(Path(place).absolute()) for name, place in places.items()}
        go_on = resume and there
        journal = Journal(out) if cells is None or go_on else Journal.create(out, cells, absolute)
        with journal.writing():
            if go_on and cells is not None:
                if not mix_versions:
                    refuse_a_mix(journal, cells)  # before its plan is changed
                journal.extend(cells, absolute)
            begun = True
            with bars(progress(journal)) as on_progress:
                complete(journal, banks, executor, mix_versions=mix_versions, on_progress=on_progress)
    except KeyboardInterrupt:
        if not (begun or (not there and (out / PLAN_FILE).exists())):
            raise Interrupted("interrupted before anything was changed; run the same command again") from None
        command = ["handful", "bench", str(context.command.name), "--resume", "--out", str(out)]
        command += [*(["--on", on] if on != HERE else []), *(["--workers", str(workers)] if workers > 1 else [])]
        command += ["--mix-versions"] if mix_versions else []
        again = "the same command and --resume" if in_files else shlex.join(command)
        raise Interrupted(f"interrupted; rows that were written are kept. Continue with: {again}") from None
    return journal


def end_with_failures(journal: Journal) -> None:
    """Exit with 1 if there is something to try again, or a cell without a single answer."""
    from handful.fewshot.benchmark.completion import progress

    if any(state.done < state.wanted or 0 < state.failed == state.done for state in progress(journal)):
        raise typer.Exit(1)


def _read(given: Mapping[str, Any], in_files: Sequence[str]) -> dict[str, str | Path | None]:
    """Return the paths that a run reads, by what a message calls them: plan, banks, and methods in files."""
    from handful.fewshot.benchmark.journal import banks_at

    banks = [*given.get("bank", ()), *([given["support_bank"]] if "support_bank" in given else [])]
    files = {f"method {name}": name.rpartition(":")[0] for name in in_files}
    return {"plan": given.get("plan"), **banks_at(dict(map(named_place, banks))), **files}


@contextmanager
def bars(states: Sequence[CellProgress]) -> Iterator[Callable[[CellProgress], None]]:
    """Show the progress of the run and of the current cell, with rate and time left, or a line now and then."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, ProgressColumn, Task, TextColumn
    from rich.text import Text

    from handful.cli.terminal import now_and_then
    from handful.fewshot.benchmark.completion import time_left

    class Rate(ProgressColumn):
        """Tasks per second, over the period that the bar averages; nothing before there is a rate."""

        def render(self, task: Task) -> Text:
            speed = task.finished_speed or task.speed
            return Text("" if speed is None else f"{speed:.3g} tasks/s")

    console = Console(stderr=True)
    current = {state.cell.content_hash: state for state in states}
    begun, spent_before = time.monotonic(), sum(state.cpu_seconds for state in states)

    def totals() -> tuple[int, int]:
        return sum(state.done for state in current.values()), sum(state.wanted for state in current.values())

    if not console.is_terminal:
        with now_and_then("running") as news:

            def tell(state: CellProgress) -> None:
                current[state.cell.content_hash] = state
                cell = f"{state.cell.method} on {state.cell.bank} {state.done} of {state.wanted} tasks"
                news("{}, all cells {} of {}".format(cell, *totals()))

            yield tell
        return
    left_column = TextColumn("{task.fields[left]}")
    columns = TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), Rate(), left_column
    with Progress(*columns, console=console, speed_estimate_period=30) as drawn:
        overall = drawn.add_task("all cells", completed=totals()[0], left="")
        one, shown = drawn.add_task("", left=""), ""

        def report(state: CellProgress) -> None:
            nonlocal shown
            key = state.cell.content_hash
            if key != shown:
                words = f"{state.cell.method} on {state.cell.bank}"
                drawn.reset(one, description=words, completed=current[key].done, total=state.wanted)
                shown = key
            current[key] = state
            everything = list(current.values())
            spent = sum(state.cpu_seconds for state in everything) - spent_before
            pace = (time.monotonic() - begun) / spent if spent > 0 else 0.0
            left = [time_said(*time_left(of), pace) if pace else "" for of in ([state], everything)]
            drawn.update(one, completed=state.done, total=state.wanted, left=left[0])
            done, wanted = totals()
            drawn.update(overall, completed=done, total=wanted, left=left[1])

        yield report


def time_said(cpu_seconds: float, unknown_cells: int, pace: float) -> str:
    """Format what `time_left` returned, at `pace` seconds of wall time per second of processor time.

    Examples
    --------
    >>> time_said(90.0, 0, 0.5), time_said(90.0, 2, 0.5)
    ('0:00:45 left', '0:00:45 left and 2 cells not timed yet')
    """
    known = f"{timedelta(seconds=round(cpu_seconds * pace))} left"
    cells = "cell" if unknown_cells == 1 else "cells"
    return known + (f" and {unknown_cells} {cells} not timed yet" if unknown_cells else "")
