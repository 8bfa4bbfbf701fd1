"""Portions of a data set whose groups lie together: ranges of rows that hold complete groups."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

from handful.many.source import Range, Source
from handful.many.split import Bucket, most_rows, room
from handful.shapes import Int


def portion_ranges(starts: Int[np.ndarray, "group"], n_rows: int, dim: int) -> list[Range]:
    """Cut the rows at starts of groups, so that portions have about as many numbers as a bucket; no group is cut."""
    ends = np.append(starts[1:], n_rows)
    size, ranges, first = most_rows(dim), list[Range](), 0
    while first < len(starts):
        start = int(starts[first])
        last = max(first, int(np.searchsorted(ends, start + size, side="right")) - 1)
        ranges.append((start, int(ends[last])))
        first = last + 1
    return ranges


def read_portion(
    source: Source,
    portion: Range,
    starts: Int[np.ndarray, "group"],
    batches: Iterable[tuple[int, Any]],
    scratch: Path,
) -> Bucket:
    """Put the batches of a portion together; a large portion goes into a mapped file at `scratch`."""
    start, stop = portion
    vectors = room(scratch, (stop - start, source.dim))
    for row, batch in batches:
        a, b = max(row, start), min(row + len(batch), stop)
        if a < b:
            vectors[a - start : b - start] = source.matrix(batch.slice(a - row, b - a), a)
    rows = np.arange(start, stop)
    inside = starts[np.searchsorted(starts, start) : np.searchsorted(starts, stop)]
    return Bucket(vectors, np.searchsorted(inside, rows, side="right") - 1, rows)
