"""Files of tensors: what others write is read, what is damaged is refused, nothing is left half written."""

from __future__ import annotations

import json
import os

import pytest
import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import load_file, save_file

from handful.errors import FileFormatError, StorageError
from handful.machine.safetensors_format import read_tensors, write_tensors

DTYPES = (
    torch.float64, torch.float32, torch.float16, torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8,
    torch.bool,
)  # fmt: skip


@pytest.fixture
def tensors():
    generator = torch.Generator().manual_seed(0)
    floats = {f"of {dtype}": torch.rand(3, 5, generator=generator).mul(9).to(dtype) for dtype in DTYPES}
    return floats | {
        "scalar": torch.tensor(2.5),
        "empty": torch.empty(0, 4),
        "transposed": torch.arange(6.0).view(2, 3).T,
    }


def assert_same(left, right):
    assert left.keys() == right.keys()
    for name, found in left.items():
        tensor = torch.as_tensor(found)
        assert tensor.dtype == right[name].dtype
        torch.testing.assert_close(tensor, right[name], rtol=0, atol=0)


def test_package_reads_what_we_write(tmp_path, tensors):
    write_tensors(tmp_path / "ours.safetensors", tensors, {"what": "a test"})
    assert_same(load_file(tmp_path / "ours.safetensors"), tensors)
    with safe_open(tmp_path / "ours.safetensors", "pt") as file:
        assert file.metadata().keys() == {"what", "sha256"}
        assert file.metadata()["what"] == "a test"
    assert [path.name for path in tmp_path.iterdir()] == ["ours.safetensors"]


def test_equal_tensors_make_equal_files(tmp_path, tensors):
    """The package writes the entries of a header in an order that is another one in every call."""
    notes = {"what": "a test", "größe": 'tab\tquote"', "b": "\x7f\x01", **{f"entry {k}": str(k) for k in range(5)}}
    for k in range(6):
        write_tensors(tmp_path / f"{k}.safetensors", tensors, notes)
    assert len({(tmp_path / f"{k}.safetensors").read_bytes() for k in range(6)}) == 1
    found, metadata = read_tensors(tmp_path / "0.safetensors")
    assert_same(found, tensors)
    assert metadata == notes


def test_we_read_what_we_write_and_nothing_without_a_checksum(tmp_path, tensors):
    write_tensors(tmp_path / "ours.safetensors", tensors, {"what": "a test"})
    found, metadata = read_tensors(tmp_path / "ours.safetensors")
    assert_same(found, tensors)
    assert metadata == {"what": "a test"}
    contiguous = {name: tensor.contiguous() for name, tensor in tensors.items()}
    save_file(contiguous, tmp_path / "theirs.safetensors", {"what": "a test"})
    with pytest.raises(FileFormatError, match=r"has no checksum, .* again with this version"):
        read_tensors(tmp_path / "theirs.safetensors")


@pytest.mark.parametrize("kind", ["complex128", "bfloat16"])
def test_tensors_of_other_kinds_are_refused_and_leave_nothing(tmp_path, kind):
    with pytest.raises(FileFormatError, match=kind):
        write_tensors(tmp_path / "x", {"wave": torch.zeros(2, dtype=getattr(torch, kind))})
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_is_not_there_or_not_a_file_is_refused(tmp_path):
    with pytest.raises(FileFormatError, match="does not exist"):
        read_tensors(tmp_path / "x")
    os.mkfifo(tmp_path / "x")
    with pytest.raises(FileFormatError, match="not a regular file"):
        read_tensors(tmp_path / "x")


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\x80\x04K\x01.",  # a pickle
        (50).to_bytes(8, "little") + b"{}",
        (4).to_bytes(8, "little") + b"not{",
        (2).to_bytes(8, "little") + b"[]",
        (2**63).to_bytes(8, "little") + b"{}",
        (100_000).to_bytes(8, "little") + b"[" * 100_000,
        (100_000).to_bytes(8, "little") + b'{"a":' * 20_000,
    ],
)
def test_other_files_are_refused(tmp_path, content):
    (tmp_path / "x").write_bytes(content)
    with pytest.raises(FileFormatError, match="not a safetensors file"):
        read_tensors(tmp_path / "x")


@pytest.mark.parametrize(
    "entry",
    [
        {"dtype": "F32", "shape": [2], "data_offsets": [0, 800]},
        {"dtype": "F32", "shape": [3], "data_offsets": [0, 8]},
        {"dtype": "F32", "shape": [2], "data_offsets": [-8, 0]},
        {"dtype": "OBJECT", "shape": [2], "data_offsets": [0, 8]},
        {"dtype": "F32"},
        {"dtype": "F32", "shape": [2**62, 4], "data_offsets": [0, 8]},
        {"dtype": "F32", "shape": [-2], "data_offsets": [0, 8]},
        {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]},
    ],
)
def test_damaged_entries_are_refused(tmp_path, entry):
    header = json.dumps({"weight": entry}).encode()
    (tmp_path / "x").write_bytes(len(header).to_bytes(8, "little") + header + bytes(8))
    with pytest.raises(FileFormatError, match="not a safetensors file, or it is damaged"):
        read_tensors(tmp_path / "x")


def test_a_changed_file_is_refused_and_so_is_another_of_its_kind(tmp_path, tensors):
    file = tmp_path / "x"
    write_tensors(file, tensors, {"what": "a test"}, "run 7, shard 3")
    content = file.read_bytes()
    assert_same(read_tensors(file, "run 7, shard 3")[0], tensors)
    for what in ("run 7, shard 4", ""):
        with pytest.raises(FileFormatError, match=r"does not fit its checksum: .* exchanged for another file"):
            read_tensors(file, what)
    generator = torch.Generator().manual_seed(0)
    for place in torch.randint(len(content), (100,), generator=generator).tolist():
        file.write_bytes(content[:place] + bytes([content[place] ^ 4]) + content[place + 1 :])
        with pytest.raises(FileFormatError):
            read_tensors(file, "run 7, shard 3")
    file.write_bytes(content[:-1])
    with pytest.raises(FileFormatError):
        read_tensors(file, "run 7, shard 3")


def test_tensors_of_the_same_shape_cannot_be_exchanged(tmp_path):
    file = tmp_path / "x"
    write_tensors(file, {"left": torch.zeros(3), "right": torch.ones(3)})
    content = file.read_bytes()
    file.write_bytes(content.replace(b"left", b"none").replace(b"right", b"left").replace(b"none", b"right"))
    with pytest.raises(FileFormatError):
        read_tensors(file)
    file.write_bytes(content.replace(b'"left"', b'"self"'))
    with pytest.raises(FileFormatError, match="does not fit its checksum"):
        read_tensors(file)


@pytest.mark.parametrize(
    ("name", "error", "reason"),
    [
        ("folder", StorageError, "is a folder; name a file"),
        ("file/x", StorageError, "file/x cannot be written: a file of this name is in the way|is a file, not a folder"),
        ("a\0b", FileFormatError, "cannot be written"),
    ],
)
def test_a_path_that_cannot_be_written_is_refused(tmp_path, name, error, reason):
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").touch()
    with pytest.raises(error, match=reason):
        write_tensors(f"{tmp_path}/{name}", {"a": torch.zeros(2)})


def test_a_full_disk_is_said_although_the_package_has_it_as_text_alone(tmp_path, monkeypatch):
    def full(*_):
        raise SafetensorError("Error while serializing: I/O error: No space left on device (os error 28)")

    monkeypatch.setattr("handful.machine.safetensors_format.save_file", full)
    with pytest.raises(StorageError, match="x cannot be written: the disk is full"):
        write_tensors(tmp_path / "x", {"a": torch.zeros(2)})


def test_a_file_has_the_permissions_of_any_other(tmp_path):
    (tmp_path / "other").touch()
    write_tensors(tmp_path / "file", {"x": torch.zeros(2)})
    assert (tmp_path / "file").stat().st_mode == (tmp_path / "other").stat().st_mode
