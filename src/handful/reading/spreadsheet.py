"""Spreadsheets (`.xlsx`): one sheet, one row per item below a header. openpyxl reads them."""

from __future__ import annotations

import os
import re
import warnings
import zipfile
from array import array
from itertools import islice
from pathlib import Path
from typing import Any
from xml.parsers import expat

from handful.arguments import some_of
from handful.errors import BankError, HandfulError, TableWarning
from handful.machine.extras import import_extra
from handful.machine.untrusted import Budget, refuse_irregular, unreadable, with_type
from handful.reading.header import (
    LOOKED_AT,
    PATH_NAME,
    TEXT_NAMES,
    Asked,
    column_name,
    find_column,
    header_place,
    is_blank,
    no_header,
    no_items,
    no_rows,
    refuse_equal_names,
    warn_of_title,
)
from handful.reading.lists import table_of_lists
from handful.reading.table import Table

# Sheets that are looked at for a table, if the first has none.
MOST_SHEETS = 10
MERGED = re.compile(r"([A-Z]{1,3})([0-9]{1,7}):([A-Z]{1,3})([0-9]{1,7})")

# The last row of a sheet, by the format.
LAST_ROW = 2**20
# Elements that openpyxl forgets after it has read them: rows of a sheet, and texts, which all sheets share.
RELEASED = ("row", "si")
# Elements that one of them, or all that is left of a part, may have. A row has at most 2¹⁴ cells.
MOST_ELEMENTS = 2**17
# What an element takes in memory at least.
ELEMENT_BYTES = 16


def read_spreadsheet(path: Path, asked: Asked) -> Table:
    """Read one sheet of an `.xlsx` file, the first with a table, or the one that a path names: `book.xlsx/sheet`.

    Formulas are read as the values that were saved with them, and all cells of merged ones have the value of the first.
    """
    file = book_above(path)
    assert file is not None
    refuse_irregular(file, BankError)
    named = None if file == path else path.relative_to(file).as_posix()
    sheets = _sheets(file, named)
    if not sheets:
        raise BankError(f"{path} has no sheet with cells; save it again as .xlsx, or as .csv")
    first = next(iter(sheets))
    failed = list[BankError]()
    for name, (rows, lines, budget) in sheets.items():
        try:
            table = _table(rows, lines, budget, asked, str(path))
        except BankError as error:
            failed.append(error)
            continue
        if name != first:
            said = f"{path}: the table is on the sheet {name!r}, because {first!r} has none that can be read"
            warnings.warn(TableWarning(f"{said}; {path}/{name} names it"), stacklevel=2)
        return table
    others = [name for name in sheets if name != first]
    raise BankError(
        f"{failed[0]}. That is the sheet {first!r}; {others[0]!r} is another: {path}/{others[0]}"
        if others
        else str(failed[0])
    ) from failed[0]


def book_above(path: Path) -> Path | None:
    """Return the .xlsx file that `path` is, or names a sheet of."""
    if path.suffix.lower() == ".xlsx" and not os.path.isfile(path.parent):
        return path
    return path.parent if path.parent.suffix.lower() == ".xlsx" and os.path.isfile(path.parent) else None


def _sheets(path: Path, named: str | None) -> dict[str, tuple[list[Any], array[int], Budget]]:
    """Return the rows that are not blank, with their lines, of the first sheet and of others that look like tables."""
    openpyxl = import_extra("openpyxl", "xlsx")
    try:
        budget = Budget.of(path)
        merged = dict[str, list[str]]()
        with zipfile.ZipFile(path) as archive:
            budget.spend(sum(entry.file_size for entry in archive.infolist()))
            for entry in archive.infolist():
                merged[entry.filename] = _check_part(archive, entry, budget)
        book = openpyxl.load_workbook(path, read_only=True, data_only=True, keep_links=False)
        sheets = book.worksheets[:MOST_SHEETS]
        if named is not None and named not in book.sheetnames:
            raise BankError(f"{path} has no sheet {named!r}; it has {some_of(book.sheetnames)}")
        found: dict[str, tuple[list[Any], array[int], Budget]] = {}
        for sheet in sheets if named is None else [book[named]]:
            if found and not _has_table(sheet):
                continue
            sheet.reset_dimensions()  # rows are as long as they are, whatever the sheet says
            rows = list[Any]()
            lines = array("q")
            for line, row in enumerate(sheet.iter_rows(values_only=True), 1):
                if not all(map(is_blank, row)):
                    budget.spend(cells=1 + len(row))
                    rows.append(row)
                    lines.append(line)
            part = getattr(sheet, "_worksheet_path", "").lstrip("/")
            found[sheet.title] = (_filled(rows, lines, merged.get(part, [])), lines, budget)
        book.close()
    except HandfulError:
        raise
    except Exception as error:  # openpyxl raises nearly anything about a damaged file
        raise unreadable(path, ".xlsx", with_type(error)) from error
    return found


def _filled(rows: list[Any], lines: array[int], merged: list[str]) -> list[Any]:
    """Return the rows with the value of the first cell in all cells that are merged below it."""
    index_of = {line: index for index, line in enumerate(lines)}
    changed = dict[int, list[Any]]()
    for cells in merged:
        if not (found := MERGED.fullmatch(cells)) or found[1] != found[3]:
            continue  # side by side: the names of the columns are not there
        column = _column(found[1])
        first = int(found[2])
        last = min(int(found[4]), lines[-1] if lines else 0)
        top = rows[index_of[first]] if first in index_of else ()
        for line in range(first + 1, last + 1) if column < len(top) else ():
            if line in index_of:
                row = changed.setdefault(index_of[line], list(rows[index_of[line]]))
                row += [None] * (column + 1 - len(row))
                row[column] = top[column]
    return [changed.get(index, row) for index, row in enumerate(rows)]


def _column(letters: str) -> int:
    number = 0
    for letter in letters:
        number = 26 * number + ord(letter) - ord("A") + 1
    return number - 1


def _table(rows: list[Any], lines: array[int], budget: Budget, asked: Asked, where: str) -> Table:
    if len(lines) < 2:
        raise no_rows(where)
    if asked.header_row is not None:
        if asked.header_row not in lines[:-1]:
            raise no_header(asked.header_row, where)
        start = lines.index(asked.header_row)
        rows = rows[start:]
        lines = lines[start:]
    looked = list(zip(lines, rows[: LOOKED_AT + 1], strict=False))
    if index := header_place(looked, asked):
        warn_of_title(looked, index, where)
    rows = rows[index:]
    lines = lines[index:]
    header = list(map(column_name, rows[0]))
    refuse_equal_names(header, where)
    budget.spend(cells=len(header) * len(rows))
    columns: dict[str, list[Any]] = {
        name: [row[index] if index < len(row) else None for row in rows[1:]]
        for index, name in enumerate(header)
        if name
    }
    table = table_of_lists(columns, asked, where, lines=lambda: lines[1:])
    if asked.text:
        find_column(columns, asked.text, (), "texts", where)
    elif table.vectors is None and not {*TEXT_NAMES, PATH_NAME} & set(columns):
        raise no_items(list(columns), where, asked)
    return table


def _has_table(sheet: Any) -> bool:
    """Whether a sheet begins with two rows or more of two values or more."""
    sheet.reset_dimensions()
    rows = islice(sheet.iter_rows(values_only=True), LOOKED_AT)
    return sum(sum(not is_blank(cell) for cell in row) > 1 for row in rows) > 1


def _check_part(archive: zipfile.ZipFile, entry: zipfile.ZipInfo, budget: Budget) -> list[str]:
    """Refuse what would make openpyxl take far more memory than a part has bytes, or count to a row without end.

    Returns the merged cells, such as `A2:A7`.
    """
    parser = expat.ParserCreate(namespace_separator=" ")
    n_loose = 0
    n_inside = 0
    inside = False
    merged = list[str]()

    def start(tag: str, about: dict[str, str]) -> None:
        nonlocal n_loose, n_inside, inside
        kind = tag.rpartition(" ")[2]
        budget.spend(ELEMENT_BYTES)
        if kind in RELEASED:
            inside = True
            n_inside = 0
            budget.spend(cells=4)
            if kind == "row" and float(about.get("r", 0)) > LAST_ROW:
                raise ValueError(f"row {about['r']:.20} is beyond {LAST_ROW:,}, the last one of a sheet")
        if kind == "mergeCell" and len(merged) < MOST_ELEMENTS:
            merged.append(about.get("ref", ""))
        n_inside = n_inside + inside
        n_loose = n_loose + (not inside)
        if max(n_inside, n_loose) > MOST_ELEMENTS:
            raise ValueError(f"{entry.filename!r:.60} has more elements than a genuine sheet")

    def end(tag: str) -> None:
        nonlocal inside
        inside = inside and tag.rpartition(" ")[2] not in RELEASED

    def refuse(*_: object) -> None:
        raise ValueError(f"{entry.filename!r:.60} has a document type, which no genuine file has")

    parser.StartElementHandler = start
    parser.EndElementHandler = end
    parser.StartDoctypeDeclHandler = refuse
    try:
        with archive.open(entry) as stream:
            parser.ParseFile(stream)
    except expat.ExpatError:
        pass  # it is no XML, or openpyxl stops at the same index
    return merged
