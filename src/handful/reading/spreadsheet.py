"""Spreadsheets (`.xlsx`): the first sheet, one row per item below a header. openpyxl reads them."""

from __future__ import annotations

import zipfile
from array import array
from pathlib import Path
from typing import Any
from xml.parsers import expat

from handful.arguments import some_of
from handful.errors import BankError, HandfulError
from handful.machine.extras import import_extra
from handful.machine.untrusted import Budget, refuse_irregular
from handful.reading.records import Asked, Records, table_of_lists

# The last row of a sheet, by the format.
LAST_ROW = 2**20
# Elements that openpyxl forgets after it has read them: rows of a sheet, and texts, which all sheets share.
RELEASED = ("row", "si")
# Elements that one of them, or all that is left of a part, may have. A row has at most 2¹⁴ cells.
MOST_ELEMENTS = 2**17
# What an element takes in memory at least.
ELEMENT_BYTES = 16


def read_spreadsheet(path: Path, asked: Asked) -> Records:
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
        sheet = book.worksheets[0]
        sheet.reset_dimensions()  # rows are as long as they are, whatever the sheet says
        rows, lines = list[Any](), array("q")
        for line, row in enumerate(sheet.iter_rows(values_only=True), 1):
            if any(value is not None for value in row):
                budget.spend(cells=1 + len(row))
                rows.append(row)
                lines.append(line)
        book.close()
    except HandfulError:
        raise
    except Exception as error:  # openpyxl raises nearly anything about a damaged file
        raise BankError(
            f"{path} cannot be read as .xlsx ({type(error).__name__}: {error}); it is cut short or of another kind"
        ) from error
    if len(lines) < 2:
        raise BankError(f"{path} has no rows; expected a header, and one row per item")
    header = rows[0]
    places = [place for place, name in enumerate(header) if name is not None]
    names = [str(header[place]) for place in places]
    if len(set(names)) != len(names):
        raise BankError(f"{path} has two columns of the same name; it has {some_of(names)}")
    budget.spend(cells=len(names) * len(rows))
    columns: dict[str, list[Any]] = {
        name: [row[place] if place < len(row) else None for row in rows[1:]]
        for name, place in zip(names, places, strict=True)
    }
    return table_of_lists(columns, asked, str(path), lines=lambda: lines[1:])


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
