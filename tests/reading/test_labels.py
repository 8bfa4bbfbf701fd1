import numpy as np
import pytest

from handful.errors import BankError, SkippedRowsWarning
from handful.reading import Table, read_bank
from handful.reading.labels import bank_of, labelled
from tests.banks_at_hand import random_bank
from tests.conftest import SHARED

pa = pytest.importorskip("pyarrow")

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
    assert bank.provenance.encoder
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
    assert read_bank(made).content_hash == bank.content_hash
    with pytest.raises(BankError, match=r"choose one split .* dataset\['train'\]"):
        read_bank(datasets.DatasetDict(train=made))
    ragged = datasets.Dataset.from_dict({"embedding": [[1.0, 2.0], [3.0]], "label": ["a", "b"]})
    with pytest.raises(BankError, match="all must be equally long"):
        read_bank(ragged)


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
    table = Table("here", 4, vectors=np.eye(4, dtype=np.float32), classes=labels)
    with pytest.warns(SkippedRowsWarning, match="here: 2 of 4 items are skipped: 2 without a label: row 1: it"):
        bank = labelled(table)
    assert bank.class_names == names
    np.testing.assert_array_equal(bank.features, np.eye(4)[[0, 2]])


@pytest.mark.parametrize(
    ("labels", "given", "numbers", "names"),
    [
        ([7, 3, 7], None, [1, 0, 1], ("3", "7")),
        ([1, 0, 1], ["a", "b", "c"], [1, 0, 1], ("a", "b", "c")),
        (["b", "a", "b"], None, [1, 0, 1], ("a", "b")),
        (["b", "a", "b"], ["c", "b", "a"], [1, 2, 1], ("c", "b", "a")),
        (np.array([b"b", b"a", b"b"]), None, [1, 0, 1], ("a", "b")),
        ([1, 0, 1], ["same", "same"], [1, 0, 1], ("same", "same")),
        ([1, 0, 1], [7, np.int64(5)], [1, 0, 1], ("7", "5")),
    ],
)
def test_labels_of_any_kind_become_numbers_and_names(labels, given, numbers, names):
    bank = bank_of(np.zeros((3, 2)), labels, given, "it")
    assert bank.labels.tolist() == numbers
    assert bank.class_names == names


@pytest.mark.parametrize(
    ("labels", "given", "sentence"),
    [
        (["b", "a", "d"], ["a", "b"], "it: label 'd' is not among the 2 class names"),
        ([0, 1, 2], ["a", "b"], r"it: labels must lie in 0 … 1"),
        ([0.5, 1.0, 2.0], None, "it: labels must be one whole number"),
        (np.array(["a", 1, "b"], dtype=object), None, "it: labels must all be names or all be whole numbers"),
        ([0, 1], None, "it: labels must be one whole number for each of the 3 rows"),
        (["a", "b", "a"], ["a", "b", "a"], "it: 'a' is the name of more than one class"),
        ([0, 1, 1], [{"a": 1}, "b"], "it: class names must all be names"),
        ([b"\xff", b"a", b"a"], None, "it: labels must be text in UTF-8"),
        ([[1], [1, 2], [3]], None, "it: labels must be names or whole numbers"),
        (np.array("abc"), None, r"it: labels must be one for each row, got an array of shape \(\)"),
    ],
)
def test_impossible_labels_are_refused(labels, given, sentence):
    with pytest.raises(BankError, match=sentence):
        bank_of(np.zeros((3, 2)), labels, given, "it")
