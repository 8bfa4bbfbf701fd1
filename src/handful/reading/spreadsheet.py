"""Spreadsheets (`.xlsx`): the first sheet, one row per item below a header. openpyxl reads them."""

from __future__ import annotations

import zipfile
from array import array
from itertools import islice
from pathlib import Path
from typing import Any
from xml.parsers import expat

from handful.errors import BankError, HandfulError
from handful.machine.extras import import_extra
from handful.machine.untrusted import Budget, refuse_irregular
from handful.reading.header import (
    LOOKED_AT,
    PATH_NAME,
    TEXT_NAMES,
    Asked,
    column_name,
    find_column,
    is_blank,
    refuse_equal_names,
    refuse_title,
)
from handful.reading.table import Table, no_items, table_of_lists

# Sheets that are looked at for a table, if the first has none.
MOST_SHEETS = 10

# The last row of a sheet, by the format.
LAST_ROW = 2**20
# Elements that openpyxl forgets after it has read them: rows of a sheet, and texts, which all sheets share.
RELEASED = ("row", "si")
# Elements that one of them, or all that is left of a part, may have. A row has at most 2¹⁴ cells.
MOST_ELEMENTS = 2**17
# What an element takes in memory at least.
ELEMENT_BYTES = 16


def read_spreadsheet(path: Path, asked: Asked) -> Table:
    """Read the first sheet of an `.xlsx` file; formulas are read as the values that were saved with them."""
    openpyxl = import_extra("openpyxl", "xlsx")
    refuse_irregular(path, BankError)
    try:
        with zipfile.ZipFile(path) as archive:
            budget = Budget.of(path)
            budget.spend(sum(entry.file_size for entry in archive.infolist()))
            for entry in archive.infolist():
                _check_part(archive, entry, budget)
        book = openpyxl.load_workbook(path, read_only=True, data_only=True, keep_links=False)
        sheet, *others = book.worksheets[:MOST_SHEETS]
        sheet.reset_dimensions()  # rows are as long as they are, whatever the sheet says
        rows, lines = list[Any](), array("q")
        for line, row in enumerate(sheet.iter_rows(values_only=True), 1):
            if not all(map(is_blank, row)):
                budget.spend(cells=1 + len(row))
                rows.append(row)
                lines.append(line)
        other = next((sheet.title for sheet in others if _has_table(sheet)), None)
        book.close()
    except HandfulError:
        raise
    except Exception as error:  # openpyxl raises nearly anything about a damaged file
        raise BankError(
            f"{path} cannot be read as .xlsx ({type(error).__name__}: {error}); it is cut short or of another kind"
        ) from error
    try:
        if len(lines) < 2:
            raise BankError(f"{path} has no rows; expected a header, and one row per item")
        refuse_title(list(zip(lines, rows[: LOOKED_AT + 1], strict=False)), asked, str(path))
        header = list(map(column_name, rows[0]))
        refuse_equal_names(header, str(path))
        budget.spend(cells=len(header) * len(rows))
        columns: dict[str, list[Any]] = {
            name: [row[index] if index < len(row) else None for row in rows[1:]]
            for index, name in enumerate(header)
            if name
        }
        table = table_of_lists(columns, asked, str(path), lines=lambda: lines[1:])
        if asked.text:
            find_column(columns, asked.text, (), "texts", str(path))
        elif table.vectors is None and not {*TEXT_NAMES, PATH_NAME} & set(columns):
            raise no_items(list(columns), str(path))
    except BankError as error:
        if other is None:
            raise
        raise BankError(
            f"{error}. Only the first sheet is read, {sheet.title!r}, and {other!r} has a table too; if that is the "
            "right one, move it to the front"
        ) from error
    return table


def _has_table(sheet: Any) -> bool:
    """Whether a sheet begins with two rows or more of two values or more."""
    sheet.reset_dimensions()
    rows = islice(sheet.iter_rows(values_only=True), LOOKED_AT)
    return sum(sum(not is_blank(cell) for cell in row) > 1 for row in rows) > 1


def _check_part(archive: zipfile.ZipFile, entry: zipfile.ZipInfo, budget: Budget) -> None:
    """Refuse what would make openpyxl take far more memory than a part has bytes, or count to a row without end."""
    parser = expat.ParserCreate(namespace_separator=" ")
    n_loose, n_inside, inside = 0, 0, False

    def start(tag: str, about: dict[str, str]) -> None:
        nonlocal n_loose, n_inside, inside
        kind = tag.rpartition(" ")[2]
        budget.spend(ELEMENT_BYTES)
        if kind in RELEASED:
            inside, n_inside = True, 0
            budget.spend(cells=4)
            if kind == "row" and float(about.get("r", 0)) > LAST_ROW:
                raise ValueError(f"row {about['r']:.20} is beyond {LAST_ROW:,}, the last one of a sheet")
        n_inside, n_loose = n_inside + inside, n_loose + (not inside)
        if max(n_inside, n_loose) > MOST_ELEMENTS:
            raise ValueError(f"{entry.filename!r:.60} has more elements than a genuine sheet")

    def end(tag: str) -> None:
        nonlocal inside
        inside = inside and tag.rpartition(" ")[2] not in RELEASED

    def refuse(*_: object) -> None:
        raise ValueError(f"{entry.filename!r:.60} has a document type, which no genuine file has")

    parser.StartElementHandler, parser.EndElementHandler, parser.StartDoctypeDeclHandler = start, end, refuse
    try:
        with archive.open(entry) as stream:
            parser.ParseFile(stream)
    except expat.ExpatError:
        pass  # it is no XML, or openpyxl stops at the same place
