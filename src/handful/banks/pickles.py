"""Feature pickles of public few-shot code, read as data: nothing in them is executed."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch

from handful.banks.bank import FeatureBank
from handful.banks.pickled_arrays import load_plain
from handful.banks.tables import FEATURE_NAMES, LABEL_NAMES, NAME_NAMES, bank_of, find_column
from handful.errors import BankError

NUMBERS, SCALARS = {int, float, bool}, {int, float, bool, str, bytes, type(None)}


def read_pickle(path: Path, *, features: str | None = None, labels: str | None = None) -> FeatureBank:
    """Read a bank from a `.pt`, `.pth`, `.pkl`, `.pickle` or `.plk` file.

    Supported are a mapping with features and labels, a pair of them, a mapping from class to features, and the list of
    means and such mappings that SimpleShot and code based on it write.
    """
    content, arrays = load_harmless(path), _Arrays(path)
    if isinstance(content, (list, tuple)) and not (len(content) == 2 and all(map(_is_array, content))):
        content = next((part for part in content if isinstance(part, Mapping)), None)
    if isinstance(content, (list, tuple)):
        return bank_of(arrays.of(content[0]), arrays.of(content[1]), None, str(path))
    if not isinstance(content, Mapping) or not content:
        raise BankError(f"{path} holds neither features with labels nor a mapping from class to features")
    named = all(isinstance(key, str) for key in content)
    if named and (features or labels or {key.lower() for key in content} & set(FEATURE_NAMES)):
        table = content[find_column(content, features, FEATURE_NAMES, "features", str(path))]
        classes = content[find_column(content, labels, LABEL_NAMES, "labels", str(path))]
        names = next((content[key] for key in NAME_NAMES if key in content and content[key] is not classes), None)
        listed = None if names is None else arrays.of(names).tolist()
        return bank_of(arrays.of(table), arrays.of(classes), listed, str(path))
    return _bank_of_classes(content, arrays, str(path))


def load_harmless(path: Path) -> Any:
    """Read a pickle, or a file of `torch.save`, that holds data and nothing else."""
    try:
        return load_plain(path)
    except BankError as error:
        raise BankError(
            f"{path} is refused: it holds something other than numbers, text, arrays and containers ({error}); "
            "if you trust it, load it yourself and use FeatureBank.from_arrays"
        ) from error
    except ValueError as error:
        raise BankError(f"{path} cannot be read as a pickle ({error}); it is cut short or of another kind") from error


class _Arrays:
    """Arrays of a file's content, together no larger than a genuine file can make them.

    A list can hold the same list many times, and that list another one: a few hundred bytes expand to any size. In a
    file that does not repeat itself, a number takes at least one byte, and at most eight in memory.
    """

    def __init__(self, path: Path) -> None:
        self._path, self._left = path, 8 * path.stat().st_size

    def of(self, value: Any) -> np.ndarray:
        """Make an array from a tensor, a list of arrays, a list of numbers or text, or lists of numbers."""
        if isinstance(value, torch.Tensor):
            self._spend(value.nbytes)
            return np.asarray((value.detach().float() if value.dtype == torch.bfloat16 else value.detach()).numpy())
        if isinstance(value, np.ndarray):
            self._spend(value.nbytes)
            return value
        if not isinstance(value, (list, tuple)):
            raise BankError(f"{self._path}: expected an array, a tensor or a list, got a {type(value).__name__}")
        kinds = set(map(type, value))
        try:
            if value and all(map(_is_array, value)):
                return np.stack([self.numbers(part) for part in value])
            if value and kinds <= {list, tuple}:
                self._spend(8 * sum(map(len, value)))  # before they are inspected, which takes time for each of them
                if all(set(map(type, row)) <= NUMBERS for row in value):
                    return np.asarray(value)
        except ValueError as error:
            if isinstance(error, BankError):
                raise
            raise BankError(f"{self._path}: vectors have different shapes ({error})") from error
        if not kinds <= SCALARS:
            raise BankError(f"{self._path}: expected lists of numbers, arrays or text, got other things in a list")
        # As objects, because in an array of text each takes as much memory as the longest.
        return np.asarray(value) if kinds <= NUMBERS else np.array(value, dtype=object)

    def numbers(self, value: Any) -> np.ndarray:
        """Make an array of numbers; joined with text, each would take as much memory as the longest text."""
        found = self.of(value)
        if found.dtype.kind not in "biuf":
            raise BankError(f"{self._path}: vectors must hold numbers, got {found.dtype.name[:40]}")
        return found

    def _spend(self, n_bytes: int) -> None:
        self._left -= n_bytes
        if self._left < 0:
            raise BankError(f"{self._path} is refused: it repeats itself, and expands to many times its size")


def _is_array(value: Any) -> bool:
    return isinstance(value, (np.ndarray, torch.Tensor))


def _bank_of_classes(content: Mapping[Any, Any], arrays: _Arrays, where: str) -> FeatureBank:
    """Make a bank from a mapping class -> features [row, dim], arrays or lists of vectors."""
    keys = [key for key in content if len(content[key])] if _all_sized(content) else []
    if not keys:
        raise BankError(f"{where} holds neither features with labels nor a mapping from class to features")
    if all(isinstance(key, int) for key in keys):
        keys = sorted(keys)
    parts = [arrays.numbers(content[key]) for key in keys]
    try:
        table = np.concatenate(parts)
    except ValueError as error:
        raise BankError(f"{where}: classes have features of different shapes ({error})") from error
    labels = np.repeat(np.arange(len(keys)), [len(part) for part in parts])
    return bank_of(table, labels, [str(key) for key in keys], where)


def _all_sized(content: Mapping[Any, Any]) -> bool:
    return all(isinstance(v, (list, tuple)) or (_is_array(v) and v.ndim > 0) for v in content.values())
