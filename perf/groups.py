"""Many groups in one table: `infer(X, groups=...)` against a loop of `infer`, one thread.

    python perf/groups.py [--groups 2000] [--rows 20] [--looped 2000] [--out perf/results/groups.json]

2,000 groups in random order against 150 classes of five examples, d = 384. Groups have 1 to 5,000 rows, most of them
few, or a Poisson number of rows with the mean `--rows`. A group has one to twelve classes, and every fifth one also
has items of a class that is missing from the catalogue. The figures are the CPU seconds of the loop divided by those
of one call, and the largest differences in a probability, a chance of being unknown and a presence. With `--looped`,
the loop runs over that many groups, and its time is scaled up to all of them.
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from pathlib import Path

import numpy as np
import torch

from handful.errors import HandfulWarning
from handful.estimators import BatchClassifier

K, DIM, SHOTS, MOST_ROWS, NOISE = 150, 384, 5, 5_000, 1.0


def table(n_groups: int, n_rows: int | None) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return examples, their labels, rows and the group of each row."""
    rng = np.random.default_rng(0)
    centres = rng.normal(size=(K + 20, DIM)).astype(np.float32)
    labels = np.arange(K).repeat(SHOTS)
    sizes = np.minimum(8 / rng.random(n_groups), MOST_ROWS).astype(int).clip(1)
    sizes[:2] = 1, MOST_ROWS
    if n_rows is not None:
        sizes = rng.poisson(n_rows, n_groups).clip(1)
    classes = []
    for group, size in enumerate(sizes):
        of_group = rng.choice(rng.choice(K, rng.integers(1, 13), replace=False), size)
        if group % 5 == 0:
            of_group = np.where(rng.random(size) < 0.3, K + rng.integers(20), of_group)
        classes.append(of_group)
    groups, truth = np.arange(n_groups).repeat(sizes), np.concatenate(classes)
    order = rng.permutation(len(truth))

    def around(codes: np.ndarray) -> np.ndarray:
        rows = centres[codes] + NOISE * rng.standard_normal((len(codes), DIM), dtype=np.float32)
        return np.asarray(rows / np.linalg.norm(rows, axis=1, keepdims=True), dtype=np.float32)

    return around(labels), labels, around(truth[order]), groups[order]


def main() -> None:
    """Measure, print and write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--groups", type=int, default=2_000)
    parser.add_argument("--rows", type=int)
    parser.add_argument("--looped", type=int)
    parser.add_argument("--out", type=Path)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    warnings.simplefilter("ignore", HandfulWarning)
    examples, labels, rows, groups = table(arguments.groups, arguments.rows)
    classifier = BatchClassifier().fit(examples, labels)
    classifier.infer(rows[:75])
    start = time.process_time()
    together = classifier.infer(rows, groups=groups)
    at_once = time.process_time() - start
    differences, loop = np.zeros(3), 0.0
    by_group = np.argsort(groups, kind="stable")
    each = np.split(by_group, np.flatnonzero(np.diff(groups[by_group])) + 1)
    looped = each[: arguments.looped]
    for place, mine in enumerate(looped):
        start = time.process_time()
        one = classifier.infer(rows[mine])
        loop += time.process_time() - start
        pairs = (
            (together.probabilities[mine], one.probabilities),
            (together.unknown[mine], one.unknown),
            (together.presence[place], one.presence),
        )
        differences = np.maximum(differences, [np.abs(a - b).max() for a, b in pairs])
    loop *= len(each) / len(looped)
    found = {
        "groups": arguments.groups,
        "rows": len(rows),
        "opened": int((together.unknown_interval[:, 0] > 0).sum()),
        "cpu_seconds": {"at once": round(at_once, 2), "loop": round(loop, 2)},
        "times_as_fast": round(loop / at_once, 2),
        "largest_difference": dict(zip(("probability", "unknown", "presence"), differences.tolist(), strict=True)),
    }
    print(json.dumps(found, indent=2))
    if arguments.out is not None:
        arguments.out.write_text(json.dumps(found, indent=2) + "\n")


if __name__ == "__main__":
    main()
