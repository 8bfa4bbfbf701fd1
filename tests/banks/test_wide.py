"""Tables with one column per dimension, as pandas and polars write them."""

import pytest

from handful.banks.wide import dimension_columns
from handful.errors import BankError


@pytest.mark.parametrize(
    ("names", "asked", "expected"),
    [
        (["0", "1", "2", "label"], None, ["0", "1", "2"]),
        (["label", "column_0", "column_1"], None, ["column_0", "column_1"]),
        (["PC_1", "PC_2", "PC_10"], None, ["PC_1", "PC_2"]),
        ([f"emb_{k:03}" for k in range(12)], None, [f"emb_{k:03}" for k in range(12)]),
        (["e2", "e1", "e0"], None, ["e0", "e1", "e2"]),
        (["a0", "a1", "a2", "b0", "b1"], "b", ["b0", "b1"]),
        (["a0", "label", "4711"], None, []),
        (["a0", "a1"], "b", []),
    ],
)
def test_the_longest_run_of_numbered_columns(names, asked, expected):
    assert dimension_columns(names, asked, "x") == expected


def test_two_runs_of_equal_length_are_a_question():
    with pytest.raises(BankError, match="may be a0 … a1 or b0 … b1; name the beginning"):
        dimension_columns(["a0", "a1", "b0", "b1"], None, "x")
