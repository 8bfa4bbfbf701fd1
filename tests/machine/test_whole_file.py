import errno
import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from handful.errors import BankError, StorageError
from handful.machine.outputs import UNFINISHED, written_whole


def test_the_old_file_stands_until_the_new_one_is_whole(tmp_path):
    path = tmp_path / "notes.txt"
    path.write_text("old")
    with written_whole(path) as place:
        place.write_text("new")
        assert place.parent == tmp_path
        assert place.name.endswith(UNFINISHED)
        assert path.read_text() == "old"
    assert path.read_text() == "new"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("failure", [ValueError, KeyboardInterrupt])
def test_a_failure_leaves_the_old_file_and_nothing_else(tmp_path, failure):
    path = tmp_path / "notes.txt"
    path.write_text("old")

    def fail_half_way():
        with written_whole(path) as place:
            place.write_text("half of")
            raise failure

    with pytest.raises(failure):
        fail_half_way()
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_bytes_are_on_the_disk_before_the_name_is(tmp_path, monkeypatch):
    happened = []
    flush, rename = os.fsync, os.replace
    monkeypatch.setattr(os, "fsync", lambda handle: (happened.append("flushed"), flush(handle)))
    monkeypatch.setattr(os, "replace", lambda a, b: (happened.append("named"), rename(a, b)))
    with written_whole(tmp_path / "notes.txt") as place:
        place.write_text("all of it")
    assert happened == ["flushed", "named", "flushed"]


def test_nothing_written_is_an_error_and_makes_no_file(tmp_path):
    with pytest.raises(StorageError, match="there is no such file"), written_whole(tmp_path / "notes.txt"):
        pass
    assert list(tmp_path.iterdir()) == []


def test_threads_that_write_one_path_each_write_it_whole(tmp_path):
    path = tmp_path / "notes.txt"

    def write(number):
        for _ in range(5):
            with written_whole(path) as place:
                place.write_text(str(number) * 1000)

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(write, range(8)))  # raises what a thread raised
    assert path.read_text() in {str(number) * 1000 for number in range(8)}
    assert list(tmp_path.iterdir()) == [path]


def test_folders_above_are_made(tmp_path):
    with written_whole(tmp_path / "a" / "b" / "notes.txt") as place:
        place.write_text("all of it")
    assert (tmp_path / "a" / "b" / "notes.txt").read_text() == "all of it"


@pytest.mark.parametrize(
    ("number", "said"),
    [
        (errno.ENOSPC, "the disk is full; free some space"),
        (errno.EROFS, "the disk is read-only; choose a path on another disk"),
        (errno.EACCES, "you have no permission; change the permissions"),
        (errno.EDQUOT, "your disk quota is used up; free some space"),
        (errno.ETIMEDOUT, "Connection timed out; check the path and its disk"),
    ],
)
def test_a_disk_that_refuses_is_said_with_path_cause_and_advice(tmp_path, number, said):
    path = tmp_path / "notes.txt"
    path.write_text("old")

    def fail_half_way():
        with written_whole(path) as place:
            place.write_text("half of")
            raise OSError(number, os.strerror(number))

    with pytest.raises(StorageError) as refused:
        fail_half_way()
    assert str(refused.value).startswith(f"{path} cannot be written: {said}")
    assert "Errno" not in str(refused.value)
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_an_error_about_another_file_is_left_as_it_is(tmp_path):
    with pytest.raises(FileNotFoundError, match="elsewhere"), written_whole(tmp_path / "notes.txt"):
        (tmp_path / "elsewhere").read_text()
    with pytest.raises(BankError), written_whole(tmp_path / "notes.txt"):
        raise BankError("a bank")


def test_a_path_below_a_file_is_said(tmp_path):
    (tmp_path / "file").touch()
    with (
        pytest.raises(StorageError, match=r"below\.txt cannot be written: "),
        written_whole(tmp_path / "file" / "folder" / "below.txt"),
    ):
        pass


@pytest.mark.skipif(not os.access("/proc/self", os.R_OK), reason="no /proc")
def test_a_folder_that_takes_no_files_is_said():
    with (
        pytest.raises(StorageError, match=r"^/proc/notes\.txt cannot be written: ") as refused,
        written_whole(Path("/proc/notes.txt")) as place,
    ):
        place.write_text("nothing")
    assert "partial" not in str(refused.value)


def test_a_pipe_or_a_device_is_not_replaced_by_a_file(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "link").symlink_to(tmp_path / "pipe")
    for name in ("pipe", "link"):
        with pytest.raises(StorageError, match="is not a regular file"), written_whole(tmp_path / name) as place:
            place.write_text("all of it")
    assert (tmp_path / "pipe").is_fifo()
