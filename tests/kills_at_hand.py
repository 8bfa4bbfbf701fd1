"""Processes that may be killed, and how answers of streamed runs are compared."""

from __future__ import annotations

import itertools
import multiprocessing
from multiprocessing import forkserver

import numpy as np

from handful.large import LargeSolution

# A server that has imported everything, and started no thread, forks the processes to be killed.
PROCESSES = multiprocessing.get_context("forkserver")


def start_server(*modules: str) -> None:
    """Start the server, with these modules too, unless it runs: from the root of the repository, where tests are."""
    PROCESSES.set_forkserver_preload(["tests.kills_at_hand", "tests.killed_commands", "pyarrow.parquet", *modules])
    forkserver.ensure_running()


# Longest wait for a process, in seconds.
PATIENCE = 600


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
