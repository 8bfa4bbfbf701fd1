"""Ranges over a Ray cluster: the same function, called elsewhere, and the same rows for the journal.

Features are put into the object store once, whatever the number of cells and ranges that use them; nodes need no disk
in common.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from itertools import islice
from typing import Any

import numpy as np

from handful.benchmark.plan import Cell
from handful.benchmark.run import Job, Material, Row, run_range
from handful.features import FeatureBank
from handful.features.extras import import_extra

# Times a range is tried again when the machine under it goes away. Errors of a task itself are rows.
RETRIES = 5
# Ranges handed out for each core: enough that none waits for the next, few enough that a budget is noticed.
RANGES_PER_CORE = 2


def on_ray(address: str | None = None) -> Callable[[Iterable[Job]], Iterator[list[Row]]]:
    """Return an executor that runs ranges as Ray tasks.

    Parameters
    ----------
    address : str, optional
        The cluster's, or `auto`. By default the one this process is connected to, else a new one on this machine, which
        ends with the run.
    """

    def run(jobs: Iterable[Job]) -> Iterator[list[Row]]:
        ray = import_extra("ray", "ray")
        connected = address is None and ray.is_initialized()
        if not connected:
            local = {} if address else {"include_dashboard": False}
            ray.init(address=address or "local", log_to_driver=False, **local)
        try:
            yield from _run(ray, jobs)
        finally:
            if not connected:
                ray.shutdown()

    return run


def _run(ray: Any, jobs: Iterable[Job]) -> Iterator[list[Row]]:
    stored: dict[int, tuple[Material, Any]] = {}  # the material is kept, so that its id stays its own
    task = ray.remote(run_remotely).options(num_cpus=1, max_retries=RETRIES)
    queue = iter(jobs)
    running: list[Any] = []

    def submit(job: Job) -> Any:
        if id(job.material) not in stored:
            stored[id(job.material)] = job.material, ray.put(in_memory(job.material))
        return task.remote(job.cell, stored[id(job.material)][1], job.indices)

    while True:
        room = RANGES_PER_CORE * max(1, int(ray.cluster_resources().get("CPU", 1))) - len(running)
        running += map(submit, islice(queue, max(0, room)))
        if not running:
            return
        finished, running = ray.wait(running, num_returns=1)
        yield ray.get(finished[0])


def run_remotely(cell: Cell, material: Material, indices: list[int]) -> list[Row]:
    """Run on a worker."""
    return run_range(cell, material, indices)


def in_memory(material: Material) -> Material:
    """Return the same rows as arrays of their own, so that they travel rather than the place of their file."""

    def held(bank: FeatureBank) -> FeatureBank:
        return FeatureBank.from_arrays(np.array(bank.features), bank.labels, bank.class_names)

    other = material.support_bank
    return replace(material, bank=held(material.bank), support_bank=None if other is None else held(other))
