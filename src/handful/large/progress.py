"""Progress of a streamed run: the current pass, and how long it will still take."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class Progress:
    """One report; given to `on_progress` after every shard of a long pass and after every iteration.

    Attributes
    ----------
    stage : str
        Current stage: `decide` (by some of the queries) and `label` for roll call; `index` (of a FAISS shortlist),
        `compare` (queries with all classes), `iterate`, `check` (whether a class returns) and `answer` for PADDLE; in
        `handful.many`, `survey`, `split`, `label` or `write`; in `classify` first
        `embed the catalogue` and `embed the batch`, if these are images or sentences.
    iteration : int
        Iterations finished so far; roll call has none.
    done, total : int
        Shards finished in this pass, and their total number (in `handful.many`, rows, portions or files;
        in `classify`, items).
    change : float or None
        Mean move of a prototype, after an iteration of PADDLE.
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
    >>> list(dict.fromkeys(report.stage for report in reports))
    ['decide', 'label']
    """

    stage: str
    iteration: int
    done: int
    total: int
    change: float | None
    seconds: float
    seconds_left: float | None


class Reporter:
    """Keeps the clock, and turns what a run knows into reports."""

    def __init__(self, listener: Callable[[Progress], None] | None) -> None:
        self._listener = listener
        self._start = time.monotonic()
        self._iterations: list[tuple[float, float]] = []  # when, and the change

    def shard(self, stage: str, iteration: int, done: int, total: int, began: float) -> None:
        """Report a shard of a pass that began at `began` (monotonic clock)."""
        now = time.monotonic()
        self._tell(stage, iteration, done, total, None, (now - began) / done * (total - done))

    def iterated(self, stage: str, iteration: int, change: float, tol: float, most_left: int) -> None:
        """Report an iteration; the change is expected to shrink as it did over the last ones."""
        now = time.monotonic()
        self._iterations = [*self._iterations[-4:], (now, change)]
        left = None
        if change <= tol:
            left = 0.0
        elif len(self._iterations) > 1:
            (first, before), steps = self._iterations[0], len(self._iterations) - 1
            each = (now - first) / steps
            rate = math.log(before / change) / steps if change > 0 and before > change else 0.0
            wanted = math.log(change / tol) / rate if rate > 0 and tol > 0 else math.inf
            left = each * min(wanted, most_left)
        self._tell(stage, iteration, 1, 1, change, left)

    def began_again(self) -> None:
        """Forget how fast the last loop converged: a new one begins."""
        self._iterations = []

    def _tell(
        self, stage: str, iteration: int, done: int, total: int, change: float | None, left: float | None
    ) -> None:
        if self._listener is not None:
            seconds = time.monotonic() - self._start
            self._listener(Progress(stage, iteration, done, total, change, seconds, left))
