"""Portions: complete groups, cut from rows that are brought in the order of their groups; and the answers about each.

The answers about a portion are two arrays: `ITEM`, one entry per row of the portion, and
`GROUP`, one per group and class that may be in it. `row` is a row of the data set; for a group, its first. `label` and
`class` are places among the classes; the other names are those of columns of the output.
"""

from __future__ import annotations

import itertools
import shutil
from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory, TemporaryFile
from typing import IO, Any

import numpy as np

from handful.estimators.batches import Batches
from handful.estimators.certainty import certainty_of, most_certain
from handful.estimators.context import Known
from handful.estimators.items import ModelItems
from handful.fitted import FittedModel
from handful.large import solve as solve_large
from handful.machine.extras import import_extra, import_pyarrow
from handful.machine.outputs import explain_refusal
from handful.model.present_classes import listed_classes
from handful.shapes import Float, Int

# A portion ends with the first group after which its vectors have this many numbers. Twice as many are in memory.
# [numbers; work]
HELD_NUMBERS = 2**24
# A group with more scores (items times classes) than this is labelled by `handful.large`, which streams it.
# [scores; work]
LARGE_SCORES = 2**24

FLOAT = np.dtype(np.float32)
ITEM = np.dtype([("row", "i8"), ("label", "i4"), ("certainty", "f4"), ("unknown", "f4")])
_OF_GROUP = [("row", "i8"), ("items", "i8"), ("joint_weight", "f4"), ("unknown_items", "i8")]
GROUP = np.dtype([*_OF_GROUP, ("class", "i4"), ("expected_count", "f4"), ("presence", "f4")])


@dataclass(frozen=True, eq=False)
class Portion:
    """Vectors and rows of complete groups, one after the other, and where each starts among these items."""

    vectors: Float[np.ndarray, "item dim"]
    rows: Int[np.ndarray, "item"]
    starts: Int[np.ndarray, "group"]


def most_rows(dim: int) -> int:
    """Return after how many rows a portion ends."""
    return max(1, HELD_NUMBERS // dim)


def portions(batches: Iterable[Any], n_keys: int, dim: int, folder: Path) -> Iterator[Portion]:
    """Cut Arrow batches in the order of groups: keys of the group, then `row` and `vector`, the latter as bytes."""
    following = _NextPortion(dim, folder)
    before = None
    for batch in batches:
        starts = _starts(batch, n_keys, before)
        begin = 0
        before = batch.slice(len(batch) - 1)
        vectors = _matrix(batch.column(n_keys + 1), dim)
        rows = batch.column(n_keys).to_numpy()
        while len(ends := starts[(starts >= begin) & (following.n_rows + starts - begin >= following.most)]):
            following.add(vectors[begin : ends[0]], rows[begin : ends[0]], starts - begin)
            yield following.portion()
            following = _NextPortion(dim, folder)
            begin = int(ends[0])
        following.add(vectors[begin:], rows[begin:], starts - begin)
    if following.n_rows:
        yield following.portion()


class _NextPortion:
    """Rows of the next portion; when there are too many, their vectors go to a file without a name."""

    def __init__(self, dim: int, folder: Path) -> None:
        self.most = most_rows(dim)
        self.n_rows = 0
        self._folder = folder
        self._shape = (-1, dim)
        self._file: IO[bytes] | None = None
        self._vectors = list[np.ndarray]()
        self._rows = list[np.ndarray]()
        self._starts = list[np.ndarray]()

    def add(self, vectors: np.ndarray, rows: np.ndarray, starts: np.ndarray) -> None:
        self._vectors.append(vectors)
        self._rows.append(rows)
        self._starts.append(self.n_rows + starts[(starts >= 0) & (starts < len(rows))])
        self.n_rows += len(rows)
        if self.n_rows > 2 * self.most:
            with explain_refusal(self._folder, self._folder):
                self._file = self._file or TemporaryFile(dir=self._folder)  # noqa: SIM115
                self._file.writelines(piece.data for piece in self._vectors if len(piece))
                self._file.flush()
            self._vectors = []

    def portion(self) -> Portion:
        if self._file is None:
            vectors = np.concatenate(self._vectors)
        else:
            with self._file:  # what is mapped stays until nobody uses it
                vectors = np.memmap(self._file, np.float32, "r+")
        return Portion(vectors.reshape(self._shape), np.concatenate(self._rows), np.concatenate(self._starts))


def _starts(batch: Any, n_keys: int, before: Any) -> Int[np.ndarray, "group"]:
    """Return where groups start in a batch; `before` is the row that precedes it, None if there is none."""
    new = np.zeros(len(batch), bool)
    new[0] = before is None or any(before.column(k)[0] != batch.column(k)[0] for k in range(n_keys))
    for column in batch.columns[:n_keys]:
        values = column.to_numpy(zero_copy_only=False)
        new[1:] |= values[1:] != values[:-1]
    return np.flatnonzero(new)


def _matrix(column: Any, dim: int) -> Float[np.ndarray, "row dim"]:
    """Return the vectors that a column of bytes holds; nothing is copied."""
    start = FLOAT.itemsize * dim * column.offset
    return np.frombuffer(column.buffers()[1], FLOAT, len(column) * dim, start).reshape(-1, dim)


def label(catalogue: FittedModel, portion: Portion, known: Known, folder: Path) -> tuple[np.ndarray, np.ndarray]:
    """Label every group of a portion as one batch: small ones in memory, a large one streamed by way of `folder`."""
    items = np.empty(len(portion.rows), ITEM)
    groups = []
    most = most_certain(catalogue.head.mass)
    items["row"] = portion.rows
    edges = np.append(portion.starts, len(items))
    sizes = np.diff(edges)
    large = sizes * catalogue.n_classes > LARGE_SCORES
    first = 0
    while first < len(sizes):
        last = first + (1 if large[first] else int(np.append(large[first:], True).argmax()))
        mine = items[edges[first] : edges[last]]
        vectors = portion.vectors[edges[first] : edges[last]]
        if large[first]:
            groups.append(_streamed(catalogue, vectors, known, mine, folder))
        else:
            group_of = np.repeat(np.arange(last - first), sizes[first:last])
            for _, places, found in Batches.of(ModelItems(catalogue, vectors), group_of, known).labelled():
                here = mine[places[0] : places[-1] + 1]
                here["label"] = found.probabilities.argmax(-1)
                here["unknown"] = found.unknown
                here["certainty"] = certainty_of(found.probabilities.max(-1), found.unknown, most)
                groups.append(_listed(here, found, found.rejected))
        first = last
    return items, np.concatenate(groups)


def _streamed(catalogue: FittedModel, vectors: np.ndarray, known: Known, items: np.ndarray, folder: Path) -> np.ndarray:
    """Label one large group by `handful.large`; fill in its items, and return its classes."""
    # Another node of a cluster need not have the folder.
    room = folder if folder.is_dir() else None
    with explain_refusal(folder, folder), TemporaryDirectory(dir=room) as run:
        shares = known.get("expect_unknown")
        found = solve_large(catalogue, vectors, run, prior=known.get("prior"), expect_unknown=shares).answer()
        items["label"] = found.codes[:, 0]
        items["certainty"] = found.certainty
        items["unknown"] = found.unknown
        return _listed(items, found, found.rejected)


def _listed(items: np.ndarray, found: Any, rejected: np.ndarray) -> np.ndarray:
    """Return the classes that may be in a group; the one with most items is always listed."""
    expected_counts = np.asarray(found.expected_counts)
    presence = np.asarray(found.presence)
    classes = listed_classes(expected_counts[None], presence[None])[1]
    group = np.empty(len(classes), GROUP)
    group["row"] = items["row"][0]
    group["items"] = len(items)
    group["unknown_items"] = rejected.sum()
    group["joint_weight"] = found.joint_weight
    group["class"] = classes
    group["expected_count"] = expected_counts[classes]
    group["presence"] = presence[classes]
    return group


# Files into which rows are sorted. [files; work]
MOST_PARTS = 256
# Rows that are sorted at once. [rows; work]
SORTED_ROWS = 2**16


def in_order(
    batches: Iterable[tuple[np.ndarray, Any]], by: Sequence[str], folder: Path, rows_at_once: int = SORTED_ROWS
) -> Generator[Any, None, None]:
    """Yield the rows of Arrow batches, as other batches: part after part, each in the order of the columns `by`.

    A batch comes with the part of each of its rows. There are at most `MOST_PARTS`. The rows go through `folder`.
    """
    pa, _ = import_pyarrow()
    shutil.rmtree(folder, ignore_errors=True)  # what a killed run had there
    writers: dict[int, Any] = {}
    with explain_refusal(folder, folder), ExitStack() as opened:
        folder.mkdir()
        for parts, batch in batches:
            order = np.argsort(parts, kind="stable")
            moved = batch.take(pa.array(order))
            part_of = parts[order]
            edges = [*np.flatnonzero(np.diff(part_of, prepend=-1)).tolist(), len(batch)]
            for start, stop in itertools.pairwise(edges):
                part = int(part_of[start])
                if part not in writers:
                    file = opened.enter_context(pa.OSFile(str(folder / str(part)), "wb"))
                    writers[part] = opened.enter_context(pa.ipc.new_stream(file, batch.schema))
                writers[part].write_batch(moved.slice(start, stop - start))
    for part in sorted(writers):
        with pa.memory_map(str(folder / str(part))) as file:
            yield from _sorted(pa.ipc.open_stream(file).read_all(), by, rows_at_once)
        (folder / str(part)).unlink()


def _sorted(table: Any, by: Sequence[str], rows_at_once: int) -> Generator[Any, None, None]:
    """Yield the rows of a mapped table in order; only those of one batch are in memory."""
    pa = import_pyarrow()[0]
    compute = import_extra("pyarrow.compute", "parquet")
    order = (
        compute.sort_indices(table.select(by), sort_keys=[(name, "ascending") for name in by])
        .to_numpy()
        .astype(np.int64)
    )
    pieces = table.to_batches()
    ends = np.cumsum([len(piece) for piece in pieces])
    for start in range(0, len(order), rows_at_once):
        rows = order[start : start + rows_at_once]
        of_piece = np.searchsorted(ends, rows, side="right")
        taken = [
            pieces[k].take(pa.array(rows[of_piece == k] - (ends[k] - len(pieces[k])))) for k in np.unique(of_piece)
        ]
        back = np.argsort(np.argsort(of_piece, kind="stable"))
        yield from pa.Table.from_batches(taken).combine_chunks().take(pa.array(back)).to_batches()
