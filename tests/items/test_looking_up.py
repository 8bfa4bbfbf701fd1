"""What a page shows of items, wherever their batch is now."""

import os
from pathlib import Path

import numpy as np
import pandas as pd

from handful.catalogue.file import CatalogueFile
from handful.items import bring, pictures_of, vectors_of, with_vectors
from handful.reading.contents import FolderFiles, KeptPictures, Unreadable, ZipFiles
from tests.items.photographs import ENCODER, VOWELS, photographs, register
from tests.items_at_hand import image_bytes, zipped


def test_photographs_are_found_below_the_folder_of_their_batch(tmp_path):
    register()
    folder = photographs(tmp_path / "monday", 3)
    photographs(tmp_path / "tuesday" / "wood", 2, first=3)
    with CatalogueFile.open(tmp_path / "photos.handful") as catalogue:
        _ = bring(catalogue, "monday", folder, encoder=ENCODER)
        _ = bring(catalogue, "tuesday", tmp_path / "tuesday")
        found = pictures_of(catalogue, [5, 1, 2])
        assert isinstance(found, FolderFiles)
        assert list(found) == [image_bytes(k) for k in (4, 0, 1)]
        (folder / "000.png").unlink()
        (folder / "001.png").rename(folder / "other.png")
        _ = bring(catalogue, "monday")
        assert catalogue.said.places["monday"] == {3: "002.png", 2: "other.png"}
        gone, moved = pictures_of(catalogue, [1, 2])
        assert (gone, moved) == (Unreadable("there is no such file"), image_bytes(1))


def test_photographs_in_archives_and_tables(tmp_path):
    register()
    folder = photographs(tmp_path / "photos", 3)
    archive = zipped(folder, tmp_path / "packed.zip", "inside/")
    pd.DataFrame({"id": [7, 8], "path": ["photos/001.png", "photos/002.png"]}).to_csv(tmp_path / "a.csv", index=False)
    catalogue = CatalogueFile.open(tmp_path / "photos.handful")
    _ = bring(catalogue, "packed", archive / "inside", encoder=ENCODER)
    found = pictures_of(catalogue, [3, 1])
    assert isinstance(found, ZipFiles)
    assert list(found) == [image_bytes(2), image_bytes(0)]
    _ = bring(catalogue, "table", tmp_path / "a.csv", id_column="id")
    assert catalogue.said.places["table"] == {4: "7", 5: "8"}
    assert list(pictures_of(catalogue, [5])) == [image_bytes(2)]
    both = pictures_of(catalogue, [2, 4])
    assert isinstance(both, KeptPictures)
    assert list(both) == [image_bytes(1)] * 2
    archive.unlink()
    assert list(pictures_of(catalogue, [2, 4])) == [Unreadable("there is no such file"), image_bytes(1)]


def test_a_list_of_paths(tmp_path, monkeypatch):
    register()
    monkeypatch.chdir(tmp_path)
    folder = photographs(tmp_path / "photos", 2)
    catalogue = CatalogueFile.open(tmp_path / "photos.handful")
    _ = bring(catalogue, "some", [Path("photos/001.png"), folder / "000.png"], encoder=ENCODER)
    os.chdir("/")
    assert list(pictures_of(catalogue, [1, 2])) == [image_bytes(1), image_bytes(0)]


def test_texts_and_vectors():
    register()
    catalogue = CatalogueFile.open()
    _ = bring(catalogue, "calls", ["wake me", "hello"], encoder=VOWELS)
    given = pd.DataFrame({"emb": list(np.eye(5)[:2]), "text": ["one", "two"]})
    _ = bring(catalogue, "given", given, features="emb")
    _ = bring(catalogue, "bare", np.eye(5)[2:])
    assert pictures_of(catalogue, [2, 4, 5]) == ("hello", "two", "")
    assert pictures_of(catalogue, [5, 6]) is None
    assert with_vectors(catalogue, [6, 1]) == [6, 1]
    assert vectors_of(catalogue, []).shape == (0, 5)
