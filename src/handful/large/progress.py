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
    >>> import numpy as np
    >>> from tempfile import mkdtemp
    >>> from handful.large import solve
    >>> rng = np.random.default_rng(0)
    >>> centres = rng.normal(size=(30, 16)).astype("float32")
    >>> catalogue = centres.repeat(5, axis=0) + 0.7 * rng.normal(size=(150, 16)), np.arange(30).repeat(5)
    >>> batch = centres[rng.integers(0, 4, 200)] + 0.7 * rng.normal(size=(200, 16))
    >>> reports = []
    >>> _ = solve(catalogue, batch, mkdtemp(), on_progress=reports.append)
    >>> [report.stage for report in reports]
    ['decide', 'label']
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
