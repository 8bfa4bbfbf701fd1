"""What is counted in the file against what Arrow says of it, and against files that lie."""

import contextlib

import numpy as np
import pytest

from handful.banks import read_bank
from handful.banks.parquet_pages import count_contents
from handful.errors import BankError
from tests.hostile_at_hand import outcomes

pa = pytest.importorskip("pyarrow")
import pyarrow.parquet  # noqa: E402


def written(path, n_rows=300, **options):
    vectors = np.arange(4.0 * n_rows, dtype=np.float32).reshape(n_rows, 4)
    labels = [f"class {k % 7}" for k in range(n_rows)]
    table = pa.table({"features": pa.array(vectors.tolist(), pa.list_(pa.float32())), "label": labels, "a.b": labels})
    pyarrow.parquet.write_table(table, path, **options)
    return path


@pytest.mark.parametrize(
    "options",
    [
        {"use_dictionary": False},
        {"row_group_size": 70},
        {"data_page_version": "2.0", "compression": "zstd"},
        {"data_page_size": 64, "write_page_index": True},
        {"compression": "none", "write_statistics": False},
    ],
)
def test_as_many_values_and_bytes_as_arrow_wrote(tmp_path, options):
    file = written(tmp_path / "x.parquet", **options)
    about = pyarrow.parquet.ParquetFile(file).metadata
    groups = [about.row_group(k) for k in range(about.num_row_groups)]
    for position, name in enumerate(["features", "label", "a.b"]):
        columns = [group.column(position) for group in groups]
        found = count_contents(file, [name])
        words = sum(column.has_dictionary_page for column in columns) * (1200 if position == 0 else 7)
        assert sum(column.num_values for column in columns) <= found.values
        assert found.values <= sum(column.num_values for column in columns) + words
        assert found.unfolded <= sum(column.total_uncompressed_size for column in columns) <= found.unfolded + 20_000
    assert count_contents(file, ["other"]) == (0, 0)


def varint(number):
    number, digits = number << 1, []
    while number > 127:
        digits.append(number & 127 | 128)
        number >>= 7
    return bytes([*digits, number])


def test_a_table_of_contents_that_lies_is_seen_through(tmp_path):
    """The count of numbers in the table of contents is set to one, at each place where it may be."""
    n = 2**25 + 3
    zeros = pa.ListArray.from_arrays(pa.array([0, n], pa.int32()), pa.array(np.zeros(n, np.float32)))
    pyarrow.parquet.write_table(pa.table({"features": zeros, "label": [0]}), tmp_path / "x.parquet")
    whole, count = (tmp_path / "x.parquet").read_bytes(), varint(n)
    one = bytes([0x82, *[0x80] * (len(count) - 2), 0])
    places = [place for place in range(len(whole)) if whole.startswith(count, place)]
    assert len(places) > 1
    lied = 0
    for place in places:
        (tmp_path / "x.parquet").write_bytes(whole[:place] + one + whole[place + len(count) :])
        with pytest.raises(BankError):
            read_bank(tmp_path / "x.parquet")
        with contextlib.suppress(ValueError):  # at other places it makes the file nonsense
            lied += count_contents(tmp_path / "x.parquet", ["features"]).values >= n
    assert lied


@pytest.mark.parametrize("content", [b"", b"PAR1", b"PAR1" + bytes(20), b"x" * 8 + b"\xff\xff\xff\xffPAR1"])
def test_other_files_are_value_errors(tmp_path, content):
    (tmp_path / "x").write_bytes(content)
    with pytest.raises(ValueError, match=r"too short|does not end as|ends in the middle"):
        count_contents(tmp_path / "x", ["features"])


FEET = [b"\x1c" * 1000, b"\x49" + b"\xfc" * 1000, b"\x4b" + b"\xff" * 8 + b"\x7f" + b"\xcc" * 9, b"\x00", b"\x4d"]


@pytest.mark.parametrize("foot", FEET)
def test_damaged_tables_of_contents_are_value_errors(tmp_path, foot):
    (tmp_path / "x").write_bytes(b"PAR1" + foot + len(foot).to_bytes(4, "little") + b"PAR1")
    with pytest.raises(ValueError, match=r"ends in the middle|too deep|damaged|unknown kind|too many digits"):
        count_contents(tmp_path / "x", ["features"])


def test_a_table_of_contents_without_rows(tmp_path):
    (tmp_path / "x").write_bytes(b"PAR1" + b"\x49\x00\x00" + (3).to_bytes(4, "little") + b"PAR1")
    assert count_contents(tmp_path / "x", ["features"]) == (0, 0)


def test_changed_bytes_give_a_bank_or_a_refusal_and_nothing_else(tmp_path):
    whole = written(tmp_path / "x.parquet", 6).read_bytes()
    generator = np.random.default_rng(0)

    def changed(folder):
        counts = {"read": 0, "refused": 0}
        for _ in range(300):
            content = bytearray(whole)
            for place in generator.integers(len(content), size=generator.integers(1, 4)):
                content[place] ^= 1 << generator.integers(8)
            (folder / "x.parquet").write_bytes(content)
            try:
                read_bank(folder / "x.parquet")
                counts["read"] += 1
            except BankError:
                counts["refused"] += 1
        return counts["refused"] > 50

    assert outcomes({"changed": changed}, tmp_path) == {"changed": "returned True"}
