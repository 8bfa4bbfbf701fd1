"""Progress of a batch: one bar per pass on a terminal, with the time left; elsewhere a line now and then."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from rich.console import Console
from rich.progress import BarColumn, ProgressColumn, Task, TextColumn
from rich.progress import Progress as Bars
from rich.text import Text

from handful.cli.terminal import duration, now_and_then

if TYPE_CHECKING:
    from handful.runs import Progress

EMBED = "embed"


class Rate(ProgressColumn):
    """Items per second, over the period that the bar averages; nothing before there is a rate."""

    def __init__(self, counted: str) -> None:
        super().__init__()
        self.counted = counted

    def render(self, task: Task) -> Text:
        """Return the rate."""
        speed = task.finished_speed or task.speed
        return Text("" if speed is None else f"{speed:.3g} {self.counted}/s")


@contextmanager
def passes(what: str, console: Console | None = None) -> Iterator[Callable[[Progress], None]]:
    """Say what is being done; once reports come in, show one bar per pass, or a line now and then.

    Parameters
    ----------
    what : str
        What is being done, until the first report.
    console : Console, optional
        Where to write; by default standard error.
    """
    console = console or Console(stderr=True)
    if not console.is_terminal:
        with now_and_then(what) as news:
            yield lambda progress: news(", ".join(filter(None, (progress.stage, _counted(progress), _left(progress)))))
        return
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.fields[counted]}"),
        TextColumn("{task.fields[left]}"),
    )
    with Bars(*columns, console=console) as bars:
        bar, shown = bars.add_task(what, total=None, counted="", left=""), ""

        def report(progress: Progress) -> None:
            nonlocal bar, shown
            if progress.stage != shown:
                finished = bars.tasks[bar].completed
                bars.update(bar, total=max(1, finished), completed=max(1, finished), left="")
                bar, shown = bars.add_task(progress.stage, total=None, counted="", left=""), progress.stage
            counted, left = _counted(progress), _left(progress)
            bars.update(bar, total=progress.total, completed=progress.done, counted=counted, left=left)

        yield report


def _counted(progress: Progress) -> str:
    what = "items" if progress.stage.startswith(EMBED) else "parts"
    return f"{progress.done:,} of {progress.total:,} {what}"


def _left(progress: Progress) -> str:
    return "" if progress.seconds_left is None else f"{duration(progress.seconds_left)} left"
