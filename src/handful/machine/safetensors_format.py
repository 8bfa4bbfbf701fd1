"""Tensors in a file that runs no code when it is read: safetensors, written completely or not at all, with a checksum.

The checksum is an entry of the header: the SHA-256 of what the file is, of the other
entries and of all tensors with their names, types and shapes. Entries are sorted, so equal tensors make equal files.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save_file

from handful.errors import FileFormatError
from handful.machine.outputs import written_whole
from handful.machine.untrusted import absent, refuse_irregular

CHECKSUM = "sha256"
Array: TypeAlias = npt.NDArray[Any]


def write_tensors(
    path: str | Path, tensors: Mapping[str, Any], metadata: Mapping[str, str] | None = None, what: str = ""
) -> None:
    """Write named tensors; the file appears complete or not at all."""
    arrays = {name: _array(tensor) for name, tensor in tensors.items()}
    notes = dict(metadata or {})
    try:
        with written_whole(Path(path)) as place:
            _save(arrays, notes | {CHECKSUM: _digest(what, notes, arrays)}, place)
            _sort_entries(place)
    except (SafetensorError, KeyError, TypeError, RuntimeError) as error:
        kinds = ", ".join(sorted({str(tensor.dtype) for tensor in arrays.values()}))
        raise FileFormatError(f"tensors of {kinds} cannot be written as safetensors ({error})") from error
    except ValueError as error:  # a name with NUL
        raise FileFormatError(f"{path} cannot be written ({error}); check the path") from error


def _save(arrays: dict[str, Array], notes: dict[str, str], place: Path) -> None:
    """Call the package; an error of the disk, which it has as text alone, becomes an `OSError` again."""
    try:
        place.touch()
        mode = place.stat().st_mode  # of any new file; the package makes one that nobody else can read
        save_file(arrays, place, notes)
        place.chmod(mode)
    except SafetensorError as error:
        if found := re.search(r"\(os error (\d+)\)", str(error)):
            raise OSError(int(found[1]), os.strerror(int(found[1]))) from error
        raise


def read_tensors(path: str | Path, what: str = "") -> tuple[dict[str, Array], dict[str, str]]:
    """Tensors and metadata of a file; one that does not fit the format or its checksum is refused."""
    refuse_irregular(path, FileFormatError)
    try:
        with safe_open(path, framework="numpy") as file:
            # Copies: the package gives views of the mapped file, which others may replace.
            tensors = {name: file.get_tensor(name).copy() for name in file.keys()}  # noqa: SIM118
            notes = dict(file.metadata() or {})
    except FileNotFoundError as error:
        raise absent(path, FileFormatError) from error
    except (SafetensorError, OSError, KeyError, TypeError, ValueError, RuntimeError) as error:
        raise FileFormatError(
            f"{path} is not a safetensors file, or it is damaged ({error}); copy or make it again"
        ) from error
    noted = notes.pop(CHECKSUM, None)
    if noted is None:
        raise FileFormatError(
            f"{path} has no checksum, so another program or an earlier version of handful wrote it; fit and save, or "
            "train, again with this version"
        )
    if noted != _digest(what, notes, tensors):
        raise FileFormatError(
            f"{path} does not fit its checksum: it was cut short or changed since it was written, or exchanged for "
            "another file; copy or make it again"
        )
    return tensors, notes


def _sort_entries(place: Path) -> None:
    """Sort the entries of a file's header, which the package writes in another order in every process."""
    with place.open("r+b") as file:
        length = int.from_bytes(file.read(8), "little")
        header = json.loads(file.read(length))
        header["__metadata__"] = dict(sorted(header["__metadata__"].items()))
        text = json.dumps(header, ensure_ascii=False, separators=(",", ":")).encode()
        file.seek(8)
        file.write(text.ljust(length))


def _digest(what: str, notes: Mapping[str, str], tensors: Mapping[str, Array]) -> str:
    found = hashlib.sha256(json.dumps([what, sorted(notes.items())]).encode())
    for name, tensor in sorted(tensors.items()):
        found.update(json.dumps([name, str(tensor.dtype), list(tensor.shape)]).encode())
        found.update(np.ascontiguousarray(tensor).data)
    return found.hexdigest()


def _array(tensor: Any) -> Array:
    """Return an array or a tensor as an array without gaps; a single number keeps its shape."""
    try:
        return np.asarray(tensor.detach().cpu() if hasattr(tensor, "detach") else tensor, order="C")
    except TypeError as error:  # kinds of numbers that NumPy does not have
        raise FileFormatError(f"tensors of {tensor.dtype} cannot be written as safetensors ({error})") from error
