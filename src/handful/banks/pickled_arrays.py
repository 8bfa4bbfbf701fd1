"""Arrays and tensors out of pickles, rebuilt from their plain parts: a type code, a shape, and bytes that must fit it.

NumPy and torch are only given types from the short lists below, and sizes that were checked against the bytes
available. Their own functions for unpickling trust what they are told, down to pointers in the file.

`load_plain` reads the four forms such files have: a plain pickle, tensors in one, and the two formats of `torch.save`.
"""

from __future__ import annotations

import math
import mmap
import re
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from handful.banks.arrays import checked_text
from handful.banks.pickle_machine import LARGE_BYTES, Builder, Name, PickleMachine, Unbuilt
from handful.errors import BankError
from handful.machine.untrusted import refuse_irregular

# Before they were zip archives, files of torch.save began with a pickle of this number.
OLD_TORCH_START = b"\x80\x02\x8a\nl\xfc\x9cF\xf9 j\xa8P\x19."
OLD_TORCH_VERSION = 1001
ZIP_START = b"PK\x03\x04"

# Booleans, whole numbers, floats, text and bytes of fixed width; O stands for a list of text.
TYPE_CODE = re.compile(r"b1|[iu][1248]|f[248]|[US]\d{1,6}|O8?")
STORAGE_TYPES = {
    "DoubleStorage": torch.float64,
    "FloatStorage": torch.float32,
    "HalfStorage": torch.float16,
    "BFloat16Storage": torch.bfloat16,
    "LongStorage": torch.int64,
    "IntStorage": torch.int32,
    "ShortStorage": torch.int16,
    "CharStorage": torch.int8,
    "ByteStorage": torch.uint8,
    "BoolStorage": torch.bool,
}


def load_plain(path: Path) -> Any:
    """Read a pickle, or a file of `torch.save`, as numbers, text, arrays, tensors, lists, tuples and mappings.

    Raises `BankError` for what is not data, and `ValueError` for a file that is damaged.
    """
    refuse_irregular(path, BankError)
    with path.open("rb") as file:
        if not path.stat().st_size:
            raise ValueError("it is empty")
        if file.read(len(ZIP_START)) == ZIP_START:
            file.seek(0)
            return _load_archive(file, path.stat().st_size)
        # Mapped rather than read: an array is then in memory once. The mapping ends when the last reference to it does.
        return _load_stream(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))


def _load_stream(data: Any) -> Any:
    if data[: len(OLD_TORCH_START)] == OLD_TORCH_START:
        return _load_old_torch(data)
    return PickleMachine(data, BUILDERS).read()


class _Storage:
    """The numbers behind one or more tensors, and how many of them a tensor may use."""

    def __init__(self, values: Tensor, most: int) -> None:
        self.values, self.most = values, most


class _Storages:
    """Storages by key, made when a pickle refers to them; together they are no larger than the file."""

    def __init__(self, size: int, make: Callable[[str, torch.dtype, int], Tensor]) -> None:
        self._size, self._left, self._make = size, size, make
        self.known: dict[str, _Storage] = {}

    def __call__(self, persistent_id: Any) -> _Storage:
        if type(persistent_id) is not tuple or len(persistent_id) not in (5, 6) or persistent_id[0] != "storage":
            raise BankError("it refers to something outside of it that is not a storage")
        _, kind, key, _, length, *view = persistent_id
        if type(kind) is not Name or kind.name not in STORAGE_TYPES or any(part is not None for part in view):
            raise BankError(f"it has a storage of an unknown kind, {kind if type(kind) is Name else 'without a name'}")
        dtype = STORAGE_TYPES[kind.name]
        if type(key) is not str or type(length) is not int or length < 0:
            raise ValueError("a storage has no key or no length")
        if key not in self.known:
            self._left -= length * dtype.itemsize
            if self._left < 0:
                raise ValueError(f"storage {key[:40]!r} is longer than the file")
            self.known[key] = _Storage(self._make(key, dtype, length), self._size)
        found = self.known[key]
        if found.values.dtype != dtype or len(found.values) != length:
            raise ValueError(f"storage {key[:40]!r} is described in two ways")
        return found


def _load_old_torch(data: Any) -> Any:
    """Read number, version and machine, an object that refers to storages, their keys, and then their contents."""
    machine = PickleMachine(data, BUILDERS, position=len(OLD_TORCH_START))
    version, about = machine.read(), machine.read()
    if version != OLD_TORCH_VERSION or not isinstance(about, dict) or about.get("little_endian") is not True:
        raise ValueError("it was written by an unknown version of torch, or on a big-endian machine")
    storages = _Storages(len(data), lambda key, dtype, length: torch.zeros(length, dtype=dtype))
    machine.persistent = storages
    found = machine.read()
    machine.persistent = None
    keys, start = machine.read(), machine.position
    if not isinstance(keys, list) or {*storages.known} - {key for key in keys if isinstance(key, str)}:
        raise ValueError("it lacks the contents of a storage")
    for key in keys:
        if not isinstance(key, str) or key not in storages.known:
            raise ValueError("it has a storage that nothing refers to")
        values = storages.known[key].values
        stop = start + 8 + len(values) * values.element_size()
        if stop > len(data) or int.from_bytes(data[start : start + 8], "little") != len(values):
            raise ValueError(f"storage {key[:40]!r} is cut short")
        if len(values):
            values.copy_(_tensor_of(data[start + 8 : stop], values.dtype))
        start = stop
    return found


def _load_archive(file: Any, size: int) -> Any:
    """Read a zip archive: `<name>/data.pkl` refers to storages `<name>/data/<key>`, none of them compressed."""
    try:
        with zipfile.ZipFile(file) as archive:
            mains = [name for name in archive.namelist() if name.rsplit("/", 1)[-1] == "data.pkl"]
            if len(mains) != 1:
                raise ValueError(f"it is a .zip with {len(mains)} files data.pkl, where torch.save writes one")
            folder = mains[0].removesuffix("data.pkl")
            order = f"{folder}byteorder"
            if order in archive.namelist() and _entry(archive, order, size) != b"little":
                raise ValueError("it comes from a big-endian machine")

            def make(key: str, dtype: torch.dtype, length: int) -> Tensor:
                content = _entry(archive, f"{folder}data/{key}", size)
                if len(content) != length * dtype.itemsize:
                    raise ValueError(f"storage {key[:40]!r} has {len(content)} bytes and should have {length} numbers")
                return _tensor_of(content, dtype)

            return PickleMachine(_entry(archive, mains[0], size), BUILDERS, _Storages(size, make)).read()
    except (zipfile.BadZipFile, zlib.error, OSError, EOFError, RuntimeError, KeyError) as error:
        raise ValueError(f"its archive is damaged: {error}") from error


def _entry(archive: zipfile.ZipFile, name: str, size: int) -> bytes:
    entry = archive.getinfo(name)
    if entry.compress_type != zipfile.ZIP_STORED or entry.file_size > size:
        raise ValueError(f"{name[:80]!r} is compressed or longer than the file, which torch.save does not write")
    return archive.read(entry)


def _tensor_of(content: bytes, dtype: torch.dtype) -> Tensor:
    return torch.frombuffer(bytearray(content), dtype=dtype) if content else torch.zeros(0, dtype=dtype)


def _whole_numbers(values: Any, what: str) -> tuple[int, ...]:
    if type(values) not in (tuple, list) or not all(type(v) is int and 0 <= v < 2**63 for v in values):
        raise ValueError(f"{what} must be whole numbers that are not negative")
    if len(values) > 32:
        raise ValueError(f"{what} has {len(values)} axes")
    return tuple(values)


# Builders: plain values in, plain values out.


def _empty_array(kind: Any, shape: Any, code: Any) -> Unbuilt:
    """Stand for `_reconstruct`, which makes an array that is filled when its state comes."""
    return Unbuilt(_array_of_state)


def _array_of_state(state: Any) -> Any:
    if type(state) is not tuple or len(state) != 5:
        raise ValueError("an array has an impossible state")
    _, shape, dtype, by_columns, content = state
    if isinstance(dtype, np.dtype) and dtype.hasobject:
        if type(content) is not list or _whole_numbers(shape, "a shape") != (len(content),):
            raise BankError("it has an array of objects with more than one axis")
        return content
    return _array(content, dtype, shape, "F" if by_columns is True else "C")


def _array_of_buffer(content: Any, dtype: Any, shape: Any, order: Any, axes: Any = None) -> Any:
    """Stand for `_frombuffer`, with which protocol 5 writes arrays."""
    if order not in ("C", "F", "K"):
        raise ValueError("an array has an impossible order")
    array = _array(content, dtype, shape, "F" if order == "F" else "C")
    return array if axes is None or order != "K" else array.transpose(_whole_numbers(axes, "an order of axes"))


def _array(content: Any, dtype: Any, shape: Any, order: Any) -> np.ndarray:
    if isinstance(content, str):  # of Python 2
        content = _bytes_of_text(content, "latin1")
    if not isinstance(dtype, np.dtype) or dtype.hasobject or not isinstance(content, (bytes, bytearray)):
        raise ValueError("an array has no type or no bytes")
    lengths = _whole_numbers(shape, "a shape")
    if math.prod(lengths) * dtype.itemsize != len(content):
        raise ValueError(f"an array of {dtype} and shape {lengths} does not fit its {len(content)} bytes")
    if not content:
        if not math.prod(lengths) and max(lengths) < 2**31:
            return np.zeros(lengths, dtype)
        raise ValueError(f"an array of {dtype} has the shape {lengths}")
    return checked_text(np.frombuffer(content, dtype).reshape(lengths, order=order))


def _scalar(dtype: Any, content: Any) -> Any:
    """Stand for `scalar`; return the number or text as Python has it."""
    if isinstance(dtype, np.dtype) and dtype.itemsize == 0:
        return ""
    return _array(content, dtype, (1,), "C")[0].item()


def _type(code: Any, *_: Any) -> Unbuilt:
    """Stand for `numpy.dtype`; only the byte order is read from its state."""
    if type(code) is not str or not TYPE_CODE.fullmatch(code):
        raise BankError(f"it has an array of type {code[:40]!r}" if type(code) is str else "it has an array of no type")

    def finish(state: Any) -> np.dtype[Any]:
        if type(state) is not tuple or len(state) < 5 or state[1] not in ("<", ">", "|", "=") or any(state[2:5]):
            raise BankError("it has an array of records, or of a type that is none")
        return np.dtype(code).newbyteorder(state[1])

    return Unbuilt(finish)


def _bytes_of_text(text: Any, encoding: Any) -> bytes | bytearray:
    """Stand for `_codecs.encode`, with which old protocols write bytes; other codecs may do more than that."""
    if encoding != "latin1" or type(text) is not str:
        raise BankError(f"it asks for the codec {encoding[:40]!r}" if type(encoding) is str else "it asks for a codec")
    return text.encode("latin1") if len(text) < LARGE_BYTES else bytearray(text, "latin1")


def _no_bytes() -> bytes:
    """Stand for `bytes()`, as old protocols write none."""
    return b""


def _storage_of_bytes(content: Any) -> Any:
    """Stand for torch's loader of storages inside plain pickles: a file of the older format inside the file."""
    if not isinstance(content, (bytes, bytearray)) or content[: len(OLD_TORCH_START)] != OLD_TORCH_START:
        raise BankError("it has a storage in an unknown format")
    return _load_old_torch(content)


def _tensor(storage: Any, offset: Any, size: Any, stride: Any, *_: Any) -> Tensor:
    """Stand for `_rebuild_tensor_v2`: `storage[offset + Σ i stride]`, nowhere beyond the storage."""
    sizes, strides = _whole_numbers(size, "a size"), _whole_numbers(stride, "strides")
    if type(storage) is not _Storage or type(offset) is not int or offset < 0 or len(sizes) != len(strides):
        raise ValueError("a tensor has no storage, or a place in it that cannot be")
    if 0 in sizes:
        if max(sizes) < 2**31:
            return torch.zeros(sizes, dtype=storage.values.dtype)
        raise ValueError(f"a tensor has the size {sizes}")
    last = offset + sum((n - 1) * step for n, step in zip(sizes, strides, strict=True))
    if last >= len(storage.values):
        raise ValueError(f"a tensor ends at number {last} of a storage of {len(storage.values)}")
    if math.prod(sizes) > storage.most:
        raise BankError(f"a tensor of size {sizes} repeats itself and has more numbers than the file has bytes")
    return storage.values.as_strided(sizes, strides, offset)


def _parameter(tensor: Any, *_: Any) -> Any:
    return tensor


def _list(items: Any = ()) -> list[Any]:
    if type(items) not in (list, tuple):
        raise ValueError(f"a list is made of a {type(items).__name__}")
    return list(items)


def _tuple(items: Any = ()) -> tuple[Any, ...]:
    return tuple(_list(items))


def _mapping(*arguments: Any) -> dict[Any, Any]:
    """Stand for the mappings of the standard library: their items come after the call."""
    if any(type(argument) is not Name for argument in arguments):
        raise BankError("it makes a mapping out of something else")
    return {}


def _builders() -> dict[Name, Builder | None]:
    known: dict[Name, Builder | None] = {
        Name("numpy", "ndarray"): None,
        Name("numpy", "dtype"): _type,
        Name("collections", "OrderedDict"): _mapping,
        Name("collections", "defaultdict"): _mapping,
        Name("_codecs", "encode"): _bytes_of_text,
        Name("torch.storage", "_load_from_bytes"): _storage_of_bytes,
        Name("torch._utils", "_rebuild_tensor_v2"): _tensor,
        Name("torch._utils", "_rebuild_tensor"): _tensor,
        Name("torch._utils", "_rebuild_parameter"): _parameter,
        Name("torch", "Size"): _tuple,
        **{Name("torch", kind): None for kind in STORAGE_TYPES},
    }
    for package in ("numpy.core", "numpy._core"):  # its name before and since NumPy 2
        known[Name(f"{package}.multiarray", "_reconstruct")] = _empty_array
        known[Name(f"{package}.multiarray", "scalar")] = _scalar
        known[Name(f"{package}.numeric", "_frombuffer")] = _array_of_buffer
    for module in ("builtins", "__builtin__"):
        known[Name(module, "list")] = known[Name(module, "set")] = _list
        known[Name(module, "tuple")] = _tuple
        known[Name(module, "bytes")] = _no_bytes
        known[Name(module, "dict")] = _mapping
    return known


BUILDERS = _builders()
