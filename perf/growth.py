"""How PADDLE's time grows with classes, queries, dimensions and shots, in feature space and in Gram space.

    python perf/growth.py --out perf/results/growth.json --plot docs/measured/growth.svg
    python perf/growth.py --render perf/results/growth.json --plot docs/measured/growth.svg

One size at a time varies around K = 20, |Q| = 75, d = 512, 5 shots. A point is the CPU time per task of `N_ITER`
iterations on one thread, starting from row numbers in a bank, the smallest of a few repeats. A line's exponent is the
slope of a straight line through the logarithms of its last three points. Sizes that would take too long are left out.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch

from handful import fewshot
from handful.fewshot.numerics.geometry import gram_is_cheaper
from handful.fewshot.numerics.lookup import Lookup

N_ITER, REPEATS = 10, 3
USUAL = {"classes": 20, "queries": 75, "dimensions": 512, "shots": 5}
SIZES = {
    "classes": (20, 60, 200, 600, 2000, 6000, 20000),
    "queries": (10, 30, 100, 300, 1000, 3000, 10000),
    "dimensions": (64, 128, 256, 512, 1024, 2048, 4096),
    "shots": (1, 2, 5, 10, 20, 50),
}
GEOMETRIES = ("feature", "gram")
MOST_OPERATIONS = 2e11  # of one call; beyond it a point is left out
BANK_ROWS = 4096


def operations(geometry: str, classes: int, queries: int, dimensions: int, shots: int) -> float:
    """Multiplications and additions of one task."""
    once = classes * shots * dimensions
    if geometry == "feature":
        return once + N_ITER * 4.0 * queries * classes * dimensions
    return once + 2.0 * queries * (queries + classes) * dimensions + N_ITER * 2.0 * queries**2 * classes


def milliseconds(geometry: str, classes: int, queries: int, dimensions: int, shots: int) -> float:
    """CPU time per task."""
    generator = torch.Generator().manual_seed(0)
    spectrum = torch.arange(1, dimensions + 1).float().rsqrt()
    table = 1.4 * spectrum * torch.randn(BANK_ROWS, dimensions, generator=generator)
    n_tasks = int(min(32, max(1, 1e9 / operations(geometry, classes, queries, dimensions, shots))))
    rows = torch.randint(BANK_ROWS, (n_tasks, classes * shots + queries), generator=generator)
    labels = torch.arange(classes).repeat_interleave(shots).expand(n_tasks, -1)
    support, query = Lookup(table, rows[:, : classes * shots]), Lookup(table, rows[:, classes * shots :])
    times = []
    for _ in range(REPEATS):
        start = time.process_time()
        task = fewshot.TaskBatch(support, labels, query, classes, check=False)
        _ = fewshot.solve("paddle", task, max_iter=N_ITER, tol=0.0, geometry=geometry).predictions
        times.append(time.process_time() - start)
    return 1e3 * min(times) / n_tasks


def measured() -> list[dict[str, Any]]:
    """One row for every point."""
    points = []
    for axis, sizes in SIZES.items():
        for size in sizes:
            shape = {**USUAL, axis: size}
            for geometry in GEOMETRIES:
                if operations(geometry, **shape) > MOST_OPERATIONS:
                    continue
                time_taken = round(milliseconds(geometry, **shape), 4)
                points.append({"axis": axis, "size": size, "geometry": geometry, "milliseconds": time_taken})
                print(f"{axis:>10} {size:6d} {geometry:>8} {time_taken:10.3f} ms", flush=True)
    return points


def auto_geometry(axis: str, size: int) -> str:
    """Return what the library chooses by itself there."""
    shape = {**USUAL, axis: size}
    return "gram" if gram_is_cheaper(shape["queries"], shape["classes"], shape["dimensions"], N_ITER) else "feature"


def exponent(points: list[dict[str, Any]]) -> float:
    """Slope of ln(time) over ln(size) through the last three points."""
    last = points[-3:]
    return float(np.polyfit(np.log([p["size"] for p in last]), np.log([p["milliseconds"] for p in last]), 1)[0])


def line_of(points: list[dict[str, Any]], axis: str, geometry: str) -> list[dict[str, Any]]:
    """Points of one line, by size."""
    return sorted((p for p in points if p["axis"] == axis and p["geometry"] == geometry), key=lambda p: int(p["size"]))


def plot(points: list[dict[str, Any]], path: Path) -> None:
    """Draw one panel per size with both geometries; a ring marks the choice of `auto`."""
    from handful.machine.extras import import_extra

    pyplot = import_extra("matplotlib.pyplot", "plots")
    figure, panels = pyplot.subplots(2, 2, figsize=(8, 6), sharey=True, layout="constrained")
    titles = {"classes": "classes K", "queries": "queries |Q|", "dimensions": "dimensions d", "shots": "shots"}
    for panel, axis in zip(panels.flat, SIZES, strict=True):
        for geometry, colour in zip(GEOMETRIES, ("#c2571a", "#1a6fc2"), strict=True):
            line = line_of(points, axis, geometry)
            sizes, times = [p["size"] for p in line], [p["milliseconds"] for p in line]
            panel.loglog(sizes, times, "o-", color=colour, ms=4, label=f"{geometry}, exponent {exponent(line):.2f}")
            ringed = [p for p in line if auto_geometry(axis, p["size"]) == geometry]
            panel.plot(
                [p["size"] for p in ringed], [p["milliseconds"] for p in ringed], "o", ms=9, mfc="none", mec=colour
            )
        panel.set_xlabel(titles[axis])
        panel.grid(visible=True, which="major", alpha=0.3)
        panel.legend(fontsize=8, frameon=False)
    figure.supylabel(f"CPU ms per task, {N_ITER} iterations", fontsize="medium")
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, metadata={"Date": None} if path.suffix == ".svg" else None)


def main() -> None:
    """Measure or read the points, print the exponents, draw the figure."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, help="JSON file to write")
    parser.add_argument("--render", type=Path, help="JSON file of an earlier run, instead of measuring")
    parser.add_argument("--plot", type=Path, help="figure to draw")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    points = json.loads(arguments.render.read_text())["points"] if arguments.render else measured()
    for axis in SIZES:
        found = ", ".join(f"{geometry} {exponent(line_of(points, axis, geometry)):.2f}" for geometry in GEOMETRIES)
        print(f"exponent in {axis}: {found}")
    if arguments.out:
        arguments.out.parent.mkdir(parents=True, exist_ok=True)
        arguments.out.write_text(json.dumps({"iterations": N_ITER, "usual": USUAL, "points": points}, indent=1) + "\n")
    if arguments.plot:
        plot(points, arguments.plot)


if __name__ == "__main__":
    main()
