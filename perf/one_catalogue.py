"""One catalogue, many batches: the cost of joint labelling against one matrix product and argmax over the same items.

    python perf/one_catalogue.py [--bank clinc150=PATH ...] [--out perf/results/one_catalogue.json]
    python perf/one_catalogue.py --k 150                       # one size, without the large catalogue

Batches of 75 items against one catalogue of five examples per class, d = 384, five classes in each batch, one thread.
Items are Gaussian about their class on the unit sphere; with `--bank` also real features. The bare pass multiplies the
items with the head's weights in NumPy and takes the largest. The catalogue is fitted before, which is timed by itself.
All measurements alternate within one process, and a figure is the median over the rounds, in CPU milliseconds per
batch and as a ratio.

- *stacked*: 200 batches (20 where K is 5,000 or more) through the engine in one call, unknown items included, against
  the bare pass over all their items at once;
- *single*: one batch through `BatchClassifier.infer`, diagnostics included, against the bare pass over that batch; and
  through `BatchClassifier.predict`, which returns labels alone;
- *add a class*: five examples of a new class to a catalogue of 100,000 classes, in milliseconds of wall time, and the
  first use of the new catalogue, which joins what was added with the rest; saving and loading against a plain copy.
"""

from __future__ import annotations

import argparse
import json
import statistics
import tempfile
import time
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch

import handful
from handful.catalogue import Catalogue, load_catalogue, save_catalogue
from handful.engine.model import Context, label_batches
from handful.estimators import BatchClassifier

DIM, SHOTS, N_QUERY, PRESENT, TURNS = 384, 5, 75, 5, 5
SIZES = {150: 200, 1_000: 200, 5_000: 20, 20_000: 20}  # classes: batches in a stack
# What we aim at, stacked and single, over the bare pass.
AIMS = {150: (2.0, 20.0), 1_000: (1.6, 5.0), 5_000: (1.3, 2.0), 20_000: (1.3, None)}
MANY = 100_000


def synthetic(n_classes: int, n_batches: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Examples, their labels, and batches."""
    seed = torch.Generator().manual_seed(0)
    centres = 0.35 * torch.randn(n_classes, DIM, generator=seed)
    labels = torch.arange(n_classes).repeat_interleave(SHOTS)
    examples = centres[labels] + 0.3 * torch.randn(len(labels), DIM, generator=seed)
    present = torch.stack([torch.randperm(n_classes, generator=seed)[:PRESENT] for _ in range(n_batches)])
    truth = present.gather(1, torch.randint(PRESENT, (n_batches, N_QUERY), generator=seed))
    batches = centres[truth] + 0.3 * torch.randn(n_batches, N_QUERY, DIM, generator=seed)
    return examples.numpy(), labels.numpy(), batches.numpy()


def real(path: Path, n_batches: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Examples of one support, and batches of the rows that are left."""
    bank = handful.read_bank(path)
    rng = np.random.default_rng(0)
    rows = [rng.permutation(np.flatnonzero(bank.labels == k)) for k in range(bank.n_classes)]
    support = np.concatenate([of_class[:SHOTS] for of_class in rows])
    chosen = []
    for _ in range(n_batches):
        pool = np.concatenate([rows[k][SHOTS:] for k in rng.choice(bank.n_classes, PRESENT, replace=False)])
        chosen.append(rng.choice(pool, N_QUERY, replace=len(pool) < N_QUERY))
    batches = np.stack([bank.take(take) for take in chosen]).astype(np.float32)
    return bank.take(support).astype(np.float32), bank.labels[support], batches


def turns(functions: dict[str, Callable[[], object]], repeats: int = TURNS) -> dict[str, float]:
    """CPU milliseconds of each function: the median over turns in which each runs once."""
    times: dict[str, list[float]] = {name: [] for name in functions}
    for _ in range(repeats + 1):
        for name, function in functions.items():
            start = time.process_time()
            function()
            times[name].append(1e3 * (time.process_time() - start))
    return {name: statistics.median(values[1:]) for name, values in times.items()}  # the first one warms up


def measure(examples: np.ndarray, labels: np.ndarray, batches: np.ndarray) -> dict[str, float]:
    """All figures of one catalogue."""
    start = time.process_time()
    catalogue = Catalogue.of(examples, labels)
    _ = catalogue.reference.unknown_model
    fit = time.process_time() - start
    classifier = BatchClassifier().fit(examples, labels)
    # As the library does it: items are made unit vectors about the origin first, and this is timed on neither side.
    points = [catalogue.points(batch) for batch in batches]
    items, weights, offsets = np.concatenate(points), catalogue.head.weights.T.copy(), catalogue.head.offsets
    found = turns(
        {
            "bare": lambda: (items @ weights + offsets).argmax(-1),
            "stacked": lambda: list(label_batches([(one, Context()) for one in points], catalogue.reference)),
        }
    )
    alone = turns(
        {
            "bare": lambda: (points[0] @ weights + offsets).argmax(-1),
            "infer": lambda: classifier.infer(batches[0]),
            "predict": lambda: classifier.predict(batches[0]),
        },
        repeats=4 * TURNS,
    )
    return {
        "n_classes": catalogue.n_classes,
        "n_batches": len(batches),
        "fit_s": fit,
        "bare_ms": found["bare"] / len(batches),
        "stacked_ms": found["stacked"] / len(batches),
        "stacked_ratio": found["stacked"] / found["bare"],
        "single_bare_ms": alone["bare"],
        "single_ms": alone["infer"],
        "single_ratio": alone["infer"] / alone["bare"],
        "labels_ratio": alone["predict"] / alone["bare"],
    }


def growing() -> dict[str, float]:
    """Add a class to a large catalogue; save and load it."""
    examples, labels, _ = synthetic(MANY, 1)
    catalogue = Catalogue.of(examples[:-SHOTS], labels[:-SHOTS])
    _ = catalogue.head  # saved with it
    found: dict[str, list[float]] = {}

    def note(name: str, function: Callable[[], Any]) -> Any:
        start = time.perf_counter()
        result = function()
        found.setdefault(name, []).append(1e3 * (time.perf_counter() - start))
        return result

    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder) / "catalogue.safetensors"
        for _ in range(TURNS):
            larger = note("add_ms", lambda: catalogue.with_examples(examples[-SHOTS:], labels[-SHOTS:]))
            note("head_ms", partial(getattr, larger, "head"))
            note("save_ms", lambda: save_catalogue(catalogue, place))
            note("load_ms", lambda: load_catalogue(place))
            content = note("read_bytes_ms", place.read_bytes)
            note("write_bytes_ms", partial((Path(folder) / "copy").write_bytes, content))
        megabytes = place.stat().st_size / 1e6
    return {name: statistics.median(values) for name, values in found.items()} | {"megabytes": megabytes}


def main() -> None:
    """Measure and print; with --out also write the figures down."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bank", action="append", default=[], help="NAME=PATH of a bank, for real features")
    parser.add_argument(
        "--k", type=int, action="append", choices=list(SIZES), help="synthetic catalogues; default: all"
    )
    parser.add_argument("--out", type=Path)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")  # what the diagnostics say about synthetic batches
    results: dict[str, Any] = {}
    for n_classes in arguments.k or SIZES:
        found = measure(*synthetic(n_classes, SIZES[n_classes]))
        results[f"K = {n_classes:,}"] = found | {"aims": AIMS[n_classes]}
    for entry in arguments.bank:
        name, path = entry.split("=", 1)
        results[name] = measure(*real(Path(path), 200))
    for name, row in results.items():
        aims = row.get("aims", (None, None))
        print(
            f"{name}: fitted in {row['fit_s']:.1f} s; stacked {row['stacked_ratio']:.2f} of bare "
            f"{row['bare_ms']:.3f} ms (aim {aims[0]}); single {row['single_ms']:.2f} ms, {row['single_ratio']:.1f} of "
            f"bare {row['single_bare_ms']:.2f} ms (aim {aims[1]}), labels alone {row['labels_ratio']:.1f}",
            flush=True,
        )
    if not arguments.k:
        results["growing"] = growing()
        print(f"{MANY:,} classes: " + ", ".join(f"{name} {value:.0f}" for name, value in results["growing"].items()))
    if arguments.out is not None:
        arguments.out.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
