"""Items to label, from any table: names, texts, columns and groups; every row has a group, all of one kind."""

import json

import numpy as np
import pytest

from handful.banks import Provenance, write_parquet
from handful.classification.batch import Batch, Groups
from handful.errors import BankError, FileFormatError, TaskError
from handful.reading import read
from tests.banks_at_hand import random_bank
from tests.items_at_hand import image_bytes, image_folder, zipped

pa = pytest.importorskip("pyarrow")
import pyarrow.parquet  # noqa: E402

SMALL = np.arange(6, dtype=np.float32).reshape(3, 2)


@pytest.mark.parametrize(
    ("values", "sentence"),
    [
        (["a", None, "b", ""], "a table: 2 rows have no 'site' and so no group, the first is row 1; fill in or drop"),
        ([1.0, float("nan")], "1 row has no 'site' and so no group, the first is row 1"),
        (["a", 1], "groups must be of one kind, text, numbers or dates; column 'site' has int, str"),
        ([True, 1], "column 'site' has bool, int"),
        ([["a"], ["b"]], "column 'site' has list"),
    ],
)
def test_what_names_no_group_is_refused(values, sentence):
    with pytest.raises(TaskError) as caught:
        Groups.of({"site": values}, "a table")
    assert sentence in str(caught.value)


def test_whole_and_other_numbers_may_be_mixed():
    assert Groups.of({"site": [2.5, 1, 2.5]}, "a table").names.tolist() == [1, 2.5]


def test_a_bank_and_its_parquet(tmp_path):
    bank = random_bank(provenance=Provenance(encoder="net, weights 12")).save(tmp_path / "bank")
    found = Batch.of(read(tmp_path / "bank"))
    np.testing.assert_array_equal(found.points, bank.features)
    assert found.names[:2] == ("row 0", "row 1")
    assert found.encoder == "net, weights 12"
    write_parquet(bank, tmp_path / "bank.parquet")
    np.testing.assert_array_equal(Batch.of(read(tmp_path / "bank.parquet")).points, bank.features)


def test_folders_and_arrays(tmp_path):
    np.save(tmp_path / "features.npy", SMALL)
    np.savez(tmp_path / "x.npz", z=SMALL, labels=[0, 1])
    for found in (
        Batch.of(read(tmp_path)),
        Batch.of(read(tmp_path / "features.npy")),
        Batch.of(read(tmp_path / "x.npz", features="z")),
    ):
        np.testing.assert_array_equal(found.points, SMALL)
        assert found.names == ("row 0", "row 1", "row 2")


def test_names_and_sentences_come_along(tmp_path):
    columns = {"vector": SMALL.tolist(), "id": [7, 9, 11], "text": ["a", "b", "c"]}
    pyarrow.parquet.write_table(pa.table(columns), tmp_path / "x.parquet")
    np.savez(tmp_path / "x.npz", **columns)
    for found in (Batch.of(read(tmp_path / "x.parquet")), Batch.of(read(tmp_path / "x.npz"))):
        assert found.names == ("7", "9", "11")
        assert found.contents == ("a", "b", "c")


def test_several_files_are_one_table(tmp_path):
    for i in range(2):
        pyarrow.parquet.write_table(
            pa.table({"v": SMALL.tolist(), "id": [f"{i}{j}" for j in range(3)]}), tmp_path / f"{i}.parquet"
        )
    found = Batch.of(read(tmp_path))
    assert found.points.shape == (6, 2)
    assert found.names == ("00", "01", "02", "10", "11", "12")


def test_columns_of_groups_come_along(tmp_path):
    columns = {"vector": SMALL.tolist(), "id": [7, 9, 11], "site": ["a", "b", "a"], "day": [1, None, 2]}
    pyarrow.parquet.write_table(pa.table(columns), tmp_path / "x.parquet")
    found = Batch.of(read(tmp_path / "x.parquet"), columns=("site", "day", "id"))
    assert found.columns.values() == {"id": [7, 9, 11], "site": ["a", "b", "a"], "day": [1, None, 2]}
    assert found.names == ("7", "9", "11")
    np.savez(tmp_path / "x.npz", features=SMALL, site=["a", "b", "a"])
    assert Batch.of(read(tmp_path / "x.npz"), group_by=("site",)).groups.of_items.tolist() == ["a", "b", "a"]
    assert Batch.of(read(tmp_path / "x.npz")).groups is None


def test_columns_of_groups_that_are_not_there_are_refused(tmp_path):
    pyarrow.parquet.write_table(pa.table({"v": SMALL.tolist(), "id": [7, 8, 9]}), tmp_path / "x.parquet")
    np.savez(tmp_path / "x.npz", features=SMALL, site=["a", "b"], box=np.zeros((2, 2)), one=3)
    np.save(tmp_path / "x.npy", SMALL)
    random_bank().save(tmp_path / "bank")
    for name, column, sentence in (
        ("x.parquet", "site", r"no column 'site' for the groups; it has id$"),
        ("x.parquet", "v", "no column 'v' for the groups"),
        ("x.npz", "day", "no column 'day' for the groups; it has site, box, one$"),
        ("x.npz", "site", "column 'site' must have one group for each of the 3 rows"),
        ("x.npz", "one", "column 'one' must have one group for each of the 3 rows"),
        ("x.npy", "site", "contains only vectors, so it has no column 'site'"),
        ("bank", "site", "contains only vectors, so it has no column 'site'"),
    ):
        with pytest.raises(BankError, match=sentence):
            Batch.of(read(tmp_path / name), columns=(column,))


def test_sentences_have_the_columns_of_their_table(tmp_path):
    rows = [{"text": text, "site": site} for text, site in (("hello", "a"), ("bye", 3), ("what", None))]
    (tmp_path / "x.jsonl").write_text("\n".join(map(json.dumps, rows)))
    batch = Batch.of(read(tmp_path / "x.jsonl"), columns=("site",))
    assert batch.columns.values()["site"] == ["a", 3, None]
    assert (batch.contents, batch.points, batch.groups) == (("hello", "bye", "what"), None, None)
    with pytest.raises(BankError, match="no column 'day' for the groups; it has text, site"):
        Batch.of(read(tmp_path / "x.jsonl"), columns=("day",))


def test_images_in_folders_have_these_as_groups(tmp_path):
    folder = image_folder(tmp_path / "images", n_classes=2, each=2)
    (folder / "class1" / "deep").mkdir()
    (folder / "class1" / "deep" / "x.png").write_bytes(image_bytes(9))
    for place in (folder, zipped(folder, tmp_path / "a.zip")):
        expected = ["class0"] * 2 + ["class1"] * 2 + ["class1/deep"]
        assert Batch.of(read(place), group_by=("folder",)).groups.of_items.tolist() == expected
    first = Batch.of(read(folder), group_by=("folder:1",))
    assert first.groups.of_items.tolist() == ["class0"] * 2 + ["class1"] * 3
    assert Batch.of(read(folder)).columns.values() == {}
    with pytest.raises(FileFormatError, match=r"4 of 5 paths have fewer than 2 folders.*all have folder:1"):
        Batch.of(read(folder), group_by=("folder:2",))
    with pytest.raises(BankError, match="have no column 'site'; group them by 'folder'"):
        Batch.of(read(folder), group_by=("site",))
    (folder / "lost.png").write_bytes(image_bytes(10))
    with pytest.raises(BankError, match=r"'lost\.png' is in no folder of .*, so it belongs to no group"):
        Batch.of(read(folder), group_by=("folder",))
