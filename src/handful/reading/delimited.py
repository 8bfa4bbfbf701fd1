"""Tables as text: values separated by commas, semicolons or tabs, in UTF-8, UTF-16 or cp1252.

pyarrow reads them. Where it is not installed, and where some rows cannot be read, Python's `csv` reads them row by row
and knows their lines. All columns stay the text that they are, `007` and `1.50` too; only the vectors become numbers.
"""

from __future__ import annotations

import codecs
import csv
import io
import threading
from array import array
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import cache, partial
from importlib.util import find_spec
from itertools import chain, islice
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from handful.errors import BankError
from handful.machine.extras import import_extra, import_pyarrow
from handful.machine.untrusted import Budget, finite, opened_bytes
from handful.reading.header import (
    LOOKED_AT,
    Asked,
    chosen_measurements,
    column_name,
    dimension_columns,
    header_place,
    holds_items,
    is_blank,
    is_clear_comma,
    no_header,
    no_rows,
    not_a_number,
    refuse_equal_names,
    refuse_unnamed,
    warn_of_title,
    with_point,
)
from handful.reading.measurements import with_measurements
from handful.reading.table import Skipped, Table

DELIMITERS = (",", ";", "\t")
# Bytes that pyarrow parses at once, and rows or numbers of rows that become an array at once without it.
BLOCK_BYTES = 2**24
BLOCK_ROWS = 4096
BLOCK_NUMBERS = 2**20
# What pyarrow takes in memory for a column, however few rows it has; and how much that may be for all columns: always
# this many bytes, and for a larger file this many times its size.
ARROW_COLUMN_BYTES = 10_000
ARROW_ALWAYS_ALLOWED = 2**25
ARROW_MOST_PER_BYTE = 4
_LOCK = threading.Lock()
_n_reading = 0
_usual = csv.field_size_limit()
MARKS = {b"\xef\xbb\xbf": "utf-8-sig", b"\xff\xfe": "utf-16", b"\xfe\xff": "utf-16"}


class _Form(NamedTuple):
    """How a file is written: its encoding and delimiter, its columns, and which of them are the vectors."""

    path: Path
    encoding: str
    delimiter: str
    header: list[str]
    chosen: list[str]
    comma: bool  # whether numbers have a decimal comma
    line: int  # the last one of the header
    gaps: bool  # whether missing numbers are read as NaN

    @property
    def others(self) -> list[str]:
        """Columns that are no vectors."""
        chosen = set(self.chosen)
        return [name for name in self.header if name not in chosen]

    def rows(self) -> Iterator[tuple[int, list[str]]]:
        """Yield the rows below the header, each with its first line; lines that are empty are none."""
        with io.TextIOWrapper(opened_bytes(self.path), encoding=self.encoding, newline="") as text:
            reader = csv.reader(text, delimiter=self.delimiter)
            line = 1
            with _long_values():
                for row in reader:
                    if row and line > self.line:
                        yield line, row
                    line = reader.line_num + 1


def read_delimited(path: Path, asked: Asked) -> Table:
    """Read a `.csv` or `.tsv` file, also `.gz`; rows that do not fit the header are skipped and listed."""
    try:
        encoding = encoding_of(path)
        tabs = ".tsv" in path.name.lower()
        (line, written), below, delimiter = _header(path, encoding, ("\t",) if tabs else DELIMITERS, asked)
        header = list(map(column_name, written))
        refuse_equal_names(header, str(path))
        named = list(filter(None, header))
        chosen = [] if holds_items(named, asked) else dimension_columns(named, asked.features, str(path))
        measured = list[str]()
        comma = delimiter != "," and any(map(is_clear_comma, chain(*below)))
        if not chosen and not holds_items(named, asked):
            cells = {name: [row[k] for row in below if k < len(row)] for k, name in enumerate(header) if name}
            measured = chosen_measurements(named, asked, lambda name: _has_numbers(cells[name], comma), str(path))
        form = _Form(path, encoding, delimiter, header, chosen, comma, line, asked.gaps)
        # Arrow takes names as they are written.
        simple = find_spec("pyarrow") and header == written and all(header[1:]) and line == 1 and not _is_wide(form)
        table = _read_by_arrow(form) if simple else None
        # Rows are told from blank ones one by one.
        if table is None or any(is_blank(cell) for name in measured for cell in table.values(name)):
            table = _read_by_row(form)
        # Measurements are read as text, which they stay beside the vectors.
        values = {name: table.values(name) for name in measured}
        table = with_measurements(replace(table, features=tuple(chosen)), values, partial(_number, comma), asked)
    except (csv.Error, UnicodeError) as error:
        raise BankError(
            f"{path} cannot be read as a table separated by commas, semicolons or tabs ({error}); write it again"
        ) from error
    return table


def delimiter_of(path: Path) -> str:
    r"""Return what separates the columns of a file.

    Examples
    --------
    >>> import tempfile
    >>> place = Path(tempfile.mkdtemp()) / "a.csv"
    >>> _ = place.write_text("name;size\nfox;1,5\n")
    >>> delimiter_of(place)
    ';'
    """
    tabs = ".tsv" in path.name.lower()
    return _header(path, encoding_of(path), ("\t",) if tabs else DELIMITERS, Asked())[2]


def encoding_of(path: Path) -> str:
    """Return the encoding of a text: that of its mark, else UTF-16 if half of it is zero, else UTF-8 or cp1252."""
    with opened_bytes(path) as stream:
        start = stream.read(2**16)
        for mark, encoding in MARKS.items():
            if start.startswith(mark):
                return encoding
        for first, encoding in ((1, "utf-16-le"), (0, "utf-16-be")):
            if len(start) > 1 and start[first::2].count(0) > len(start) // 4:
                return encoding
        stream.seek(0)
        try:
            decoder = codecs.getincrementaldecoder("utf-8")()
            while block := stream.read(2**20):
                decoder.decode(block)
            decoder.decode(b"", final=True)
        except UnicodeDecodeError:
            return "cp1252"
    return "utf-8"


def _header(
    path: Path, encoding: str, delimiters: Sequence[str], asked: Asked
) -> tuple[tuple[int, list[str]], list[list[str]], str]:
    """Return the columns with their line, some rows below, and the delimiter that gives most columns."""
    found = []
    start = asked.header_row or 0
    for delimiter in delimiters:
        with io.TextIOWrapper(opened_bytes(path), encoding=encoding, newline="") as text, _long_values():
            reader = csv.reader(text, delimiter=delimiter)
            filled = ((reader.line_num, row) for row in reader if not all(map(is_blank, row)))
            found.append((list(islice((one for one in filled if one[0] >= start), LOOKED_AT + 1)), delimiter))
    if not any(rows for rows, _ in found):
        if start:
            raise no_header(start, str(path))
        raise no_rows(str(path))
    (first, *below), delimiter = max(
        ((rows, by) for rows, by in found if rows), key=lambda one: sum(not is_blank(cell) for cell in one[0][0][1])
    )
    if start and first[0] != start:
        raise no_header(start, str(path))
    # A header has several names, in the places of the values below it.
    if sum(not is_blank(cell) for cell in first[1]) < 2 or not any(len(row) >= len(first[1]) for _, row in below):
        below_title = [(place, by, rows) for rows, by in found if (place := header_place(rows, asked))]
        if below_title:  # the names nearest to the title: rows of numbers with decimal commas have several values too
            place, delimiter, rows = min(below_title, key=lambda one: (one[0], -len(one[2][one[0]][1])))
            warn_of_title(rows, place, str(path))
            first = rows[place]
            below = rows[place + 1 :]
    return first, [row for _, row in below], delimiter


def _has_numbers(cells: Sequence[str], comma: bool) -> bool:
    """Whether cells are numbers, as far as they are not blank."""
    there = [cell for cell in cells if not is_blank(cell)]
    try:
        return bool([_number(comma, cell) for cell in there])
    except ValueError:
        return False


def _number(comma: bool, cell: str) -> float:
    """Return the number of a cell, with a decimal comma or without; a `ValueError` if it is none."""
    return finite(with_point(cell) if comma else cell)


@contextmanager
def _long_values() -> Iterator[None]:
    """Let `csv` read values of any length, for as long as some file is read: its limit is one for all threads."""
    global _n_reading, _usual
    with _LOCK:
        if not _n_reading:
            _usual = csv.field_size_limit(2**31 - 1)
        _n_reading += 1
    try:
        yield
    finally:
        with _LOCK:
            _n_reading -= 1
            if not _n_reading:
                csv.field_size_limit(_usual)


def _is_wide(form: _Form) -> bool:
    """Whether columns are so many that pyarrow would take far more memory than the file has bytes."""
    allowed = max(ARROW_ALWAYS_ALLOWED, ARROW_MOST_PER_BYTE * form.path.stat().st_size)
    return ARROW_COLUMN_BYTES * len(form.header) > allowed


def _read_by_arrow(form: _Form) -> Table | None:
    """Read a table of which every row can be read; None if there are others."""
    beside = form.others
    (pa, _) = import_pyarrow()
    arrow_csv = import_extra("pyarrow.csv", "parquet")
    try:
        with opened_bytes(form.path) as stream:
            batches = arrow_csv.open_csv(
                stream,
                arrow_csv.ReadOptions(block_size=BLOCK_BYTES, encoding=form.encoding.removesuffix("-sig")),
                arrow_csv.ParseOptions(delimiter=form.delimiter, newlines_in_values=True),
                arrow_csv.ConvertOptions(
                    decimal_point="," if form.comma else ".",
                    column_types={
                        **dict.fromkeys(form.header, pa.string()),
                        **dict.fromkeys(form.chosen, pa.float32()),
                    },
                ),
            )
            if batches.schema.names != form.header:
                return None
            parts = []
            blocks = list[np.ndarray]()
            budget = Budget.of(form.path)
            for batch in batches:
                budget.spend(4 * batch.num_rows * len(form.chosen), cells=batch.num_rows * (1 + len(beside)))
                numbers = [np.asarray(batch.column(name)) for name in form.chosen]  # NaN where there is none
                blocks.append(np.stack(numbers, axis=1) if numbers else np.empty((batch.num_rows, 0), np.float32))
                if not np.isfinite(blocks[-1]).all():
                    return None
                parts.append(batch.select(beside))
    except pa.ArrowInvalid:
        return None
    n_rows = sum(map(len, blocks))
    if not n_rows:
        return None
    others = pa.Table.from_batches(parts)
    return Table(
        str(form.path),
        n_rows,
        vectors=np.concatenate(blocks) if form.chosen else None,
        columns={name: others.column(name) for name in others.column_names},
        lines=cache(lambda: [line for line, _ in form.rows()]),
    )


def _read_by_row(form: _Form) -> Table:
    index_of = {name: index for index, name in enumerate(form.header) if name}
    indices = [index_of[name] for name in form.chosen]
    is_vector = set(indices)
    others = [index for index in range(len(form.header)) if index not in is_vector]
    columns: dict[int, list[str]] = {index: [] for index in others}
    blocks = list[np.ndarray]()
    part = list[list[float]]()
    positions = array("q")
    lines = array("q")
    skipped = list[Skipped]()
    budget = Budget.of(form.path)
    last = -1
    for position, (line, row) in enumerate(form.rows()):
        budget.spend(4 * len(indices), cells=1 + len(others))
        lines.append(line)
        if all(map(is_blank, row)):
            continue
        # Blank rows are left out where others follow; spreadsheets write any number of them at the end.
        budget.spend(cells=4 * (position - last - 1))
        skipped += [
            Skipped(blank, f"line {lines[blank]}", "the row is blank", "blank") for blank in range(last + 1, position)
        ]
        last = position
        if len(row) > len(form.header) and all(map(is_blank, row[len(form.header) :])):
            row = row[: len(form.header)]
        reason, numbers = _numbers(row, indices, form)
        if reason:
            skipped.append(Skipped(position, f"line {line}", reason))
            continue
        positions.append(position)
        part.append(numbers)
        for index in others:
            columns[index].append(row[index])
        if len(part) == BLOCK_ROWS or len(part) * len(indices) >= BLOCK_NUMBERS:
            blocks.append(np.array(part, np.float32))
            part = []
    if last < 0:
        raise no_rows(str(form.path))
    empty = {index for index in others if not form.header[index] and all(map(is_blank, columns[index]))}
    refuse_unnamed([index for index in others if not form.header[index] and index not in empty], str(form.path))
    about: dict[str, Any] = {"skipped": tuple(skipped), "positions": positions, "lines": lambda: lines}
    kept = {form.header[index]: columns[index] for index in others if index not in empty}
    table = Table(str(form.path), len(positions), columns=kept, **about)
    blocks.append(np.array(part, np.float32).reshape(len(part), len(indices)))
    return replace(table, vectors=np.concatenate(blocks)) if indices else table


def _numbers(row: Sequence[str], indices: Sequence[int], form: _Form) -> tuple[str, list[float]]:
    """Return why a row cannot be read, if so, and the numbers of its vector."""
    if len(row) != len(form.header):
        quotes = f"; put values that contain {form.delimiter!r} in quotes" if len(row) > len(form.header) else ""
        values = f"{len(row)} value{'' if len(row) == 1 else 's'}"
        return f"it has {values}, the header has {len(form.header)}{quotes}", []
    numbers = list[float]()
    gaps = form.gaps and not all(is_blank(row[index]) for index in indices)
    for index in indices:
        if gaps and is_blank(row[index]):
            numbers.append(np.nan)
            continue
        try:
            numbers.append(_number(form.comma, row[index]))
        except ValueError:
            return not_a_number(row[index], form.header[index]), []
    return "", numbers
