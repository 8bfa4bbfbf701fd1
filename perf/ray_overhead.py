"""What Ray costs on one machine, compared with running in process: `python perf/ray_overhead.py`.

Start-up happens once per run, the overhead of a range once per range (up to 64 tasks of a cell). Times are wall times
on a machine whose load is printed with them; ranges are timed several times in turn, and the shortest time counts. The
ranges are those of a run: clinc150, 150 classes, 10 shots, K_eff = 5.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import Any

from handful.datasets import load_clinc150
from handful.fewshot import ShotsPerClass, TaskSpec, UniformOverPool
from handful.fewshot.benchmark import Cell
from handful.fewshot.benchmark.plan import bound_plan
from handful.fewshot.benchmark.run import Material, run_range
from handful.runs.executors import Executor, Shared, connected, in_process, on_ray
from measured_by import measured_by

N_EMPTY, N_RANGES, TASKS_IN_RANGE, REPEATS = 300, 12, 64, 3
SEVERAL = "Ray: an empty task, when several are on their way"
SPEC = TaskSpec(ShotsPerClass(10), UniformOverPool(5))


def nothing(number: int) -> int:
    """Do nothing, elsewhere."""
    return number


def tell(figures: dict[str, Any], what: str, seconds: float, unit: str = "s", more: str = "") -> None:
    """Print a time, and keep it in seconds."""
    figures[what] = seconds
    print(f"{what:<64} {seconds * (1000 if unit == 'ms' else 1):8.2f} {unit}{more}")


@contextmanager
def timed(figures: dict[str, Any], what: str, divided_by: int = 1, unit: str = "s") -> Iterator[None]:
    """Tell the wall time of the block, or its share of one of several."""
    start = time.perf_counter()
    yield
    tell(figures, what, (time.perf_counter() - start) / divided_by, unit)


def ranges(method: str) -> list[tuple[Cell, Shared, range]]:
    """Make the ranges of one cell, as a run would."""
    banks = {"clinc150": load_clinc150()}
    (cell,) = bound_plan([Cell("clinc150", SPEC, method, n_tasks=N_RANGES * TASKS_IN_RANGE)], banks)
    material = Shared(Material.of(cell, banks), Material.in_memory)
    starts = range(0, cell.n_tasks, TASKS_IN_RANGE)
    return [(cell, material, range(start, start + TASKS_IN_RANGE)) for start in starts]


def seconds_a_range(executor: Executor, jobs: list[tuple[Cell, Shared, range]]) -> tuple[float, float]:
    """Wall time of a range, and the processor time that its rows say it took."""
    start = time.perf_counter()
    rows = [row for part in executor(run_range, jobs) for row in part]
    return (time.perf_counter() - start) / len(jobs), sum(row["cpu_seconds"] for row in rows) / len(jobs)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, help="write the figures there, in seconds")
    parser.add_argument("--methods", nargs="*", default=["nearest_prototype", "paddle"], help="of the ranges")
    given = parser.parse_args()
    # Ray's workers give way to everything else on the machine unless told not to; here both sides must have the same.
    os.environ.setdefault("RAY_worker_niceness", str(os.nice(0)))
    cores = os.cpu_count() or 1
    figures: dict[str, Any] = measured_by() | {"cores": cores, "load": os.getloadavg()[0]}
    print(f"load {figures['load']:.1f} on {cores} cores")
    jobs = {method: ranges(method) for method in given.methods}
    start = time.perf_counter()
    with connected() as ray:
        submit = ray.remote(nothing).options(num_cpus=1).remote
        tell(figures, "Ray: start a cluster here", time.perf_counter() - start)
        with timed(figures, "Ray: first task, which starts a worker"):
            ray.get(submit(0))
        warm = ranges("nearest_prototype")[:4]
        with timed(figures, "Ray: first ranges, whose workers import handful and torch"):
            seconds_a_range(on_ray(), warm)
        material = warm[0][1].value
        with timed(figures, f"Ray: put the bank ({material.bank.n_rows:,} rows) into its store"):
            ray.put(material.in_memory())
        alone = []
        for number in range(N_EMPTY):
            begun = time.perf_counter()
            ray.get(submit(number))
            alone.append(time.perf_counter() - begun)
        tell(figures, "Ray: an empty task, there and back (median)", median(alone), "ms")
        with timed(figures, SEVERAL, N_EMPTY, "ms"):
            list(on_ray()(nothing, ((number,) for number in range(N_EMPTY))))
        executors = {
            "in process, 1 thread": in_process(),
            f"in process, {cores} threads": in_process(cores),
            f"Ray, {cores} cores": on_ray(),
        }
        for method, of_method in jobs.items():
            found: dict[str, list[tuple[float, float]]] = {name: [] for name in executors}
            for _ in range(REPEATS):
                for name, executor in executors.items():
                    found[name].append(seconds_a_range(executor, of_method))
            for name, times in found.items():
                wall, cpu = (min(numbers) for numbers in zip(*times, strict=True))
                what = f"{method}, a range of {TASKS_IN_RANGE} tasks, {name}"
                tell(figures, what, wall, "ms", f", {1000 * cpu:.2f} ms of processor time")
        start = time.perf_counter()
    tell(figures, "Ray: end the cluster", time.perf_counter() - start)
    if given.out is not None:
        given.out.write_text(json.dumps(figures, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
