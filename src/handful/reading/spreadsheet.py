"""Spreadsheets (`.xlsx`): the first sheet, one row per item below a header. openpyxl reads them."""

from __future__ import annotations

import zipfile
from pathlib import Path
from typing import Any

from handful.arguments import some_of
from handful.errors import BankError, HandfulError
from handful.machine.extras import import_extra
from handful.machine.untrusted import refuse_irregular, refuse_unfolding
from handful.reading.records import Asked, Records, table_of_lists


def read_spreadsheet(path: Path, asked: Asked) -> Records:
    """Read the first sheet of an `.xlsx` file; formulas are read as the values that were saved with them."""
    openpyxl = import_extra("openpyxl", "xlsx")
    refuse_irregular(path, BankError)
    try:
        with zipfile.ZipFile(path) as archive:
            refuse_unfolding("it", path.stat().st_size, sum(entry.file_size for entry in archive.infolist()))
        book = openpyxl.load_workbook(path, read_only=True, data_only=True, keep_links=False)
        rows = [list(row) for row in book.worksheets[0].iter_rows(values_only=True)]
        book.close()
    except HandfulError:
        raise
    except Exception as error:  # openpyxl raises nearly anything about a damaged file
        raise BankError(
            f"{path} cannot be read as .xlsx ({type(error).__name__}: {error}); it is cut short or of another kind"
        ) from error
    lines = [line for line, row in enumerate(rows, 1) if any(value is not None for value in row)]
    if len(lines) < 2:
        raise BankError(f"{path} has no rows; expected a header, and one row per item")
    header = rows[lines[0] - 1]
    places = [place for place, name in enumerate(header) if name is not None]
    names = [str(header[place]) for place in places]
    if len(set(names)) != len(names):
        raise BankError(f"{path} has two columns of the same name; it has {some_of(names)}")
    columns: dict[str, list[Any]] = {
        name: [rows[line - 1][place] for line in lines[1:]] for name, place in zip(names, places, strict=True)
    }
    return table_of_lists(columns, asked, str(path), lines=lambda: lines[1:])
