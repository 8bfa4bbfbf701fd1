"""Columns of rows, in the containers people have."""

import numpy as np
import pandas as pd
import pytest
import torch

from handful.errors import TaskError
from handful.estimators.columns import column_of


@pytest.mark.parametrize("make", [list, np.array, torch.tensor, pd.Series, lambda v: pd.DataFrame({"visit": v})])
def test_values_and_places(make):
    values, places = column_of(make([7, 3, 7]), 3, "groups")
    assert values.tolist() == [3, 7]
    assert places.tolist() == [1, 0, 1]


def test_several_columns_make_tuples():
    values, places = column_of(pd.DataFrame({"site": ["b", "a", "b"], "day": [1, 2, 1]}), 3, "groups")
    assert values.tolist() == [("a", 2), ("b", 1)]
    assert places.tolist() == [1, 0, 1]


def test_dates_can_be_missing_too():
    with pytest.raises(TaskError, match="no value in order"):
        column_of(np.array(["2024-01-01", "NaT"], dtype="datetime64[D]"), 2, "order")
    with pytest.raises(TaskError, match="pool must have one entry per row of X, 3"):
        column_of([1, 2], 3, "pool")


@pytest.mark.parametrize("make", [list, pd.Series, lambda values: np.array(values, dtype=object)])
def test_values_of_several_kinds_are_refused_and_not_made_text(make):
    with pytest.raises(TaskError, match="groups must have values of one kind, such as text or numbers, got int, str"):
        column_of(make([1, "1", 2]), 3, "groups")
    for gap in (None, float("nan"), pd.NA):
        with pytest.raises(TaskError, match="no value in groups"):
            column_of(make(["a", gap, "b"]), 3, "groups")
