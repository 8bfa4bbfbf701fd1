"""One thread per shard: sums then have a fixed order, and the same shard has the same bytes on any machine."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache

from threadpoolctl import ThreadpoolController, threadpool_limits


@contextmanager
def one_thread() -> Iterator[None]:
    """Run the products of NumPy on one thread, and torch if it is loaded; then on as many as before."""
    torch = sys.modules.get("torch")
    before = torch.get_num_threads() if torch else 1
    with _libraries(len(sys.modules)).limit(limits=1, user_api="blas"):
        if torch:
            torch.set_num_threads(1)
        try:
            yield
        finally:
            if torch:
                torch.set_num_threads(before)


@lru_cache(maxsize=1)
def _libraries(n_modules: int) -> ThreadpoolController:
    """Find the libraries that have threads, again when modules were imported: it takes milliseconds."""
    del n_modules
    return ThreadpoolController()


def only_one_thread() -> None:
    """Run this process on one thread from now on."""
    if torch := sys.modules.get("torch"):
        torch.set_num_threads(1)
    threadpool_limits(1, "blas")


def available_cores() -> int:
    """Cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
