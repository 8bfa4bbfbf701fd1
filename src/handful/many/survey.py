"""Survey: whether the rows of every group lie together, and where each group starts.

Only the columns of the group are read. Where the rows of each group lie together, also across files, 8 bytes per group
are kept. The survey stops when a group comes back after another: the rows then have to be split by group on disk.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from handful.many.keys import keys_of
from handful.many.source import Source
from handful.shapes import Int

# A group that comes back is looked for when there are this many runs of equal keys, then each time they have doubled.
FIRST_LOOK = 2**16


def survey(source: Source, report: Callable[[int, int], None] | None = None) -> Int[np.ndarray, "group"] | None:
    """Return the first row of each group, or None if the rows of some group do not lie together.

    `report(done, total)` is called after every batch, with numbers of rows.
    """
    starts: list[np.ndarray] = []
    firsts: list[np.ndarray] = []
    last: np.ndarray | None = None
    n_runs, look = 0, FIRST_LOOK
    for row, batch in source.batches(source.group_by, [(0, source.n_rows)]):
        keys = keys_of(batch, source.group_by, source.where(row))
        new = np.empty(len(keys), bool)
        new[0] = last is None or bool((keys[0] != last).any())
        new[1:] = (keys[1:] != keys[:-1]).any(1)
        last = keys[-1].copy()
        starts.append(row + np.flatnonzero(new))
        firsts.append(keys[new])
        n_runs += len(starts[-1])
        if report is not None:
            report(row + len(keys), source.n_rows)
        if n_runs >= look:
            if comes_back(np.concatenate(firsts)):
                return None
            look = 2 * n_runs
    if not starts:
        return np.empty(0, np.int64)
    return None if comes_back(np.concatenate(firsts)) else np.concatenate(starts)


def comes_back(keys: Int[np.ndarray, "run half"]) -> bool:
    """Whether two runs have the same key."""
    order = np.lexsort(keys.T)
    return bool((keys[order[1:]] == keys[order[:-1]]).all(1).any())
