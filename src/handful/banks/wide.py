"""Tables with one column per dimension: which columns are the vector, and such tables as CSV.

pandas names them `0`, `1`, …, polars `column_0`, …, people `emb_0`, `dim1`, `PC_1`: one beginning, and a count from 0
or 1.
"""

from __future__ import annotations

import csv
import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from handful.arguments import some_of
from handful.errors import BankError
from handful.machine.untrusted import refuse_irregular
from handful.shapes import Float

# What may stand between the beginning and the count.
BETWEEN = "_-. "
# Rows of a CSV file that become numbers at once.
ROWS_AT_ONCE = 4096


def dimension_columns(columns: Sequence[str], asked: str | None, where: str) -> list[str]:
    """Return the columns that are the dimensions of the vector, in their order; none if there are no such columns.

    Parameters
    ----------
    columns : sequence of str
        Columns of numbers, in the order of the table.
    asked : str or None
        What the names begin with, such as `emb`. By default the longest run of numbered columns.
    where : str
        The table, for messages.

    Examples
    --------
    >>> dimension_columns(["ticket", "emb_0", "emb_1", "emb_2", "week1", "week2"], None, "a table")
    ['emb_0', 'emb_1', 'emb_2']
    >>> dimension_columns(["ticket", "emb_0", "emb_1", "emb_2", "week1", "week2"], "week", "a table")
    ['week1', 'week2']
    """
    runs: dict[str, dict[int, str]] = defaultdict(dict)
    for name in columns:
        # Zeros in front belong to the count (`emb_000`); more than nine digits are an identifier.
        if found := re.fullmatch(r"(.*?)([0-9]{1,9})", name, flags=re.DOTALL):
            runs[found[1]].setdefault(int(found[2]), name)
    if asked is not None:
        runs = {start: run for start, run in runs.items() if start.rstrip(BETWEEN) == asked.rstrip(BETWEEN)}
    whole = [_counted(run) for run in runs.values()]
    longest = max(map(len, whole), default=0)
    if longest < 2 and asked is None:
        return []
    best = [run for run in whole if len(run) == longest]
    if len(best) > 1:
        ways = " or ".join(f"{run[0]} … {run[-1]}" for run in best)
        raise BankError(f"{where}: the vectors may be {ways}; name the beginning of the right ones with `features`")
    return best[0] if best else []


def _counted(run: dict[int, str]) -> list[str]:
    """Return the names with counts 0, 1, … or 1, 2, …, as far as no count is missing."""
    first = 0 if 0 in run else 1
    names = list[str]()
    while first + len(names) in run:
        names.append(run[first + len(names)])
    return names


def is_wide_csv(path: Path, features: str | None) -> bool:
    """Whether a table is a CSV file of vectors: it has neither sentences nor paths, or the vectors were named."""
    if path.suffix.lower() != ".csv" or not path.is_file():
        return False
    refuse_irregular(path, BankError)
    try:
        with path.open(encoding="utf-8-sig", newline="") as stream:
            header = next(csv.reader(stream), [])
    except (csv.Error, ValueError):
        return False  # the reader of items says what is wrong with it
    if features is None and {"text", "path"} & set(header):
        return False
    return bool(dimension_columns(header, features, str(path)))


def read_wide_csv(path: Path, features: str | None = None) -> tuple[Float[np.ndarray, "row dim"], dict[str, list[str]]]:
    """Read the vectors of a CSV file with one column per dimension, and all other columns as the text that they are."""
    blocks = list[np.ndarray]()
    try:
        with path.open(encoding="utf-8-sig", newline="") as stream:
            rows = csv.reader(stream)
            header = next(rows)
            if len(set(header)) != len(header):
                raise BankError(f"{path} has two columns of the same name; it has {some_of(header)}")
            chosen = [header.index(name) for name in dimension_columns(header, features, str(path))]
            others = [place for place in range(len(header)) if place not in set(chosen)]
            columns = {header[place]: list[str]() for place in others}
            for start, part in _parts(rows, len(header), path):
                blocks.append(_numbers(part, chosen, start, header, path))
                for place in others:
                    columns[header[place]].extend(row[place] for row in part)
    except (csv.Error, UnicodeDecodeError) as error:
        raise BankError(f"{path} is not a CSV file in UTF-8 ({error}); write it again") from error
    if not blocks:
        raise BankError(f"{path} has no rows")
    return np.concatenate(blocks), columns


def _parts(rows: Iterator[list[str]], width: int, path: Path) -> Iterator[tuple[int, list[list[str]]]]:
    """Yield runs of rows with the number of the first; refuse rows of another width, skip empty lines."""
    part, start = list[list[str]](), 0
    for row in rows:
        if not row:
            continue
        if len(row) != width:
            raise BankError(
                f"row {start + len(part)} of {path} has {len(row)} values, its header {width}; write it again"
            )
        part.append(row)
        if len(part) == ROWS_AT_ONCE:
            yield start, part
            part, start = [], start + len(part)
    if part:
        yield start, part


def _numbers(part: list[list[str]], chosen: list[int], start: int, header: list[str], path: Path) -> np.ndarray:
    try:
        return np.array([[float(row[place]) for place in chosen] for row in part], np.float32)
    except ValueError:
        for number, row in enumerate(part, start):
            for place in chosen:
                if not _is_number(row[place]):
                    raise BankError(
                        f"row {number} of {path} must have a number in column {header[place]!r}, got {row[place]!r}; "
                        "fix or drop that row"
                    ) from None
        raise


def _is_number(text: Any) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
