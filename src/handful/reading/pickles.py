"""Feature pickles of public few-shot code. A pickle is a program, so one is opened only if the user trusts it."""

from __future__ import annotations

import pickle
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from handful.banks.arrays import WHY_NOT
from handful.errors import BankError
from handful.machine.untrusted import refuse_irregular
from handful.reading.header import FEATURE_NAMES, Asked, find_column
from handful.reading.numpy_files import table_of_arrays
from handful.reading.table import Table

# How files of torch.save begin: a zip archive, and before that a pickle of this number.
TORCH_STARTS = (b"PK\x03\x04", b"\x80\x02\x8a\nl\xfc\x9cF\xf9 j\xa8P\x19.")


def read_pickle(path: Path, asked: Asked) -> Table:
    """Read a `.pt`, `.pth`, `.pkl`, `.pickle` or `.plk` file.

    Supported are a mapping with features and labels, a pair of them, a mapping from class to features, and the list of
    means and such mappings that SimpleShot and code based on it write.
    """
    content, where = load_trusted(path, asked.trust_pickle), str(path)
    if isinstance(content, (list, tuple)) and not (len(content) == 2 and all(map(_is_array, content))):
        content = next((part for part in content if isinstance(part, Mapping)), None)
    if isinstance(content, (list, tuple)):
        vectors, labels = (_array(part, where) for part in content)
        return Table(where, len(vectors), vectors=vectors, classes=labels)
    if not isinstance(content, Mapping) or not content:
        raise BankError(f"{path} has neither features with labels nor a mapping from class to features")
    named = all(isinstance(key, str) for key in content)
    if named and (asked.features or {key.lower() for key in content} & set(FEATURE_NAMES)):
        key = find_column(content, asked.features, FEATURE_NAMES, "features", where)
        kept = {name for name, value in content.items() if _is_array(value) or isinstance(value, (list, tuple))}
        arrays = {name: _array(value, where) for name, value in content.items() if name in {key, *kept}}
        return table_of_arrays(arrays, key, where)
    return _of_classes(content, where)


def load_trusted(path: Path, trust_pickle: bool) -> Any:
    """Open a pickle, or a file of `torch.save`, if it is trusted."""
    refuse_irregular(path, BankError)
    if not trust_pickle:
        raise BankError(f"{path} is not opened: {WHY_NOT}")
    try:
        with path.open("rb") as file:
            start = file.read(max(map(len, TORCH_STARTS)))
            file.seek(0)
            if start.startswith(TORCH_STARTS):
                import torch  # only for such files

                return torch.load(file, map_location="cpu", weights_only=False)
            return pickle.load(file)
    except Exception as error:  # a pickle can raise anything
        raise BankError(f"{path} cannot be read as a pickle ({error}); it is cut short or of another kind") from error


def _is_array(value: Any) -> bool:
    return isinstance(value, np.ndarray) or _is_tensor(value)


def _is_tensor(value: Any) -> bool:
    return type(value).__module__.partition(".")[0] == "torch" and hasattr(value, "detach")


def _array(value: Any, where: str) -> np.ndarray:
    """Make an array from a tensor, a list of arrays, or a list of numbers or text."""
    if _is_tensor(value):
        tensor = value.detach()
        return np.asarray((tensor.float() if str(tensor.dtype) == "torch.bfloat16" else tensor).numpy())
    if not isinstance(value, (np.ndarray, list, tuple)):
        raise BankError(f"{where}: expected an array, a tensor or a list, got a {type(value).__name__}")
    try:
        return np.asarray([_array(part, where) for part in value] if any(map(_is_array, value)) else value)
    except ValueError as error:
        raise BankError(f"{where}: vectors have different shapes ({error})") from error


def _of_classes(content: Mapping[Any, Any], where: str) -> Table:
    """Make a table from a mapping class -> features [row, dim], arrays or lists of vectors."""
    sized = all(isinstance(v, (list, tuple)) or (_is_array(v) and v.ndim > 0) for v in content.values())
    keys = [key for key in content if len(content[key])] if sized else []
    if not keys:
        raise BankError(f"{where} has neither features with labels nor a mapping from class to features")
    if all(isinstance(key, int) for key in keys):
        keys = sorted(keys)
    parts = [_array(content[key], where) for key in keys]
    try:
        table = np.concatenate(parts)
    except ValueError as error:
        raise BankError(f"{where}: classes have features of different shapes ({error})") from error
    labels = np.repeat(np.arange(len(keys)), [len(part) for part in parts])
    return Table(where, len(table), vectors=table, classes=labels, class_names={"": [str(key) for key in keys]})
