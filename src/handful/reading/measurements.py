"""Which columns of numbers are measurements: running numbers, numbers of items, years and dates are none.

A spreadsheet often has a column `Nr` with 1, 2, 3, … or `Jahr` with 2023, 2024. Such numbers say nothing about the
class of an item, and as features they mislead. They are recognised by their values, and where these do not tell, by the
name of the column.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import date
from typing import Any

import numpy as np

from handful.reading.header import Asked, chosen_measurements, is_blank, not_a_number
from handful.reading.table import NotMeasured, Table
from handful.shapes import Float

COUNTED = "running numbers"
NUMBERED = "numbers of items"
YEARS = "years"
DATES = "dates"
# Whole numbers in a row that are a count for certain; fewer can be one by chance.
FEWEST_COUNTED = 5
# Share of a count that may be missing, because people delete rows.
MOST_DELETED = 0.1
# Whole numbers that are years whatever the column is called, and those that are if its name says so.
LIKELY_YEARS = (1900, 2100)
POSSIBLE_YEARS = (1, 2999)
# Words in names of columns, and endings of words.
YEAR_WORDS = frozenset({"year", "jahr", "année", "annee", "año", "anno"})
DATE_WORDS = frozenset({"date", "datum", "fecha", "timestamp"})
NUMBER_WORDS = frozenset({"nr", "id", "lfd", "nummer", "unnamed", "#"})
# Words of which a column of different numbers alone has numbers of items: an atomic number occurs more than once.
WEAK_NUMBER_WORDS = frozenset({"no", "num", "number", "index", "idx", "row"})
YEAR_ENDING = "jahr"
DATE_ENDING = "datum"
NUMBER_ENDINGS = ("nr", "nummer")
WORD = re.compile(r"[A-ZÀ-Þ]?[^\W\d_A-ZÀ-Þ]+|[A-ZÀ-Þ]+|#")


def kind_of_numbers(name: str, numbers: Float[np.ndarray, "row"], n_unread: int = 0) -> str | None:
    """Return what the numbers of a column are, if they are no measurements; None if they may be.

    Parameters
    ----------
    name : str
        The column.
    numbers : Float[ndarray, "row"]
        Its numbers in double precision; NaN where there is none.
    n_unread : int
        Rows of the table that could not be read: their numbers are missing in a count.

    Examples
    --------
    >>> kind_of_numbers("sample", np.array([7.0, 5, 6, 9, 8])), kind_of_numbers("height", np.array([7.0, 5, 6, 9, 11]))
    ('running numbers', None)
    >>> kind_of_numbers("Proben-Nr", np.array([3.0, 17, 4])), kind_of_numbers("taken", np.array([2023.0, 2025, 2023]))
    ('numbers of items', 'years')
    >>> kind_of_numbers("Messdatum", np.array([45123.0, 45124])), kind_of_numbers("when", np.array([20240131.0]))
    ('dates', 'dates')
    """
    words = [word.lower() for word in WORD.findall(name)]
    there = numbers[~np.isnan(numbers)]
    if not len(there):
        return None
    if DATE_WORDS & set(words) or any(word.endswith(DATE_ENDING) for word in words):
        return DATES
    if len(words) == 1 and words[0] in YEAR_WORDS:
        return YEARS
    if not (there == np.round(there)).all():
        return None
    if is_count(numbers, n_unread):
        return COUNTED
    ends = {*words[:1], *words[-1:]}
    different = len(np.unique(there)) == len(there)
    if NUMBER_WORDS & ends or any(word.endswith(NUMBER_ENDINGS) for word in ends):
        return NUMBERED
    if WEAK_NUMBER_WORDS & ends and different:
        return NUMBERED
    of_years = YEAR_WORDS & set(words) or any(word.endswith(YEAR_ENDING) for word in words)
    first, last = POSSIBLE_YEARS if of_years else LIKELY_YEARS
    if (there >= first).all() and (there <= last).all():
        return YEARS
    return DATES if all(map(_is_date, there.tolist())) else None


def is_count(numbers: Float[np.ndarray, "row"], n_unread: int = 0) -> bool:
    """Whether numbers are consecutive whole ones in any order, `k + 1, …, k + n`, of which a few may be missing."""
    there = numbers[~np.isnan(numbers)]
    if len(there) < FEWEST_COUNTED or not (there == np.round(there)).all():
        return False
    n_there = len(np.unique(there))
    n_counted = there.max() - there.min() + 1
    return bool(n_there == len(there) and n_counted <= (1 + MOST_DELETED) * (len(numbers) + n_unread))


def _is_date(number: float) -> bool:
    """Whether a whole number is a day of a likely year, `yyyymmdd`."""
    year, rest = divmod(int(number), 10_000)
    month, day = divmod(rest, 100)
    if not LIKELY_YEARS[0] <= year <= LIKELY_YEARS[1]:
        return False
    try:
        date(year, month, day)
    except ValueError:
        return False
    return True


def not_measured(cells: Mapping[str, Float[np.ndarray, "row"]], n_unread: int = 0) -> dict[str, NotMeasured]:
    """Return the columns of numbers that are no measurements."""
    kinds = {name: kind_of_numbers(name, numbers, n_unread) for name, numbers in cells.items()}
    return {name: NotMeasured(kind, cells[name]) for name, kind in kinds.items() if kind is not None}


def with_measurements(
    table: Table, cells: Mapping[str, Sequence[Any]], number: Callable[[Any], float], asked: Asked
) -> Table:
    """Return a table with vectors of its measurements, which stay columns as well.

    Parameters
    ----------
    table : Table
        All columns, and no vectors.
    cells : mapping of str to sequence
        The columns that may be measurements, as they are read; the table stays as it is if there are none.
    number : callable
        Turns a cell into a number; a `ValueError` says that it is none.
    asked : Asked
        Columns that the caller named are measurements, whatever they contain. With `gaps`, blank cells are NaN;
        otherwise, and where all cells of a row are blank, the row is left out and listed.
    """
    if not cells:
        return table
    numbers = {name: _numbers(values, number) for name, values in cells.items()}
    aside = {} if asked.features else not_measured(numbers, len(table.skipped))
    columns = [name for name in table.columns if name not in aside]
    measured = chosen_measurements(columns, asked, lambda name: name in cells, table.where)
    if not measured:
        return table
    vectors = np.stack([numbers[name] for name in measured], axis=1)
    reasons = dict[int, str]()
    for row in np.flatnonzero(np.isnan(vectors).any(1)).tolist():
        gaps = asked.gaps and not np.isnan(vectors[row]).all()
        for name in measured:
            cell = cells[name][row]
            if np.isnan(numbers[name][row]) and not (gaps and is_blank(cell)):
                reasons[row] = not_a_number(cell, name)
                break
    kept = np.array([row for row in range(table.n_rows) if row not in reasons], dtype=np.int64)
    table = replace(table, not_measured=aside).without(reasons).checked(skip_bad=True)
    with np.errstate(over="ignore"):  # values that are not finite are refused where they are used
        return replace(
            table, vectors=vectors[kept].astype(np.float32), features=tuple(measured), measured=tuple(measured)
        )


def _numbers(values: Sequence[Any], number: Callable[[Any], float]) -> Float[np.ndarray, "row"]:
    """Return a column in double precision; NaN where there is no number."""
    found = np.full(len(values), np.nan)
    for row, value in enumerate(values):
        if is_blank(value):
            continue
        try:
            found[row] = number(value)
        except ValueError:
            continue
    return found
