"""Tensors in a file that runs no code when it is read: the safetensors format, written out.

    8 bytes: length of the header, little endian │ header: JSON │ the tensors' bytes, one after the other

The header maps each name to `{"dtype", "shape", "data_offsets": [begin, end]}`; `"__metadata__"` maps text to text.
Files are those of the safetensors package, which the tests read and write them against.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from handful.errors import FileFormatError
from handful.whole_file import written_whole

DTYPES = {
    "F64": torch.float64,
    "F32": torch.float32,
    "F16": torch.float16,
    "BF16": torch.bfloat16,
    "I64": torch.int64,
    "I32": torch.int32,
    "I16": torch.int16,
    "I8": torch.int8,
    "U8": torch.uint8,
    "BOOL": torch.bool,
}
NAMES = {dtype: name for name, dtype in DTYPES.items()}
# A header longer than this is a damaged file, not a model: refuse before reserving memory for it.
LONGEST_HEADER = 100_000_000


def write_tensors(path: str | Path, tensors: Mapping[str, Tensor], metadata: Mapping[str, str] | None = None) -> None:
    """Write named tensors; the file appears whole or not at all."""
    path = Path(path)
    header: dict[str, Any] = {"__metadata__": dict(metadata)} if metadata else {}
    blobs, begin = [], 0
    for name, tensor in tensors.items():
        if tensor.dtype not in NAMES:
            raise FileFormatError(f"{name} is {tensor.dtype}; safetensors holds {', '.join(DTYPES)}")
        blob = tensor.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy().tobytes()
        header[name] = {
            "dtype": NAMES[tensor.dtype],
            "shape": list(tensor.shape),
            "data_offsets": [begin, begin + len(blob)],
        }
        blobs.append(blob)
        begin += len(blob)
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)  # tensors start at a multiple of eight bytes
    with written_whole(path) as place, place.open("wb") as file:
        file.write(len(text).to_bytes(8, "little"))
        file.write(text)
        for blob in blobs:
            file.write(blob)


def read_tensors(path: str | Path) -> tuple[dict[str, Tensor], dict[str, str]]:
    """Tensors and metadata of a file; whatever does not fit the format is refused by name."""
    content = Path(path).read_bytes()
    length = int.from_bytes(content[:8], "little")
    if len(content) < 8 or length > min(LONGEST_HEADER, len(content) - 8):
        raise FileFormatError(f"{path} is not a safetensors file, or it was cut short: its header does not fit in it")
    try:
        header = json.loads(content[8 : 8 + length])
    except ValueError as error:
        raise FileFormatError(f"{path} is not a safetensors file: its header is not JSON") from error
    if not isinstance(header, dict):
        raise FileFormatError(f"{path} is not a safetensors file: its header is not a JSON object")
    metadata = header.pop("__metadata__", {})
    body = memoryview(content)[8 + length :]
    return {name: _tensor(path, name, entry, body) for name, entry in header.items()}, metadata


def _tensor(path: str | Path, name: str, entry: Any, body: memoryview) -> Tensor:
    try:
        dtype, shape, (begin, end) = DTYPES[entry["dtype"]], entry["shape"], entry["data_offsets"]
        blob = bytearray(body[begin:end])
        if not 0 <= begin <= end <= len(body):
            raise ValueError(f"its bytes {begin}–{end} lie outside the file")
        return (torch.frombuffer(blob, dtype=dtype) if blob else torch.empty(0, dtype=dtype)).reshape(shape)
    except (KeyError, TypeError, ValueError, RuntimeError) as error:
        raise FileFormatError(f"{path}: tensor {name!r} is damaged or of an unknown kind ({error})") from error
