"""What 10⁹ items would take on a cluster: measured constants, and a simulation of what cannot be run on one machine.

    python perf/plan.py [--rows 1e9] [--gbit 10] [--slow 0.01] [--lost 0.01] [--out perf/results/plan.json]

Measured, in `perf/results`: CPU time per row, its spread over tasks, bytes per row, the main thread's part of
`label_groups` and Ray's time per task. Assumed: the network of a node, the share of tasks that take five times as long,
and the chance that a node is lost within an hour. Simulated with a fixed seed: tasks in the order in which they are
ready, each on the first core that is free; tasks of a lost node are run again, and it is replaced after five minutes.

- *one driver*: `label_groups` by Ray. The driver sorts and writes alone, and its network sends all vectors.
- *a call per node*: every node calls `label_groups` with files that hold its own groups; they never meet.
- *streamed*: `handful.large.solve` by Ray. Nodes read their shards themselves.
"""

from __future__ import annotations

import argparse
import heapq
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from handful.large.solve import SHARD_ROWS
from handful.many.portions import most_rows
from measured_by import measured_by

RESULTS = Path(__file__).parent / "results"
NODE_CORES, SLOWER = 16, 5.0
# Seconds until a lost node is noticed, and until it is replaced.
NOTICED, REPLACED = 30.0, 300.0
CORES = (16, 64, 256, 1024)


@dataclass(frozen=True)
class Use:
    """Measured: CPU µs per row by step, bytes that a worker is sent per row, rows of a task, and their spread."""

    name: str
    label_us: float
    sort_us: float
    cut_us: float
    write_us: float
    sent_bytes: float
    task_rows: int
    spread: Sequence[float]


def result(name: str) -> Any:
    """Read what was measured."""
    return json.loads((RESULTS / f"{name}.json").read_text(encoding="utf-8"))


def groups_of(name: str, file: str, spread: Sequence[float]) -> Use:
    """Read a result of `perf/many.py`."""
    found = result(f"many/{file}")
    ours, rows = found["ours"], found["rows"]
    sort, cut, write = (1e6 * ours["main_thread_s"][stage] / rows for stage in ("sort", "label", "write"))
    return Use(
        name, 1e6 * sum(ours["portions_s"]) / rows, sort, cut, write, 4 * found["dim"], most_rows(found["dim"]), spread
    )


def streamed(name: str, file: str, spread: Sequence[float]) -> Use:
    """Read a result of `perf/large.py`; rows are in half precision."""
    found = result(f"large/{file}")
    label = 1e6 * found["streamed"]["stages"]["label"] / found["q"]
    return Use(name, label, 0.0, 0.0, 0.0, 2 * found["d"], SHARD_ROWS, spread)


def simulated(durations: np.ndarray, ready: np.ndarray, cores: int, lost: float, rng: np.random.Generator) -> float:
    """Return when the last task ends, in seconds; `lost` is the rate per node and second."""
    n_nodes = -(-cores // NODE_CORES)
    losses = rng.exponential(1 / max(lost, 1e-12), (n_nodes, 100)).cumsum(1)
    tasks, free = list(zip(ready.tolist(), durations.tolist(), strict=True)), [(0.0, core) for core in range(cores)]
    heapq.heapify(tasks)
    end = 0.0
    while tasks:
        at, core = heapq.heappop(free)
        since, seconds = heapq.heappop(tasks)
        of_node = losses[core // NODE_CORES]
        start = max(at, since)
        down = of_node[(of_node <= start) & (start < of_node + REPLACED)]
        if len(down):
            start = float(down[-1]) + REPLACED
        stops = float(of_node[np.searchsorted(of_node, start, "right")])
        if start + seconds <= stops:
            end = max(end, start + seconds)
            heapq.heappush(free, (start + seconds, core))
        else:
            heapq.heappush(tasks, (stops + NOTICED, seconds))
            heapq.heappush(free, (stops + REPLACED, core))
    return end


def wall(use: Use, rows: float, cores: int, calls: int, given: argparse.Namespace, task_s: float) -> float:
    """Hours until all rows are labelled, by as many calls at the same time, each with its share of rows and cores."""
    rng, rows, cores = np.random.default_rng(0), rows / calls, cores // calls
    bytes_a_second = given.gbit * 1e9 / 8
    n_tasks = -(-int(rows) // use.task_rows)
    driven, ends = use.sort_us > 0, []
    for _ in range(calls):
        seconds = use.label_us * 1e-6 * use.task_rows * rng.choice(use.spread, n_tasks)
        seconds *= np.where(rng.random(n_tasks) < given.slow, SLOWER, 1.0)
        sent = use.task_rows * use.sent_bytes / bytes_a_second if calls == 1 else 0.0
        # One driver prepares and sends one task after the other; without one, the cores of a node share its network.
        step = max(use.cut_us * 1e-6 * use.task_rows, sent) if driven else 0.0
        seconds += task_s + (0.0 if driven else sent * NODE_CORES)
        ready = use.sort_us * 1e-6 * rows + step * np.arange(1, n_tasks + 1)
        ends.append(simulated(seconds, ready, cores, given.lost / 3600, rng) + use.write_us * 1e-6 * rows)
    return max(ends) / 3600


def main() -> None:
    """Print a table, and write it with all constants."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=float, default=1e9)
    parser.add_argument("--gbit", type=float, default=10.0, help="network of a node, assumed")
    parser.add_argument("--slow", type=float, default=0.01, help="share of tasks that take five times as long, assumed")
    parser.add_argument("--lost", type=float, default=0.01, help="chance that a node is lost in an hour, assumed")
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    task_s = result("ray_overhead")["task"]
    portions = np.array(result("many/10000000")["ours"]["portions_s"])
    portions = portions[portions > np.median(portions) / 2]  # the last portion of a data set is smaller
    spread = (portions / portions.mean()).tolist()
    hundred = groups_of("groups of 100", "10000000", spread)
    ten = groups_of("groups of ten", "groups-of-10", spread)
    batches = [
        streamed(f"one batch, K={k:,}", f"k{k}-q{q}-d32", spread) for k, q in ((1_000, 1_000_000), (100_000, 100_000))
    ]
    ways = [(ten, "a call per node"), (hundred, "a call per node"), (hundred, "one driver")]
    table: list[dict[str, Any]] = []
    for use, how in [*ways, *((batch, "streamed") for batch in batches)]:
        hours = given.rows * (use.label_us + use.sort_us + use.cut_us + use.write_us) / 3.6e9
        calls = {cores: cores // NODE_CORES if how == "a call per node" else 1 for cores in CORES}
        walls = {cores: wall(use, given.rows, cores, calls[cores], given, task_s) for cores in CORES}
        table.append({"use": use.name, "how": how, "core_hours": hours, "wall_hours": walls})
        print(f"{use.name}, {how}: {hours:,.0f} core hours; hours by cores: {walls}")
    if given.out is not None:
        assumed = {name: getattr(given, name) for name in ("rows", "gbit", "slow", "lost")}
        uses = [asdict(use) | {"spread": [min(use.spread), max(use.spread)]} for use in (ten, hundred, *batches)]
        results = measured_by() | {"assumed": assumed, "measured": uses, "ray_task_s": task_s, "simulated": table}
        given.out.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
