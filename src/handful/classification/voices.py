"""Voices: segments of recordings, with times and clusters of a diarisation tool, to named segments."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from handful.classification.labelled import Classified
from handful.errors import FileFormatError
from handful.exchange.rttm import read_rttm, segments_of, write_rttm
from handful.machine.untrusted import finite
from handful.reading.table import Table

# What voices are called that are not enrolled, with a number behind it.
UNKNOWN = "unknown"
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


def write_voices(classified: Classified, out: Path) -> None:
    """Write the batch as RTTM with the names that were found, and the certainty of each.

    Rejected segments are `unknown_1`, `unknown_2` and so on: one number for each proposal of a group, else for each
    sequence. Those that are in neither are `unknown`. With an `unknown_label`, that is the word.
    """
    units = None if classified.batches is None else classified.batches.contexts.sequence_of
    groups = classified.answer.group_of
    word = classified.unknown_label or UNKNOWN
    numbers = dict[tuple[Any, ...], int]()
    table = replace(classified, unknown_label=word).predictions()
    names = list[str]()
    keys = {name: table[name] for name in classified.group_by}
    taken = {"_".join(name.split()) for name in classified.class_names}
    free = (number for number in range(1, len(taken) + len(table["row"]) + 2) if f"{word}_{number}" not in taken)
    for item, (label, rejected, proposal) in enumerate(
        zip(table["label"], table["rejected"], table["proposal"], strict=True)
    ):
        group = 0 if groups is None else int(groups[item])
        if not rejected:
            names.append(label)
        elif proposal is None and units is None:
            names.append(word)
        else:
            key = (group, "proposal", proposal) if units is None or proposal else (group, "unit", int(units[item]))
            if key not in numbers:
                numbers[key] = next(free)
            names.append(f"{word}_{numbers[key]}")
    write_rttm(segments_of({**classified.batch.columns.values(), **keys}, names, table["certainty"]), out)
