"""Plain text: one item per line, without names of columns."""

from __future__ import annotations

import io
import re
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

from handful.errors import BankError
from handful.machine.untrusted import opened_bytes
from handful.reading.delimited import encoding_of, read_delimited
from handful.reading.header import COLUMN_NAMES, TEXT_NAMES, Asked, is_blank
from handful.reading.table import Table

# Between columns: a tab, a semicolon, or a comma that no blank follows, as in prose.
BETWEEN_COLUMNS = re.compile(r"[\t;]|,(?! )")
NUMBER = re.compile(r"\s*[-+]?[\d.,]+\s*")


def read_text(path: Path, asked: Asked) -> Table:
    r"""Read a `.txt` file: a table, or one text per line if its first line is no header.

    Examples
    --------
    >>> import tempfile
    >>> file = Path(tempfile.mkdtemp()) / "requests.txt"
    >>> _ = file.write_text("where is my bag, please\nwake me at six\n")
    >>> read_text(file, Asked()).values("text")
    ['where is my bag, please', 'wake me at six']
    """
    if asked.features or asked.text or asked.header_row or _is_table(path):
        return read_delimited(path, asked)
    lines = list(_lines(path))
    while lines and is_blank(lines[-1]):
        lines.pop()
    return Table(str(path), len(lines), columns={TEXT_NAMES[0]: lines})


def _is_table(path: Path) -> bool:
    """Whether the first line has columns, names one, or stands above a number; one line alone is a header."""
    first_two = list(islice((line for line in _lines(path) if not is_blank(line)), 2))
    if len(first_two) < 2:
        return True
    first, second = first_two
    names_column = first.strip().lower() in COLUMN_NAMES
    return names_column or bool(BETWEEN_COLUMNS.search(first) or NUMBER.fullmatch(first) or NUMBER.fullmatch(second))


def _lines(path: Path) -> Iterator[str]:
    encoding = encoding_of(path)
    with io.TextIOWrapper(opened_bytes(path), encoding=encoding) as stream:
        try:
            for line in stream:
                yield line.rstrip("\n")
        except UnicodeError as error:
            raise BankError(f"{path} cannot be read as text in {encoding} ({error}); save it as UTF-8") from error
