import json
import os
import pickle
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import numpy as np
import pytest

from handful.banks import FeatureBank, store
from handful.errors import BankError, StorageError
from tests.banks_at_hand import random_bank


@pytest.fixture
def folder(tmp_path) -> Path:
    random_bank(splits={"test": [1]}).save(tmp_path / "bank")
    return tmp_path / "bank"


def edit(folder: Path, change) -> None:
    manifest = json.loads((folder / "manifest.json").read_text())
    change(manifest)
    (folder / "manifest.json").write_text(json.dumps(manifest))


def test_a_bank_is_never_overwritten(folder):
    with pytest.raises(BankError, match="already exists"):
        random_bank().save(folder)


@pytest.mark.parametrize(
    "name", ["../features.npy", "/etc/passwd", "..", "", "sub/features.npy", "a\\b.npy", "features.npy\0x", None, 3]
)
def test_a_manifest_that_names_files_elsewhere_is_refused(folder, name):
    edit(folder, lambda m: m["features"].update(file=name))
    with pytest.raises(BankError, match="not a file in that folder"):
        FeatureBank.load(folder)


def test_a_link_out_of_the_folder_is_refused(folder, tmp_path):
    (folder / "features.npy").rename(tmp_path / "elsewhere.npy")
    (folder / "features.npy").symlink_to(tmp_path / "elsewhere.npy")
    with pytest.raises(BankError, match="leaves the folder"):
        FeatureBank.load(folder)


@pytest.mark.parametrize("file", ["features.npy", "labels.npy"])
@pytest.mark.parametrize("keep", [0, 5, 100, -1])
def test_a_truncated_array_is_refused(folder, file, keep):
    data = (folder / file).read_bytes()
    (folder / file).write_bytes(data[:keep])
    with pytest.raises(BankError, match=rf"{file} cannot be read .* cut short"):
        FeatureBank.load(folder)


@pytest.mark.parametrize("file", ["features.npy", "labels.npy"])
def test_pickled_objects_are_refused(folder, file):
    np.save(folder / file, np.array([{"a": 1}], dtype=object), allow_pickle=True)
    with pytest.raises(BankError, match="has objects instead of numbers or text"):
        FeatureBank.load(folder)
    (folder / file).write_bytes(pickle.dumps([1.0]))
    with pytest.raises(BankError, match=r"cannot be read as a .npy file of numbers"):
        FeatureBank.load(folder)


@pytest.mark.parametrize(
    ("array", "sentence"),
    [
        (np.zeros((3, 2), np.float32), r"has shape \[3, 2\], its manifest says"),
        ("float64", "has dtype float64"),
        (">f4", "has dtype >f4"),
        ("fortran", "not stored row by row"),
    ],
)
def test_arrays_other_than_the_manifest_says_are_refused(folder, array, sentence):
    if isinstance(array, str):
        features = np.load(folder / "features.npy")
        array = np.asfortranarray(features) if array == "fortran" else features.astype(array)
    np.save(folder / "features.npy", array)
    with pytest.raises(BankError, match=sentence):
        FeatureBank.load(folder)


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (lambda m: m.update(format="zip"), "does not describe a handful feature bank"),
        (lambda m: m.update(format_version=99), "format version 99.*update handful"),
        (lambda m: m.pop("splits"), "lacks the field 'splits'"),
        (lambda m: m.update(class_names=["one"]), "contradicts itself: labels must lie in"),
        (lambda m: m["splits"].update(test=[77]), "contradicts itself: split 'test'"),
        (lambda m: m["features"].pop("shape"), "its manifest says"),
        (lambda m: m["features"].update(shape=3), "its manifest says"),
        (lambda m: m["features"].update(dtype=["float32"]), "its manifest says"),
        (lambda m: m["splits"].update(test=5), "contradicts itself"),
        (lambda m: m["splits"].update(test=["a"]), "contradicts itself"),
        (lambda m: m["provenance"].update(versions=5), "contradicts itself"),
        (lambda m: m.update(class_names=[1, {"x": 2}, "c"]), "class names that are not text"),
    ],
)
def test_a_wrong_manifest_is_refused(folder, change, sentence):
    edit(folder, change)
    with pytest.raises(BankError, match=sentence):
        FeatureBank.load(folder)


def test_what_killed_writers_left_is_removed_by_the_next_one(tmp_path):
    for name in (".bank.partial-x1", ".bank.partial-x2", ".other.partial-x3"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "features.npy").write_bytes(bytes(100))
    random_bank().save(tmp_path / "bank")
    assert sorted(path.name for path in tmp_path.iterdir()) == [".other.partial-x3", "bank"]


def test_of_two_writers_of_one_bank_the_later_is_told(tmp_path):
    bank = random_bank()

    def blocks():
        bank.save(tmp_path / "bank")  # somebody else is quicker
        yield bank.features

    with pytest.raises(BankError, match="written by another process in the meantime"):
        store.write(
            tmp_path / "bank", blocks(), bank.labels, dtype=bank.dtype, dim=bank.dim, class_names=bank.class_names,
            provenance={}, splits={},
        )  # fmt: skip
    assert FeatureBank.load(tmp_path / "bank").content_hash == bank.content_hash
    assert [path.name for path in tmp_path.iterdir()] == ["bank"]


def test_missing_parts_are_named(folder, tmp_path):
    with pytest.raises(BankError, match="is not a folder"):
        FeatureBank.load(tmp_path / "nothing")
    (folder / "labels.npy").unlink()
    with pytest.raises(BankError, match=r"labels.npy is missing"):
        FeatureBank.load(folder)
    (folder / "manifest.json").write_text("[" * 100_000)
    with pytest.raises(BankError, match="is not JSON"):
        FeatureBank.load(folder)
    (folder / "manifest.json").write_text("{")
    with pytest.raises(BankError, match="is not JSON"):
        FeatureBank.load(folder)
    (folder / "manifest.json").unlink()
    with pytest.raises(BankError, match=r"has no manifest.json.*read_bank"):
        FeatureBank.load(folder)


def test_a_failed_write_leaves_nothing(tmp_path, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("handful.banks.store.os.rename", full)
    with pytest.raises(StorageError, match=r"bank cannot be written: the disk is full; free some space"):
        random_bank().save(tmp_path / "bank")
    assert list(tmp_path.iterdir()) == []


def test_a_write_killed_half_way_leaves_no_bank_that_loads(tmp_path):
    program = textwrap.dedent(
        """
        import sys, time, numpy as np
        from handful.banks import store
        def blocks():
            for i in range(100):
                if i == 50:
                    print("half", flush=True)
                    time.sleep(60)
                yield np.ones((10, 4), np.float32)
        store.write(sys.argv[1], blocks(), np.zeros(1000, np.int32), dtype="float32", dim=4, class_names=["a"],
                    provenance={}, splits={})
        """
    )
    with subprocess.Popen(
        [sys.executable, "-c", program, str(tmp_path / "bank")], stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout.readline() == "half\n"
        os.kill(process.pid, signal.SIGKILL)
    left = list(tmp_path.iterdir())
    assert len(left) == 1  # the unfinished folder, under another name
    for path in [tmp_path / "bank", *left]:
        with pytest.raises(BankError):
            FeatureBank.load(path)
    random_bank().save(tmp_path / "bank").verify()


def test_a_bank_is_on_the_disk_before_it_has_its_name(tmp_path, monkeypatch):
    happened, flush, rename = [], store.flush_to_disk, os.rename
    monkeypatch.setattr(store, "flush_to_disk", lambda place: (happened.append(place.name), flush(place)))
    monkeypatch.setattr(os, "rename", lambda a, b: (happened.append("named"), rename(a, b)))
    random_bank().save(tmp_path / "bank")
    named = happened.index("named")
    assert {"features.npy", "labels.npy", "manifest.json"} < set(happened[:named])
    assert happened[named - 1].startswith(".bank.partial-")
    assert happened[named + 1 :] == [tmp_path.name]
