"""Readers of strangers' files, tried in one process that may not take much memory or processor time.

Each case is a name and what it does to a folder; it must end in one of handful's own errors.
"""

from __future__ import annotations

import math
import multiprocessing
import os
import time
import traceback
import warnings
from collections.abc import Callable, Mapping
from pathlib import Path

from handful.errors import HandfulError

MOST_BYTES, MOST_SECONDS = 2 * 2**30, 10.0
# Longest wait for an answer, in seconds: only a reader that hangs takes so long, on any machine.
PATIENCE = 300


def outcomes(cases: Mapping[str, Callable[[Path], object]], folder: Path) -> dict[str, str]:
    """What became of each case: `refused`, `returned`, or what else was raised; `died` for all after a crash."""
    receiver, sender = multiprocessing.Pipe(duplex=False)
    child = multiprocessing.get_context("fork").Process(target=_try, args=(cases, folder, sender))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # newer Pythons warn of forks beside threads
        child.start()
    sender.close()
    found: dict[str, str] = {}
    try:
        while receiver.poll(PATIENCE):
            name, outcome = receiver.recv()
            found[name] = outcome
    except EOFError:
        pass
    child.join(5)
    if child.is_alive():
        child.kill()
    return {name: found.get(name, f"died, exit code {child.exitcode}") for name in cases}


def grown(read: Callable[[Path], object], file: Path) -> tuple[str, float]:
    """What became of reading a file in a process of its own, and by how many megabytes that process grew."""
    receiver, sender = multiprocessing.Pipe(duplex=False)
    child = multiprocessing.get_context("fork").Process(target=_measure, args=(read, file, sender))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # newer Pythons warn of forks beside threads
        child.start()
    sender.close()
    try:
        found: tuple[str, float] = receiver.recv() if receiver.poll(PATIENCE) else ("hung", math.inf)
    except EOFError:
        found = ("died", math.inf)
    child.kill()
    child.join()
    return found


def _measure(read: Callable[[Path], object], file: Path, sender: object) -> None:
    import resource  # Windows has none

    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    try:
        outcome = f"returned {read(file)!r}"
    except HandfulError as error:
        outcome = f"refused: {error}"
    except BaseException as error:
        outcome = f"{type(error).__name__}: {error}"
    after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    sender.send((outcome[:500], (after - before) / 1024))  # type: ignore[attr-defined]
    os._exit(0)


def _try(cases: Mapping[str, Callable[[Path], object]], folder: Path, sender: object) -> None:
    import resource

    sizes = Path("/proc/self/statm")
    if sizes.exists():  # elsewhere than on Linux only the time is limited
        used = int(sizes.read_text(encoding="utf-8").split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (used + MOST_BYTES, used + MOST_BYTES))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    for number, (name, case) in enumerate(cases.items()):
        place = folder / str(number)
        place.mkdir()
        begun = time.process_time()
        try:
            outcome = f"returned {case(place)!r}"
        except HandfulError:
            outcome = "refused"
        except BaseException as error:
            where = traceback.extract_tb(error.__traceback__)[-1]
            outcome = f"{type(error).__name__}: {error} at {where.filename}:{where.lineno}"
        if time.process_time() - begun > MOST_SECONDS:
            outcome += f", after {time.process_time() - begun:.0f} s"
        sender.send((name, outcome[:500]))  # type: ignore[attr-defined]
    os._exit(0)
