"""Sorting: every row once, parts one after the other, each in order; what a killed run left is not read."""

import numpy as np
import pyarrow as pa
import pytest

from handful.errors import TaskError
from handful.many.sorting import in_order


@pytest.mark.parametrize("rows_at_once", [1, 7, 1000])
def test_rows_come_in_order(tmp_path, rows_at_once):
    rng = np.random.default_rng(0)
    keys = rng.integers(0, 30, 333)
    vectors = rng.normal(size=(333, 3)).astype(np.float32)
    (tmp_path / "sort").mkdir()
    (tmp_path / "sort" / "0").write_bytes(b"left by a killed run")

    def given():
        for start in range(0, 333, 100):
            here = slice(start, min(start + 100, 333))
            content = pa.array([vector.tobytes() for vector in vectors[here]], pa.binary(12))
            rows = pa.array(np.arange(333)[here])
            yield keys[here] % 4, pa.record_batch([pa.array(keys[here]), rows, content], ["key", "row", "vector"])

    found = list(in_order(given(), ["key", "row"], tmp_path / "sort", rows_at_once))
    assert max(map(len, found)) <= rows_at_once
    table = pa.Table.from_batches(found)
    np.testing.assert_array_equal(table["row"].to_numpy(), np.lexsort((np.arange(333), keys, keys % 4)))
    assert table["vector"].to_pylist() == [vectors[row].tobytes() for row in table["row"].to_pylist()]
    assert list((tmp_path / "sort").iterdir()) == []


def test_errors_are_raised_as_they_are(tmp_path):
    def given():
        yield np.zeros(1, int), pa.record_batch({"row": [0]})
        raise TaskError("some vectors have NaN")

    with pytest.raises(TaskError, match="some vectors have NaN"):
        list(in_order(given(), ["row"], tmp_path / "sort"))


def test_no_rows(tmp_path):
    assert list(in_order([], ["row"], tmp_path / "sort")) == []
