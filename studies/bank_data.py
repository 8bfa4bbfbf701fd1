"""Vectors and labels of the data sets that several studies draw their catalogues and batches from."""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Sequence
from functools import cache
from pathlib import Path

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float32]
Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]


def unit(path: Path) -> Floats:
    """Rows of an array file at length 1."""
    rows = np.load(path).astype(np.float32)
    found: Floats = rows / np.linalg.norm(rows, axis=-1, keepdims=True)
    return found


def whole_numbers(path: Path) -> Ints:
    """Read an array file as 64-bit integers."""
    found: Ints = np.load(path).astype(np.int64)
    return found


@cache
def bank(folder: Path) -> tuple[Floats, Ints]:
    """Read unit vectors and labels of a bank."""
    return unit(folder / "features.npy"), whole_numbers(folder / "labels.npy")


@cache
def orders(folder: Path, number: int) -> list[Ints]:
    """Rows of each class in the order of a catalogue: examples first, then items of batches."""
    return shuffled(np.random.default_rng(number), bank(folder)[1])


def shuffled(rng: np.random.Generator, labels: Ints) -> list[Ints]:
    """Rows of each class in random order."""
    return [rng.permutation(np.flatnonzero(labels == k)) for k in range(int(labels.max()) + 1)]


def chosen(rng: np.random.Generator, rows: Sequence[Ints], classes: Iterable[int], size: int) -> Ints:
    """Draw items of these classes without replacement; all of them if there are fewer."""
    pool = np.concatenate([rows[k] for k in classes])
    found: Ints = rng.choice(pool, min(size, len(pool)), replace=False)
    return found


def rng_of(*what: object) -> np.random.Generator:
    """Random numbers of a cell and catalogue, the same on every machine."""
    return np.random.default_rng(zlib.crc32(repr(what).encode()))
