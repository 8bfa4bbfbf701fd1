"""Folders of paths as columns: slashes of both kinds, drives, ragged depths, and names that are no paths."""

import os

import numpy as np
import pytest

from handful.errors import BankError, FileFormatError
from handful.reading import read, skipped_counts
from handful.reading.contents import FolderFiles
from handful.reading.images import folder_columns, is_folder, with_folders
from handful.reading.table import Table
from tests.items_at_hand import image_folder

FILES = ["a/b/c/1.jpg", "a\\b\\2.jpg", "./d/e//3.jpg"]


def test_the_folder_of_a_file_and_the_first_ones_of_its_path():
    assert folder_columns(["folder", "folder:1", "folder:2", "site"], FILES, "x") == {
        "folder": ["a/b/c", "a/b", "d/e"],
        "folder:1": ["a", "a", "d"],
        "folder:2": ["a/b", "a/b", "d/e"],
    }


@pytest.mark.parametrize(
    ("file", "first", "second"),
    [
        ("/data/wood/1.jpg", "/data", "/data/wood"),
        ("C:\\data\\wood\\1.jpg", "C:/data", "C:/data/wood"),
        ("C:/data/wood/1.jpg", "C:/data", "C:/data/wood"),
        ("\\\\server\\share\\data\\wood\\1.jpg", "//server/share/data", "//server/share/data/wood"),
    ],
)
def test_neither_root_nor_drive_is_a_level(file, first, second):
    assert folder_columns(["folder:1", "folder:2", "folder"], [file], "x") == {
        "folder:1": [first],
        "folder:2": [second],
        "folder": [second],
    }


def test_paths_with_too_few_folders_are_refused():
    with pytest.raises(
        FileFormatError, match=r"x: 2 of 3 paths have fewer than 3 folders, .*2\.jpg'; all have folder:2"
    ):
        folder_columns(["folder:3"], FILES, "x")
    for outside in ("1.jpg", "/1.jpg", "C:\\1.jpg"):
        for column in ("folder", "folder:1", "folder:2"):
            with pytest.raises(FileFormatError, match=r"1\.jpg' is in no folder, so it belongs to no group"):
                folder_columns([column], ["a/b/2.jpg", outside], "x")


def test_only_levels_from_one_on_are_folders():
    assert all(map(is_folder, ("folder", "folder:1", "folder:12")))
    assert not any(
        map(is_folder, ("folder:0", "folder:-1", "folder:", "folder:x", "folders", "my folder", "folder:9999"))
    )


def test_a_column_of_the_table_counts_more_and_names_that_are_no_paths_have_no_folders():
    table = Table("x", 2, vectors=np.eye(2), columns={"folder": ["own", "own"]})
    paths = ("a/1", "b/2")
    found = with_folders(table, ("folder", "folder:1", "day"), paths)
    assert found.columns == {"folder": ["own", "own"], "folder:1": ["a", "b"]}
    assert with_folders(table, ("folder:1",), ("row 0", "row 1")) is table


def test_links_to_nothing_pipes_and_devices_are_listed_and_never_opened(tmp_path):
    image_folder(tmp_path, 1, 2)
    folder = next(tmp_path.iterdir())
    os.mkfifo(folder / "pipe.png")
    (folder / "gone.png").symlink_to("nowhere.png")
    (folder / "zero.jpg").symlink_to("/dev/zero")
    (folder / "film.mp4").touch()
    table = read(tmp_path)
    assert table.n_rows == 2
    assert skipped_counts(table.skipped) == {"unsupported": 1, "no file": 3}
    assert [one.name.rpartition("/")[2] for one in table.skipped] == ["film.mp4", "gone.png", "pipe.png", "zero.jpg"]
    assert all(isinstance(content, bytes) for content in table.images)
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "a.png").symlink_to("nowhere.png")
    with pytest.raises(BankError, match=r"'a\.png': it is a link that leads to no file"):
        read(tmp_path / "other")


def test_a_file_that_is_gone_or_became_a_pipe_is_unreadable(tmp_path):
    os.mkfifo(tmp_path / "pipe.png")
    (tmp_path / "folder.png").mkdir()
    found = list(FolderFiles(tmp_path, ("pipe.png", "gone.png", "folder.png")))
    assert [content.reason for content in found] == [
        "it is a pipe, a device or a folder",
        "there is no such file",
        "it is a pipe, a device or a folder",
    ]
