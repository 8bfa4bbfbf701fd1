"""A catalogue in a file against the folder or table it was built of, and what it costs to add examples to it.

    python perf/catalogue_file.py DATA [--only compounds] [--out perf/results/catalogue_file.json]

DATA is a folder that holds `text/clinc.jsonl.gz`, `images/caltech24.zip` and `massbank-two-labs`. Every figure is CPU
seconds of a whole command, `handful classify` or `handful catalogue build`, in a process of its own on one thread;
*start* is what Python takes to import handful and, for items, to load the encoder, which is part of every command.

- *sentences*: 150 intents with five sentences each, and a batch of nine;
- *photographs*: 24 categories with five photographs each, and a batch of 280;
- *compounds*: 6,708 spectra of 1,152 compounds, and a batch of 300 spectra of another laboratory;
- *add*: 100 examples of 100 classes to 1,000 classes with five examples each, d = 384, against a fit of all of them;
  labels of 3,000 items by both heads, one by one.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
import zipfile
from pathlib import Path
from typing import Any

import numpy as np

from handful.fitted import FittedModel

SHOTS, N_SENTENCES, N_CATEGORIES, N_SPECTRA = 5, 9, 8, 300
ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
# The catalogue that is added to.
N_CLASSES, DIM, NOISE, N_ADDED, N_ITEMS = 1_000, 384, 2.5, 100, 3_000


def sentences(data: Path, folder: Path) -> tuple[Path, Path]:
    """Write a catalogue and a batch of sentences."""
    with gzip.open(data / "text" / "clinc.jsonl.gz", "rt") as lines:
        rows = [json.loads(line) for line in lines]
    by_label: dict[str, list[str]] = {}
    for row in rows:
        by_label.setdefault(row["label"], []).append(row["text"])
    examples = [(text, label) for label, texts in sorted(by_label.items()) for text in texts[:SHOTS]]
    batch = [(text, "") for label in sorted(by_label)[:3] for text in by_label[label][SHOTS : SHOTS + N_SENTENCES // 3]]
    for name, table in (("catalogue", examples), ("batch", batch)):
        with (folder / f"{name}.csv").open("w", newline="") as stream:
            csv.writer(stream).writerows(
                [("text", "label"), *table] if name == "catalogue" else [("text", "note"), *table]
            )
    return folder / "catalogue.csv", folder / "batch.csv"


def photographs(data: Path, folder: Path) -> tuple[Path, Path]:
    """Unpack a catalogue and a batch of photographs: the first five of each category, and the others of some."""
    with zipfile.ZipFile(data / "images" / "caltech24.zip") as archive:
        by_class: dict[str, list[str]] = {}
        for name in sorted(name for name in archive.namelist() if not name.endswith("/")):
            by_class.setdefault(Path(name).parts[-2], []).append(name)
        for number, (label, names) in enumerate(sorted(by_class.items())):
            for place, name in enumerate(names):
                kept = folder / "catalogue" / label if place < SHOTS else folder / "batch"
                if place < SHOTS or number < N_CATEGORIES:
                    kept.mkdir(parents=True, exist_ok=True)
                    (kept / f"{number:02d}_{Path(name).name}").write_bytes(archive.read(name))
    return folder / "catalogue", folder / "batch"


def compounds(data: Path, folder: Path) -> tuple[Path, Path]:
    """Write a library of spectra, and a batch of another laboratory."""
    place = data / "massbank-two-labs"
    names = np.array(json.loads((place / "names.json").read_text())["classes"])
    examples, labels = np.load(place / "reference.npy"), np.load(place / "reference_labels.npy")
    np.savez(folder / "catalogue.npz", features=examples.astype(np.float32), labels=names[labels])
    batch = np.load(place / "query.npy")[np.load(place / "query_lab.npy") == 1][:N_SPECTRA]
    np.save(folder / "batch.npy", batch.astype(np.float32))
    return folder / "catalogue.npz", folder / "batch.npy"


# What is compared, with the encoder of its items.
USES = {sentences: "minilm", photographs: "efficientnet-lite0", compounds: ""}


def cpu_seconds(*arguments: object) -> float:
    """Run Python, and return the CPU seconds that its process took."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    run = [sys.executable, *map(str, arguments)]
    subprocess.run(run, check=True, capture_output=True, env=os.environ | ONE_THREAD)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def labels_of(path: Path) -> list[str]:
    """Return the labels of predictions."""
    with path.open(encoding="utf-8", newline="") as stream:
        return [row["label"] for row in csv.DictReader(stream)]


def compared(examples: Path, batch: Path, folder: Path, encoder: str) -> dict[str, Any]:
    """Label a batch with examples and with the catalogue built of them."""
    file, outs = folder / "c.handful", [folder / "by_examples.csv", folder / "by_file.csv"]
    start = "import handful.classification.steps"
    if encoder:
        start += f", handful.extraction.encoders as b; b.load_encoder({encoder!r})"
    row: dict[str, Any] = {"start": cpu_seconds("-c", start)}
    row["build"] = cpu_seconds("-m", "handful", "catalogue", "build", examples, "--out", file)
    for name, catalogue, out in zip(("examples", "file"), (examples, file), outs, strict=True):
        row[name] = cpu_seconds(*("-m", "handful", "classify", catalogue, batch, "--out", out))
    first, second = map(labels_of, outs)
    return (
        row
        | {"items": len(first), "same": sum(a == b for a, b in zip(first, second, strict=True))}
        | {"megabytes": file.stat().st_size / 1e6}
    )


def added() -> dict[str, Any]:
    """Add examples to a fitted catalogue, and fit all of them, in CPU seconds; and compare what both heads say."""
    rng = np.random.default_rng(0)
    centres = rng.normal(size=(N_CLASSES, DIM))

    def rows(codes: np.ndarray) -> np.ndarray:
        return np.asarray(centres[codes] + NOISE * rng.normal(size=(len(codes), DIM)), np.float32)

    codes, new = np.arange(N_CLASSES).repeat(SHOTS), rng.permutation(N_CLASSES)[:N_ADDED]
    truth = rng.integers(0, N_CLASSES, N_ITEMS)
    before = FittedModel.of(rows(codes), codes)
    _ = before.reference.unknown_model
    more, items = before.with_examples(rows(new), new), rows(truth)
    begun = time.process_time()
    updated = more.updated_from(before)
    _ = updated.reference.unknown_model
    middle = time.process_time()
    _ = more.reference.unknown_model
    ended = time.process_time()
    assert updated is not more
    points = more.points(items)
    scores = [one.head.scores(points) for one in (updated, more)]
    tables = [np.exp(one - np.logaddexp.reduce(one, axis=1)[:, None]) for one in scores]
    return {
        "update": middle - begun,
        "fit": ended - middle,
        "items": N_ITEMS,
        "same": int((scores[0].argmax(1) == scores[1].argmax(1)).sum()),
        "right": [int((one.argmax(1) == truth).sum()) for one in scores],
        "largest_difference": float(np.abs(tables[0] - tables[1]).max()),
    }


def main() -> None:
    """Measure, print and write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("--only", choices=["add", *(make.__name__ for make in USES)], help="measure this one again")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    out: Path | None = options.out
    found: dict[str, Any] = json.loads(out.read_text()) if options.only and out is not None and out.exists() else {}
    if options.only in (None, "add"):
        found["add"] = added()
    for make, encoder in USES.items():
        if options.only in (None, make.__name__):
            with tempfile.TemporaryDirectory() as place:
                found[make.__name__] = compared(*make(options.data, Path(place)), Path(place), encoder)
    print(json.dumps(found, indent=1))
    if out is not None:
        out.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
