"""Data of the studies of harm: the two groups, their banks, and how catalogues and batches are drawn from them."""

from __future__ import annotations

import json
import zlib
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np

from side_by_side import Batch, Catalogue, Floats, Ints, Row, chosen, shuffled, unit, whole_numbers

RESULTS = Path(__file__).parent / "results" / "harm"


@dataclass(frozen=True)
class Group:
    """Data of a group."""

    banks: tuple[str, ...]
    changed: tuple[str, str]  # a clean bank, and the same rows after a change
    changed_present: tuple[int, ...]
    requests: str
    laboratory_batches: tuple[int, ...]


GROUPS = {
    "tuning": Group(
        banks=("clinc150-minilm", "cub200-efflite0", "omniglot659-conv4"),
        changed=("clinc150-minilm", "clinc150-shifted"),
        changed_present=(5, 20, 60),
        requests="hint3-curekart-minilm",
        laboratory_batches=(0, 1, 2, 3),
    ),
    "confirmation": Group(
        banks=("banking77-minilm", "hwu64-minilm", "tinyimagenet200-efflite0", "caltech101-efflite0"),
        changed=("caltech101-efflite0", "caltech101-shifted"),
        changed_present=(5, 20),
        requests="hint3-sofmattress-minilm",
        laboratory_batches=(4, 5),
    ),
}


@dataclass(frozen=True)
class Study:
    """What is asked for."""

    data: Path
    group: Group
    tasks: int
    clean_tasks: int


@cache
def bank(folder: Path) -> tuple[Floats, Ints]:
    """Read unit vectors and labels of a bank."""
    return unit(folder / "features.npy"), whole_numbers(folder / "labels.npy")


@cache
def orders(folder: Path, number: int) -> list[Ints]:
    """Rows of each class in the order of a catalogue: examples first, then items of batches."""
    return shuffled(np.random.default_rng(number), bank(folder)[1])


@cache
def plain(folder: Path, shots: int, number: int) -> Catalogue:
    """Fit a catalogue of as many examples of every class."""
    features, labels = bank(folder)
    rows = np.concatenate([order[:shots] for order in orders(folder, number)])
    return Catalogue(features[rows], labels[rows], number)


def rng_of(*what: object) -> np.random.Generator:
    """Random numbers of a cell and catalogue, the same on every machine."""
    return np.random.default_rng(zlib.crc32(repr(what).encode()))


def taken(folder: Path, rows: Ints) -> Batch:
    """Items of a bank as a batch."""
    features, labels = bank(folder)
    return Batch(features[rows], labels[rows], rows)


def drawn(folder: Path, left: list[Ints], present: int, n: int, rng: np.random.Generator, size: int) -> list[Batch]:
    """Draw batches of a few classes, from rows that are not in the catalogue."""
    return [
        taken(folder, chosen(rng, left, rng.choice(len(left), present, replace=False), size)) for _batch in range(n)
    ]


def shared_out(tasks: int, catalogues: int) -> list[int]:
    """Batches of each catalogue: as equal as they can be, and no catalogue without."""
    used = min(tasks, catalogues)
    return [len(range(number, tasks, used)) for number in range(used)]


def read(file: Path) -> dict[str, Row]:
    """Read the parts of a condition that were measured, by name."""
    return dict(json.loads(file.read_text(encoding="utf-8"))) if file.is_file() else {}
