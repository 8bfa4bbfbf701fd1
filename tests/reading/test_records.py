import numpy as np
import pytest

from handful.errors import BankError
from handful.reading.records import Asked, Records, Skipped, table_of_lists


def table(n_rows, **about):
    vectors = np.arange(2.0 * n_rows).reshape(n_rows, 2)
    return Records("a table", n_rows, vectors=vectors, columns={"id": list(range(n_rows)), "odd": np.zeros(3)}, **about)


def test_rows_that_cannot_be_read_are_left_out_up_to_a_twentieth():
    found = table(40, lines=lambda: range(2, 42)).without({3: "it is odd", 5: "it is even"})
    assert [str(one) for one in found.skipped] == ["line 5: it is odd", "line 7: it is even"]
    assert (found.n_rows, len(found.vectors), found.rows[3:5]) == (38, 38, [4, 6])
    assert found.carried().values()["id"][3:5] == [4, 6]
    with pytest.raises(BankError, match="3 of 40 rows cannot be read, more than 5%; the first is line 2: it is late"):
        found.without({0: "it is late"})


def test_earlier_losses_count_too():
    lost = (Skipped(1, "line 3", "it is short"),)
    with pytest.raises(BankError, match="1 of 11 rows cannot be read"):
        table(10, skipped=lost).without({})
    assert table(19, skipped=lost).without({}).skipped == lost
    assert table(3).without({}).skipped == ()


def test_columns_of_another_length_are_not_carried():
    assert list(table(2).carried().columns) == ["id"]


def test_columns_of_plain_values():
    found = table_of_lists({"e0": [1, 2.5], "e1": [3, 4], "id": ["a", "b"]}, Asked(), "a table")
    assert (found.vectors.tolist(), found.columns) == ([[1, 3], [2.5, 4]], {"id": ["a", "b"]})
    assert table_of_lists({"text": ["a"], "e0": [1], "e1": [2]}, Asked(), "a table").vectors is None
    with pytest.raises(BankError, match="has no rows"):
        table_of_lists({"text": []}, Asked(), "a table")
