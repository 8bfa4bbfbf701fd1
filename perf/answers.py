"""CPU time from an answer in a session to new labels and the next request, one thread: the median of 30 answers.

    python perf/answers.py [--items N ...] [--answers N] [--profile] [--out perf/results/answers.json]

150 classes with five examples each, in 384 dimensions; items are Gaussian about their class, of twelve classes, one of
which the catalogue lacks. A person answers what the session asks: classes of the catalogue, or also a new class.

Between answers, the product of two tables of 1,000 x 1,000 numbers is timed: on a machine that others use as well, the
ratio says more than the seconds.
"""

from __future__ import annotations

import argparse
import cProfile
import json
import pstats
import statistics
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np

from handful.estimators import BatchClassifier
from handful.machine.threads import one_thread
from handful.session import Session

CLASSES = 150
DIM = 384
SHOTS = 5
PRESENT = 12
NOISE = 1.6
# Items, and CPU seconds that we aim at.
AIMS = {300: 0.06, 3_000: 0.2, 10_000: None}
SHOWN = 70
# Rows and columns of the product that is timed beside the answers.
PRODUCT = 1_000


def made(n_items: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return examples, their labels, items and theirs; the last class has no examples."""
    rng = np.random.default_rng(0)
    centres = rng.standard_normal((CLASSES + 1, DIM), dtype=np.float32)
    codes = np.arange(CLASSES).repeat(SHOTS)
    examples = centres[codes] + NOISE * rng.standard_normal((len(codes), DIM), dtype=np.float32)
    present = np.append(rng.choice(CLASSES, PRESENT - 1, replace=False), CLASSES)
    truth = present[rng.integers(0, PRESENT, n_items)]
    items = centres[truth] + NOISE * rng.standard_normal((n_items, DIM), dtype=np.float32)
    return examples, codes, items, truth


def seconds_of_product(table: np.ndarray) -> float:
    """Return CPU seconds of one product."""
    start = time.process_time()
    _ = table @ table
    return time.process_time() - start


def answered(n_items: int, n_answers: int, new: bool) -> tuple[list[float], list[float]]:
    """Return the seconds of each answer, and of a product before it; with `new`, a missing class is named first."""
    examples, codes, items, truth = made(n_items)
    session = Session(items, BatchClassifier().fit(examples, codes))
    session.ask()
    spent = list[float]()
    products = list[float]()
    table = np.random.default_rng(0).random((PRODUCT, PRODUCT), dtype=np.float32)
    if new:
        session.answer(int(np.flatnonzero(truth == CLASSES)[0]), CLASSES, new=True)
    while len(spent) < n_answers:
        request = session.ask()
        if request is None:
            break
        item = request.items[0]
        label = int(truth[item])
        if label == CLASSES and not new:
            session.skip(item)  # which labels nothing again, and does not count
            continue
        products.append(seconds_of_product(table))
        start = time.process_time()
        session.answer(item, label)
        session.ask()
        spent.append(time.process_time() - start)
    return spent, products


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--items", type=int, action="append", help="items of the batch")
    parser.add_argument("--answers", type=int, default=30, help="answers")
    parser.add_argument("--profile", action="store_true", help="print where the time goes")
    parser.add_argument("--out", type=Path, help="JSON file to write")
    arguments = parser.parse_args()
    rows: list[dict[str, Any]] = []
    warnings.simplefilter("ignore")  # what is said about synthetic batches
    with one_thread():
        for n_items in arguments.items or AIMS:
            for new in (False, True):
                profile = cProfile.Profile()
                if arguments.profile:
                    profile.enable()
                spent, products = answered(n_items, arguments.answers, new)
                profile.disable()
                kind = "with a new class" if new else "of the catalogue"
                aim = AIMS.get(n_items)
                median = statistics.median(spent)
                ratio = median / statistics.median(products)
                rows.append({"items": n_items, "new": new, "s": median, "ratio": ratio, "aim": aim})
                print(
                    f"{n_items:6,d} items, answers {kind}: {median:.3f} s, at most {max(spent):.3f}, "
                    f"{ratio:.1f} times the product; aim {'-' if aim is None else aim}",
                    flush=True,
                )
                if arguments.profile:
                    pstats.Stats(profile).sort_stats("cumtime").print_stats(SHOWN)
    if arguments.out is not None:
        arguments.out.write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
