"""A page that is open before its batch is: photographs are embedded meanwhile, and new ones appear.

A thread of its own brings the batch. The page shows what came so far, and asks as soon as it can ask well: ten sheets
are enough to find groups in, as a kind with one of 24 photographs then fills a row. It asks about all when twice as
many are there, and so on, and in the end. After that the thread looks into the folder now and then, while somebody has
the page open, and brings what is new.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Protocol

from handful.progress import Listener, Progress
from handful.review.batch_review import BatchReview
from handful.review.server import Page
from handful.session.requests import SHEET_SIZE

# Items that have vectors when the page asks for the first time: ten sheets. [items; convention]
FIRST_ASKED = 10 * SHEET_SIZE
# More items that have vectors, by this factor, and the page asks about them, too. [factor; work]
GROWTH = 2
# Seconds between two looks into the folder, and how many times as long as a look takes. [s; convention] [factor; work]
SECONDS = 3.0
TIMES_A_LOOK = 20.0
# Seconds after which a page that has not asked for its number is closed. [s; convention]
GONE = 15.0


class BatchSource(Protocol):
    """Where a batch comes from."""

    def bring(self, on_progress: Listener) -> Sequence[str]:
        """Bring what is there now; return what a person should be told, nothing if nothing is new."""

    def n_ready(self) -> int:
        """Return how many items have vectors."""

    def opened(self, notes: Sequence[str]) -> BatchReview:
        """Return the review of what has vectors."""

    def is_watched(self) -> bool:
        """Whether more may come."""

    def close(self) -> None:
        """Close what was opened."""


class Watching:
    """Brings the batch of a page, and what comes later.

    Parameters
    ----------
    page : Page
        The page, which shows what has come.
    source : BatchSource
        Where the batch comes from.
    on_progress : callable
        Called with a `handful.progress.Progress` while something is embedded.
    """

    def __init__(self, page: Page, source: BatchSource, on_progress: Listener = lambda progress: None) -> None:
        self.page = page
        self.source = source
        self._on_progress = on_progress
        self._stopped = threading.Event()
        self._opened = threading.Event()
        self._failed: list[BaseException] = []
        self._notes: list[str] = []
        self._next = FIRST_ASKED
        self._thread = threading.Thread(target=self._run, daemon=True)

    def start(self, seconds: float, tell: Callable[[str], None] = lambda note: None) -> None:
        """Begin, and wait as long as this for the first state; raise what went wrong by then."""
        self._thread.start()
        self._opened.wait(seconds)
        self.check(tell)

    def check(self, tell: Callable[[str], None]) -> None:
        """Raise what went wrong, and tell what a person should know."""
        if self._failed and not self.page.is_open:
            raise self._failed[0]
        while self._notes:
            tell(self._notes.pop(0))

    def stop(self) -> None:
        """End it; what is being embedded is not waited for."""
        self._stopped.set()
        self._thread.join(timeout=SECONDS)

    def _run(self) -> None:
        try:
            self._show(self.source.bring(self._progress))
            while self._look():
                pass
        except BaseException as error:  # the main thread raises it
            self._failed.append(error)
        finally:
            self._opened.set()
            with suppress(Exception):
                self.source.close()

    def _look(self) -> bool:
        """Wait, and bring what is new; False if it is over."""
        took = 0.0
        if not self.source.is_watched():
            return False
        while not self._stopped.wait(max(SECONDS, TIMES_A_LOOK * took)):
            if time.monotonic() - self.page.asked_at > GONE:
                continue
            begun = time.monotonic()
            try:
                notes = self.source.bring(self._progress)
                if notes:
                    self._show(notes)
            except Exception as error:  # a folder that is gone for a while must not end a review
                self.page.failed(str(error))
            took = time.monotonic() - begun
        return False

    def _progress(self, progress: Progress) -> None:
        if self._stopped.is_set():
            raise KeyboardInterrupt
        self._on_progress(progress)
        self.page.opening = progress
        if progress.done == 0 and not self.page.is_open and self.source.n_ready() >= FIRST_ASKED:
            self._show([])
        elif progress.done >= self._next and progress.done < progress.total:
            self._next = GROWTH * progress.done
            self._show([])

    def _show(self, notes: Sequence[str]) -> None:
        self._notes += notes
        self.page.show(self.source.opened(notes))
        self._opened.set()
