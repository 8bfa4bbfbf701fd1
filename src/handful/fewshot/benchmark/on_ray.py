"""Ranges over a Ray cluster: the same function, run remotely, and the same rows for the journal.

Features are put into the object store once, however many cells and ranges use them; nodes need no shared disk. A range
whose workers died on every attempt gets a row for each of its tasks that says so, and the run continues: a failure of
the machine is tried again when the run is resumed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from handful.banks import FeatureBank
from handful.fewshot.benchmark.run import DeadWorkerError, Job, Material, Row, failure, run_range
from handful.machine.ray_cluster import as_completed, connected, remote


def on_ray(address: str | None = None) -> Callable[[Iterable[Job]], Iterator[list[Row]]]:
    """Return an executor that runs ranges as Ray tasks; `address` as in `handful.machine.ray_cluster.connected`."""

    def run(jobs: Iterable[Job]) -> Iterator[list[Row]]:
        with connected(address) as ray:
            stored: dict[int, tuple[Material, Any]] = {}  # the material is kept, so that its id is not reused
            begun: dict[str, Job] = {}  # by name: holding the reference would keep its rows
            submit = remote(ray, run_range)

            def begin(job: Job) -> Any:
                if id(job.material) not in stored:
                    stored[id(job.material)] = job.material, ray.put(in_memory(job.material))
                reference = submit(job.cell, stored[id(job.material)][1], job.indices)
                begun[reference.hex()] = job
                return reference

            def lost(reference: Any, error: Exception) -> list[Row]:
                cell, material, indices = begun[reference.hex()]
                died = DeadWorkerError(str(error).partition("\n")[0])
                return [failure(cell, material, index, died) for index in indices]

            yield from as_completed(ray, map(begin, jobs), lost)

    return run


def in_memory(material: Material) -> Material:
    """Return the same rows as arrays in memory, so that the rows are sent and not the path of their file."""

    def read_into_memory(bank: FeatureBank) -> FeatureBank:
        return FeatureBank.from_arrays(np.array(bank.features), bank.labels, bank.class_names)

    other = material.support_bank
    return replace(
        material, bank=read_into_memory(material.bank), support_bank=None if other is None else read_into_memory(other)
    )
