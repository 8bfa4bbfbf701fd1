import pickle
import sys
import uuid

import pytest

from handful.errors import MissingExtraError, StorageError
from handful.machine import folders
from handful.machine.folders import LocalFolder, RemoteFolder, fetched, folder_at
from handful.machine.outputs import is_remote, local_path


@pytest.fixture(params=["disk", "memory"])
def folder(request, tmp_path):
    if request.param == "disk":
        return LocalFolder(tmp_path)
    pytest.importorskip("fsspec")
    return RemoteFolder(f"memory://{uuid.uuid4().hex}/run")


def test_a_file_appears_whole_or_not_at_all(folder):
    with folder.opened("answers/part") as place:
        assert place is None
    with folder.written("answers/part") as place:
        place.write_bytes(b"first")
        assert folder.names("answers") in ([], [place.name])  # on disk under its unfinished name
    with pytest.raises(ZeroDivisionError), folder.written("answers/part") as place:
        place.write_bytes(b"half of the sec"[: 1 // 0])
    with folder.opened("answers/part") as place:
        assert place.read_bytes() == b"first"
        assert place.name == "part"
    assert (folder.names(), folder.names("answers"), folder.names("none")) == (["answers"], ["part"], [])


def test_a_folder_travels_to_other_processes(folder):
    with folder.written("run.json") as place:
        place.write_bytes(b"one")
    assert pickle.loads(pickle.dumps(folder)) == folder
    assert folder_at(folder) is folder
    assert folder_at(folder.address) == folder


def test_urls_are_told_from_paths(tmp_path):
    assert folder_at(f"file://{tmp_path}/a%20b") == LocalFolder(tmp_path / "a b")
    assert folder_at(tmp_path) == LocalFolder(tmp_path)
    assert folder_at("S3://bucket/run/") == RemoteFolder("S3://bucket/run")
    assert [is_remote(place) for place in ("s3://b/x", "file:///x", "x", tmp_path, 3)] == [True, *[False] * 4]
    assert str(local_path("C:/windows")) == "C:/windows"


def test_files_and_folders_are_fetched_and_ranges_read(tmp_path):
    pytest.importorskip("fsspec")
    folder = RemoteFolder(f"memory://{uuid.uuid4().hex}/bank")
    for name in ("manifest.json", "features.npy"):
        with folder.written(name) as place:
            place.write_text(f"content of {name}")
    place = fetched(folder.url, tmp_path)
    assert (place.name, sorted(file.name for file in place.iterdir())) == ("bank", ["features.npy", "manifest.json"])
    assert fetched(f"{folder.url}/manifest.json", tmp_path).read_text() == "content of manifest.json"
    with pytest.raises(StorageError, match="there is nothing at memory://"):
        fetched(f"{folder.url}/none", tmp_path)


def test_what_goes_wrong_in_a_store_is_said_in_a_sentence(monkeypatch):
    fsspec = pytest.importorskip("fsspec")
    with pytest.raises(StorageError, match=r"nonsense://x/run.json cannot be read or written \(ValueError"):
        RemoteFolder("nonsense://x").about("run.json")
    folders.opened_system.cache_clear()

    def not_installed(*_, **__):
        raise ImportError("Install s3fs to access S3")

    monkeypatch.setattr(fsspec.core, "url_to_fs", not_installed)
    with pytest.raises(MissingExtraError, match=r"Install s3fs.*\[s3\]"):
        RemoteFolder("s3://bucket/run").names()
    monkeypatch.setitem(sys.modules, "fsspec", None)
    with pytest.raises(MissingExtraError, match=r"\[s3\]"):
        RemoteFolder("s3://bucket/run").names()
