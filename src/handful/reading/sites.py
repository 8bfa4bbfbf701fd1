"""Where and when an image or recording was made: a format of a field, or a CSV table with a column of files.

Rows are found by the path of the file: the whole path, or as many of its last parts as both sides have.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from handful.errors import FileFormatError, OptionError
from handful.machine.untrusted import read_text
from handful.reading.registry import site_format, site_formats
from handful.reading.tool_scores import ItemLabel

# Last parts of a path that are compared at most.
DEEPEST = 256
FILE_NAMES = ("file", "filepath", "file_name", "filename", "path", "filePath", "fileName", "File")


def read_sites(path: Path) -> dict[str, list[Any]]:
    """Return columns, among them `file`, with one row per file."""
    known = site_format(path)
    return _table(path) if known is None else known.read(path)


def site_files(path: Path) -> dict[str, Path]:
    """Return the files that are read as sites, by name: `sites`, and the tables that it names."""
    known = site_format(path)
    return {"sites": path} if known is None else known.files(path)


def write_sites(source: Path, files: Sequence[str], answers: Sequence[ItemLabel], out: Path) -> None:
    """Write labels into a copy of the file of sites, or of a table that it names; of a file, the surest counts."""
    known = site_format(source)
    if known is None:
        titles = " or ".join(one.title for one in site_formats())
        raise OptionError(f"{source} is a plain table; labels go into {titles}")
    rows = rows_of(files, known.read(source)["file"], str(source))
    surest: dict[int, ItemLabel] = {}
    for row, answer in zip(rows, answers, strict=True):
        if row not in surest or answer.certainty > surest[row].certainty:
            surest[row] = answer
    known.write(source, surest, out)


def columns_of(files: Sequence[str], sites: Mapping[str, list[Any]], where: str) -> dict[str, list[Any]]:
    """Return the columns of `sites` for these files, in their order; a file that is not there is refused.

    Examples
    --------
    >>> columns_of(["/data/B/2.jpg", "/data/A/1.jpg"], {"file": ["A/1.jpg", "B/2.jpg"], "location": [7, 9]}, "a table")
    {'location': [9, 7]}
    """
    rows = rows_of(files, sites["file"], where)
    return {name: [values[row] for row in rows] for name, values in sites.items() if name != "file"}


def rows_of(files: Sequence[str], listed: Sequence[Any], where: str) -> list[int]:
    """Return the position of each file in a list of files; one that is not there is refused."""
    whole = {_parts(name): row for row, name in enumerate(listed)}
    ends: dict[tuple[str, ...], int | None] = {}
    for own, row in whole.items():
        for start in range(max(1, len(own) - DEEPEST), len(own)):
            # An end that several files share says nothing.
            ends[own[start:]] = row if own[start:] not in ends else None
    rows = [_row_of(_parts(name), whole, ends) for name in files]
    lost = [name for name, row in zip(files, rows, strict=True) if row is None]
    if lost:
        raise FileFormatError(
            f"{where} has no row for {len(lost):,} of {len(files):,} files, or several; the first is {lost[0]!r}: "
            "paths must agree, or end alike"
        )
    return [row for row in rows if row is not None]


def _parts(name: Any) -> tuple[str, ...]:
    return tuple(part for part in str(name).replace("\\", "/").split("/") if part not in ("", "."))


def _row_of(
    own: tuple[str, ...], whole: Mapping[tuple[str, ...], int], ends: Mapping[tuple[str, ...], int | None]
) -> int | None:
    """Return the row of this path, of one that it ends with, or of the only one that ends with it."""
    starts = (0, *range(max(1, len(own) - DEEPEST), len(own)))
    found = next((whole[own[start:]] for start in starts if own[start:] in whole), None)
    return ends.get(own) if found is None else found


def _table(path: Path) -> dict[str, list[Any]]:
    rows = read_rows(path)
    name = next((name for name in FILE_NAMES if rows and name in rows[0]), None)
    if name is None:
        raise FileFormatError(f"{path} must be a CSV table with a column 'file' and one row per file")
    return {"file": [row[name] for row in rows], **{key: [row[key] for row in rows] for key in rows[0] if key != name}}


def read_rows(path: Path) -> list[dict[str, str]]:
    """Read a CSV table as text; rows that are longer or shorter than the header are refused."""
    rows = list[dict[str, str]]()
    try:
        rows_of_file = [row for row in csv.reader(io.StringIO(read_text(path, FileFormatError), newline="")) if row]
    except csv.Error as error:
        raise FileFormatError(f"{path} cannot be read as a CSV table ({error}); write it again") from error
    for number, row in enumerate(rows_of_file[1:]):
        if len(row) != len(rows_of_file[0]):
            raise FileFormatError(f"row {number} of {path} has another number of values than its header")
        rows.append(dict(zip(rows_of_file[0], row, strict=True)))
    return rows
