"""What goes where: answers to standard output, progress to standard error.

On a terminal progress is drawn; elsewhere, in a log or a pipe, it is a line now and then.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console, RenderableType

    from handful.runs import Progress

# Seconds before the first line of progress where there is no terminal, and between later ones.
FIRST_LINE, NEXT_LINES = 10.0, 30.0
# Columns where there is no terminal: nothing is wrapped, so that a line of a table stays one line.
UNLIMITED = 10_000
# Stages whose progress is counted in items begin with this.
EMBED = "embed"


class Interrupted(Exception):
    """Ctrl-C was pressed; says how to continue."""


def data(line: str) -> None:
    """Print a line of the answer."""
    sys.stdout.write(line + "\n")


def show(*parts: RenderableType) -> None:
    """Print parts of the answer: on a terminal with emphasis and fitted to its width, elsewhere as plain lines."""
    from rich.console import Console

    terminal = sys.stdout.isatty()
    console = Console(file=sys.stdout, highlight=False, width=None if terminal else UNLIMITED)
    with console.capture() as captured:
        for part in parts:
            console.print(part)
    for line in captured.get().splitlines():
        data(line.rstrip())


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


@contextmanager
def now_and_then(what: str) -> Iterator[Callable[[str], None]]:
    """Write how far the work is to standard error, first after 10 seconds and then every 30.

    Yields what to call with news, such as `3 of 10 parts`; the latest is written.
    """
    begun, ended, latest = time.monotonic(), threading.Event(), ""

    def tell() -> None:
        wait = FIRST_LINE
        while not ended.wait(wait):
            news = f": {latest}" if latest else ""
            sys.stderr.write(f"handful: {what}{news}, {duration(time.monotonic() - begun)} so far\n")
            sys.stderr.flush()
            wait = NEXT_LINES

    def report(news: str) -> None:
        nonlocal latest
        latest = news

    teller = threading.Thread(target=tell, daemon=True)
    teller.start()
    try:
        yield report
    finally:
        ended.set()
        teller.join()


@contextmanager
def waiting(what: str) -> Iterator[None]:
    """Show what is being done while it is done."""
    if not sys.stderr.isatty():
        with now_and_then(what):
            yield
        return
    from rich.console import Console

    with Console(stderr=True).status(what):
        yield


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
    from rich.console import Console
    from rich.progress import BarColumn, TextColumn
    from rich.progress import Progress as Bars

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
