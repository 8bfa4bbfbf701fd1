"""CPU time of fitting a catalogue, one thread: the head, and what it tells about unknown items.

    python perf/fits.py [--only NAME ...] [--out perf/results/fits.json]

Centres of classes are Gaussian, examples lie about them with as much noise, rows are compared at unit length.
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np

from handful.fitted import FittedModel
from handful.machine.threads import one_thread

NOISE = 1.0
# Classes, examples of each, dimensions, seconds that we aim at.
CASES: dict[str, tuple[int, int, int, float]] = {
    "1,000 classes x 5 x 128": (1_000, 5, 128, 4.0),
    "10,000 classes x 5 x 128": (10_000, 5, 128, 12.0),
    "10,000 classes x 2 x 128": (10_000, 2, 128, 12.0),
}


def examples_of(n_classes: int, shots: int, dim: int) -> tuple[np.ndarray, np.ndarray]:
    """Return examples and their classes."""
    rng = np.random.default_rng(0)
    centres = rng.standard_normal((n_classes, dim), dtype=np.float32)
    codes = np.arange(n_classes).repeat(shots)
    return centres[codes] + NOISE * rng.standard_normal((len(codes), dim), dtype=np.float32), codes


def spent(n_classes: int, shots: int, dim: int) -> tuple[float, float]:
    """Return CPU seconds of the head and of what it tells about unknown items."""
    catalogue = FittedModel.of(*examples_of(n_classes, shots, dim), transform="l2")
    start = time.process_time()
    _ = catalogue.head
    fitted = time.process_time()
    _ = catalogue.unknown_model
    return fitted - start, time.process_time() - fitted


def main() -> None:
    """Measure and print; with --out also write the figures down."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", action="append", help="cases whose name contains this")
    parser.add_argument("--out", type=Path, help="JSON file to write")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")  # what is said about synthetic classes
    rows: list[dict[str, Any]] = []
    with one_thread():
        for name, (n_classes, shots, dim, aim) in CASES.items():
            if all(part in name for part in arguments.only or ()):
                head, unknown = spent(n_classes, shots, dim)
                rows.append({"case": name, "head": head, "unknown": unknown, "aim": aim})
                print(f"{name:26} {head + unknown:6.1f} s, of which the head {head:6.1f}; aim {aim:.0f}", flush=True)
    if arguments.out is not None:
        arguments.out.write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
