"""Segments of recordings beside their vectors, with the times and clusters of a diarisation tool."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from handful.errors import FileFormatError
from handful.fields.voices.rttm import read_rttm
from handful.machine.untrusted import finite
from handful.reading.table import Table

# Seconds by which times in two files may differ.
TOLERANCE = 0.011


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
