"""Tables as JSON: one object per line, in UTF-8."""

from __future__ import annotations

import io
from array import array
from pathlib import Path
from typing import Any

from handful.errors import BankError
from handful.machine.untrusted import Budget, opened_bytes, parse_json
from handful.reading.header import Asked
from handful.reading.lists import table_of_lists
from handful.reading.table import Skipped, Table


def read_json_lines(path: Path, asked: Asked) -> Table:
    """Read a `.jsonl` file, also `.gz`; lines that are no object are skipped and listed."""
    try:
        with opened_bytes(path) as stream:
            text = stream.read().decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise BankError(f"{path} is not a table in UTF-8 ({error}); write it again") from error
    budget = Budget.of(path)
    rows = list[dict[str, Any]]()
    positions = array("q")
    lines = array("q")
    skipped = list[Skipped]()
    # Not splitlines(): it also cuts at characters that may occur inside a JSON string, such as U+2028.
    for number, line in enumerate(io.StringIO(text, newline="\n"), 1):
        if not line.strip():
            continue
        budget.spend(cells=1 + sum(map(line.count, ",[{")))
        lines.append(number)
        try:
            row = parse_json(line)
            if not isinstance(row, dict):
                raise ValueError("expected one object per line")
        except ValueError as error:
            skipped.append(Skipped(len(lines) - 1, f"line {number}", f"it is not JSON, or no object ({error})"))
            continue
        rows.append(row)
        positions.append(len(lines) - 1)
    if not rows and skipped:
        raise BankError(f"{path}, {skipped[0]}; expected one object per line")
    names = dict.fromkeys(name for row in rows for name in row)
    budget.spend(8 * len(names) * len(rows))
    columns = {name: [row.get(name) for row in rows] for name in names}
    about: dict[str, Any] = {"skipped": tuple(skipped), "positions": positions, "lines": lambda: lines}
    return table_of_lists(columns, asked, str(path), **about)
