"""The safetensors format, against the package that defines it."""

from __future__ import annotations

import json

import pytest
import torch
from safetensors import safe_open
from safetensors.torch import load_file, save_file

from handful.errors import FileFormatError
from handful.safetensors_format import DTYPES, read_tensors, write_tensors


@pytest.fixture
def tensors():
    generator = torch.Generator().manual_seed(0)
    floats = {f"of {name}": torch.rand(3, 5, generator=generator).mul(9).to(dtype) for name, dtype in DTYPES.items()}
    return floats | {
        "scalar": torch.tensor(2.5),
        "empty": torch.empty(0, 4),
        "transposed": torch.arange(6.0).view(2, 3).T,
    }


def assert_same(left, right):
    assert left.keys() == right.keys()
    for name, tensor in left.items():
        assert tensor.dtype == right[name].dtype
        torch.testing.assert_close(tensor, right[name], rtol=0, atol=0)


def test_package_reads_what_we_write(tmp_path, tensors):
    write_tensors(tmp_path / "ours.safetensors", tensors, {"what": "a test"})
    assert_same(load_file(tmp_path / "ours.safetensors"), tensors)
    with safe_open(tmp_path / "ours.safetensors", "pt") as file:
        assert file.metadata() == {"what": "a test"}
    assert [path.name for path in tmp_path.iterdir()] == ["ours.safetensors"]


def test_we_read_what_the_package_writes(tmp_path, tensors):
    contiguous = {name: tensor.contiguous() for name, tensor in tensors.items()}
    save_file(contiguous, tmp_path / "theirs.safetensors", {"what": "a test"})
    ours, metadata = read_tensors(tmp_path / "theirs.safetensors")
    assert_same(ours, tensors)
    assert metadata == {"what": "a test"}


def test_complex_numbers_are_refused(tmp_path):
    with pytest.raises(FileFormatError, match="complex64"):
        write_tensors(tmp_path / "x", {"wave": torch.zeros(2, dtype=torch.complex64)})


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\x80\x04K\x01.",  # a pickle
        (50).to_bytes(8, "little") + b"{}",
        (4).to_bytes(8, "little") + b"not{",
        (2).to_bytes(8, "little") + b"[]",
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
    ],
)
def test_damaged_entries_are_named(tmp_path, entry):
    header = json.dumps({"weight": entry}).encode()
    (tmp_path / "x").write_bytes(len(header).to_bytes(8, "little") + header + bytes(8))
    with pytest.raises(FileFormatError, match="'weight'"):
        read_tensors(tmp_path / "x")
