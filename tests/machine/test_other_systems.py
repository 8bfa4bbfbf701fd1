"""What Windows and macOS do otherwise, as far as it can be pretended here; neither has been tried."""

import errno
import multiprocessing
import os
import signal
import subprocess
import sys
import types
from pathlib import Path

import pytest

from handful.errors import OptionError, StorageError
from handful.machine import command_line, outputs
from handful.machine.outputs import flush_to_disk, local_path, refusal, written_whole
from handful.review import class_folders
from tests.conftest import is_about_posix


class WindowsError(OSError):
    """An error as Windows raises it: `winerror` is its number, `errno` the nearest one of POSIX."""

    def __init__(self, number: int, near: int) -> None:
        super().__init__(near, "what the system says")
        self.winerror = number


@pytest.mark.parametrize("number", [5, 32, 33])
def test_a_table_that_a_spreadsheet_has_open_is_said_to_be_open(number, tmp_path, monkeypatch):
    def held(here, there):
        raise WindowsError(number, errno.EACCES)

    place = tmp_path / "labels.csv"
    place.write_text("old")
    monkeypatch.setattr(outputs.os, "replace", held)
    with (
        pytest.raises(StorageError, match="another program has it open, such as a spreadsheet"),
        written_whole(place) as new,
    ):
        new.write_text("new")
    assert place.read_text() == "old"
    assert [one.name for one in tmp_path.iterdir()] == ["labels.csv"]
    assert "permission" in refusal(OSError(errno.EACCES, ""))


def test_links_that_windows_refuses_are_left_out_by_an_option(tmp_path, monkeypatch):
    def refused(self, target):
        raise WindowsError(1314, errno.EINVAL)

    monkeypatch.setattr(class_folders.Path, "symlink_to", refused)
    with pytest.raises(OptionError, match="leave --links out"):
        class_folders._link(tmp_path / "a.jpg", tmp_path / "b.jpg")


def test_a_folder_that_cannot_be_flushed_is_no_failure_and_a_file_is_one(tmp_path, monkeypatch):
    def cannot(handle):
        raise OSError(errno.EINVAL, "Invalid argument")

    monkeypatch.setattr(outputs.os, "fsync", cannot)
    flush_to_disk(tmp_path)
    (tmp_path / "file").touch()
    with pytest.raises(OSError, match="Invalid argument"):
        flush_to_disk(tmp_path / "file")


@pytest.mark.parametrize("drive_can", [True, False])
def test_on_macos_the_cache_of_the_drive_is_flushed_too(drive_can, tmp_path, monkeypatch):
    done = []

    def control(handle, what):
        if not drive_can:
            raise OSError(errno.ENOTSUP, "Operation not supported")
        done.append(what)

    monkeypatch.setattr(outputs, "fcntl", types.SimpleNamespace(fcntl=control, F_FULLFSYNC=51), raising=False)
    monkeypatch.setattr(outputs.sys, "platform", "darwin")
    monkeypatch.setattr(outputs.os, "fsync", lambda handle: done.append("fsync"))
    (tmp_path / "file").touch()
    flush_to_disk(tmp_path / "file")
    assert done == ([51] if drive_can else ["fsync"])


def test_a_command_is_typed_as_the_shell_of_the_system_takes_it(monkeypatch):
    words = ["handful", "review", r"C:\my photos\birds.handful", "next_batch"]
    monkeypatch.setattr(command_line.os, "name", "nt")
    assert command_line.typed(words) == r'handful review "C:\my photos\birds.handful" next_batch'


@pytest.mark.parametrize("name", ["plain", "two words", "Grüße 鳥", "a%20b", "#1"])
def test_a_file_url_leads_to_its_path(name, tmp_path):
    place = tmp_path / name
    assert local_path(place.as_uri()) == place


# Each lacks letters of the other's language.
CONSOLES = ["cp1252", "cp932"]


@pytest.mark.parametrize("console", CONSOLES)
def test_a_folder_with_blanks_and_letters_that_the_console_lacks_is_labelled(console, tmp_path):
    folder = tmp_path / "Grüße an 鳥 und птицы"
    folder.mkdir()
    (folder / "Äpfel.csv").write_text(
        "x,y,label\n" + "".join(f"{k % 2},{k},{'鳥é' if k % 2 else 'птица'}\n" for k in range(12)) + "1,4,\n0,5,\n",
        encoding="utf-8",
    )
    environment = {**os.environ, "PYTHONIOENCODING": console, "PYTHONUTF8": "0"}
    table = str(folder / "Äpfel.csv")
    command = [sys.executable, "-m", "handful", "classify", table, table, "--labels", "label", "--features", "x,y"]
    done = subprocess.run([*command, "--out", str(folder / "aus.csv")], env=environment, capture_output=True)
    assert done.returncode == 0, done.stderr
    assert "鳥é" in (folder / "aus.csv").read_text(encoding="utf-8")
    assert b"Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("asked", "is_posix"),
    [
        ("os.no_such_call()", True),
        ("signal.SIGNOTHING", True),
        ("multiprocessing.get_context('fork ')", False),
        ("[].no_such_call()", False),
        ("int('x')", False),
    ],
)
def test_on_windows_only_what_it_lacks_is_skipped(asked, is_posix):
    with pytest.raises((AttributeError, ValueError)) as raised:
        eval(asked, {"os": os, "signal": signal, "multiprocessing": multiprocessing})
    assert is_about_posix(raised.value) == is_posix


def test_no_file_of_the_package_has_a_name_that_windows_refuses():
    root = Path(__file__).resolve().parents[2]
    names = subprocess.run(["git", "ls-files"], cwd=root, capture_output=True, text=True).stdout.splitlines()
    if not names:
        pytest.skip("not a repository")
    for name in names:
        for part in name.split("/"):
            assert class_folders.safe_name(part) == part, name
    assert len({name.casefold() for name in names}) == len(names)
