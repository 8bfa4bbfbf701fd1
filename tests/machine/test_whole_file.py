import os
from concurrent.futures import ThreadPoolExecutor

import pytest

from handful.machine.whole_file import UNFINISHED, written_whole


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
    with pytest.raises(FileNotFoundError), written_whole(tmp_path / "notes.txt"):
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
