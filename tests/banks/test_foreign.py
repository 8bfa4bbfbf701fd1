import json
import pickle
from types import SimpleNamespace

import numpy as np
import pytest

from handful import read_bank
from handful.banks import from_hugging_face
from handful.errors import BankError
from tests.banks_at_hand import random_bank
from tests.conftest import SHARED

SIZES = {
    "banking77-minilm": (13_083, 384, 77),
    "caltech101-efflite0": (6_970, 1280, 101),
    "clinc150-minilm": (22_500, 384, 150),
    "cub200-efflite0": (11_788, 1280, 200),
    "hwu64-minilm": (11_016, 384, 64),
    "omniglot659-conv4": (13_180, 256, 659),
    "tinyimagenet200-efflite0": (12_000, 1280, 200),
}


@pytest.fixture
def folder(tmp_path):
    bank = random_bank(dtype="float16")
    np.save(tmp_path / "features.npy", bank.features)
    np.save(tmp_path / "labels.npy", bank.labels.astype("int16"))
    (tmp_path / "classes.json").write_text(json.dumps(bank.class_names))
    return tmp_path


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


def test_a_folder_of_arrays(folder):
    bank = random_bank(dtype="float16")
    read = read_bank(folder)
    assert read.content_hash == bank.content_hash
    assert isinstance(read.stored, np.memmap)
    (folder / "classes.json").unlink()
    assert read_bank(folder).class_names == ("0", "1", "2", "3")


def test_the_readme_of_a_folder_is_its_provenance(folder):
    lines = ["# a title", "- Data: a set: of things", "- Backbone: a net", "- Split: all", "prose: not a line"]
    (folder / "README.md").write_text("\n".join(lines))
    found = read_bank(folder).provenance
    assert (found.dataset, found.backbone, found.notes) == ("a set: of things", "a net", "Split: all")


def test_our_own_folders_load_as_they_are(tmp_path):
    saved = random_bank(splits={"test": [1]}).save(tmp_path / "bank")
    assert read_bank(tmp_path / "bank").recorded_hash == saved.recorded_hash


@pytest.mark.parametrize("keys", [("features", "labels"), ("X", "y"), ("embeddings", "target")])
def test_npz_files(tmp_path, keys):
    bank = random_bank()
    np.savez(tmp_path / "x.npz", **{keys[0]: bank.features, keys[1]: bank.labels, "class_names": bank.class_names})
    assert read_bank(tmp_path / "x.npz").content_hash == bank.content_hash
    names = np.array(bank.class_names)[bank.labels]
    np.savez(tmp_path / "named.npz", a=bank.features, b=names)
    assert read_bank(tmp_path / "named.npz", features="a", labels="b").content_hash == bank.content_hash


def test_npz_files_with_pickled_objects_or_cut_short_are_refused(tmp_path):
    file = tmp_path / "x.npz"
    np.savez(file, features=np.zeros((2, 2)), labels=np.array([{}, {}], dtype=object))
    with pytest.raises(BankError, match=r"cannot be read as a .npz file"):
        read_bank(file)
    np.savez(file, features=np.zeros((2, 2)), labels=[0, 1])
    file.write_bytes(file.read_bytes()[:-30])
    with pytest.raises(BankError, match=r"cannot be read as a .npz file"):
        read_bank(file)
    with file.open("wb") as stream:
        np.save(stream, np.zeros(3))  # a lone array under the wrong name
    with pytest.raises(BankError, match=r"cannot be read as a .npz file"):
        read_bank(file)
    file.write_bytes(pickle.dumps([1, 2]))
    with pytest.raises(BankError, match=r"cannot be read as a .npz file"):
        read_bank(file)


@pytest.mark.parametrize("file", ["features.npy", "labels.npy"])
def test_folders_with_cut_or_pickled_arrays_are_refused(folder, file):
    data = (folder / file).read_bytes()
    (folder / file).write_bytes(data[:-1])
    with pytest.raises(BankError, match="cut short"):
        read_bank(folder)
    np.save(folder / file, np.array([{}], dtype=object))
    with pytest.raises(BankError, match="of another kind"):
        read_bank(folder)


@pytest.mark.parametrize("text", ["{", '{"a": 1}'])
def test_class_names_that_are_no_list_are_refused(folder, text):
    (folder / "classes.json").write_text(text)
    with pytest.raises(BankError, match=r"classes\.json (is not JSON|must be a list)"):
        read_bank(folder)


def test_what_is_unknown_is_refused_with_what_is_known(tmp_path):
    with pytest.raises(BankError, match="does not exist"):
        read_bank(tmp_path / "nothing")
    with pytest.raises(BankError, match="is an empty folder"):
        read_bank(tmp_path)
    (tmp_path / "notes.txt").touch()
    with pytest.raises(BankError, match="a folder with neither"):
        read_bank(tmp_path)
    (tmp_path / "x.doc").write_text("hello")
    with pytest.raises(BankError, match=r"has an unknown ending; .* \.npz, \.parquet"):
        read_bank(tmp_path / "x.doc")


class Rows:
    """As much of `datasets.Dataset` as is used."""

    def __init__(self, columns, names=None):
        self.columns = columns
        self.features = {name: SimpleNamespace(names=names) if name == "label" else None for name in columns}

    @property
    def column_names(self):
        return list(self.columns)

    def __len__(self):
        return len(next(iter(self.columns.values())))

    def iter(self, batch_size):
        for start in range(0, len(self), batch_size):
            yield {name: values[start : start + batch_size] for name, values in self.columns.items()}


def test_hugging_face_datasets(monkeypatch):
    monkeypatch.setattr("handful.banks.foreign.BLOCK_ROWS", 5)
    bank = random_bank()
    columns = {"id": list(range(bank.n_rows)), "embedding": bank.features.tolist(), "label": bank.labels.tolist()}
    assert from_hugging_face(Rows(columns, bank.class_names)).content_hash == bank.content_hash
    with pytest.raises(BankError, match=r"choose one split .* dataset\['train'\]"):
        from_hugging_face({"train": Rows(columns)})
    with pytest.raises(BankError, match="the dataset has no rows"):
        from_hugging_face(Rows({"embedding": [], "label": []}))
    ragged = Rows({"embedding": [[1.0, 2.0], [3.0]], "label": ["a", "b"]})
    with pytest.raises(BankError, match="all equally long"):
        from_hugging_face(ragged)


def test_the_datasets_library_itself():
    datasets = pytest.importorskip("datasets")
    bank = random_bank()
    columns = {"embedding": bank.features.tolist(), "label": [bank.class_names[k] for k in bank.labels]}
    made = datasets.Dataset.from_dict(columns).class_encode_column("label")
    assert from_hugging_face(made).content_hash == bank.content_hash
