"""CPU seconds per task of twelve methods at the settings of the paper's Table 1, and the hours of a whole comparison.

    python perf/costs.py [--only METHOD ...] [--banks NAME ...] [--reference SRC] [--out perf/results/costs.json]

A setting is a bank of the table (classes and dimension; points are Gaussian, at unit length) and 5, 10 or 20 shots, at
|Q| = 75; a comparison is 10,000 tasks of each, at two values of K_eff, which cost the same: 24 settings. One thread,
the least of three turns, or of one if it is long. Methods that always take the same steps are timed for a few of them,
some tasks together, and extended to all; the others solve whole tasks. With `--reference`, the same is done with the
source tree SRC, for instance that of an earlier commit, turn by turn with this one: on a machine that does other
things, only the ratios hold.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

N_QUERY, K_EFF, N_TASKS, K_EFFS = 75, 5, 10_000, 2
BANKS = {"mini": (20, 512), "tiered": (160, 512), "mini_wrn": (20, 640), "tiered_wrn": (160, 640)}
SHOTS = (5, 10, 20)
# Options where the paper's tables differ from the defaults, and the steps of methods that always take as many.
METHODS: dict[str, tuple[dict[str, Any], int]] = {
    **{"tim": ({}, 2000), "alpha_tim": ({}, 1000), "baseline": ({"head": "prototypes"}, 100), "paddle_gd": ({}, 1000)},
    **{"paddle": ({}, 0), "soft_kmeans": ({}, 0), "prior_em": ({}, 0), "nearest_prototype": ({}, 0)},
    **{"bd_cspn": ({}, 0), "pt_map": ({}, 0), "laplacian_shot": ({}, 0), "ici": ({}, 0)},
}
TIMED_STEPS = (2, 12)
TOGETHER = {20: 16, 160: 2}  # tasks solved in one call, by classes
# Turns, and CPU seconds of a turn beyond which no other follows.
TURNS = 3
LONG_TURN = 4.0


def tasks(n_classes: int, shots: int, dim: int) -> Any:
    """Tasks of Gaussian classes, five of them in each query."""
    import torch

    import handful_fewshot as fewshot

    n_tasks = TOGETHER[n_classes]
    generator = torch.Generator().manual_seed(0)
    centres = 0.2 * torch.randn(n_tasks, n_classes, dim, generator=generator)
    labels = torch.arange(n_classes).repeat_interleave(shots).expand(n_tasks, -1)
    present = torch.randint(K_EFF, (n_tasks, N_QUERY), generator=generator)
    rows = torch.arange(n_tasks).unsqueeze(-1)
    support = centres[rows, labels] + 0.3 * torch.randn(n_tasks, n_classes * shots, dim, generator=generator)
    query = centres[rows, present] + 0.3 * torch.randn(n_tasks, N_QUERY, dim, generator=generator)
    return fewshot.transform("l2", fewshot.TaskBatch(support, labels, query, n_classes))


def cpu_seconds(call: Callable[[], object]) -> float:
    """Processor time of one call."""
    start = time.process_time()
    call()
    return time.process_time() - start


def per_task(method: str, bank: str, shots: int) -> float:
    """CPU seconds of a task in this process, in one turn."""
    import handful_fewshot as fewshot

    options, steps = METHODS[method]
    batch = tasks(BANKS[bank][0], shots, BANKS[bank][1])
    n_tasks = TOGETHER[BANKS[bank][0]]

    def solved(**more: Any) -> float:
        return cpu_seconds(lambda: fewshot.solve(method, batch, **options, **more))

    if not steps:
        return solved() / n_tasks
    few, many = (solved(max_iter=n) for n in TIMED_STEPS)
    each = max(0.0, many - few) / (TIMED_STEPS[1] - TIMED_STEPS[0])
    return (few + (steps - TIMED_STEPS[0]) * each) / n_tasks


def answer() -> None:
    """Time what each line of the input asks for."""
    import torch

    torch.set_num_threads(1)
    for line in sys.stdin:
        print(per_task(*json.loads(line)), flush=True)


def started(source: Path) -> subprocess.Popen[str]:
    """Start a process that times the methods of a source tree."""
    environment = {**os.environ, "PYTHONPATH": str(source), "OMP_NUM_THREADS": "1"}
    command = [sys.executable, __file__, "--answer"]
    return subprocess.Popen(command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def asked(process: subprocess.Popen[str], question: object) -> float:
    """Ask a process for one turn."""
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(json.dumps(question) + "\n")
    process.stdin.flush()
    return float(process.stdout.readline())


def main() -> None:
    """Print a line for each method, and the hours of all; write them with every setting."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", default=list(METHODS))
    parser.add_argument("--banks", nargs="+", default=list(BANKS))
    parser.add_argument("--shots", nargs="+", type=int, default=list(SHOTS))
    parser.add_argument("--reference", type=Path)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--answer", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.answer:
        answer()
        return
    sources = {"now": Path(__file__).parent.parent / "src"}
    if given.reference is not None:
        sources["reference"] = given.reference
    processes = {name: started(source.resolve()) for name, source in sources.items()}
    results: dict[str, Any] = {}
    hours = dict.fromkeys(sources, 0.0)
    for method in given.only:
        settings: dict[str, dict[str, float]] = {}
        for bank in given.banks:
            for shots in given.shots:
                turns: list[dict[str, float]] = []
                while len(turns) < TURNS and not (turns and sum(turns[-1].values()) > LONG_TURN):
                    turns.append({name: asked(process, (method, bank, shots)) for name, process in processes.items()})
                settings[f"{bank}, {shots} shots"] = {name: min(turn[name] for turn in turns) for name in sources}
        total = {name: sum(s[name] for s in settings.values()) * K_EFFS * N_TASKS / 3600 for name in sources}
        hours = {name: hours[name] + total[name] for name in sources}
        results[method] = {"seconds_per_task": settings, "cpu_hours": total}
        ratio = f", {total['reference'] / total['now']:.2f} times" if "reference" in total else ""
        print(f"{method:>17}: {', '.join(f'{name} {value:.1f}' for name, value in total.items())} CPU hours{ratio}")
        for name, seconds in settings.items():
            print(
                f"    {name:>20}: {', '.join(f'{key} {1e3 * value:.1f}' for key, value in seconds.items())} ms a task"
            )
        sys.stdout.flush()
    print(f"all: {', '.join(f'{name} {value:.0f}' for name, value in hours.items())} CPU hours")
    if given.out is not None:
        from measured_by import measured_by

        given.out.write_text(json.dumps(measured_by() | {"methods": results, "cpu_hours": hours}, indent=1) + "\n")


if __name__ == "__main__":
    main()
