"""Ranges over a Ray cluster: the same function, called elsewhere, and the same rows for the journal.

Features are put into the object store once, whatever the number of cells and ranges that use them; nodes need no disk
in common.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from handful.benchmark.plan import Cell
from handful.benchmark.run import Job, Material, Row, run_range
from handful.features import FeatureBank
from handful.features.ray_cluster import as_completed, connected, remote


def on_ray(address: str | None = None) -> Callable[[Iterable[Job]], Iterator[list[Row]]]:
    """Return an executor that runs ranges as Ray tasks; `address` as in `handful.features.ray_cluster.connected`."""

    def run(jobs: Iterable[Job]) -> Iterator[list[Row]]:
        with connected(address) as ray:
            stored: dict[int, tuple[Material, Any]] = {}  # the material is kept, so that its id stays its own
            submit = remote(ray, run_remotely)

            def begin(job: Job) -> Any:
                if id(job.material) not in stored:
                    stored[id(job.material)] = job.material, ray.put(in_memory(job.material))
                return submit(job.cell, stored[id(job.material)][1], job.indices)

            yield from as_completed(ray, map(begin, jobs))

    return run


def run_remotely(cell: Cell, material: Material, indices: list[int]) -> list[Row]:
    """Run on a worker."""
    return run_range(cell, material, indices)


def in_memory(material: Material) -> Material:
    """Return the same rows as arrays of their own, so that they travel rather than the place of their file."""

    def held(bank: FeatureBank) -> FeatureBank:
        return FeatureBank.from_arrays(np.array(bank.features), bank.labels, bank.class_names)

    other = material.support_bank
    return replace(material, bank=held(material.bank), support_bank=None if other is None else held(other))
