"""Progress of a run: its current stage, and how long that will still take."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class Progress:
    """One report; given to `on_progress` after every part of a long stage.

    Attributes
    ----------
    stage : str
        Current stage: `decide` (by some of the queries) or `label`; in `handful.many`, `sort`, `label` or `write`;
        `embed` in an extraction, and in `classify` `embed the catalogue` and `embed the batch`.
    done, total : int
        What is finished of this stage, and all of it: shards; in `handful.many`, rows or files; items that are
        embedded.
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

    def stage(self, name: str, total: int, done: int = 0) -> Callable[[int], None]:
        """Begin a stage; return what is called with the number of parts that were finished since the last call.

        What an earlier run had `done` counts as done, but not as speed.
        """
        began, made = time.monotonic(), 0

        def report(more: int) -> None:
            nonlocal made
            made += more
            if self._listener is not None:
                now, left = time.monotonic(), total - done - made
                seconds_left = (now - began) / made * left if made else None
                self._listener(Progress(name, done + made, total, now - self._start, seconds_left))

        return report
