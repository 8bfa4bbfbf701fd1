"""Tables with one column per dimension: which columns are the vector.

pandas names them `0`, `1`, …, polars `column_0`, …, people `emb_0`, `dim1`, `PC_1`: one beginning, and a count from 0
or 1.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Sequence

from handful.errors import BankError

# What may stand between the beginning and the count.
BETWEEN = "_-. "


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


def _counted(run: dict[int, str]) -> list[str]:
    """Return the names with counts 0, 1, … or 1, 2, …, as far as no count is missing."""
    first = 0 if 0 in run else 1
    names = list[str]()
    while first + len(names) in run:
        names.append(run[first + len(names)])
    return names
