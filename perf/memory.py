"""The peak memory of a chunk of PADDLE, compared with the formula in docs/performance.md.

    python perf/memory.py [--out perf/results/memory.json]

Every tensor that torch makes while one chunk is solved is counted as long as it exists, in bytes of its storage. The
bank and the row numbers are not counted. The count depends neither on the allocator nor on the rest of the machine.
"""

from __future__ import annotations

import argparse
import json
import weakref
from pathlib import Path
from typing import Any
from unittest.mock import patch

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

import handful
from handful.inference import frame, working_set
from handful.methods import METHODS
from handful.numerics import groups
from paddle import N_QUERY
from price_of_induction import Case, synthetic_bank

SHAPES = ((20, 5, 1000), (160, 5, 380), (160, 20, 100), (227, 10, 280))  # classes, shots, tasks in the chunk


class LiveBytes(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Sums the storages of all tensors that are alive, after every call into torch, and keeps the largest sum."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.peak = 0
        self.alive: weakref.WeakValueDictionary[int, torch.Tensor] = weakref.WeakValueDictionary()

    def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Call the function, and count what is alive after it."""
        result = function(*args, **(kwargs or {}))
        self.alive.update({id(x): x for x in tree_leaves(result) if isinstance(x, torch.Tensor)})
        storages = {s.data_ptr(): s.nbytes() for s in (x.untyped_storage() for x in list(self.alive.values()))}
        self.peak = max(self.peak, sum(storages.values()))
        return result


def formula(n_tasks: int, block: int, classes: int, width: float, dim: int) -> float:
    """Bytes of float32: the larger of what stands while the last block is begun, and of what stands afterwards.

    `4 max( T (|Q|² + |Q|K + 2|Q|w) + B ((2K + |Q|) d + 12|Q|K),  T (2.5|Q|² + 2|Q|K + 7|Q|w) )`, w columns per task.
    """
    of_block = (2 * classes + N_QUERY) * dim + 12 * N_QUERY * classes
    begun = n_tasks * (N_QUERY**2 + N_QUERY * classes + 2 * N_QUERY * width) + block * of_block
    after = n_tasks * (2.5 * N_QUERY**2 + 2 * N_QUERY * classes + 7 * N_QUERY * width)
    return 4.0 * max(begun, after)


def mean_width(task: handful.TaskBatch) -> float:
    """Columns left per task when the tasks of all blocks continue together."""
    widths: list[int] = []
    joined = groups.joined

    def noted(blocks: Any, restrict: Any) -> Any:
        found = joined(blocks, restrict)
        widths.extend(state.dual.shape[-1] for rows, _, state in found for _ in rows)
        return found

    with patch.object(working_set, "joined", noted):
        METHODS["paddle"].solve(task, METHODS["paddle"].make_options(max_iter=working_set.FIRST_ITERATIONS + 1))
    return sum(widths) / len(widths)


def main() -> None:
    """Print one line per shape."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, help="JSON file to write")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    rows = []
    for classes, shots, n_tasks in SHAPES:
        case = Case("synthetic", synthetic_bank(classes, shots), shots, n_tasks)
        task, _ = handful.gather(case.bank, case.drawn())
        block = next(iter(frame.Frame(task).blocks())).task.n_tasks
        with LiveBytes() as counted:
            METHODS["paddle"].solve(task, METHODS["paddle"].make_options())
        width = mean_width(task)
        expected = formula(n_tasks, block, classes, width, case.bank.dim)
        row = {
            "classes": classes,
            "shots": shots,
            "tasks": n_tasks,
            "block": block,
            "width": round(width, 1),
            "counted_mb": round(counted.peak / 1e6, 1),
            "formula_mb": round(expected / 1e6, 1),
        }
        rows.append(row)
        print(row, f"formula / counted = {expected / counted.peak:.2f}", flush=True)
    if arguments.out:
        arguments.out.parent.mkdir(parents=True, exist_ok=True)
        arguments.out.write_text(json.dumps({"rows": rows}, indent=1) + "\n")


if __name__ == "__main__":
    main()
