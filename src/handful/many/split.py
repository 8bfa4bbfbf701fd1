"""Split: the rows of a data set by group into buckets on disk, where the rows of a group do not lie together.

Each stretch of the data set becomes one file, its rows in the order of their buckets. A bucket is one slice of each of
these files. The key of a group determines its bucket, so all of its rows are in the same one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from handful.machine.safetensors_format import read_part, write_tensors
from handful.many.keys import keys_of
from handful.many.source import Range, Source
from handful.shapes import Float, Int

# Numbers in the vectors that are held in memory at once: of a stretch, of a portion, of a bucket as far as possible.
HELD_NUMBERS = 2**24
MOST_BUCKETS = 256


@dataclass(frozen=True)
class Bucket:
    """Rows of some groups: vectors (in memory or in a file), group of each, counted from zero, and row of each."""

    vectors: Float[np.ndarray, "item dim"]
    group_of: Int[np.ndarray, "item"]
    rows: Int[np.ndarray, "item"]


def n_buckets(source: Source) -> int:
    """Return how many buckets there are."""
    return min(MOST_BUCKETS, -(-source.n_rows * source.dim // HELD_NUMBERS))


def most_rows(dim: int) -> int:
    """Return how many rows are held in memory at once."""
    return max(1, HELD_NUMBERS // dim)


def stretches(source: Source) -> list[Range]:
    """Return the ranges of rows that are split at once."""
    size = most_rows(source.dim)
    return [(start, min(start + size, source.n_rows)) for start in range(0, source.n_rows, size)]


def write_stretch(source: Source, stretch: Range, batches: Sequence[tuple[int, Any]], path: Path, what: str) -> None:
    """Write the rows of a stretch, given as batches, by their buckets; complete or not at all, sealed as `what`."""
    start, stop = stretch
    vectors = np.empty((stop - start, source.dim), np.float32)
    keys = np.empty((stop - start, 2), np.uint64)
    for row, batch in batches:
        here = slice(row - start, row - start + len(batch))
        vectors[here] = source.matrix(batch, row)
        keys[here] = keys_of(batch, source.group_by, source.where(row))
    buckets = (keys[:, 0] % np.uint64(n_buckets(source))).astype(np.int64)
    order = np.argsort(buckets, kind="stable")
    edges = np.searchsorted(buckets[order], np.arange(n_buckets(source) + 1))
    tensors = {"vectors": vectors[order], "keys": keys.view(np.int64)[order], "rows": start + order, "edges": edges}
    write_tensors(path, tensors, what=what)


def read_bucket(files: list[Path], bucket: int, scratch: Path) -> Bucket:
    """Read a bucket from the checked files of all stretches; a large one goes into one mapped file at `scratch`."""
    parts = []
    for file in files:
        edges = read_part(file, lambda name: slice(bucket, bucket + 2) if name == "edges" else None)["edges"]
        parts.append((file, slice(*edges.tolist())))
    n_items = sum(part.stop - part.start for _, part in parts)
    vectors: np.ndarray | None = None
    keys, rows = np.empty((n_items, 2), np.int64), np.empty(n_items, np.int64)
    at = 0
    for file, part in parts:
        found = read_part(file, lambda name, part=part: None if name == "edges" else part)  # type: ignore[misc]
        if vectors is None:
            vectors = room(scratch, (n_items, found["vectors"].shape[1]))
        here = slice(at, at + part.stop - part.start)
        vectors[here], keys[here], rows[here] = found["vectors"], found["keys"], found["rows"]
        at = here.stop
    assert vectors is not None
    return Bucket(vectors, _numbered(keys), rows)


def room(scratch: Path, shape: tuple[int, int]) -> Float[np.ndarray, "row dim"]:
    """Return an array in memory, or a mapped file at `scratch` if it is too large."""
    if in_memory(*shape):
        return np.empty(shape, np.float32)
    return np.lib.format.open_memmap(scratch, "w+", np.float32, shape)


def in_memory(n_rows: int, dim: int) -> bool:
    """Whether vectors are held in memory; buckets are not equal, so they may be twice as large as intended."""
    return n_rows <= 2 * most_rows(dim)


def _numbered(keys: Int[np.ndarray, "item half"]) -> Int[np.ndarray, "item"]:
    """Count the groups from zero, by their keys."""
    order = np.lexsort(keys.T)
    new = np.ones(len(keys), np.int64)
    new[:1] = 0
    new[1:] = (keys[order[1:]] != keys[order[:-1]]).any(1)
    numbers = np.empty(len(keys), np.int64)
    numbers[order] = np.cumsum(new)
    return numbers
