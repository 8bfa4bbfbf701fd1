"""`handful` from its first moment on: what its console script calls.

A command imports scikit-learn or torch, which takes seconds, and Ctrl-C within them would end in a traceback from a
library.
So this stands outside the package: it can answer before the package is there, and while a command imports.
"""

from __future__ import annotations

import os
import signal
import sys
from types import FrameType

IMPORTING = ("importlib._bootstrap", "_frozen_importlib")


def main() -> int:
    """Import the commands, then run one of them; return the exit code."""
    before = signal.getsignal(signal.SIGINT)
    answers = before is signal.default_int_handler  # whoever started this may have it ignored
    if answers:
        signal.signal(signal.SIGINT, _too_early)
    from handful.cli.main import INTERRUPTED, make_app
    from handful.cli.main import main as run

    make_app()
    if answers:
        signal.signal(signal.SIGINT, _interrupted)
    try:
        code = run()
    finally:
        signal.signal(signal.SIGINT, before)
    if code == INTERRUPTED:
        # Threads may still work on results that are no longer needed; an ordinary exit would wait for them.
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)
    return code


def _interrupted(number: int, frame: FrameType | None) -> None:
    """Raise KeyboardInterrupt, unless a command is at its imports, with which it begins."""
    if _begins(frame):
        _too_early(number, frame)
    signal.default_int_handler(number, frame)


def _too_early(_number: int, _frame: FrameType | None) -> None:
    """Say so and end at once: an exception would be caught and reworded by whatever is being imported."""
    sys.stderr.write("handful: interrupted before anything was changed; run the same command again\n")
    sys.stderr.flush()
    os._exit(130)


def _begins(frame: FrameType | None) -> bool:
    """Tell whether the outermost import under way was asked for by the function of a command, which typer called."""
    asked_by: FrameType | None = None
    while frame is not None:
        if _module(frame).startswith(IMPORTING):
            asked_by = frame.f_back
        frame = frame.f_back
    if asked_by is None or _module(asked_by).startswith("typer"):
        return False
    return _module(asked_by.f_back).startswith("typer")


def _module(frame: FrameType | None) -> str:
    return "" if frame is None else str(frame.f_globals.get("__name__", ""))
