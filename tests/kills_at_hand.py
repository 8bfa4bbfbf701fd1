"""Streamed runs in processes of their own, killed with SIGKILL: at a moment, at a report of progress, after a file."""

from __future__ import annotations

import itertools
import multiprocessing
import os
import signal
import time
from collections.abc import Callable, Generator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from handful.large import LargeSolution, solve
from handful.runs.executors import Executor, connected, in_process, on_ray
from tests.large_at_hand import Problem

# A server that has imported everything, and started no thread, forks the processes to be killed.
PROCESSES = multiprocessing.get_context("forkserver")
PROCESSES.set_forkserver_preload(["tests.kills_at_hand", "pyarrow.parquet"])

# Longest wait for a process, in seconds.
PATIENCE = 600


@dataclass(frozen=True)
class Setting:
    """A problem on disk, and how it is solved."""

    catalogue: str
    queries: str
    workers: int = 1
    arguments: dict[str, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, problem: Problem, place: Path, workers: int = 1, **arguments: Any) -> Setting:
        """Write the problem to a new folder."""
        problem.catalogue.save(place / "catalogue")
        problem.queries.save(place / "queries")
        return cls(str(place / "catalogue"), str(place / "queries"), workers, arguments)

    def solve(
        self, folder: Path, on_progress: Callable[[Any], None] | None = None, executor: Executor | None = None
    ) -> LargeSolution:
        """Begin or resume the run in a folder."""
        executor = executor or in_process(self.workers)
        return solve(self.catalogue, self.queries, folder, executor=executor, on_progress=on_progress, **self.arguments)


def differences(one: LargeSolution, other: LargeSolution) -> list[str]:
    """Names of all that differs by a bit, the folder aside."""
    different = [
        name
        for name, value in vars(one).items()
        if name != "folder" and not np.array_equal(value, getattr(other, name))
    ]
    for part, again in itertools.zip_longest(one.answers(), other.answers(), fillvalue={}):
        different += [
            name for name in {*part, *again} if not np.array_equal(part.get(name), again.get(name), equal_nan=True)
        ]
    return different


def killed_at_report(setting: Setting, folder: Path, number: int) -> bool:
    """Run until a report of progress, and die there; whether there was one."""
    return _ends_by_kill(_drive, setting, folder, number, None)


def killed_after_file(setting: Setting, folder: Path, number: int) -> bool:
    """Run until a file has appeared under its name, and die then; whether there was one."""
    return _ends_by_kill(_drive, setting, folder, None, number)


def killed_after(setting: Setting, folder: Path, seconds: float) -> str | None:
    """Run for so long and be killed; the last stage reported, or None where the run was faster."""
    stage = PROCESSES.RawArray("c", 64)
    began = PROCESSES.Event()
    process = PROCESSES.Process(target=_drive_on, args=(setting, folder, began, stage))
    process.start()
    assert began.wait(PATIENCE)
    time.sleep(seconds)
    process.kill()
    process.join()
    assert process.exitcode in (0, -signal.SIGKILL)
    return None if process.exitcode == 0 else stage.value.decode() or "hash inputs"


def seconds_of(setting: Setting, folder: Path) -> float:
    """Solve in a process of its own, like those that are killed; how long it takes from the call."""
    began, ended = PROCESSES.Event(), PROCESSES.Event()
    process = PROCESSES.Process(target=_drive_on, args=(setting, folder, began, None, ended))
    process.start()
    assert began.wait(PATIENCE)
    start = time.monotonic()
    assert ended.wait(PATIENCE)
    seconds = time.monotonic() - start
    process.join()
    assert process.exitcode == 0
    return seconds


def _ends_by_kill(target: Callable[..., None], *arguments: Any) -> bool:
    process = PROCESSES.Process(target=target, args=arguments)
    process.start()
    process.join()
    assert process.exitcode in (0, -signal.SIGKILL)
    return process.exitcode != 0


def _drive(setting: Setting, folder: Path, at_report: int | None, after_file: int | None) -> None:
    reports, files = itertools.count(1), itertools.count(1)
    replace = os.replace

    def watch(_: Any) -> None:
        if next(reports) == at_report:
            os.kill(os.getpid(), signal.SIGKILL)

    def replaced(*names: Any) -> None:
        replace(*names)
        if next(files) == after_file:
            os.kill(os.getpid(), signal.SIGKILL)

    os.replace = replaced
    os.fsync = lambda _: None  # what is written survives a killed process without it
    setting.solve(folder, watch)


def _drive_on(setting: Setting, folder: Path, began: Any, stage: Any, ended: Any = None) -> None:
    def watch(progress: Any) -> None:
        if stage is not None:
            stage.value = progress.stage.encode()

    began.set()
    setting.solve(folder, watch)
    if ended is not None:
        ended.set()


def drive_on_ray(setting: Setting, folder: Path, address: str, began: Any, ended: Any) -> None:
    """Solve over a cluster, in a process of its own; `began` is set once it is connected."""

    def hire(*work: Any) -> Generator[Any, None, None]:
        with connected(address):
            began.set()
            yield from on_ray()(*work)

    setting.solve(folder, executor=hire)
    ended.set()
