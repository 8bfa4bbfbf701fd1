"""Tables larger than memory, in the order of some of their columns: an Arrow file of each part, sorted by Arrow."""

from __future__ import annotations

import itertools
import shutil
from collections.abc import Generator, Iterable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np

from handful.machine.extras import import_extra, import_pyarrow

MOST_PARTS = 256


def in_order(
    batches: Iterable[tuple[np.ndarray, Any]], by: Sequence[str], folder: Path, rows_at_once: int = 2**16
) -> Generator[Any, None, None]:
    """Yield the rows of Arrow batches, as other batches: part after part, each in the order of the columns `by`.

    A batch comes with the part of each of its rows. There are at most `MOST_PARTS`. The rows go through `folder`.
    """
    pa, _ = import_pyarrow()
    shutil.rmtree(folder, ignore_errors=True)  # what a killed run had there
    folder.mkdir()
    writers: dict[int, Any] = {}
    with ExitStack() as opened:
        for parts, batch in batches:
            order = np.argsort(parts, kind="stable")
            moved, part_of = batch.take(pa.array(order)), parts[order]
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
    pa, compute = import_pyarrow()[0], import_extra("pyarrow.compute", "parquet")
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
