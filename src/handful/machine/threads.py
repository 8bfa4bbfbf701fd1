"""One thread per shard: sums then have a fixed order, and the same shard has the same bytes on any machine."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from threadpoolctl import threadpool_limits


@contextmanager
def one_thread() -> Iterator[None]:
    """Run the products of NumPy on one thread, and torch if it is loaded; then on as many as before."""
    torch = sys.modules.get("torch")
    before = torch.get_num_threads() if torch else 1
    with threadpool_limits(1, "blas"):
        if torch:
            torch.set_num_threads(1)
        try:
            yield
        finally:
            if torch:
                torch.set_num_threads(before)


def only_one_thread() -> None:
    """Run this process on one thread from now on."""
    if torch := sys.modules.get("torch"):
        torch.set_num_threads(1)
    threadpool_limits(1, "blas")


def available_cores() -> int:
    """Cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
