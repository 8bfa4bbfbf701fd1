"""Progress of a large batch on the terminal: one bar per pass, with its speed and the time left."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, TextColumn
from rich.progress import Progress as Bars

from handful.cli.rate import Rate
from handful.large import Progress

ITERATE = "iterate"


@contextmanager
def passes(what: str, console: Console | None = None) -> Iterator[Callable[[Progress], None]]:
    """Say what is being done; once reports come in, show one bar per pass. Silent without a terminal.

    Parameters
    ----------
    what : str
        What is being done, until the first report.
    console : Console, optional
        Where to write; by default standard error.
    """
    console = console or Console(stderr=True)
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.fields[counted]}"),
        Rate("parts"),
        TextColumn("{task.fields[left]}"),
    )
    with Bars(*columns, console=console, disable=not console.is_terminal) as bars:
        bar, shown = bars.add_task(what, total=None, counted="", left=""), ""

        def report(progress: Progress) -> None:
            nonlocal bar, shown
            if progress.stage != shown:
                finished = bars.tasks[bar].completed
                bars.update(bar, total=max(1, finished), completed=max(1, finished), left="")
                bar, shown = bars.add_task(progress.stage, total=None, counted="", left=""), progress.stage
            left = "" if progress.seconds_left is None else f"{duration(progress.seconds_left)} left"
            if progress.stage == ITERATE:
                counted = f"{progress.iteration} iterations, change {progress.change:.2g}"
                bars.update(bar, completed=progress.iteration, counted=counted, left=left)
            else:
                counted = f"{progress.done} of {progress.total} parts"
                bars.update(bar, total=progress.total, completed=progress.done, counted=counted, left=left)

        yield report


def duration(seconds: float) -> str:
    """Return a time as hours, minutes and seconds, leaving out leading zeros.

    Examples
    --------
    >>> duration(4), duration(125), duration(7384)
    ('4 s', '2:05 min', '2:03:04 h')
    """
    whole = round(seconds)
    hours, minutes = divmod(whole // 60, 60)
    if hours:
        return f"{hours}:{minutes:02d}:{whole % 60:02d} h"
    return f"{minutes}:{whole % 60:02d} min" if minutes else f"{whole} s"
