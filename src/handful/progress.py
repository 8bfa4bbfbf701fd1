"""Progress of long work: reports, and one bar per stage that shows them on a terminal or in a notebook.

Work reports to a listener, `on_progress` of a public function. Without one, reports go to the bars that `bars` has
opened further up, if standard error is a terminal or the code runs in a notebook. In a pipe or a log nothing is shown,
except within `lines`: a benchmark that runs for days says in its log how far it is.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar, copy_context
from dataclasses import dataclass
from html import escape
from importlib import import_module
from typing import Any, Protocol, runtime_checkable

# Seconds after which work is long enough to be shown, and between two pictures of it.
LONG = 1.5
BETWEEN = 0.2
# Seconds between two lines of a log: a run of days has some thousands.
BETWEEN_LINES = 60.0


@dataclass(frozen=True)
class Progress:
    """One report; given to `on_progress` after every part of a long stage.

    Attributes
    ----------
    stage : str
        Current stage: `label`; in a run over partitions `bring groups together` before it; `embed` in an extraction,
        and in `classify` `embed the catalogue` and `embed the batch`.
    done, total : int
        What is finished of this stage, and all of it: items, files or partitions.
    seconds, seconds_left : float, float or None
        Time since the run started or resumed; and an estimate of what this stage will still take.
    unit : str
        What is counted.
    per_second : float or None
        How many of these are finished per second.

    Examples
    --------
    >>> progress = Progress("label", done=300, total=1_000, seconds=6.0, seconds_left=14.0, unit="rows", per_second=50)
    >>> print(progress)
    label: 300 of 1,000 rows, 50 rows/s, 14 s left
    """

    stage: str
    done: int
    total: int
    seconds: float
    seconds_left: float | None
    unit: str = "parts"
    per_second: float | None = None

    def __str__(self) -> str:
        return f"{self.stage}: {', '.join(filter(None, self.said))}"

    @property
    def said(self) -> tuple[str, str, str]:
        """What is done, how fast, and how long it still takes, in words; empty where that is not known."""
        speed = "" if not self.per_second else f"{amount(self.per_second)} {self.unit}/s"
        left = "" if self.seconds_left is None or self.done >= self.total else f"{duration(self.seconds_left)} left"
        return f"{self.done:,} of {self.total:,} {self.unit}", speed, left


Listener = Callable[[Progress], None]
# What draws the reports of all work that has no listener.
_drawing: ContextVar[Listener | None] = ContextVar("drawing", default=None)


class Reporter:
    """Keeps the clock, and turns what a run knows into reports."""

    def __init__(self, listener: Listener | None = None) -> None:
        self._listener = listener or _drawing.get()
        self._start = time.monotonic()

    def stage(self, name: str, total: int, done: int = 0, unit: str = "parts") -> Callable[..., None]:
        """Begin a stage; return what is called with the number of parts that were finished since the last call.

        What an earlier run had `done` counts as done, but not as speed. A second argument is the time that is left in
        seconds, if the caller knows it better than by the mean speed: None if it is not known.
        """
        began = time.monotonic()
        made = 0

        def report(more: int, *seconds_left: float | None) -> None:
            nonlocal made
            made += more
            if self._listener is not None:
                now = time.monotonic()
                left = total - done - made
                each = (now - began) / made if made else None
                still = seconds_left[0] if seconds_left else None if each is None else each * left
                speed = 1 / each if each else None
                self._listener(Progress(name, done + made, total, now - self._start, still, unit, speed))

        return report


@contextmanager
def bars(what: str, listener: Listener | None = None) -> Iterator[Listener]:
    """Yield the listener; without one, what draws a bar per stage, on a terminal or in a notebook, once work is long.

    Inside another `bars` without a listener, that one draws.

    Parameters
    ----------
    what : str
        What is being done, shown until the first report.
    listener : callable, optional
        What the caller asked to be called.

    Examples
    --------
    >>> with bars("count") as listener:  # a pipe: nothing is shown
    ...     report = Reporter(listener).stage("count", 2)
    ...     report(1)
    """
    if listener is not None or (outer := _drawing.get()) is not None:
        yield listener or outer  # type: ignore[misc]
        return
    canvas = _Notebook() if in_notebook() else _Terminal() if sys.stderr.isatty() else None
    if canvas is None:
        yield lambda progress: None
        return
    drawn = _Drawn(what, canvas)
    token = _drawing.set(drawn)
    try:
        yield drawn
    finally:
        _drawing.reset(token)
        drawn.close()


@contextmanager
def lines() -> Iterator[None]:
    """Where there are no bars, write the reports of what is done here to standard error, a line at most every while.

    Examples
    --------
    >>> with lines():
    ...     report = Reporter().stage("count", 2)
    ...     report(1)
    """
    if in_notebook() or sys.stderr.isatty() or _drawing.get() is not None:
        yield
        return
    token = _drawing.set(_Lines())
    try:
        yield
    finally:
        _drawing.reset(token)


class _Lines:
    """Writes the first report after `LONG` seconds, one every `BETWEEN_LINES` seconds, and then the last."""

    def __init__(self) -> None:
        self._next = time.monotonic() + LONG
        self._wrote = False

    def __call__(self, progress: Progress) -> None:
        ended = self._wrote and progress.done >= progress.total
        if ended or time.monotonic() >= self._next:
            sys.stderr.write(f"{progress}\n")
            sys.stderr.flush()
            self._next = time.monotonic() + BETWEEN_LINES
            self._wrote = True


@contextmanager
def silent() -> Iterator[None]:
    """Draw no reports of what is done here: it is a part of a stage that reports itself."""
    token = _drawing.set(lambda progress: None)
    try:
        yield
    finally:
        _drawing.reset(token)


@runtime_checkable
class _Canvas(Protocol):
    """Where bars are drawn."""

    def draw(self, what: str, progress: Progress | None) -> None:
        """Draw the bar of a stage, or one without an end for what has not reported yet."""

    def close(self) -> None:
        """End the drawing."""


class _Drawn:
    """Draws the latest reports, from a thread: first after `LONG` seconds, then every `BETWEEN` seconds."""

    def __init__(self, what: str, canvas: _Canvas) -> None:
        self._what = what
        self._canvas = canvas
        self._new = dict[str, Progress]()
        self._lock = threading.Lock()
        self._ended = threading.Event()
        self._began = time.monotonic()
        self._shows = False
        # A notebook knows by its context which cell an output belongs to.
        self._thread = threading.Thread(target=copy_context().run, args=(self._watch,), daemon=True)
        self._thread.start()

    def __call__(self, progress: Progress) -> None:
        with self._lock:
            self._new[progress.stage] = progress

    def _watch(self) -> None:
        wait = LONG
        while not self._ended.wait(wait):
            self._draw()
            wait = BETWEEN

    def _draw(self) -> None:
        with self._lock:
            new = self._new
            self._new = {}
        if not new and not self._shows:
            self._canvas.draw(self._what, None)
        for progress in new.values():
            self._canvas.draw(progress.stage, progress)
        self._shows = True

    def close(self) -> None:
        self._ended.set()
        self._thread.join()
        if self._shows or time.monotonic() - self._began >= LONG:
            self._draw()
            self._canvas.close()


class _Terminal:
    """Bars of rich on standard error."""

    def __init__(self) -> None:
        self._bars: Any = None
        self._tasks = dict[str, Any]()

    def draw(self, what: str, progress: Progress | None) -> None:
        if self._bars is None:
            self._bars = _rich_bars()
            self._bars.start()
        if progress is not None and None in map(self._total, self._tasks.values()):
            self._bars.remove_task(self._tasks.popitem()[1])  # what was shown until the first report
        if what not in self._tasks:
            self._tasks[what] = self._bars.add_task(what, total=None, counted="", speed="", left="")
        if progress is not None:
            about = dict(zip(("counted", "speed", "left"), progress.said, strict=True))
            self._bars.update(self._tasks[what], total=progress.total, completed=progress.done, **about)

    def _total(self, task: Any) -> Any:
        return next(one.total for one in self._bars.tasks if one.id == task)

    def close(self) -> None:
        if self._bars is not None:
            for what, task in self._tasks.items():
                if self._total(task) is None:
                    self._bars.update(task, total=1, completed=1, left="", description=what)
            self._bars.stop()


def _rich_bars() -> Any:
    from rich.console import Console
    from rich.progress import BarColumn, SpinnerColumn, TextColumn
    from rich.progress import Progress as Bars

    console = Console(stderr=True)
    spinner, finished = ("dots", "✓") if console.encoding.startswith("utf") else ("line", "*")
    fields = (TextColumn(f"{{task.fields[{name}]}}", justify="right") for name in ("counted", "speed", "left"))
    return Bars(
        SpinnerColumn(spinner, finished_text=finished),
        TextColumn("{task.description}"),
        BarColumn(bar_width=24),
        *fields,
        console=console,
    )


class _Notebook:
    """Bars of HTML below a cell, which are taken away in the end: they say nothing about the result."""

    def __init__(self) -> None:
        self._rows = dict[str, str]()
        self._handle: Any = None

    def draw(self, what: str, progress: Progress | None) -> None:
        bar = "<progress></progress>"
        if progress is not None:
            bar = f"<progress value='{progress.done}' max='{max(1, progress.total)}'></progress>"
            self._rows = {stage: row for stage, row in self._rows.items() if "value=" in row}
        said = "" if progress is None else ", ".join(filter(None, progress.said))
        self._rows[what] = f"<div>{escape(what)} {bar} {escape(said)}</div>"
        self._show("".join(self._rows.values()))

    def _show(self, html: str) -> None:
        shell = import_module("IPython.display")
        if self._handle is None:
            self._handle = shell.display(shell.HTML(html), display_id=True)
        else:
            self._handle.update(shell.HTML(html))

    def close(self) -> None:
        if self._handle is not None:
            self._show("")


def in_notebook() -> bool:
    """Whether the code runs in a cell of a notebook."""
    shell = sys.modules.get("IPython")
    return shell is not None and hasattr(shell.get_ipython(), "kernel")


def amount(number: float) -> str:
    """Return a number with two digits, or all before the point.

    Examples
    --------
    >>> amount(0.0123), amount(4.56), amount(1234.5)
    ('0.012', '4.6', '1,234')
    """
    return f"{number:,.0f}" if number >= 10 else f"{number:.2g}"


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
