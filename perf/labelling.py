"""CPU time of labelling and fitting against the bare product `points @ weights.T`, one thread, beside what we aim at.

    python perf/labelling.py [--only NAME ...] [--out perf/results/labelling.json]

Catalogues have five examples per class and 384 dimensions; items are Gaussian about their class, five classes in each
batch or group. Labelling is `BatchClassifier.infer` for one batch of 75 items, diagnostics included, and `predict` for
20,000 items in one batch or in groups of ten, and for 10,000 groups of three. The product is that of the same items and
the head's weights, in blocks of 4,096 rows. Both take turns, and a figure is the smallest of the turns: other programs
disturb the rest. Fitting is that of 1,152 classes with three examples each in 950 dimensions, with all that labelling
needs.
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from handful.estimators import BatchClassifier
from handful.fitted import FittedModel
from handful.machine.threads import one_thread

DIM, SHOTS, PRESENT, BLOCK = 384, 5, 5, 4096
# Classes, groups, items of each, turns; aims: µs per item and times the product.
CASES: dict[str, tuple[int, int, int, int, float | None, float | None]] = {
    "one batch of 75, K = 150": (150, 1, 75, 41, None, 25.0),
    "one batch of 75, K = 1,000": (1_000, 1, 75, 41, None, 8.0),
    "one batch of 75, K = 5,000": (5_000, 1, 75, 21, None, 3.0),
    "20,000 items, K = 150": (150, 1, 20_000, 7, 25.0, 20.0),
    "groups of ten, K = 150": (150, 2_000, 10, 5, 60.0, None),
    "10,000 groups of three, K = 150": (150, 10_000, 3, 2, 5e6 / 30_000, None),
}
FIT, FIT_AIM = "fit 1,152 x 950", 15.0


def made(n_classes: int, dim: int, shots: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Centres of classes, examples and their classes."""
    rng = np.random.default_rng(0)
    centres = 0.35 * rng.standard_normal((n_classes, dim), dtype=np.float32)
    codes = np.arange(n_classes).repeat(shots)
    return centres, centres[codes] + 0.3 * rng.standard_normal((len(codes), dim), dtype=np.float32), codes


def seconds(function: Callable[[], object]) -> float:
    """CPU time of one call."""
    start = time.process_time()
    function()
    return time.process_time() - start


def labelled(n_classes: int, n_groups: int, size: int, turns: int) -> tuple[float, float]:
    """CPU µs per item, and the ratio to the product."""
    centres, examples, codes = made(n_classes, DIM, SHOTS)
    rng = np.random.default_rng(1)
    present = rng.integers(0, n_classes, (n_groups, PRESENT))
    group_of = np.arange(n_groups).repeat(size)
    truth = present[group_of, rng.integers(0, PRESENT, len(group_of))]
    rows = centres[truth] + 0.3 * rng.standard_normal((len(truth), DIM), dtype=np.float32)
    classifier = BatchClassifier().fit(examples, codes)
    classifier.infer(rows[:75])  # fits the head
    catalogue = FittedModel.of(examples, codes)
    points, weights = catalogue.points(rows), catalogue.head.weights

    def label() -> None:
        if n_groups == 1 and size < BLOCK:
            classifier.infer(rows)
        else:
            classifier.predict(rows, None if n_groups == 1 else group_of)

    def product() -> None:
        for first in range(0, len(points), BLOCK):
            points[first : first + BLOCK] @ weights.T

    product()
    spent = [(seconds(label), seconds(product)) for _ in range(turns)]
    mine, bare = (min(each) for each in zip(*spent, strict=True))
    return 1e6 * mine / len(rows), mine / bare


def fitted() -> float:
    """CPU seconds."""
    _, examples, codes = made(1_152, 950, 3)
    return seconds(lambda: FittedModel.of(examples, codes).reference.unknown_model)


def main() -> None:
    """Measure and print; with --out also write the figures down."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", action="append", help="cases whose name contains this")
    parser.add_argument("--out", type=Path, help="JSON file to write")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")  # what the diagnostics say about synthetic batches
    rows: list[dict[str, Any]] = []
    with one_thread():
        for name, (*case, most_us, most_ratio) in CASES.items():
            if all(part in name for part in arguments.only or ()):
                us, ratio = labelled(*case)
                rows.append({"case": name, "us": us, "us_aim": most_us, "ratio": ratio, "ratio_aim": most_ratio})
                aims = (
                    f"aims {'-' if most_us is None else f'{most_us:.0f}'}, {'-' if most_ratio is None else most_ratio}"
                )
                print(f"{name:32} {us:8.1f} µs per item, {ratio:6.1f} times the product; {aims}", flush=True)
        if all(part in FIT for part in arguments.only or ()):
            spent = fitted()
            rows.append({"case": FIT, "s": spent, "s_aim": FIT_AIM})
            print(f"{FIT:32} {spent:8.1f} s; aim {FIT_AIM}")
    if arguments.out is not None:
        arguments.out.write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
