"""Runs of the benchmark: start or continue one, draw its progress, and say how to go on after an interruption."""

from __future__ import annotations

import shlex
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from handful.cli.places import HERE
from handful.cli.task_options import named_place
from handful.cli.terminal import Interrupted
from handful.errors import OptionError

if TYPE_CHECKING:
    from handful.fewshot.benchmark.completion import CellProgress
    from handful.fewshot.benchmark.journal import Journal
    from handful.fewshot.benchmark.plan import Banks, Plan
    from handful.machine.executors import Executor


def carry_out(
    reads: Mapping[str, str | Path | None],
    ask: Callable[[], tuple[dict[str, str], Banks, Plan | None]],
    words: Sequence[str],
    out: Path,
    executor: Executor,
    *,
    resume: bool,
    mix_versions: bool,
    same_command: bool = False,
) -> Journal:
    """Start or continue the run in a folder.

    `reads` are what `paths_given` returned. `ask` returns the paths of the banks, the banks and the plan; None if the
    run continues with its own. `words` are the command that continues it after an interruption, unless that must be the
    same command.
    """
    from handful.fewshot.benchmark.completion import complete, progress, refuse_a_mix
    from handful.fewshot.benchmark.journal import PLAN_FILE, Journal
    from handful.machine.outputs import refuse_overwriting

    refuse_overwriting(reads, {"run": out})
    begun, there = False, (out / PLAN_FILE).exists()
    try:
        places, banks, cells = ask()
        go_on = resume and there
        journal = Journal(out) if cells is None or go_on else Journal.create(out, cells, _absolute(places))
        with journal.writing():
            if go_on and cells is not None:
                if not mix_versions:
                    refuse_a_mix(journal, cells)  # before its plan is changed
                journal.extend(cells, _absolute(places))
            begun = True
            with bars(progress(journal)) as on_progress:
                complete(journal, banks, executor, mix_versions=mix_versions, on_progress=on_progress)
    except KeyboardInterrupt:
        command = ["handful", *words[:2], "--resume", "--out", str(out), *words[2:]]
        command += ["--mix-versions"] if mix_versions else []
        again = "the same command and --resume" if same_command else shlex.join(command)
        raise Interrupted(
            f"interrupted; rows that were written are kept. Continue with: {again}"
            if begun or (not there and (out / PLAN_FILE).exists())
            else "interrupted before anything was changed; run the same command again"
        ) from None
    return journal


def end_with_failures(journal: Journal) -> None:
    """Exit with 1 if there is something to try again, or a cell without a single answer."""
    from handful.fewshot.benchmark.completion import progress

    if any(state.machine_failed or 0 < state.failed == state.done for state in progress(journal)):
        raise typer.Exit(1)


def in_files(methods: Sequence[str] | None, on: str) -> bool:
    """Whether some methods are in files; these cannot run on a cluster, and are not found again by their names."""
    found = [method for method in methods or () if ".py:" in method]
    if found and on != HERE:
        raise OptionError(f"a cluster needs methods in a package; leave out --on, or install {', '.join(found)}")
    return bool(found)


def paths_given(
    banks: Sequence[str] | None, methods: Sequence[str] | None, plan: Path | None = None
) -> dict[str, str | Path | None]:
    """Return the paths that a run reads, by what a message calls them: plan, banks, and methods in files."""
    from handful.fewshot.benchmark.journal import banks_at

    files = {f"method {name}": name.rpartition(":")[0] for name in methods or () if ".py:" in name}
    return {"plan": plan, **banks_at(dict(map(named_place, banks or ()))), **files}


def where(on: str, workers: int) -> list[str]:
    """Words of a command that say where it works.

    Examples
    --------
    >>> where("here", 2), where("ray", 1)
    (['--workers', '2'], ['--on', 'ray'])
    """
    return [*(["--on", on] if on != HERE else []), *(["--workers", str(workers)] if workers > 1 else [])]


def _absolute(places: Mapping[str, str]) -> dict[str, str]:
    return {name: str(Path(place).absolute()) for name, place in places.items()}


@contextmanager
def bars(states: Sequence[CellProgress]) -> Iterator[Callable[[CellProgress], None]]:
    """Show the progress of the run and of the current cell, with rate and time left, or a line now and then."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

    from handful.cli.passes import Rate
    from handful.cli.terminal import now_and_then
    from handful.fewshot.benchmark.completion import time_left

    console = Console(stderr=True)
    current = {state.cell.content_hash: state for state in states}
    begun, spent_before = time.monotonic(), sum(state.cpu_seconds for state in states)
    if not console.is_terminal:
        with now_and_then("running") as news:

            def tell(state: CellProgress) -> None:
                current[state.cell.content_hash] = state
                cell = f"{state.cell.method} on {state.cell.bank} {state.done} of {state.wanted} tasks"
                done, wanted = (sum(getattr(one, name) for one in current.values()) for name in ("done", "wanted"))
                news(f"{cell}, all cells {done} of {wanted}")

            yield tell
        return
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        Rate("tasks"),
        TextColumn("{task.fields[left]}"),
    )
    with Progress(*columns, console=console, speed_estimate_period=30) as drawn:
        overall = drawn.add_task("all cells", completed=sum(state.done for state in states), left="")
        one = drawn.add_task("", left="")
        shown = ""

        def report(state: CellProgress) -> None:
            nonlocal shown
            key = state.cell.content_hash
            if key != shown:
                words = f"{state.cell.method} on {state.cell.bank}"
                drawn.reset(one, description=words, completed=current[key].done, total=state.wanted)
                shown = key
            current[key] = state
            spent = sum(state.cpu_seconds for state in current.values()) - spent_before
            pace = (time.monotonic() - begun) / spent if spent > 0 else 0.0

            def left(of: Sequence[CellProgress]) -> str:
                return time_said(*time_left(of), pace) if pace else ""

            everything = list(current.values())
            drawn.update(one, completed=state.done, total=state.wanted, left=left([state]))
            done, wanted = sum(state.done for state in everything), sum(state.wanted for state in everything)
            drawn.update(overall, completed=done, total=wanted, left=left(everything))

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
