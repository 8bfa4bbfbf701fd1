"""The columns of a table: their names, which of them is which, numbers in them, and a title in the first row.

Vectors may have one column per dimension. pandas names them `0`, `1`, …, polars `column_0`, …, people `emb_0`, `dim1`,
`PC_1`: one beginning, and a count from 0 or 1.
"""

from __future__ import annotations

import re
import warnings
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from statistics import median
from typing import Any, NamedTuple

from handful.arguments import did_you_mean, some_of
from handful.errors import BankError, TableWarning
from handful.reading.class_names import BLANKS, plain_label

# Usual names of such columns, the most likely first.
FEATURE_NAMES = ("features", "feature", "embeddings", "embedding", "concat_features", "vectors", "vector", "feats", "x")
LABEL_NAMES = (
    "class_name", "labels", "label", "concat_labels", "fine_label", "targets", "target", "classes", "class", "category",
    "intent", "y",
)  # fmt: skip
NAME_NAMES = ("class_names", "names", "classes")
# Columns that hold the text of a row, the most likely first, and the column of paths of images.
TEXT_NAMES = ("text", "sentence", "utterance", "query")
PATH_NAME = "path"
# Columns that identify a row, the most likely first.
ITEM_NAMES = ("item", "id", "item_id", "path", "file", "filename", "name")
# What may stand between the beginning and the count.
BETWEEN = "_-. "
# Rows that are looked at to tell a title from the names of columns.
LOOKED_AT = 20
COLUMN_NAMES = frozenset((*TEXT_NAMES, PATH_NAME, *LABEL_NAMES, *FEATURE_NAMES))
# A number as tables in some languages have it: 1,5 or 1.234,5.
DECIMAL_COMMA = re.compile(r"\s*[-+]?[0-9][0-9.' \xa0]{0,30},[0-9]{1,30}(?:[eE][-+]?[0-9]{1,3})?\s*")
# The same with marks of thousands.
THOUSANDS = re.compile(r"\s*[-+]?[0-9]{1,3}(?:[.' \xa0][0-9]{3})+(?:,[0-9]+)?\s*")


class Asked(NamedTuple):
    """How a file is read: columns of vectors and of texts, whether pickles are trusted, and where the table is.

    With `gaps`, missing numbers of a vector are read as NaN, unless all are missing; otherwise the row is left out.
    With `skip_bad`, any number of rows that cannot be read is left out. `header_row` is the line with the names of the
    columns, counted from 1.
    """

    features: str | None = None
    text: str | None = None
    trust_pickle: bool = False
    gaps: bool = False
    skip_bad: bool = False
    header_row: int | None = None


def find_column(columns: Iterable[str], asked: str | None, likely: Sequence[str], role: str, where: str) -> str:
    """Return the column asked for, or else the most likely one that exists."""
    there = list(columns)
    if asked is not None:
        if asked in there:
            return asked
        raise BankError(
            f"{where} has no column {asked!r}{did_you_mean(asked, there)} for the {role}; it has {some_of(there)}"
        )
    if not there:
        raise BankError(
            f"{where} has no columns beside its vectors, so it has no {role}; add a column for them, or, in Python, "
            "give a pair (X, y) of vectors and labels"
        )
    by_name = {name.lower(): name for name in reversed(there)}
    for name in likely:
        if name in by_name:
            return by_name[name]
    raise BankError(f"{where} has no column that looks like {role}; it has {some_of(there)}: say which of these to use")


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
    if asked is not None and "," in asked:
        return []
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


def measured_columns(
    columns: Sequence[str], asked: str | None, is_numeric: Callable[[str], bool], where: str
) -> list[str]:
    """Return the columns of measurements, each with a name of its own, such as height and width.

    Parameters
    ----------
    columns : sequence of str
        All columns.
    asked : str or None
        Their names, with commas between them, or one name; by default all columns of numbers, if at least half of the
        columns that are neither labels nor names of rows are such, and there are two or more.
    is_numeric : callable
        Whether a column has numbers alone.
    where : str
        The table, for messages.

    Examples
    --------
    >>> measured_columns(["id", "height", "width", "label"], None, lambda name: name != "label", "a table")
    ['height', 'width']
    >>> measured_columns(["id", "height", "width", "label"], "width, height", lambda name: True, "a table")
    ['width', 'height']
    """
    if asked is None:
        others = [name for name in columns if name.lower() not in {*LABEL_NAMES, *ITEM_NAMES}]
        found = [name for name in others if is_numeric(name)]
        return found if len(found) >= max(2, len(others) / 2) else []
    if asked in columns:
        return [asked]
    names = [name.strip() for name in asked.split(",")]
    missing = [name for name in names if name not in columns]
    if missing and len(names) > 1:
        raise BankError(f"{where} has no column {missing[0]!r} for the features; it has {some_of(list(columns))}")
    return [] if missing else names


def _counted(run: dict[int, str]) -> list[str]:
    """Return the names with counts 0, 1, … or 1, 2, …, as far as no count is missing."""
    first = 0 if 0 in run else 1
    names = list[str]()
    while first + len(names) in run:
        names.append(run[first + len(names)])
    return names


def is_blank(cell: Any) -> bool:
    """Whether a cell is empty, or text of blanks alone."""
    return cell is None or (isinstance(cell, str) and not cell.strip(BLANKS))


def column_name(cell: Any) -> str:
    """Return the name of a column, without blanks at either end; empty if it has none."""
    return "" if cell is None else str(plain_label(str(cell)))


def header_place(rows: Sequence[tuple[int, Sequence[Any]]], asked: Asked) -> int:
    """Return which of the rows has the names of the columns: the first, or one below a title.

    A title has one value, where most rows below have several. `rows` are the first ones that are not blank, each with
    its line. If the caller named the line, it is the first.
    """
    if asked.header_row is not None:
        return 0
    filled = [[cell for cell in row if not is_blank(cell)] for _, row in rows[: LOOKED_AT + 1]]
    if len(filled) < 2 or len(filled[0]) != 1 or median(map(len, filled[1:])) < 2:
        return 0
    name = column_name(filled[0][0])
    if name.lower() in COLUMN_NAMES or name in (asked.text, asked.features):
        return 0  # a table of one column, whose values contain the separator
    return next(place for place, cells in enumerate(filled) if len(cells) > 1)


def warn_of_title(rows: Sequence[tuple[int, Sequence[Any]]], place: int, where: str) -> None:
    """Say that the names of the columns are below a title."""
    title = next(column_name(cell) for cell in rows[0][1] if not is_blank(cell))
    said = (
        f"{where}: line {rows[0][0]} is taken for a title, {title!r:.60}, and line {rows[place][0]} for the names of "
    )
    warnings.warn(TableWarning(f"{said}the columns; `header_row` (--header-row) names another"), stacklevel=2)


def no_rows(where: str) -> BankError:
    """Return the error for a table without rows."""
    return BankError(f"{where} has no rows; expected a header, and one row per item")


def no_columns(where: object, asked: str) -> BankError:
    """Return the error for a column that was named of something without columns."""
    return BankError(f"{where} has no columns, so it has no column {asked!r}; leave it out")


def no_header(line: int, where: str) -> BankError:
    """Return the error for a line that should have the names of the columns, and is blank or not there."""
    return BankError(f"{where} has no names of columns in line {line}; count the lines from 1, blank ones too")


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


def holds_items(columns: Sequence[str], asked: Asked) -> bool:
    """Tell a table of texts or paths by its columns: the texts were named, or the usual names are there."""
    return bool((asked.text or {TEXT_NAMES[0], PATH_NAME} & set(columns)) and not asked.features)


def no_items(columns: Sequence[str], where: str, asked: Asked | None = None) -> BankError:
    """Return the error for a table that has neither vectors nor texts nor paths, or not those that were asked for."""
    if asked is not None and asked.features is not None:
        alike = did_you_mean(asked.features, columns)
        return BankError(
            f"{where} has no column {asked.features!r}{alike} for the features, and none "
            f"that begins with it and ends in a number; it has {some_of(columns)}: name the right one with `features` "
            "(--features)"
        )
    return BankError(
        f"{where} has neither vectors (a column of lists of numbers, or numbered columns 0, 1, … or emb_0, emb_1, …) "
        f"nor a column of texts ({TEXT_NAMES[0]!r}) or of paths of images ({PATH_NAME!r}); it has {some_of(columns)}: "
        "name the right one with `features` or `text` (--features, --text)"
    )


def chosen_measurements(
    columns: Sequence[str], asked: Asked, is_numeric: Callable[[str], bool], where: str
) -> list[str]:
    """Return the columns of measurements of a table without other vectors; none if it has texts or paths."""
    if asked.features is None and {*TEXT_NAMES, PATH_NAME} & set(columns):
        return []
    return measured_columns(columns, asked.features, is_numeric, where)


def not_a_number(value: Any, column: str) -> str:
    """Say that a value of a column must be a number, and if it has a decimal comma, what to do about it.

    Examples
    --------
    >>> not_a_number("one", "e0")
    "it must have a number in column 'e0', got 'one'"
    >>> not_a_number("1,5", "e0")
    "it must have a number in column 'e0', got '1,5' with a decimal comma; export the table with decimal points"
    """
    comma = isinstance(value, str) and DECIMAL_COMMA.fullmatch(value[:80])
    instead = " with a decimal comma; export the table with decimal points" if comma else ""
    return f"it must have a number in column {column!r}, got {value!r:.60}{instead}"


def is_clear_comma(value: Any) -> bool:
    """Whether a text is a number with a decimal comma for certain: `1,234` may also be a thousand.

    Examples
    --------
    >>> [is_clear_comma(text) for text in ("1,5", "1.234,5", "1,234", "1.5", "one, two")]
    [True, True, False, False, False]
    """
    text = value if isinstance(value, str) else ""
    return len(text) < 80 and bool(DECIMAL_COMMA.fullmatch(text)) and len(re.split("[,eE]", text.strip())[1]) != 3


def with_point(text: str) -> str:
    """Return a number with a decimal comma as one with a point.

    Examples
    --------
    >>> with_point("1.234,5"), with_point("7")
    ('1234.5', '7')
    """
    if THOUSANDS.fullmatch(text):
        text = re.sub(r"[.' \xa0]", "", text)
    return text.replace(",", ".")
