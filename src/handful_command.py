"""`handful` from its first moment on: what its console script calls.

To import `handful` is to import torch, which takes seconds, and Ctrl-C within them would end in a traceback from inside
some library. So this stands outside the package: it can answer before the package is there.
"""

from __future__ import annotations

import os
import signal
import sys
from contextlib import suppress
from types import FrameType


def main() -> int:
    """Import the commands, then run one of them; return the exit code."""
    before = signal.getsignal(signal.SIGINT)
    if before is signal.default_int_handler:  # whoever started this may have it ignored
        signal.signal(signal.SIGINT, _too_early)
    from handful.cli.main import INTERRUPTED, make_app
    from handful.cli.main import main as run

    with suppress(ModuleNotFoundError):  # which `run` answers with what to install
        make_app()
    signal.signal(signal.SIGINT, before)
    code = run()
    if code == INTERRUPTED:
        # Threads may still be at work on what nobody wants any more; an ordinary exit would wait for them.
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)
    return code


def _too_early(_number: int, _frame: FrameType | None) -> None:
    """Say so and end at once: an exception would be caught and reworded by whatever is being imported."""
    sys.stderr.write("handful: interrupted before anything was changed; give the same command again\n")
    sys.stderr.flush()
    os._exit(130)
