"""What goes where: data to standard output, progress to standard error and only if that is a terminal."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager


class Interrupted(Exception):
    """Ctrl-C was pressed; says how to continue."""


def data(line: str) -> None:
    """Print a line of the answer."""
    sys.stdout.write(line + "\n")


@contextmanager
def waiting(what: str) -> Iterator[None]:
    """Show what is being done while it is done."""
    if not sys.stderr.isatty():
        yield
        return
    from rich.console import Console

    with Console(stderr=True).status(what):
        yield
