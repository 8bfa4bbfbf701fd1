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
    from rich.console import RenderableType

# Seconds before the first line of progress where there is no terminal, and between later ones.
FIRST_LINE, NEXT_LINES = 10.0, 30.0
# Columns where there is no terminal: nothing is wrapped, so that a line of a table stays one line.
UNLIMITED = 10_000


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
