"""One thread per shard: sums then have a fixed order, and the same shard has the same bytes on any machine."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from threadpoolctl import threadpool_limits


@contextmanager
def one_thread() -> Iterator[None]:
    """Run torch and the products of NumPy on one thread, then on as many as before."""
    before = torch.get_num_threads()
    with threadpool_limits(1, "blas"):
        torch.set_num_threads(1)
        try:
            yield
        finally:
            torch.set_num_threads(before)


def only_one_thread() -> None:
    """Run this process on one thread from now on."""
    torch.set_num_threads(1)
    threadpool_limits(1, "blas")
