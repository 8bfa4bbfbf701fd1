import numpy as np
import pytest

from handful.errors import FileFormatError
from handful.large.answers import COLUMNS, read_answers, write_answers
from handful.machine.folders import LocalFolder


def answers(n_shards):
    """Three rows for each shard."""
    rows = np.arange(3 * n_shards).reshape(n_shards, 3)
    return [{name: rows[shard] + 10 * i for i, name in enumerate(COLUMNS)} for shard in range(n_shards)]


def test_shards_come_back_in_order_and_whole(tmp_path):
    parquet = pytest.importorskip("pyarrow.parquet")
    parts = answers(12)
    for shard in reversed(range(12)):
        write_answers(LocalFolder(tmp_path), shard, parts[shard])
    for expected, found in zip(parts, read_answers(LocalFolder(tmp_path)), strict=True):
        for name in COLUMNS:
            np.testing.assert_array_equal(found[name], expected[name])
    schema = parquet.read_schema(tmp_path / "answers" / "part-000000.parquet")
    assert {field.name: str(field.type).replace("float", "float32") for field in schema} == COLUMNS
    assert not list((tmp_path / "answers").glob(".*"))


def test_answers_that_were_exchanged_cut_or_changed_are_refused(tmp_path):
    pytest.importorskip("pyarrow.parquet")
    shares = np.random.default_rng(0).random((2, 300), dtype=np.float32)
    for shard in range(2):
        rows = np.arange(300 * shard, 300 * (shard + 1))
        write_answers(LocalFolder(tmp_path), shard, dict.fromkeys(COLUMNS, rows) | {"probability": shares[shard]})
    first, second = (tmp_path / "answers" / f"part-00000{shard}.parquet" for shard in range(2))
    one, two = first.read_bytes(), second.read_bytes()
    place = one.index(shares[0, :2].tobytes())  # numbers are not compressed further
    flipped = one[:place] + bytes([one[place] ^ 64]) + one[place + 1 :]
    for here, there, why in [(two, one, "rows are not those from 0"), (one[:50], two, ""), (flipped, two, "")]:
        first.write_bytes(here)
        second.write_bytes(there)
        with pytest.raises(FileFormatError, match=rf"part-000000.parquet was cut short, changed or exchanged.*{why}"):
            list(read_answers(LocalFolder(tmp_path)))
