"""Seconds to fit a head by the numbers of classes and examples, and what the cheaper ways cost in accuracy.

    python perf/heads.py [bank ...]

Writes perf/results/heads.json. A head is trained against all classes ("full"), against near classes only ("near"), or
made of class means ("means"); each row says which of these `fit_head` chooses. Times are CPU seconds on one thread for
everything: left-out folds, temperature, and the head itself. The rows are unit vectors of 384 features, drawn around
random centres. A way is null where the size before predicts more than two minutes, or where it would need more
memory than 2 GB. Means are given with a sample of the examples where a catalogue would not keep them all.

Banks are folders with features.npy and labels.npy. For each of them the accuracy of every item labelled alone is
measured with 5 examples of each class, and with 1 to 50 of them, on at most 20 other rows of each class; three draws.
"""

from __future__ import annotations

import json
import math
import resource
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from handful.inference import head as heads
from handful.inference.head import Head, fit_head

DIM, MOST_SECONDS = 384, 120.0
SIZES = [
    (n_classes, shots) for n_classes in (20, 100, 300, 1_000, 3_000, 10_000, 30_000, 100_000) for shots in (1, 5, 20)
]
# Numbers of examples that are drawn at most, those that a catalogue keeps, and weights that are trained at most:
# training remembers twenty times as many.
MOST_NUMBERS, KEPT_NUMBERS, MOST_WEIGHTS = 2**26, 2**23, 2**24
FILE = Path(__file__).resolve().parent / "results" / "heads.json"
WAYS = ("full", "near", "means")


def fitted(way: str, points: Tensor, codes: Tensor, n_classes: int) -> Head:
    """Fit a head in a given way, whatever `fit_head` would choose."""
    limits = {"full": (math.inf, 0.0), "near": (-1, math.inf), "means": (-1, -1)}[way]
    before = heads.FULL_WORK, heads.NEAR_NUMBERS, heads.NEAR_MEANS
    try:
        heads.FULL_WORK, heads.NEAR_NUMBERS, heads.NEAR_MEANS = limits[0], limits[1], limits[1]  # type: ignore[assignment]
        return fit_head(points, codes, n_classes, square_norm=1.0)
    finally:
        heads.FULL_WORK, heads.NEAR_NUMBERS, heads.NEAR_MEANS = before


def chosen(n_points: int, n_classes: int) -> str:
    """Return the way that `fit_head` chooses."""
    training = heads._Training.planned(n_points, n_classes, DIM, 1.0)
    return "means" if training is None else "near" if training.near else "full"


def drawn(n_classes: int, shots: int) -> tuple[Tensor, Tensor]:
    """Draw unit vectors around centres; about as hard to tell apart as sentences."""
    generator = torch.Generator().manual_seed(0)
    codes = torch.arange(n_classes).repeat_interleave(shots)
    points = torch.randn(n_classes, DIM, generator=generator)[codes]
    points += 1.5 * torch.randn(len(codes), DIM, generator=generator)
    return torch.nn.functional.normalize(points, dim=1), codes


def seconds_of(way: str, n_classes: int, shots: int) -> float:
    """Time one way at one size."""
    n_points = n_classes * shots
    if way == "means" and n_points * DIM > KEPT_NUMBERS:
        # Examples of the first classes; the means of the others lie as means of examples do.
        some = KEPT_NUMBERS // (DIM * shots)
        points, codes = drawn(some, shots)
        noise = 1.5 / math.sqrt(shots) * torch.randn(n_classes, DIM, generator=torch.Generator().manual_seed(1))
        means = (torch.randn(n_classes, DIM, generator=torch.Generator().manual_seed(2)) + noise) / math.sqrt(
            3.25 * DIM
        )
        means[:some] = points.view(some, shots, DIM).mean(1)
        start = time.process_time()
        Head.of_means(means, torch.full((n_classes,), float(shots)), points, codes)
    else:
        points, codes = drawn(n_classes, shots)
        start = time.process_time()
        fitted(way, points, codes, n_classes)
    return time.process_time() - start


def seconds() -> list[dict[str, Any]]:
    """Time all ways at all sizes."""
    rows = []
    last: dict[str, tuple[float, float]] = {}  # seconds and cost of the last size that was run
    for n_classes, shots in SIZES:
        n_points = n_classes * shots
        costs = {"full": n_points * n_classes, "near": n_points, "means": n_classes}
        row: dict[str, Any] = {"classes": n_classes, "shots": shots, "chosen": chosen(n_points, n_classes)}
        for way in WAYS:
            spent, cost = last.get(way, (0.0, 1.0))
            drawable = way == "means" or (n_points * DIM <= MOST_NUMBERS and n_classes * DIM <= MOST_WEIGHTS)
            row[way] = None
            if drawable and spent * costs[way] / cost <= MOST_SECONDS:
                row[way] = round(seconds_of(way, n_classes, shots), 2)
                if row[way] > 0.5:
                    last[way] = row[way], costs[way]
        rows.append(row)
        print(row, file=sys.stderr, flush=True)
    return rows


def accuracies(folder: Path) -> list[dict[str, Any]]:
    """Label each item of a bank alone with each kind of head."""
    rows = np.load(folder / "features.npy").astype(np.float32)
    features = torch.nn.functional.normalize(torch.from_numpy(rows), dim=1)
    labels = np.unique(np.load(folder / "labels.npy"), return_inverse=True)[1]
    n_classes, found = int(labels.max()) + 1, []
    for setting in ("5", "1 to 50"):
        scores: dict[str, list[float]] = {way: [] for way in WAYS}
        for seed in range(3):
            rng = np.random.default_rng(seed)
            some, items = [], []
            for k in range(n_classes):
                own = rng.permutation(np.flatnonzero(labels == k))
                shots = 5 if setting == "5" else int(math.exp(rng.uniform(0, math.log(51))))
                shots = min(shots, len(own) - 5)
                some.append(own[:shots])
                items.append(own[shots : shots + 20])
            train, test = np.concatenate(some), np.concatenate(items)
            points, codes = features[train], torch.from_numpy(labels[train])
            centre, truth = points.mean(0), torch.from_numpy(labels[test])
            for way in WAYS:
                head = fitted(way, points - centre, codes, n_classes)
                right = torch.addmm(head.offsets, features[test] - centre, head.weights.T).argmax(1) == truth
                scores[way].append(100 * float(right.double().mean()))
        row = {"bank": folder.name, "classes": n_classes, "shots": setting}
        found.append(row | {way: round(float(np.mean(scores[way])), 1) for way in WAYS})
        print(found[-1], file=sys.stderr, flush=True)
    return found


def main() -> None:
    """Write both tables."""
    torch.set_num_threads(1)
    alone = [row for folder in sys.argv[1:] for row in accuracies(Path(folder))]
    report = {
        "dim": DIM,
        "seconds": seconds(),
        "accuracy": alone,
        "peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024,
    }
    FILE.write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
