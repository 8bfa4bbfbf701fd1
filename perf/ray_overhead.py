"""What Ray costs on one machine: `python perf/ray_overhead.py [--out perf/results/ray_overhead.json]`.

Start-up happens once per run, the overhead of a task once per shard, portion or range. Times are wall times in seconds,
on a machine whose load is kept with them.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from pathlib import Path
from statistics import median
from typing import Any

from handful.executors.executor import connected, on_ray
from measured_by import measured_by

N_EMPTY = 300


def nothing(number: int) -> int:
    """Do nothing, elsewhere."""
    return number


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, help="write the figures there")
    out = parser.parse_args().out
    # Ray's workers give way to everything else on the machine unless told not to.
    os.environ.setdefault("RAY_worker_niceness", str(os.nice(0)))
    figures: dict[str, Any] = measured_by() | {"cores": os.cpu_count(), "load": os.getloadavg()[0]}
    start = time.perf_counter()
    with connected() as ray:
        submit = ray.remote(nothing).options(num_cpus=1).remote
        figures["start"] = time.perf_counter() - start
        alone = []
        for number in range(N_EMPTY):
            begun = time.perf_counter()
            ray.get(submit(number))
            alone.append(time.perf_counter() - begun)
        figures["first_task"], figures["task_alone"] = alone[0], median(alone)
        start = time.perf_counter()
        list(on_ray()(nothing, ((number,) for number in range(N_EMPTY))))
        figures["task"] = (time.perf_counter() - start) / N_EMPTY
    print(json.dumps(figures, indent=1))
    if out is not None:
        out.write_text(json.dumps(figures, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
