"""Split: every row once, all rows of a group in one bucket, in memory or in a mapped file."""

import numpy as np
import pyarrow as pa
import pytest

from handful.many import split
from handful.many.source import Source
from handful.many.split import n_buckets, read_bucket, stretches, write_stretch
from tests.many_at_hand import lists, written


@pytest.mark.parametrize("most", [1, 4, 256])
@pytest.mark.parametrize("mapped", [False, True])
def test_buckets_hold_every_row_once(tmp_path, monkeypatch, most, mapped):
    monkeypatch.setattr(split, "HELD_NUMBERS", 2 * 40)
    monkeypatch.setattr(split, "MOST_BUCKETS", most)
    rng = np.random.default_rng(0)
    groups = rng.integers(0, 30, 333)
    vectors = rng.normal(size=(333, 2)).astype(np.float32)
    parts = [pa.table({"g": groups[a:b], "v": lists(vectors[a:b])}) for a, b in ((0, 100), (100, 333))]
    source = Source.of(written(parts, tmp_path / "in"), "g", None, 2)
    ranges = stretches(source)
    files = [tmp_path / f"{start}.safetensors" for start, _ in ranges]
    for place, batches in source.pieces(["g", "v"], ranges):
        write_stretch(source, ranges[place], batches, files[place], "")
    assert n_buckets(source) == min(most, 9)
    if mapped:
        monkeypatch.setattr(split, "HELD_NUMBERS", 1)
    seen, where = [], {}
    for bucket in range(min(most, 9)):
        found = read_bucket(files, bucket, tmp_path / "scratch.npy")
        assert isinstance(found.vectors, np.memmap) == (2 * len(found.rows) > 2 * split.HELD_NUMBERS)
        np.testing.assert_array_equal(found.vectors, vectors[found.rows])
        assert len({*zip(found.group_of.tolist(), groups[found.rows].tolist(), strict=True)}) == len(
            np.unique(found.group_of)
        )
        for group in np.unique(groups[found.rows]):
            assert where.setdefault(group, bucket) == bucket
        seen.append(found.rows)
    np.testing.assert_array_equal(np.sort(np.concatenate(seen)), np.arange(333))
