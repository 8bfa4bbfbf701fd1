"""Portions of rows: complete groups, each row once."""

import itertools

import numpy as np
import pytest

from handful.many import split
from handful.many.contiguous import portion_ranges


@pytest.mark.parametrize("held", [1, 8, 20, 64, 10_000])
def test_no_group_is_cut_and_no_row_is_left_out(monkeypatch, held):
    monkeypatch.setattr(split, "HELD_NUMBERS", held)
    starts = np.cumsum([0, 3, 1, 1, 30, 2, 2, 9, 1])
    ranges = portion_ranges(starts, 60, 2)
    assert ranges[0][0] == 0
    assert ranges[-1][1] == 60
    assert all(one[1] == other[0] for one, other in itertools.pairwise(ranges))
    assert {start for start, _ in ranges} <= set(starts.tolist())
    for start, stop in ranges:  # more than one group only if they fit
        groups = ((starts >= start) & (starts < stop)).sum()
        assert groups == 1 or stop - start <= max(1, held // 2)
    assert portion_ranges(np.empty(0, np.int64), 0, 2) == []
