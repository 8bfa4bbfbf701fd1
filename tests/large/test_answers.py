import numpy as np
import pytest

from handful.large.answers import COLUMNS, read_answers, write_answers
from handful.machine.folders import LocalFolder


def test_shards_come_back_in_order_and_whole(tmp_path):
    parquet = pytest.importorskip("pyarrow.parquet")
    parts = [{name: np.full(3, 10 * shard + i) for i, name in enumerate(COLUMNS)} for shard in range(12)]
    for shard in reversed(range(12)):
        write_answers(LocalFolder(tmp_path), shard, parts[shard])
    for expected, found in zip(parts, read_answers(LocalFolder(tmp_path)), strict=True):
        for name in COLUMNS:
            np.testing.assert_array_equal(found[name], expected[name])
    schema = parquet.read_schema(tmp_path / "answers" / "part-000000.parquet")
    assert {field.name: str(field.type).replace("float", "float32") for field in schema} == COLUMNS
    assert not list((tmp_path / "answers").glob(".*"))
