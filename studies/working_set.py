"""Whether leaving classes out changes an answer: PADDLE with its working set against the iteration over all classes.

    python studies/working_set.py BANK ... [--tasks 500] [--out studies/results/working_set.json]

A bank is a folder of features.npy, labels.npy and classes.json. Tasks with all classes, five shots, five classes in a
query of 75 and the published transform are solved both ways at the default tolerance. Double precision is used so that
differences come from the working set and not from rounding: in single precision, rounding alone changes slow tasks of
some banks by more. Prints a table in Markdown and writes the same figures as JSON.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import numpy as np
import torch

import handful
from handful.methods import METHODS

SHOTS, PRESENT, N_QUERY, AT_ONCE = 5, 5, 75, 50
CLOSE = 1e-4


def tasks_of(folder: Path, indices: range) -> handful.TaskBatch:
    """Draw tasks from a bank and transform them as published, in double precision."""
    names = [str(name) for name in json.loads((folder / "classes.json").read_text())]
    features = np.load(folder / "features.npy", mmap_mode="r")
    bank = handful.FeatureBank.from_arrays(features, np.load(folder / "labels.npy"), names)
    query = handful.UniformOverPool(k_eff=PRESENT)
    spec = handful.TaskSpec(handful.ShotsPerClass(SHOTS), query, n_query=N_QUERY)
    task, _ = handful.gather(bank, handful.draw(bank.labels, spec, seed=0, indices=indices))
    task = handful.transform(METHODS["paddle"].transform, task)
    return task.with_features(task.support.double(), task.query.double())


def compared(folder: Path, n_tasks: int) -> dict[str, Any]:
    """Count what differs on that many tasks of a bank."""
    different, far, worst, solved_again, classes = 0, 0, 0.0, 0, 0
    for start in range(0, n_tasks, AT_ONCE):
        task = tasks_of(folder, range(start, min(start + AT_ONCE, n_tasks)))
        ours = handful.solve("paddle", task)
        full = handful.solve("paddle", task, working_set=False)
        distance = (ours.log_assignments.exp() - full.log_assignments.exp()).abs().amax((1, 2))
        different += int((ours.predictions != full.predictions).sum())
        far += int((distance > CLOSE).sum())
        worst = max(worst, float(distance.max()))
        # An answer over all classes gives none of them exactly nothing.
        solved_again += int((ours.proportions > 0).all(-1).sum())
        classes = task.n_classes
    return {
        "bank": folder.name,
        "classes": classes,
        "tasks": n_tasks,
        "queries": n_tasks * N_QUERY,
        "queries_labelled_otherwise": different,
        "tasks_further_than_1e-4": far,
        "largest_difference": worst,
        "tasks_solved_again": solved_again,
    }


def main() -> None:
    """Print the table, and write it if a file was given."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("banks", nargs="+", type=Path)
    parser.add_argument("--tasks", type=int, default=500)
    parser.add_argument("--out", type=Path, help="JSON file to write")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    titles = ("bank", "classes", "tasks", "queries labelled otherwise", "tasks beyond 1e-4", "largest difference")
    print(f"| {' | '.join(titles)} | solved again |")
    print("|---|---|---|---|---|---|---|")
    rows = []
    for folder in arguments.banks:
        row = compared(folder, arguments.tasks)
        rows.append(row)
        print(
            f"| {row['bank']} | {row['classes']} | {row['tasks']} | {row['queries_labelled_otherwise']} of "
            f"{row['queries']} | {row['tasks_further_than_1e-4']} | {row['largest_difference']:.1e} | "
            f"{row['tasks_solved_again']} |",
            flush=True,
        )
        if arguments.out:
            arguments.out.parent.mkdir(parents=True, exist_ok=True)
            arguments.out.write_text(json.dumps({"rows": rows}, indent=1) + "\n")


if __name__ == "__main__":
    main()
