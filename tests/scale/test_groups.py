"""complete_groups: batches of any size become tables of complete groups."""

import numpy as np
import pyarrow as pa
import pytest

from handful.errors import OptionError
from handful.scale import complete_groups
from handful.scale.groups import NO_GROUP, group_hashes


@pytest.mark.parametrize("size", [1, 3, 10, 1000])
@pytest.mark.parametrize("rows", [1, 7, 50, 10_000])
def test_no_group_is_cut_and_no_row_is_lost(size, rows):
    rng = np.random.default_rng(size)
    sizes = rng.integers(1, 12, 40)
    key = np.repeat(rng.permutation(40), sizes)
    table = pa.table(
        {"site": pa.array(key // 5), "day": pa.array([f"d{k % 5}" for k in key]), "row": np.arange(len(key))}
    )
    parts = list(complete_groups(table.to_batches(size), ["site", "day"], rows=rows))
    assert pa.concat_tables(parts).combine_chunks().equals(table.combine_chunks())
    seen = [set(zip(part["site"].to_pylist(), part["day"].to_pylist(), strict=True)) for part in parts]
    assert sum(map(len, seen)) == len(set.union(*seen))
    assert all(len(part) >= rows for part in parts[:-1])
    assert all(len(part) < 2 * rows + 12 for part in parts)


def test_empty_batches_and_missing_keys_are_no_harm():
    schema = pa.schema([("site", pa.string())])
    batches = [
        pa.record_batch([pa.array(values, pa.string())], schema=schema)
        for values in ([], ["a"], [], [None, None], ["b"])
    ]
    assert [part["site"].to_pylist() for part in complete_groups(batches, "site", rows=1)] == [
        ["a"],
        [None, None],
        ["b"],
    ]
    assert list(complete_groups([], "site")) == []


def test_group_by_names_each_column_once():
    with pytest.raises(OptionError, match="each once"):
        list(complete_groups([], ["site", "site"]))


def test_a_group_has_one_hash_whatever_the_type_of_its_key():
    numbers, texts = pa.array([3, 1, None, 3]), pa.array(["a", "b", None, "a"])
    days = pa.array(np.array([3, 1, "NaT", 3], "datetime64[us]"))
    for values, kinds in (
        (numbers, [pa.int8(), pa.uint32(), pa.float32(), pa.float64()]),
        (texts, [pa.large_string(), pa.binary(), pa.string_view(), pa.dictionary(pa.int8(), pa.string())]),
        (days, [pa.timestamp("ns"), pa.timestamp("us")]),
    ):
        expected = group_hashes(pa.table({"key": values}), ["key"])
        assert expected[0] == expected[3] != expected[1]
        assert expected[2] == NO_GROUP
        for kind in kinds:
            assert np.array_equal(group_hashes(pa.table({"key": values.cast(kind)}), ["key"]), expected), kind
