"""Tables of items that people read: .csv and .xlsx with numbers as people write them, .parquet and .jsonl in full."""

from __future__ import annotations

import datetime
import json
import math
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from handful.classification.files import check_ending, write_table
from handful.machine.outputs import written_whole
from handful.machine.untrusted import writable
from handful.reading.table import Columns
from handful.review.item_rows import SaidRow, label_of
from handful.session.kinds import kinds_of

ENDINGS = (".csv", ".xlsx", ".parquet", ".jsonl")
FOR_PEOPLE = (".csv", ".xlsx")
# Digits of a chance behind the point, for people.
DIGITS = 4
MIDNIGHT = datetime.time()


def write_items(rows: Sequence[SaidRow], path: Path, *, delimiter: str = ",") -> None:
    """Write one row per item; the other columns of items stand last, renamed where a name is taken."""
    people = path.suffix.lower() in FOR_PEOPLE
    ours: dict[str, list[Any]] = {
        "batch": [row.batch for row in rows],
        "item": [row.place for row in rows],
        "label": [label_of(row) for row in rows],
        "person": [row.person for row in rows],
        "said_by": [row.said_by for row in rows],
        "said_at": times([row.said_at for row in rows]),
        "model": [row.model for row in rows],
        "certainty": [chance(row.certainty) if people else row.certainty for row in rows],
    }
    if any(row.text is not None for row in rows):
        ours["text"] = [row.text for row in rows]
    names = dict.fromkeys(name for row in rows for name in row.columns)
    beside = Columns({name: times([row.columns.get(name) for row in rows]) for name in names}).beside(ours).values()
    _write(path, {**ours, **beside}, delimiter)


def kinds_beside(path: Path) -> Path:
    """Return where the table of kinds is that belongs to a table of items.

    Examples
    --------
    >>> print(kinds_beside(Path("monday.csv")))
    monday.kinds.csv
    """
    return path.with_name(f"{path.stem}.kinds{path.suffix}")


def write_kinds(rows: Sequence[SaidRow], path: Path, *, delimiter: str = ",") -> None:
    """Write one row per kind: how many items it has, how many of them a person saw, and who."""
    kinds = kinds_of((label_of(row), row.named is not None, row.said_by) for row in rows)
    table: dict[str, list[Any]] = {
        "kind": [kind.label for kind in kinds],
        "items": [kind.n_items for kind in kinds],
        "seen": [kind.n_seen for kind in kinds],
        "seen_by": [" and ".join(kind.seen_by) or None for kind in kinds],
        "said": ["seen" if kind.n_seen else "probable, none seen" for kind in kinds],
    }
    _write(path, table, delimiter)


def _write(path: Path, table: dict[str, list[Any]], delimiter: str) -> None:
    if path.suffix.lower() == ".jsonl":
        _write_lines(table, path)
        return
    check_ending(path)
    types = dict.fromkeys(table) if path.suffix.lower() in FOR_PEOPLE else _types(table)
    write_table(path, types, [table], delimiter=delimiter)


def _types(table: dict[str, list[Any]]) -> dict[str, Any]:
    """Return the Arrow types of columns; one without any value is text."""
    empty = [name for name, values in table.items() if all(value is None for value in values)]
    return {**Columns(table).types(), **dict.fromkeys(empty, "string")}


def _write_lines(table: dict[str, list[Any]], path: Path) -> None:
    with written_whole(path) as place, place.open("w", encoding="utf-8", newline="\n") as stream:
        for values in zip(*table.values(), strict=True):
            row = {name: value for name, value in zip(table, values, strict=True) if value is not None}
            stream.write(writable(json.dumps(row, ensure_ascii=False, default=str)) + "\n")


def chance(value: float | None) -> float | None:
    """Return a chance as people write it.

    Examples
    --------
    >>> chance(0.97), chance(0.123456789), chance(7.400757608484829e-07), chance(float("nan"))
    (0.97, 0.1235, 0.0, None)
    """
    return None if value is None or math.isnan(value) else round(value, DIGITS)


def times(values: Iterable[Any]) -> list[Any]:
    """Return a column of dates or times as such, if all of its values are; other columns stay as they are.

    Examples
    --------
    >>> times(["2026-11-17", None])[0], times(["2026-11-17 00:00:00"])[0], times(["2026-11-17", "soon"])[1]
    (datetime.date(2026, 11, 17), datetime.date(2026, 11, 17), 'soon')
    """
    given = list(values)
    there = [value for value in given if value is not None and value != ""]
    try:
        found = {value: _time(value) for value in there}
    except (TypeError, ValueError):
        return given
    if not all(one.time() == MIDNIGHT and one.tzinfo is None for one in found.values()):
        return [found.get(value) for value in given]
    return [found[value].date() if value in found else None for value in given]


def _time(value: Any) -> datetime.datetime:
    # "20261117" and "2026-W47" are other things than dates, more often than not.
    if not isinstance(value, str) or value[4:5] != "-" or value[7:8] != "-":
        raise ValueError(value)
    return datetime.datetime.fromisoformat(value)
