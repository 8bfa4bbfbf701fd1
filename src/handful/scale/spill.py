"""Rows that do not fit in memory: brought together by group on a disk, and a group that is too large, block by block.

Groups are packed into pieces of at most `rows_at_once` rows, each of which is labelled in memory. A group of more rows
is a piece of its own: keys of its rows choose a sample, the sample decides, and its rows are mapped.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from handful.machine.extras import import_pyarrow
from handful.machine.outputs import explain_refusal
from handful.machine.threads import one_thread
from handful.model.arrays import spread_rows
from handful.model.content import content_keys
from handful.model.stream import counted_items, deciding_items
from handful.scale.decision import BatchDecision, Totals, merge
from handful.scale.groups import NO_GROUP, group_hashes
from handful.scale.labeller import TableLabeller
from handful.scale.source import ARROW, PartitionRows
from handful.shapes import Int

# Numbers that the vectors of a table have at most, which is labelled in memory. About six copies of them are held at a
# time. [numbers; work]
HELD_NUMBERS = 2**24
# Numbers in the vectors of a block that is mapped. [numbers; work]
BLOCK_NUMBERS = 2**21
# Hashes of groups that are held before those of one group are counted together. [groups; work]
MOST_HASHES = 2**22
# The last piece: rows without a group, which are only passed on. [piece; convention]
NOBODY = -1


def rows_at_once(dim: int) -> int:
    """Return how many rows are labelled in memory."""
    return max(1, HELD_NUMBERS // dim)


def labelled(rows: PartitionRows, labeller: TableLabeller, scratch: Path) -> Iterator[tuple[Any, Any]]:
    """Label rows of complete groups, however many there are; what does not fit in memory goes through `scratch`.

    Yields tables of items and of groups; either may be None.
    """
    dim = labeller.model.fitted.dim
    most = rows_at_once(dim)
    at_once = max(1, BLOCK_NUMBERS // dim)
    if rows.n_rows <= most:
        yield labeller.label(_joined(rows.tables(rows_at_once=at_once), rows.schema))
        return
    keys = labeller.group_by
    hashes, counts = counted(group_hashes(table, keys) for table in rows.tables(keys, at_once))
    piece_of, large = packed(hashes, counts, most)

    def pieces(of_rows: npt.NDArray[np.uint64]) -> Int[np.ndarray, "row"]:
        return np.asarray(piece_of[np.searchsorted(hashes, of_rows)])

    for piece in cut(rows.tables(rows_at_once=at_once), keys, pieces, scratch):
        file = piece_at(scratch, piece)
        one = PartitionRows([file], {}, [str(file)])
        if piece == NOBODY:
            yield from map(labeller.label, one.tables(rows_at_once=at_once))
        elif piece in large:
            yield from _large_group(one, labeller, at_once)
        else:
            yield labeller.label(_joined(one.tables(rows_at_once=at_once), one.schema))
        file.unlink()


def _joined(tables: Iterable[Any], schema: Any) -> Any:
    pa, _ = import_pyarrow()
    return pa.concat_tables([schema.empty_table(), *tables])


def counted(parts: Iterable[npt.NDArray[np.uint64]]) -> tuple[npt.NDArray[np.uint64], Int[np.ndarray, "group"]]:
    """Return the hashes of all groups in order, and how many rows each has."""
    held = [(np.empty(0, np.uint64), np.empty(0, np.int64))]
    n_held = 0
    for part in parts:
        held.append(np.unique(part, return_counts=True))
        n_held += len(held[-1][0])
        if n_held > MOST_HASHES:
            held = [_merged(held)]
            n_held = 0
    return _merged(held)


def _merged(
    parts: Sequence[tuple[npt.NDArray[np.uint64], Int[np.ndarray, "group"]]],
) -> tuple[npt.NDArray[np.uint64], Int[np.ndarray, "group"]]:
    hashes, which = np.unique(np.concatenate([part for part, _ in parts]), return_inverse=True)
    return hashes, np.bincount(which, np.concatenate([counts for _, counts in parts])).astype(np.int64)


def packed(
    hashes: npt.NDArray[np.uint64], counts: Int[np.ndarray, "group"], most: int
) -> tuple[Int[np.ndarray, "group"], set[int]]:
    """Return the piece of each group, and the pieces that are one group of more than `most` rows.

    Examples
    --------
    >>> piece_of, large = packed(np.arange(1, 7, dtype=np.uint64), np.array([4, 5, 30, 6, 2, 3]), 10)
    >>> piece_of.tolist(), large
    ([0, 0, 3, 1, 1, 2], {3})
    """
    is_large = counts > most
    piece_of = np.empty(len(hashes), np.int64)
    piece = 0
    held = 0
    for place, count in enumerate(np.where(is_large, 0, counts).tolist()):
        if held + count > most:
            piece += 1
            held = 0
        held += count
        piece_of[place] = piece
    piece_of[is_large] = piece + 1 + np.arange(is_large.sum())
    nobody = hashes == NO_GROUP
    large = set(piece_of[is_large & ~nobody].tolist())
    piece_of[nobody] = NOBODY
    return piece_of, large


def piece_at(folder: Path, piece: int) -> Path:
    """Return the file of a piece."""
    return folder / f"{piece}{ARROW}"


def cut(
    tables: Iterable[Any],
    keys: Sequence[str],
    pieces: Callable[[npt.NDArray[np.uint64]], Int[np.ndarray, "row"]],
    folder: Path,
) -> list[int]:
    """Write rows to files of a folder, one for each piece; return the pieces that there are.

    `pieces` returns the pieces of rows from the hashes of their groups.
    """
    pa, _ = import_pyarrow()
    writers: dict[int, Any] = {}
    with explain_refusal(folder, folder), ExitStack() as opened:
        folder.mkdir(parents=True, exist_ok=True)
        for table in tables:
            own = pieces(group_hashes(table, keys))
            order = np.argsort(own, kind="stable")
            moved = table.take(pa.array(order))
            starts = np.flatnonzero(np.diff(own[order], prepend=np.min(own, initial=0) - 1))
            for start, stop in pairwise([*starts.tolist(), len(table)]):
                piece = int(own[order[start]])
                if piece not in writers:
                    file = opened.enter_context(pa.OSFile(str(piece_at(folder, piece)), "wb"))
                    writers[piece] = opened.enter_context(pa.ipc.new_stream(file, table.schema))
                writers[piece].write_table(moved.slice(start, stop - start))
    return sorted(writers)


@one_thread()
def _large_group(rows: PartitionRows, labeller: TableLabeller, at_once: int) -> Iterator[tuple[Any, Any]]:
    """Label one group block by block, as `label_table` would label it in memory."""
    fitted = labeller.model.fitted
    keys = np.zeros(rows.n_rows, np.uint64)
    fit = np.ones(rows.n_rows, bool)
    start = 0
    for table in rows.tables(rows_at_once=at_once):
        vectors, reasons = labeller.vectors(table)
        keys[start : start + len(table)] = content_keys(vectors)
        fit[start + np.array(list(reasons), np.int64)] = False
        start += len(table)
    first = next(rows.tables(rows_at_once=1))
    keys_of_group = {name: first.column(name).combine_chunks() for name in labeller.group_by}
    good = np.flatnonzero(fit)
    settings = fitted.settings
    n_classes = fitted.n_classes
    most = max(counted_items(n_classes, settings.most_counted, settings), deciding_items(n_classes, settings))
    chosen = np.zeros(rows.n_rows, bool)
    chosen[good[np.argsort(keys[good], kind="stable")][spread_rows(len(good), most)]] = True
    parts = []
    start = 0
    for table in rows.tables(rows_at_once=at_once):
        parts.append(labeller.vectors(table).matrix[chosen[start : start + len(table)]])
        start += len(table)
    sample = np.concatenate(parts)
    decision = BatchDecision.of(labeller, sample[np.argsort(content_keys(sample), kind="stable")])
    totals = Totals(None, 0)
    for table in rows.tables(rows_at_once=at_once):
        part = decision.label(table)
        totals = merge([totals, part.totals])
        yield part.items, None
    yield None, decision.summary(totals, keys_of_group)
