"""Listings: the same contents and places, whatever kind of file has them."""

import hashlib
import os

import numpy as np
import pandas as pd
import pytest

from handful.errors import BankError, OptionError, StorageError
from handful.items.listing import distinct_places, listed
from handful.reading.contents import FolderFiles, ZipFiles
from tests.items.photographs import aged, photograph, photographs
from tests.items_at_hand import image_bytes, image_folder, zipped

TEXTS = ["where is my bag", "wake me", "wake me"]


def places(listing):
    return [one.place for one in listing.arrivals]


def test_photographs_are_known_by_their_bytes(tmp_path):
    found = listed(photographs(tmp_path / "monday", 3))
    assert (found.kind, places(found)) == ("image", ["000.png", "001.png", "002.png"])
    assert found.hashes == [hashlib.sha256(image_bytes(k)).digest() for k in range(3)]
    assert found.folder == tmp_path / "monday"
    assert found.file is None
    assert [one.columns for one in found.arrivals] == [None] * 3


def test_a_folder_of_folders_and_its_zip_are_alike(tmp_path):
    folder = image_folder(tmp_path / "classes")
    one, other = listed(folder), listed(zipped(folder, tmp_path / "classes.zip"))
    assert places(one) == places(other)
    assert one.hashes == other.hashes
    assert places(one)[0] == "class0/00.png"
    inside = listed(zipped(folder, tmp_path / "below.zip", "photos/") / "photos")
    assert (places(inside), inside.hashes) == (places(one), one.hashes)


@pytest.mark.parametrize("ending", [".csv", ".xlsx", ".parquet", ".jsonl", "frame", "list"])
def test_texts_are_alike_in_every_kind_of_table(tmp_path, ending):
    frame = pd.DataFrame({"text": TEXTS, "guest": ["Ada", None, "Eve"]})
    data = tmp_path / f"calls{ending}"
    if ending == ".csv":
        frame.to_csv(data, index=False)
    elif ending == ".xlsx":
        frame.to_excel(data, index=False)
    elif ending == ".parquet":
        frame.to_parquet(data)
    elif ending == ".jsonl":
        frame.to_json(data, orient="records", lines=True)
    else:
        data = frame if ending == "frame" else TEXTS
    found = listed(data)
    assert (found.kind, places(found), found.by_row) == ("text", ["row 0", "row 1", "row 2"], True)
    assert found.hashes == [hashlib.sha256(text.encode()).digest() for text in TEXTS]
    assert [one.content.text for one in found.arrivals] == TEXTS
    guests = [None] * 3 if ending == "list" else [{"guest": "Ada"}, None, {"guest": "Eve"}]
    assert [one.columns for one in found.arrivals] == guests


def test_identifiers_are_places_and_each_occurs_once(tmp_path):
    (tmp_path / "calls.csv").write_text("id,text\na7,hello\nb3,hello\na7,wake me\n")
    found = listed(tmp_path / "calls.csv")
    assert (places(found), found.by_row) == (["a7", "b3", "a7 (2)"], False)
    assert places(listed(tmp_path / "calls.csv", id_column="text")) == ["hello", "hello (2)", "wake me"]
    assert distinct_places(["a", "a", "a (2)", "a"]) == ["a", "a (3)", "a (2)", "a (4)"]


def test_rows_that_cannot_be_read_are_listed(tmp_path):
    (tmp_path / "calls.csv").write_text("text,guest\nhello,Ada\n,Bob\nwake me,Eve\n")
    found = listed(tmp_path / "calls.csv")
    assert places(found) == ["row 0", "row 2"]
    assert [(one.row, one.kind) for one in found.skipped] == [(1, "blank")]
    assert found.rows == (0, 2)


def test_vectors_are_known_by_their_numbers():
    found = listed(np.eye(2))
    assert found.hashes == [hashlib.sha256(row.tobytes()).digest() for row in np.eye(2, dtype="<f4")]
    assert found.hashes == listed(np.eye(2, dtype=np.float16)).hashes
    with pytest.raises(OptionError, match="an encoder is for images"):
        listed(np.eye(2), encoder="minilm")


def test_paths_in_a_table_are_images_below_its_folder(tmp_path):
    photographs(tmp_path / "photos", 2)
    (tmp_path / "list.csv").write_text("path,site\nphotos/000.png,wood\nphotos/001.png,marsh\nphotos/none.png,marsh\n")
    found = listed(tmp_path / "list.csv")
    assert (found.kind, places(found)) == ("image", ["photos/000.png", "photos/001.png"])
    assert found.arrivals[1].columns == {"path": "photos/001.png", "site": "marsh"}
    assert [one.name for one in found.skipped] == ["photos/none.png"]
    assert (found.folder, found.file) == (tmp_path, tmp_path / "list.csv")


def test_what_has_its_stamp_is_not_read_again(tmp_path, monkeypatch):
    read = []
    original = FolderFiles.__iter__

    def watched(files):
        read.extend(files.names)
        return original(files)

    monkeypatch.setattr(FolderFiles, "__iter__", watched)
    folder = photographs(tmp_path / "monday", 4)
    first = listed(folder)
    assert len(read) == 4
    read.clear()
    assert listed(folder, stamps=first.stamps).hashes == first.hashes
    assert read == []
    photograph(folder / "001.png", 77)  # edited: another size or time
    (folder / "002.png").write_bytes(image_bytes(2))  # written just now
    os.rename(folder / "003.png", folder / "004.png")
    again = listed(folder, stamps=first.stamps)
    assert read == ["001.png", "002.png", "004.png"]
    assert again.hashes[0] == first.hashes[0] != again.hashes[1]
    read.clear()
    _ = listed(folder, stamps=again.stamps)
    assert read == ["002.png"]
    aged(folder / "002.png")
    os.rename(folder, tmp_path / "tuesday")
    read.clear()
    _ = listed(tmp_path / "tuesday", stamps=again.stamps)
    assert len(read) == 4


def test_an_archive_is_read_again_if_it_changed(tmp_path, monkeypatch):
    archive = zipped(photographs(tmp_path / "monday", 2), tmp_path / "monday.zip")
    aged(archive)
    first = listed(archive)
    assert len(first.stamps.files) == 2
    read = []
    original = ZipFiles.__iter__
    monkeypatch.setattr(ZipFiles, "__iter__", lambda files: read.extend(files.names) or original(files))
    assert listed(archive, stamps=first.stamps).hashes == first.hashes
    assert read == []
    _ = zipped(photographs(tmp_path / "monday", 3), archive)
    assert len(listed(archive, stamps=first.stamps).hashes) == len(read) == 3


def test_a_folder_that_goes_away_changes_nothing(tmp_path, monkeypatch):
    folder = photographs(tmp_path / "monday", 3)
    original = FolderFiles.__iter__

    def unplugged(files):
        os.rename(folder, tmp_path / "gone")
        return original(files)

    monkeypatch.setattr(FolderFiles, "__iter__", unplugged)
    with pytest.raises(StorageError, match="went away while it was read; nothing was changed"):
        listed(folder)
    with pytest.raises(BankError, match="no"):
        listed(folder)


def test_a_disk_that_fails_is_a_sentence(tmp_path, monkeypatch):
    def failing(files):
        raise OSError(5, "Input/output error")
        yield

    folder = photographs(tmp_path / "monday", 1)
    monkeypatch.setattr(FolderFiles, "__iter__", failing)
    with pytest.raises(StorageError, match=r"cannot be read \(Input/output error\); nothing was changed"):
        listed(folder)
