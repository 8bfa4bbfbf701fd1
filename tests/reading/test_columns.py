"""Columns that come back with the answers: values, order and types stay as they were."""

import pytest

from handful.errors import BankError
from handful.reading.table import Columns

pa = pytest.importorskip("pyarrow")


def test_types_are_those_of_arrow_and_mixed_values_are_text():
    text = pa.chunked_array([["a", "b"]]).dictionary_encode()
    columns = {"n": [1, 2], "t": text, "d": pa.chunked_array([[1]], pa.timestamp("us")), "m": ["a", 1], "e": [None]}
    assert Columns(columns).types() == {
        "n": pa.int64(), "t": pa.string(), "d": pa.timestamp("us"), "m": pa.string(), "e": pa.string(),
    }  # fmt: skip


def test_values_that_arrow_cannot_hold_are_text():
    columns = {"big": [10**40, 1], "half": ["a\ud800", "b"], "of lists": [[1], "a"]}
    assert set(Columns(columns).types().values()) == {pa.string()}


@pytest.mark.parametrize(
    "far",
    [
        pa.chunked_array([[2**62, None]], pa.timestamp("s")),
        pa.chunked_array([[0, 2**62]], pa.timestamp("ns", "Mars/Phobos")),
        pa.chunked_array([[2**31 - 1, 0]], pa.date32()),
        pa.chunked_array([[2**62, 1]], pa.duration("s")),
    ],
    ids=lambda column: str(column.type),
)
def test_times_that_python_cannot_hold_are_the_numbers_of_the_file(far):
    columns = Columns({"t": far})
    numbers = far.cast(pa.int32() if far.type.bit_width == 32 else pa.int64())
    assert columns.values() == {"t": numbers.to_pylist()}
    assert columns.types() == {"t": numbers.type}


@pytest.mark.parametrize("kind", [pa.timestamp("us", "UTC"), pa.date32(), pa.time64("us"), pa.duration("s")], ids=str)
def test_other_times_stay_times(kind):
    column = pa.chunked_array([[5, None, 7]], kind)
    assert Columns({"t": column}).types() == {"t": kind}
    assert Columns({"t": column}).values() == {"t": column.to_pylist()}


def test_far_times_inside_lists_are_refused():
    with pytest.raises(BankError, match="column 't' has values that cannot be read"):
        Columns({"t": pa.chunked_array([[[2**31 - 1]]], pa.list_(pa.date32()))})
