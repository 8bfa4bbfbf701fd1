"""Compare predictions of calibrated PADDLE by two versions of handful, on the same tasks.

    python studies/same_answers.py write old.npz BANK ...     # in a checkout of the one version
    python studies/same_answers.py write new.npz BANK ...     # in a checkout of the other
    python studies/same_answers.py compare old.npz new.npz

500 tasks per cell, 75 items each: 5 shots, 5 and 20 classes present; with one shot on the first two banks. Everything
used here (`draw`, `gather`, `transform`, `solve`) is public, so the file can be copied into any checkout.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
import torch

import handful

CELLS = ((5, 5), (5, 20))  # shots, classes present
ONE_SHOT = ((1, 5), (1, 20))
N_TASKS, N_QUERY, AT_ONCE, SEED = 500, 75, 50, 17


def predictions(bank: handful.FeatureBank, shots: int, k_eff: int, n_tasks: int) -> tuple[np.ndarray, np.ndarray]:
    """Labels of all items, and the probabilities of these labels."""
    spec = handful.TaskSpec(handful.ShotsPerClass(shots), handful.UniformOverPool(k_eff), n_query=N_QUERY)
    labels, chances = [], []
    for start in range(0, n_tasks, AT_ONCE):
        indices = range(start, min(start + AT_ONCE, n_tasks))
        task, _ = handful.gather(bank, handful.draw(bank.labels, spec, seed=SEED, indices=indices))
        found = handful.solve("calibrated_paddle", handful.transform("l2", task)).log_assignments.max(-1)
        labels.append(found.indices.numpy())
        chances.append(found.values.exp().numpy())
    return np.concatenate(labels).astype(np.int32), np.concatenate(chances).astype(np.float32)


def write(out: Path, banks: list[Path], n_tasks: int) -> None:
    """Solve all cells and keep the answers."""
    kept = {}
    for place, path in enumerate(banks):
        bank = handful.read_bank(path)
        for shots, k_eff in (*CELLS, *(ONE_SHOT if place < 2 else ())):
            labels, chances = predictions(bank, shots, k_eff, n_tasks)
            kept[f"{path.name} {shots} {k_eff}"], kept[f"{path.name} {shots} {k_eff} chance"] = labels, chances
            print(f"{path.name}: {shots} shots, {k_eff} present: {labels.size} items", flush=True)
    np.savez_compressed(out, **kept)  # type: ignore[arg-type]


def compare(first: Path, second: Path) -> None:
    """Print how many labels are equal, and the largest difference in the probability of one."""
    with np.load(first) as a, np.load(second) as b:
        for name in (name for name in a.files if not name.endswith("chance")):
            bank, shots, k_eff = name.rsplit(" ", 2)
            same = a[name] == b[name]
            apart = np.abs(a[f"{name} chance"] - b[f"{name} chance"])[same].max()
            print(
                f"{bank}, {shots} shots, {k_eff} present: {100 * same.mean():.3f} % of {same.size} labels equal, "
                f"probabilities of these within {apart:.1e}"
            )


def main() -> None:
    """Write or compare."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("step", choices=("write", "compare"))
    parser.add_argument("paths", nargs="+", type=Path)
    parser.add_argument("--tasks", type=int, default=N_TASKS)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    if arguments.step == "write":
        write(arguments.paths[0], arguments.paths[1:], arguments.tasks)
    else:
        compare(*arguments.paths)


if __name__ == "__main__":
    main()
