import numpy as np
import pytest

from handful.banks import Provenance, write_parquet
from handful.errors import BankError, SkippedRowsWarning
from handful.reading import Records, from_hugging_face, read, read_bank
from handful.reading.choose import labelled, unlabelled
from tests.banks_at_hand import random_bank
from tests.conftest import SHARED

pa = pytest.importorskip("pyarrow")
import pyarrow.parquet  # noqa: E402

SMALL = np.arange(6, dtype=np.float32).reshape(3, 2)
SIZES = {
    "banking77-minilm": (13_083, 384, 77),
    "caltech101-efflite0": (6_970, 1280, 101),
    "clinc150-minilm": (22_500, 384, 150),
    "cub200-efflite0": (11_788, 1280, 200),
    "hwu64-minilm": (11_016, 384, 64),
    "omniglot659-conv4": (13_180, 256, 659),
    "tinyimagenet200-efflite0": (12_000, 1280, 200),
}


@pytest.mark.parametrize("name", SIZES)
def test_the_seven_banks_are_read_and_imported(name, tmp_path):
    if not (SHARED / "data" / name).is_dir():
        pytest.skip(f"the bank is not here: expected a folder shared/data/{name} beside the repository")
    bank = read_bank(SHARED / "data" / name)
    assert (bank.n_rows, bank.dim, bank.n_classes) == SIZES[name]
    assert isinstance(bank.stored, np.memmap)
    assert bank.provenance.dataset
    assert bank.provenance.backbone
    assert bank.provenance.preprocessing
    saved = bank.save(tmp_path / "bank")
    assert saved.verify() == bank.content_hash


def test_our_own_folders_load_as_they_are(tmp_path):
    saved = random_bank(splits={"test": [1]}).save(tmp_path / "bank")
    assert read_bank(tmp_path / "bank").recorded_hash == saved.recorded_hash


def test_the_datasets_library_itself():
    datasets = pytest.importorskip("datasets")
    bank = random_bank()
    columns = {"embedding": bank.features.tolist(), "label": [bank.class_names[k] for k in bank.labels]}
    made = datasets.Dataset.from_dict(columns).class_encode_column("label")
    assert from_hugging_face(made).content_hash == bank.content_hash
    with pytest.raises(BankError, match=r"choose one split .* dataset\['train'\]"):
        from_hugging_face(datasets.DatasetDict(train=made))
    ragged = datasets.Dataset.from_dict({"embedding": [[1.0, 2.0], [3.0]], "label": ["a", "b"]})
    with pytest.raises(BankError, match="all of the same length"):
        from_hugging_face(ragged)


def test_a_bank_and_its_parquet(tmp_path):
    bank = random_bank(provenance=Provenance(backbone="net, weights 12")).save(tmp_path / "bank")
    found = unlabelled(read(tmp_path / "bank"))
    np.testing.assert_array_equal(found.features, bank.features)
    assert found.names[:2] == ("row 0", "row 1")
    assert found.backbone == "net, weights 12"
    write_parquet(bank, tmp_path / "bank.parquet")
    np.testing.assert_array_equal(unlabelled(read(tmp_path / "bank.parquet")).features, bank.features)


def test_folders_and_arrays(tmp_path):
    np.save(tmp_path / "features.npy", SMALL)
    np.savez(tmp_path / "x.npz", z=SMALL, labels=[0, 1])
    for found in (
        unlabelled(read(tmp_path)),
        unlabelled(read(tmp_path / "features.npy")),
        unlabelled(read(tmp_path / "x.npz", features="z")),
    ):
        np.testing.assert_array_equal(found.features, SMALL)
        assert found.names == ("row 0", "row 1", "row 2")


def test_names_and_sentences_come_along(tmp_path):
    columns = {"vector": SMALL.tolist(), "id": [7, 9, 11], "text": ["a", "b", "c"]}
    pyarrow.parquet.write_table(pa.table(columns), tmp_path / "x.parquet")
    np.savez(tmp_path / "x.npz", **columns)
    for found in (unlabelled(read(tmp_path / "x.parquet")), unlabelled(read(tmp_path / "x.npz"))):
        assert found.names == ("7", "9", "11")
        assert found.texts == ("a", "b", "c")


def test_several_files_are_one_table(tmp_path):
    for i in range(2):
        pyarrow.parquet.write_table(
            pa.table({"v": SMALL.tolist(), "id": [f"{i}{j}" for j in range(3)]}), tmp_path / f"{i}.parquet"
        )
    found = unlabelled(read(tmp_path))
    assert found.features.shape == (6, 2)
    assert found.names == ("00", "01", "02", "10", "11", "12")


def test_columns_of_groups_come_along(tmp_path):
    columns = {"vector": SMALL.tolist(), "id": [7, 9, 11], "site": ["a", "b", "a"], "day": [1, None, 2]}
    pyarrow.parquet.write_table(pa.table(columns), tmp_path / "x.parquet")
    found = unlabelled(read(tmp_path / "x.parquet"), groups=("site", "day", "id"))
    assert found.groups == {"site": ["a", "b", "a"], "day": [1, None, 2], "id": [7, 9, 11]}
    assert found.names == ("7", "9", "11")
    np.savez(tmp_path / "x.npz", features=SMALL, site=["a", "b", "a"])
    assert unlabelled(read(tmp_path / "x.npz"), groups=("site",)).groups == {"site": ["a", "b", "a"]}
    assert unlabelled(read(tmp_path / "x.npz")).groups == {}


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
            unlabelled(read(tmp_path / name), groups=(column,))


@pytest.mark.parametrize(
    ("labels", "names"),
    [
        (["ant", None, "bee", ""], ("ant", "bee")),
        (["ant", " ", "bee", float("nan")], ("ant", "bee")),
        (np.array(["ant", np.nan, "bee", "NaN"]), ("ant", "bee")),
        (np.array([b"ant", b"", b"bee", b"nan"]), ("ant", "bee")),
        ([7, None, 9, None], ("7", "9")),
        (np.array([7.0, np.nan, 9.0, np.nan]), ("7", "9")),
    ],
    ids=["text", "blank", "array", "bytes", "numbers", "floats"],
)
def test_rows_without_a_label_are_left_out_and_counted(labels, names):
    table = Records("here", 4, vectors=np.eye(4, dtype=np.float32), classes=labels)
    with pytest.warns(SkippedRowsWarning, match="here: 2 of 4 items are left out: 2 without a label: row 1: it"):
        bank = labelled(table)
    assert bank.class_names == names
    np.testing.assert_array_equal(bank.features, np.eye(4)[[0, 2]])
