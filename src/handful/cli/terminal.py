"""What goes to standard output: answers. Progress goes to standard error, see `handful.progress`."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import RenderableType

# Columns where there is no terminal: nothing is wrapped, so that a line of a table stays one line.
UNLIMITED = 10_000


class Interrupted(Exception):
    """Ctrl-C was pressed; says how to continue."""


def data(line: str) -> None:
    """Print a line of the answer."""
    sys.stdout.write(line + "\n")


def warn(message: Warning | str) -> None:
    """Write a warning as a sentence, without the line of code that it came from."""
    sys.stderr.write(f"warning: {message}\n")


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
