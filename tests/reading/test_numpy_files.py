import json
import pickle

import numpy as np
import pytest

from handful import read_bank
from handful.errors import BankError
from handful.reading import read
from tests.banks_at_hand import random_bank


@pytest.fixture
def folder(tmp_path):
    bank = random_bank(dtype="float16")
    np.save(tmp_path / "features.npy", bank.features)
    np.save(tmp_path / "labels.npy", bank.labels.astype("int16"))
    (tmp_path / "classes.json").write_text(json.dumps(bank.class_names))
    return tmp_path


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
    assert (found.dataset, found.encoder, found.notes) == ("a set: of things", "a net", "Split: all")


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
    np.savez(file, features=np.zeros((2, 2)), labels=np.array(["ant", "bee"], dtype=object))
    with pytest.raises(
        BankError, match=r"x.npz: array 'labels' has objects .* with labels.astype\(str\). Otherwise: a pic"
    ):
        read_bank(file)
    assert read_bank(file, trust_pickle=True).class_names == ("ant", "bee")
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
    with pytest.raises(BankError, match="has objects instead of numbers or text"):
        read_bank(folder)


@pytest.mark.parametrize("text", ["{", '{"a": 1}'])
def test_class_names_that_are_no_list_are_refused(folder, text):
    (folder / "classes.json").write_text(text)
    with pytest.raises(BankError, match=r"classes\.json (is not JSON|must be a list)"):
        read_bank(folder)


def test_arrays_of_objects_are_read_if_they_are_trusted(tmp_path):
    np.savez(tmp_path / "x.npz", features=np.eye(2), labels=np.array(["ant", "bee"], dtype=object))
    with pytest.raises(BankError, match="a pickle is a program"):
        read_bank(tmp_path / "x.npz")
    assert read_bank(tmp_path / "x.npz", trust_pickle=True).class_names == ("ant", "bee")
    np.save(tmp_path / "x.npy", np.array([[1.0, 2.0]], dtype=object))
    with pytest.raises(BankError, match="must be numbers"):
        read(tmp_path / "x.npy", trust_pickle=True)


def test_a_npy_file_stays_mapped(tmp_path):
    np.save(tmp_path / "x.npy", np.eye(3))
    assert isinstance(read(tmp_path / "x.npy").vectors, np.memmap)


def test_a_sparse_matrix_of_scipy_is_named(tmp_path):
    sparse = pytest.importorskip("scipy.sparse")
    sparse.save_npz(tmp_path / "x.npz", sparse.eye(3).tocsr())
    with pytest.raises(BankError, match=r"has a sparse matrix of SciPy .* features=matrix.toarray\(\)"):
        read_bank(tmp_path / "x.npz")
