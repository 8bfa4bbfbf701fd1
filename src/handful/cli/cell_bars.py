"""Progress of a run of the benchmark, drawn while it is at work."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from handful.fewshot.benchmark.completion import CellProgress


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
