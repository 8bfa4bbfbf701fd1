"""Progress of a run: the current pass, and how long it will still take."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class Progress:
    """One report; given to `on_progress` after every part of a long pass.

    Attributes
    ----------
    stage : str
        Current stage: `decide` (by some of the queries) or `label`; in `handful.many`, `sort`, `label` or `write`; in
        `classify` first `embed the catalogue` and `embed the batch`, if these are images or sentences.
    done, total : int
        Shards finished in this pass, and their total number (in `handful.many`, rows or files; in
        `classify`, items).
    seconds, seconds_left : float, float or None
        Time since the run started or resumed; and an estimate of what this stage will still take.

    Examples
    --------
    >>> Progress("label", done=3, total=10, seconds=6.0, seconds_left=14.0).stage
    'label'
    """

    stage: str
    done: int
    total: int
    seconds: float
    seconds_left: float | None


class Reporter:
    """Keeps the clock, and turns what a run knows into reports."""

    def __init__(self, listener: Callable[[Progress], None] | None) -> None:
        self._listener = listener
        self._start = time.monotonic()

    def part(self, stage: str, done: int, total: int, began: float) -> None:
        """Report a part of a pass that began at `began` (monotonic clock)."""
        if self._listener is not None:
            now = time.monotonic()
            self._listener(Progress(stage, done, total, now - self._start, (now - began) / done * (total - done)))
