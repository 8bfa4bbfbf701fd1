"""One function reads every kind of file, told by its name and content."""

import gzip

import numpy as np
import pytest

from handful import BatchClassifier, FeatureBank, classify
from handful.errors import BankError, HandfulError, StorageError
from handful.fitted import load_model
from handful.reading import read, read_bank
from handful.reading.read import kind_of
from handful.scale import run
from tests.banks_at_hand import random_bank
from tests.items_at_hand import image_bytes, image_folder, zipped


def test_what_is_unknown_is_refused_with_what_is_known(tmp_path):
    with pytest.raises(BankError, match="does not exist"):
        read_bank(tmp_path / "nothing")
    with pytest.raises(BankError, match="is an empty folder"):
        read_bank(tmp_path)
    (tmp_path / "notes.txt").touch()
    with pytest.raises(BankError, match="a folder with neither"):
        read_bank(tmp_path)
    (tmp_path / "x.doc").write_text("hello")
    with pytest.raises(BankError, match=r"of an unknown kind; .* \.parquet, \.pq, \.npz"):
        read_bank(tmp_path / "x.doc")


def test_what_has_columns(tmp_path):
    random_bank().save(tmp_path / "bank")
    image_folder(tmp_path / "images", 1, 1)
    np.save(tmp_path / "x.npy", np.eye(2))
    for name in ("bank", "images", "x.npy"):
        assert not kind_of(tmp_path / name).columns
        with pytest.raises(BankError, match="has no columns, so it has no column 'z'"):
            read(tmp_path / name, features="z")
    assert all(
        kind_of(tmp_path / name).columns for name in ("x.csv", "x.JSONL.gz", "x.parquet", "x.npz", "x.h5ad", "x.pt")
    )


@pytest.mark.parametrize(
    ("name", "content", "sentence"),
    [
        ("x.txt", b"words", "has no rows"),
        ("x.npz", b"PK", "cannot be read as a .npz file"),
        ("x.npy", b"", "cannot be read as a .npy file"),
        ("x.parquet", b"PAR1", "cannot be read as Parquet"),
        ("x.h5ad", b"words", "cannot be read as AnnData"),
        ("x.csv.gz", b"plain", "not a complete .gz"),
        ("x.jsonl.gz", gzip.compress(bytes(2**27)), "would expand to"),
        ("x.csv", b"text,label\na,b\n", "no column 'said' for the texts; it has text, label"),
    ],
)
def test_other_files_are_refused(tmp_path, name, content, sentence):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(BankError, match=sentence):
        read(tmp_path / name, text="said" if name.endswith("csv") else None)


def test_texts_and_paths_are_found_by_their_usual_names(tmp_path):
    (tmp_path / "x.csv").write_text("utterance,n\nhello,1\n")
    assert read(tmp_path / "x.csv").text == "utterance"
    (tmp_path / "a.png").write_bytes(image_bytes(0))
    (tmp_path / "y.csv").write_text("path,n\na.png,1\n")
    table = read(tmp_path / "y.csv")
    assert (table.names, list(table.images)) == (("a.png",), [image_bytes(0)])
    (tmp_path / "z.csv").write_text("path,text\na.png,hello\n")
    assert read(tmp_path / "z.csv", text="text").text == "text"
    with pytest.raises(BankError, match="a column of texts, 'text', and one of paths, 'path'"):
        read(tmp_path / "z.csv")


def test_a_folder_and_its_zip_are_read_alike(tmp_path):
    folder = image_folder(tmp_path / "images", 2, 2)
    assert read(folder).names == read(zipped(folder, tmp_path / "a.zip")).names


@pytest.mark.parametrize("name", [300 * "a", 5_000 * "a", 2_500 * "a/"])
@pytest.mark.parametrize("ending", ["", ".csv", ".xlsx", ".zip", ".parquet", ".handful"])
def test_a_path_that_no_system_could_have_does_not_exist(name, ending):
    path = name + ending
    for door in (read, FeatureBank.load, load_model, lambda path: classify(path, path), run_of):
        with pytest.raises(HandfulError) as refused:
            door(path)
        assert len(str(refused.value)) < 3 * len(path)


def run_of(path):
    return run(path, BatchClassifier().fit(np.eye(2), [0, 1]), path, group_by="a")


def test_a_long_path_to_write_to_is_refused_in_a_sentence():
    fitted = BatchClassifier().fit(np.eye(2), [0, 1])
    with pytest.raises(StorageError, match="the name is too long"):
        fitted.save(300 * "a")
