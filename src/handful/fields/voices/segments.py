"""Segments of recordings: times and clusters of a diarisation tool, and a file of vectors of the same name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

from handful.errors import FileFormatError
from handful.fields.voices.rttm import read_rttm
from handful.machine.untrusted import finite
from handful.reading.header import Asked
from handful.reading.numpy_files import read_npy, read_npz
from handful.reading.parquet import read_parquet
from handful.reading.table import Table

# Seconds by which times in two files may differ.
TOLERANCE = 0.011
# Files that can have the vectors of segments, by their endings.
VECTORS: Mapping[str, Callable[[Path, Asked], Table]] = MappingProxyType(
    {".npy": read_npy, ".npz": read_npz, ".parquet": read_parquet}
)


def read_segments(path: Path, asked: Asked) -> Table:
    """Read `meeting.rttm`, and the vectors of its segments from `meeting.npy`, `.npz` or `.parquet` beside it."""
    found = [file for ending in VECTORS if (file := path.with_suffix(ending)).is_file()]
    if len(found) != 1:
        listed = ", ".join(path.with_suffix(ending).name for ending in VECTORS)
        there = " and ".join(file.name for file in found) or "none of them"
        raise FileFormatError(
            f"{path} has segments, and their vectors must be in one file beside it, {listed}; there is {there}"
        )
    ending = found[0].suffix
    if ending == ".npy":  # an array has no columns
        asked = asked._replace(features=None, text=None)
    table = VECTORS[ending](found[0], asked)
    if table.vectors is None:
        raise FileFormatError(f"{path} has segments, and {found[0].name} has no vectors of them; put them there")
    return with_segments(table, path)


def files_of_segments(path: Path) -> dict[str, Path]:
    """Return the files of vectors that may be read with an RTTM file."""
    return {f"vectors ({ending})": path.with_suffix(ending) for ending in VECTORS}


def with_segments(table: Table, path: Path) -> Table:
    """Return the table with the columns of an RTTM file, whose SPEAKER lines are its rows, in the same order.

    If the table has times of its own, they must be those of the lines.
    """
    columns = read_rttm(path)
    positions = table.rows
    lines = len(columns["file"])
    n_rows = table.n_rows + len(table.skipped)
    if lines != n_rows:
        raise FileFormatError(
            f"{path} has {lines:,} segments, {table.where} has {n_rows:,} vectors; each segment must have its vector, "
            "in the same order"
        )
    columns = {name: [values[position] for position in positions] for name, values in columns.items()}
    own = table.row_columns().by_name
    for name in (name for name in ("start", "end") if name in own):
        for position, mine, other in zip(positions, table.values(name), columns[name], strict=True):
            if not _is_near(mine, other):
                raise FileFormatError(
                    f"{table.where}: {table.row_name(position)} has the {name} {mine!r}, its segment in {path} has "
                    f"{other}; vectors must be in the order of the segments"
                )
    times = zip(columns["file"], columns["start"], columns["end"], strict=True)
    names = tuple(f"{file} {start:.10g}–{end:.10g} s" for file, start, end in times)
    return replace(table, columns={**table.columns, **columns}, names=names)


def _is_near(mine: Any, other: float) -> bool:
    try:
        return abs(finite(mine) - other) <= TOLERANCE
    except ValueError:
        return False
