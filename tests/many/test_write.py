"""The output: which columns there are, and names that are taken."""

import numpy as np
import pyarrow as pa
import pytest

from handful.errors import OptionError
from handful.fitted.labels import objects
from handful.many.portions import ITEM
from handful.many.source import TableFiles
from handful.many.write import Layout, Written
from tests.many_at_hand import lists, written


@pytest.fixture
def source(tmp_path):
    table = pa.table({"id": [1, 2], "v": lists(np.zeros((2, 2), np.float32)), "presence": ["a", "b"]})
    return TableFiles.of(written([table], tmp_path / "in"), "id", None, 2)


def test_labels_keep_their_kind(source):
    for classes, kind in (
        (np.array([1, 5]), pa.int64()),
        (np.array(["ant", "bee"], object), pa.string()),
        (np.array([False, True]), pa.bool_()),
    ):
        assert Layout.of(source, classes, False, "").new(ITEM)["label"] == kind
    mixed = objects([("a", 1), ("b", 2)])
    with pytest.raises(OptionError, match="must be numbers, text or dates"):
        Layout.of(source, mixed, False, "")


def test_a_name_that_is_taken_is_refused(source, tmp_path):
    grouped = TableFiles.of(source.root, "presence", None, 2)
    with pytest.raises(OptionError, match="has a column 'presence' already"):
        Layout.of(grouped, np.array(["ant", "bee"]), False, "")
    assert Layout.of(grouped, np.array(["ant", "bee"]), False, "new_").prefix == "new_"


def test_a_line_that_a_killed_writer_left_half_is_removed(tmp_path):
    for kind in ("items", "groups"):
        (tmp_path / kind).mkdir()
        (tmp_path / kind / "a.parquet").write_text(kind)
    Written(tmp_path, ["a.parquet"]).add("a.parquet")
    whole = (tmp_path / "SHA256SUMS").read_bytes()
    (tmp_path / "SHA256SUMS").write_bytes(whole + whole[:20])
    assert Written(tmp_path, ["a.parquet"]).has("a.parquet")
    assert (tmp_path / "SHA256SUMS").read_bytes() == whole
    (tmp_path / "items" / "a.parquet").write_text("another")
    assert not Written(tmp_path, ["a.parquet"]).has("a.parquet")
