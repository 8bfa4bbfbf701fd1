"""The data set: ranges of rows across files and row groups, and files that do not fit together."""

import datetime
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from handful.errors import BankError, TaskError
from handful.many.source import TableFiles, key_of
from tests.many_at_hand import lists, written


@pytest.fixture
def source(tmp_path):
    """Three files of 40, 0 and 60 rows, in row groups of 25; vectors (row, -row)."""
    rows = np.arange(100)
    vectors = np.stack([rows, -rows], 1).astype(np.float32)
    table = pa.table({"g": rows // 7, "v": lists(vectors), "x": rows})
    parts = [table.slice(0, 40), table.slice(40, 0), table.slice(40)]
    return TableFiles.of(written(parts, tmp_path / "in", row_group_size=25), "g", None, 2)


def test_a_fingerprint_changes_with_the_file(source):
    before = source.fingerprint()
    assert before == source.fingerprint()
    table = pq.read_table(source.file(0))
    pq.write_table(table, source.file(0), row_group_size=25)
    assert source.fingerprint() != before  # the time of the change


def test_files_must_fit_together(tmp_path):
    one = pa.table({"g": [1], "v": [[0.5, 1.0]]})
    other = written([one, one.append_column("w", pa.array([1]))], tmp_path / "names")
    with pytest.raises(TaskError, match=r"part-1.parquet has the columns g, v, w, and .*part-0.parquet g, v"):
        TableFiles.of(other, "g", None, 2)
    typed = written([one, one.set_column(0, "g", pa.array(["1"]))], tmp_path / "types")
    with pytest.raises(
        TaskError, match=r"column 'g' contains string in .* and int64 in .*; write them with the same columns"
    ):
        TableFiles.of(typed, "g", None, 2)


PARTITION = pa.table({"site": ["a"], "v": [[0.5, 1.0]]})


def test_partitions_are_told_from_other_folders(tmp_path):
    for key in ("old/day=1", "old/day=02", "new/day=2"):
        written([PARTITION], tmp_path / "in" / key)
    found = TableFiles.of(tmp_path / "in", ["site", "day"], None, 2)
    keys = [found.keys(batch, row)[1].to_pylist() for row, batch in found.batches(["site"])]
    assert keys == [[2], [2], [1]]  # in the order of the names: new/day=2, old/day=02, old/day=1
    assert (found.group_columns, found.partitions) == (("site",), {"day": [2, 2, 1]})
    assert TableFiles.of(tmp_path / "in" / "new", "site", None, 2).partitions == {}  # one day


def test_columns_come_before_folders_of_the_same_name(tmp_path):
    for day in (1, 2):
        written([PARTITION.append_column("day", pa.array([day]))], tmp_path / "in" / f"day={day}")
    assert TableFiles.of(tmp_path / "in", "site", None, 2).group_columns == ("site",)
    found = TableFiles.of(tmp_path / "in", ["site", "day"], None, 2)
    assert (found.group_columns, found.partitions) == (("site", "day"), {})


@pytest.mark.parametrize("key", ["=1", "day", "day1 =", "plain/deep"])
def test_a_folder_that_is_no_partition_is_only_a_folder(tmp_path, key):
    written([PARTITION], tmp_path / "in" / key)
    assert TableFiles.of(tmp_path / "in", "site", None, 2).group_by == ("site",)


@pytest.mark.parametrize(
    ("keys", "group_by", "sentence"),
    [
        (("day=1", "day=2"), "site", r"Hive partitions by day \(one is day=1\), which group_by does not name"),
        (("day=1/hour=1", "day=2/hour=1"), ["site", "hour"], "add 'day' to group_by"),
        (("day=1/hour=1", "day=2/hour=2"), "site", "Hive partitions by day, hour"),
        ((".", "day=2"), "site", "add 'day' to group_by"),
        ((".", "day=2"), ["site", "day"], r"in/part-0.parquet has no value of the Hive partition 'day'"),
        (("day=1", "day=__HIVE_DEFAULT_PARTITION__"), "day", "no value of the Hive partition 'day'"),
        (("day=1", "day=2"), ["site", "dya"], r"no column 'dya' \(did you mean 'day'\?\)"),
    ],
)
def test_a_partition_that_is_no_key_or_has_no_value_is_refused_by_name(tmp_path, keys, group_by, sentence):
    for key in keys:
        written([PARTITION], tmp_path / "in" / key)
    with pytest.raises((TaskError, BankError), match=sentence):
        TableFiles.of(tmp_path / "in", group_by, None, 2)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("h", None, 2), "no column 'h' for the group; it has g, v, x"),
        (((), None, 2), "group_by must name one column or several"),
        (("g", ["x"], 2), "features names 1 columns, and the catalogue has 2 dimensions"),
        (("g", ["v", "x"], 2), "column 'v' contains list.*; features are numbers"),
        (("g", "w", 2), "no column 'w' for the features"),
    ],
)
def test_wrong_columns_are_refused(source, arguments, sentence):
    with pytest.raises((TaskError, BankError), match=sentence):
        TableFiles.of(source.root, *arguments)


def test_wrong_vectors_are_refused(source, tmp_path):
    other = TableFiles.of(source.root, "g", None, 3)
    with pytest.raises(TaskError, match="vectors have 2 numbers, and those of the catalogue 3"):
        [other.matrix(batch, row) for row, batch in other.batches(["v"])]
    gaps = written([pa.table({"g": [1, 1], "a": [0.5, None], "b": [1.0, 2.0]})], tmp_path / "gaps")
    missing = TableFiles.of(gaps, "g", ["a", "b"], 2)
    with pytest.raises(TaskError, match="column 'a' has missing values"):
        [missing.matrix(batch, row) for row, batch in missing.batches(["a", "b"])]


def test_wrong_paths_are_refused(tmp_path):
    with pytest.raises(TaskError, match="does not exist"):
        TableFiles.of(tmp_path / "nothing", "g", None, 2)
    with pytest.raises(TaskError, match=r"has no files that end in \.parquet"):
        TableFiles.of(tmp_path, "g", None, 2)
    (tmp_path / "broken.parquet").write_bytes(b"PAR1 and no more")
    with pytest.raises(BankError, match="cannot be read as Parquet"):
        TableFiles.of(tmp_path, "g", None, 2)


def test_a_flipped_bit_in_a_page_with_a_checksum_is_refused(tmp_path):
    vectors = np.random.default_rng(0).normal(size=(50, 2)).astype(np.float32)
    table = pa.table({"g": np.arange(50), "v": lists(vectors)})
    folder = written([table], tmp_path / "in", write_page_checksum=True)
    content = (folder / "part-0.parquet").read_bytes()
    place = content.index(vectors[0].tobytes())
    (folder / "part-0.parquet").write_bytes(content[:place] + bytes([content[place] ^ 1]) + content[place + 1 :])
    source = TableFiles.of(folder, "g", None, 2)
    with pytest.raises(BankError, match=r"part-0.parquet cannot be read as Parquet"):
        list(source.batches(["v"]))


@pytest.mark.parametrize(
    "column",
    [
        pa.array([1, None]),
        pa.array(["a", None]),
        pa.array([0.5, float("nan")]),
        pa.array([None, 0.5]),
        pa.array(["a", None]).dictionary_encode(),
    ],
)
def test_rows_without_a_group_are_refused(column):
    with pytest.raises(TaskError, match="drop these rows"):
        key_of(column, "here")


@pytest.mark.parametrize(
    "column",
    [
        pa.array([0.0, 1.5, -0.0]),
        pa.array([datetime.date(2026, 1, 1), datetime.date(2026, 1, 2), datetime.date(2026, 1, 1)]),
        pa.array([1, 2, 1], pa.timestamp("us")),
        pa.array([True, False, True]),
        pa.array(["a", "b", "a"]).dictionary_encode(),
        pa.array([Decimal("1.5"), Decimal("2"), Decimal("1.5")]),
    ],
    ids=lambda column: str(column.type),
)
def test_keys_are_equal_where_values_are(column):
    first, second, third = key_of(column, "here").to_pylist()
    assert first == third != second


def test_lists_name_no_group(source):
    with pytest.raises(TaskError, match=r"'v' contains list.*; group by numbers, text, dates or booleans"):
        TableFiles.of(source.root, "v", "v", 2)
