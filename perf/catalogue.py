"""A large catalogue: how long it takes to open, to answer and to open again, and what answers take in memory.

    python perf/catalogue.py FOLDER [--items 100000] [--out perf/results/catalogue.json]

FOLDER is where a file of about 270 MB is made, and removed afterwards: on the disk that is to be measured. Every answer
is about 24 items, and is timed until it is on the disk. Opening is that of a process of its own, as people open it.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from handful.catalogue.events import EventItem
from handful.catalogue.file import Arrival, CatalogueFile, ItemContent
from handful.catalogue.vectors import EncoderId

DIM, AT_A_TIME, N_ANSWERS, N_SHOWN, N_CLASSES = 1_280, 5_000, 500, 24, 30
ENCODER = EncoderId("efficientnet-lite0", "1", "5d41")
OPENS = """
import sys, time
from handful.catalogue.file import CatalogueFile
begun = time.perf_counter()
with CatalogueFile.open(sys.argv[1]) as catalogue:
    len(catalogue.said.answers)
print(time.perf_counter() - begun)
"""


def made(file: Path, n_items: int) -> None:
    """Make a catalogue with a vector of each item."""
    rng = np.random.default_rng(0)
    with CatalogueFile.open(file) as catalogue:
        hashes = [hashlib.sha256(str(k).encode()).digest() for k in range(n_items)]
        catalogue.arrive("photos", [Arrival(f"{k}.jpg", ItemContent(one, "image")) for k, one in enumerate(hashes)])
        contents = [row.content for row in catalogue.rows(range(1, n_items + 1))]
        for start in range(0, n_items, AT_A_TIME):
            some = contents[start : start + AT_A_TIME]
            catalogue.put_vectors(ENCODER, some, rng.normal(size=(len(some), DIM)).astype(np.float32))


def seconds_to_open(file: Path) -> float:
    """Open a catalogue in a process of its own; imports are not counted."""
    run = subprocess.run([sys.executable, "-c", OPENS, str(file)], check=True, capture_output=True, text=True)
    return float(run.stdout)


def megabytes() -> float:
    """How much memory this process has now, not at most: making the file took more."""
    pages = int(Path("/proc/self/statm").read_text(encoding="utf-8").split()[1])
    return pages * resource.getpagesize() / 1e6


def answered(file: Path, n_items: int) -> dict[str, float]:
    """Answer, and return milliseconds for each answer, and megabytes for all of them."""
    rng = np.random.default_rng(1)
    seconds = []
    with CatalogueFile.open(file) as catalogue:
        before = megabytes()
        for number in range(N_ANSWERS):
            shown = rng.choice(n_items, N_SHOWN, replace=False) + 1
            items = [EventItem(int(item), offered="fox", risk=0.1, wrong=0.1, support=1.0) for item in shown]
            begun = time.perf_counter()
            catalogue.append("named", {"label": f"class {number % N_CLASSES}"}, items)
            seconds.append(time.perf_counter() - begun)
        after = megabytes()
        begun = time.perf_counter()
        catalogue.take_back(catalogue.history.events[-1].event)
        undo = time.perf_counter() - begun
    return {
        "answer_ms": 1000 * float(np.median(seconds)),
        "slowest_answer_ms": 1000 * max(seconds),
        "undo_ms": 1000 * undo,
        "answers_megabytes": after - before,
    }


def main() -> None:
    """Measure, print and write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--items", type=int, default=100_000)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=options.folder) as place:
        file = Path(place) / "photos.handful"
        begun = time.perf_counter()
        made(file, options.items)
        found = {"items": float(options.items), "made_s": time.perf_counter() - begun}
        found["file_megabytes"] = file.stat().st_size / 1e6
        found["open_s"] = seconds_to_open(file)
        found |= answered(file, options.items)
        found["reopened_s"] = seconds_to_open(file)
    print(json.dumps(found, indent=1))
    if options.out is not None:
        options.out.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
