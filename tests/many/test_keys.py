"""Keys: equal where values are equal, in every batch and as every type that holds them."""

import datetime

import numpy as np
import pyarrow as pa
import pytest

from handful.errors import TaskError
from handful.many.keys import check_kinds, keys_of

VALUES = {
    "int": pa.array([3, -1, 3, 2**60], pa.int64()),
    "unsigned": pa.array([3, 2**64 - 1, 3, 5], pa.uint64()),
    "text": pa.array(["a", "b", "a", "é"]),
    "bytes": pa.array([b"a", b"\xff", b"a", b""]),
    "bool": pa.array([True, False, True, False]),
    "float": pa.array([0.5, 0.0, 0.5, 1e300]),
    "date": pa.array([datetime.date(2020, 1, 1), datetime.date(2021, 1, 1)] * 2),
    "when": pa.array([1, 2, 1, 3], pa.timestamp("ns")),
    "decimal": pa.array([1, 2, 1, 3], pa.int64()).cast(pa.decimal128(20, 1)),
}


@pytest.mark.parametrize("kind", list(VALUES))
def test_equal_values_have_equal_keys(kind):
    column = VALUES[kind]
    keys = keys_of(pa.record_batch({"g": column}), ["g"], "here")
    equal = [[a == b for b in column.to_pylist()] for a in column.to_pylist()] if kind != "when" else None
    if equal is None:
        equal = [[a == b for b in (1, 2, 1, 3)] for a in (1, 2, 1, 3)]
    for half in range(2):
        np.testing.assert_array_equal(keys[:, None, half] == keys[None, :, half], equal)
    one = keys_of(pa.record_batch({"g": column.slice(2, 1)}), ["g"], "here")
    np.testing.assert_array_equal(one[0], keys[2])


def test_a_dictionary_has_the_keys_of_its_values():
    for kind in ("int", "unsigned", "text"):
        plain, coded = (pa.record_batch({"g": c}) for c in (VALUES[kind], VALUES[kind].dictionary_encode()))
        np.testing.assert_array_equal(keys_of(plain, ["g"], "here"), keys_of(coded, ["g"], "here"))


def test_columns_do_not_run_into_one_another():
    a, b = pa.array([1, 2, 1, 2]), pa.array([1, 1, 2, 2])
    keys = keys_of(pa.record_batch({"a": a, "b": b}), ["a", "b"], "here")
    assert len(np.unique(keys, axis=0)) == 4
    assert len(np.unique(keys[:, 0])) == len(np.unique(keys[:, 1])) == 4
    assert (keys != keys_of(pa.record_batch({"a": a, "b": b}), ["b", "a"], "here")).any()


def test_many_numbers_have_many_keys():
    keys = keys_of(pa.record_batch({"g": pa.array(np.arange(200_000))}), ["g"], "here")
    assert len(np.unique(keys[:, 0])) == len(np.unique(keys[:, 1])) == 200_000
    assert np.bincount((keys[:, 0] % np.uint64(16)).astype(int)).min() > 11_500


def test_zero_has_one_sign():
    keys = keys_of(pa.record_batch({"g": pa.array([0.0, -0.0])}), ["g"], "here")
    np.testing.assert_array_equal(keys[0], keys[1])


@pytest.mark.parametrize("column", [pa.array([1, None]), pa.array(["a", None]), pa.array([0.5, float("nan")])])
def test_rows_without_a_group_are_refused(column):
    with pytest.raises(TaskError, match="drop these rows"):
        keys_of(pa.record_batch({"g": column}), ["g"], "here")


def test_lists_name_no_group():
    with pytest.raises(TaskError, match=r"'g' holds list.*; group by numbers, text, dates or booleans"):
        check_kinds(pa.schema([("g", pa.list_(pa.int64()))]), ["g"], "here")
