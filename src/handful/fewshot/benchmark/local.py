"""Ranges in this process, one after another or on several threads; each range uses one."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from itertools import islice, starmap

from handful.fewshot.benchmark.run import Job, Row, run_range


def in_process(workers: int = 1) -> Callable[[Iterable[Job]], Iterator[list[Row]]]:
    """Return an executor that runs ranges in this process, `workers` at a time."""

    def run(jobs: Iterable[Job]) -> Iterator[list[Row]]:
        if workers == 1:
            yield from starmap(run_range, jobs)
            return
        queue = iter(jobs)
        running: set[Future[list[Row]]] = set()
        pool = ThreadPoolExecutor(workers)
        try:
            while True:
                # Jobs are taken only when a thread is free, so that a budget is checked before the next range begins.
                running |= {pool.submit(run_range, *job) for job in islice(queue, workers - len(running))}
                if not running:
                    return
                finished, running = wait(running, return_when=FIRST_COMPLETED)
                for future in finished:
                    yield future.result()
        finally:
            # After an interruption, do not wait for ranges whose rows would not be used.
            pool.shutdown(wait=False, cancel_futures=True)

    return run
