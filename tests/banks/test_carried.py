"""Columns that are carried: values, order and types stay as they were."""

import numpy as np
import pytest

from handful.banks.carried import Carried

pa = pytest.importorskip("pyarrow")


def test_every_kind_of_column_is_taken_by_item():
    carried = Carried({"a": ["x", None, "z"], "b": np.array([1, 2, 3]), "c": pa.chunked_array([[1.5], [2.5, None]])})
    assert carried.of_items([2, 0]).values() == {"a": ["z", "x"], "b": [3, 1], "c": [None, 1.5]}
    assert list(carried.values()) == ["a", "b", "c"]


def test_names_that_are_taken_get_another():
    carried = Carried({"label": [1], "site": [2], "unknown": [3], "given_unknown": [4]})
    assert carried.beside({"label", "unknown"}).values() == {"given_label": [1], "site": [2], "given_unknown": [4]}


def test_types_are_those_of_arrow_and_mixed_values_are_text():
    text = pa.chunked_array([["a", "b"]]).dictionary_encode()
    columns = {"n": [1, 2], "t": text, "d": pa.chunked_array([[1]], pa.timestamp("us")), "m": ["a", 1], "e": [None]}
    assert Carried(columns).types() == {
        "n": pa.int64(), "t": pa.string(), "d": pa.timestamp("us"), "m": pa.string(), "e": pa.string(),
    }  # fmt: skip
