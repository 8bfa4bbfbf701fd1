"""How the cost of labelling grows with classes, items, groups and dimensions, beside the bare product.

    python perf/growth.py --out perf/results/growth.json --plot docs/measured/growth.svg
    python perf/growth.py --render perf/results/growth.json --plot docs/measured/growth.svg

One size at a time varies around K = 1,000, 1,000 items, one group, d = 128, two examples per class. A point is CPU time
of `predict` with a fitted catalogue on one thread, the smaller of two; the bare product is `X @ W.T` and its argmax on
the same rows, in blocks. Items and groups grow together along the axis of groups: each has ten items. A line's exponent
is the slope of a straight line through the logarithms of its last three points.
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np

from handful.errors import HandfulWarning
from handful.estimators import BatchClassifier
from handful.machine.threads import one_thread

USUAL = {"classes": 1000, "items": 1000, "groups": 1, "dimensions": 128}
SIZES = {
    "classes": (100, 1000, 10_000, 100_000),
    "items": (10, 100, 1000, 10_000, 100_000),
    "groups": (10, 100, 1000, 10_000),
    "dimensions": (64, 128, 384, 768, 1536),
}
LINES = ("handful", "bare product")
SHOTS, PRESENT, ITEMS_OF_A_GROUP, BLOCK_NUMBERS = 2, 5, 10, 2**22


def milliseconds(classes: int, items: int, groups: int, dimensions: int) -> tuple[float, float]:
    """CPU time of `predict`, and of the bare product."""
    rng = np.random.default_rng(0)
    centres = rng.standard_normal((classes, dimensions), dtype=np.float32)
    examples = centres.repeat(SHOTS, 0) + 0.7 * rng.standard_normal((classes * SHOTS, dimensions), dtype=np.float32)
    n_items = items if groups == 1 else groups * ITEMS_OF_A_GROUP
    group_of = np.arange(n_items) * groups // n_items
    present = rng.integers(0, classes, (groups, PRESENT))
    truth = present[group_of, rng.integers(0, PRESENT, n_items)]
    rows = centres[truth] + 0.7 * rng.standard_normal((n_items, dimensions), dtype=np.float32)
    classifier = BatchClassifier().fit(examples, np.arange(classes).repeat(SHOTS))
    asked = None if groups == 1 else group_of
    classifier.predict(rows[:20])  # fits the head
    times: tuple[list[float], list[float]] = ([], [])
    block = max(1, BLOCK_NUMBERS // classes)
    for _ in range(2):
        start = time.process_time()
        classifier.predict(rows, asked)
        times[0].append(time.process_time() - start)
        start = time.process_time()
        for first in range(0, n_items, block):
            (rows[first : first + block] @ centres.T).argmax(1)
        times[1].append(time.process_time() - start)
    return 1e3 * min(times[0]), 1e3 * min(times[1])


def measured() -> list[dict[str, Any]]:
    """One row for every point."""
    points = []
    for axis, sizes in SIZES.items():
        for size in sizes:
            for line, spent in zip(LINES, milliseconds(**{**USUAL, axis: size}), strict=True):
                points.append({"axis": axis, "size": size, "line": line, "milliseconds": round(spent, 3)})
                print(f"{axis:>10} {size:7,d} {line:>12} {spent:12.2f} ms", flush=True)
    return points


def line_of(points: list[dict[str, Any]], axis: str, line: str) -> list[dict[str, Any]]:
    """Points of one line, by size."""
    return sorted((p for p in points if p["axis"] == axis and p["line"] == line), key=lambda p: int(p["size"]))


def exponent(points: list[dict[str, Any]]) -> float:
    """Slope of ln(time) over ln(size) through the last three points."""
    last = points[-3:]
    return float(np.polyfit(np.log([p["size"] for p in last]), np.log([p["milliseconds"] for p in last]), 1)[0])


def plot(points: list[dict[str, Any]], path: Path) -> None:
    """Draw one panel per size."""
    from handful.machine.extras import import_extra

    pyplot = import_extra("matplotlib.pyplot", "plots")
    figure, panels = pyplot.subplots(2, 2, figsize=(8, 6), sharey=True, layout="constrained")
    titles = {"classes": "classes", "items": "items of one batch", "groups": "groups of ten items", "dimensions": "d"}
    for panel, axis in zip(panels.flat, SIZES, strict=True):
        for name, colour in zip(LINES, ("#c2571a", "#1a6fc2"), strict=True):
            line = line_of(points, axis, name)
            sizes, times = [p["size"] for p in line], [p["milliseconds"] for p in line]
            panel.loglog(sizes, times, "o-", color=colour, ms=4, label=f"{name}, exponent {exponent(line):.2f}")
        panel.set_xlabel(titles[axis])
        panel.grid(visible=True, which="major", alpha=0.3)
        panel.legend(fontsize=8, frameon=False)
    figure.supylabel("CPU ms", fontsize="medium")
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, metadata={"Date": None} if path.suffix == ".svg" else None)


def main() -> None:
    """Measure or read the points, print the exponents, draw the figure."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, help="JSON file to write")
    parser.add_argument("--render", type=Path, help="JSON file of an earlier run, instead of measuring")
    parser.add_argument("--plot", type=Path, help="figure to draw")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore", HandfulWarning)
    if arguments.render:
        points = json.loads(arguments.render.read_text())["points"]
    else:
        with one_thread():
            points = measured()
    for axis in SIZES:
        found = ", ".join(f"{line} {exponent(line_of(points, axis, line)):.2f}" for line in LINES)
        print(f"exponent in {axis}: {found}")
    if arguments.out:
        arguments.out.parent.mkdir(parents=True, exist_ok=True)
        arguments.out.write_text(json.dumps({"usual": USUAL, "points": points}, indent=1) + "\n")
    if arguments.plot:
        plot(points, arguments.plot)


if __name__ == "__main__":
    main()
