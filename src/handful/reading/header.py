"""The first row of a table that a person made: the names of its columns, or something else that stands there."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from statistics import median
from typing import Any

from handful.banks.class_names import BLANKS, plain_label
from handful.banks.tables import FEATURE_NAMES, LABEL_NAMES
from handful.errors import BankError
from handful.reading.table import PATH_NAME, TEXT_NAMES, Asked

# Rows that are looked at to tell a title from the names of columns.
LOOKED_AT = 20
COLUMN_NAMES = frozenset((*TEXT_NAMES, PATH_NAME, *LABEL_NAMES, *FEATURE_NAMES))


def is_blank(cell: Any) -> bool:
    """Whether a cell is empty, or text of blanks alone."""
    return cell is None or (isinstance(cell, str) and not cell.strip(BLANKS))


def column_name(cell: Any) -> str:
    """Return the name of a column, without blanks at either end; empty if it has none."""
    return "" if cell is None else str(plain_label(str(cell)))


def refuse_title(rows: Sequence[tuple[int, Sequence[Any]]], asked: Asked, where: str) -> None:
    """Refuse a table whose first row is a title: it has one value, where most rows below have several.

    `rows` are the first ones that are not blank, each with its line.
    """
    filled = [[cell for cell in row if not is_blank(cell)] for _, row in rows[: LOOKED_AT + 1]]
    if len(filled) < 2 or len(filled[0]) != 1 or median(map(len, filled[1:])) < 2:
        return
    name = column_name(filled[0][0])
    if name.lower() in COLUMN_NAMES or name in (asked.text, asked.features):
        return  # a table of one column, whose values contain the separator
    header = next(line for (line, _), cells in zip(rows, filled, strict=False) if len(cells) > 1)
    raise BankError(
        f"{where}: line {rows[0][0]} seems to be a title, {name!r:.60}, and line {header} to have the names of the "
        f"columns; delete the lines above it"
    )


def refuse_equal_names(names: Sequence[str], where: str) -> None:
    """Refuse two columns of the same name; columns without a name are no such."""
    twice = [name for name, n in Counter(filter(None, names)).items() if n > 1]
    if twice:
        raise BankError(f"{where} has two columns of the same name, {twice[0]!r}; rename or delete one of them")


def refuse_unnamed(indices: Sequence[int], where: str) -> None:
    """Refuse several columns that have values but no name."""
    if len(indices) > 1:
        listed = " and ".join(str(index + 1) for index in indices[:2]) + (" and others" if len(indices) > 2 else "")
        raise BankError(
            f"{where}: the columns {listed} have values, but no name in the first row; name them there, or delete that "
            "row if it is a title"
        )
