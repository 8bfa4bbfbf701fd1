"""Processes that do something to a catalogue, say what was acknowledged, and may be killed."""

from __future__ import annotations

import os
import traceback
import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

Say = Callable[[str], None]


class Ended(NamedTuple):
    """What a process acknowledged, line by line, and how it ended: 0, an error, or minus a signal."""

    lines: list[str]
    code: int


class Child:
    """A forked process that calls `work(say, *arguments)`; what it says is on the way once `say` returns."""

    def __init__(self, work: Callable[..., object], *arguments: Any) -> None:
        self._reader, writer = os.pipe()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # newer Pythons warn of forks beside threads
            self.pid = os.fork()
        if self.pid == 0:
            code = 1
            try:
                work(lambda line: os.write(writer, f"{line}\n".encode()), *arguments)
                code = 0
            except BaseException:
                traceback.print_exc()
            finally:
                os._exit(code)
        os.close(writer)

    def signal(self, number: int) -> None:
        """Send a signal; the process may have ended."""
        os.kill(self.pid, number)

    def heard(self) -> str:
        """Wait for something that the process says, and return it."""
        return os.read(self._reader, 2**16).decode()

    def ended(self, before: str = "") -> Ended:
        """Wait until the process ends."""
        text = before
        while some := os.read(self._reader, 2**20):
            text += some.decode()
        os.close(self._reader)
        _, status = os.waitpid(self.pid, 0)
        return Ended(text.split("\n")[:-1], os.waitstatus_to_exitcode(status))
