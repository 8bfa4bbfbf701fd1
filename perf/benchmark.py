"""Wall time of a run of PADDLE, and where it goes: `python perf/benchmark.py [TASKS]`.

One process, one thread; clinc150 with all 150 classes in the support, 10 shots, K_eff = 5, 75 queries.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Any

from handful.datasets import load_clinc150
from handful_fewshot import ShotsPerClass, TaskSpec, UniformOverPool
from handful_fewshot.benchmark import Cell, Journal, complete, run
from handful_fewshot.benchmark.plan import bound_plan
from handful_fewshot.reports.summary import results

STAGES = ("draw", "gather", "transform", "solve", "score")


def timed(function: Callable[..., Any], name: str, spent: dict[str, float]) -> Callable[..., Any]:
    """Add the processor time of every call to `spent[name]`."""

    @wraps(function)
    def call(*arguments: Any, **options: Any) -> Any:
        start = time.thread_time()
        try:
            return function(*arguments, **options)
        finally:
            spent[name] = spent.get(name, 0.0) + time.thread_time() - start

    return call


def main(n_tasks: int) -> None:
    """Run the tasks and print the shares."""
    spent: dict[str, float] = {}
    for stage in STAGES:
        setattr(run, stage, timed(getattr(run, stage), stage, spent))
    setattr(Journal, "append", timed(Journal.append, "write", spent))  # noqa: B010
    banks = {"clinc150": load_clinc150()}
    cell = Cell("clinc150", TaskSpec(ShotsPerClass(10), UniformOverPool(5)), "paddle", n_tasks=n_tasks)
    with tempfile.TemporaryDirectory() as folder:
        journal = Journal.create(Path(folder) / "run", bound_plan([cell], banks))
        wall, cpu = time.perf_counter(), time.process_time()
        complete(journal, banks)
        wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
        accuracy = results(journal)[0].estimate()
    around = sum(spent[stage] for stage in ("draw", "gather", "score", "write"))
    print(f"{n_tasks} tasks: {wall:.1f} s of wall time, {cpu:.1f} s of processor time")
    print("of it " + ", ".join(f"{stage} {seconds / cpu:.1%}" for stage, seconds in spent.items()))
    print(f"draw, gather, score and write together {around / cpu:.1%}")
    print(f"accuracy {100 * accuracy.mean:.2f} ± {100 * accuracy.half_width:.2f} %")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 10_000)
