"""Processes that may be killed."""

from __future__ import annotations

import multiprocessing
from multiprocessing import forkserver

# A server that has imported everything, and started no thread, forks the processes to be killed.
PROCESSES = multiprocessing.get_context("forkserver")


def start_server(*modules: str) -> None:
    """Start the server, with these modules too, unless it runs: from the root of the repository, where tests are."""
    PROCESSES.set_forkserver_preload(["tests.kills_at_hand", "tests.killed_commands", "pyarrow.parquet", *modules])
    forkserver.ensure_running()


# Longest wait for a process, in seconds.
PATIENCE = 600
