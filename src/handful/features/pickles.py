"""Feature pickles of public few-shot code, quarantined: only numbers, text and containers come out of them.

A pickle is a program. Files of `torch.save` go through its `weights_only` loader; plain pickles through an unpickler
that knows the constructors of arrays, tensors and containers and refuses any other name before it is called.
"""

from __future__ import annotations

import io
import pickle
from collections import OrderedDict, defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch

from handful.errors import BankError
from handful.features.bank import FeatureBank
from handful.features.tables import FEATURE_NAMES, LABEL_NAMES, NAME_NAMES, bank_of, find_column

# How files of torch.save began before they were zip archives.
OLD_TORCH_START = b"\x80\x02\x8a\nl\xfc\x9cF\xf9 j\xa8P\x19."
ZIP_START = b"PK\x03\x04"


def read_pickle(path: Path, *, features: str | None = None, labels: str | None = None) -> FeatureBank:
    """Read a bank from a `.pt`, `.pth`, `.pkl`, `.pickle` or `.plk` file.

    Understood are a mapping with features and labels, a pair of them, a mapping from class to that class's features,
    and the list of means and such mappings that SimpleShot and its descendants write.
    """
    content = load_harmless(path)
    if isinstance(content, (list, tuple)) and not (len(content) == 2 and all(map(_is_array, content))):
        content = next((part for part in content if isinstance(part, Mapping)), None)
    if isinstance(content, (list, tuple)):
        return bank_of(_array(content[0]), _array(content[1]), None, str(path))
    if not isinstance(content, Mapping) or not content:
        raise BankError(f"{path} holds neither features with labels nor a mapping from class to features")
    named = all(isinstance(key, str) for key in content)
    if named and (features or labels or {key.lower() for key in content} & set(FEATURE_NAMES)):
        table = content[find_column(content, features, FEATURE_NAMES, "features", str(path))]
        classes = content[find_column(content, labels, LABEL_NAMES, "labels", str(path))]
        names = next((content[key] for key in NAME_NAMES if key in content and content[key] is not classes), None)
        return bank_of(_array(table), _array(classes), names, str(path))
    return _bank_of_classes(content, str(path))


def load_harmless(path: Path) -> Any:
    """Load a pickle that holds data and nothing else."""
    with path.open("rb") as file:
        start = file.read(len(OLD_TORCH_START))
        file.seek(0)
        try:
            if start == OLD_TORCH_START or start.startswith(ZIP_START):
                with torch.serialization.safe_globals(_numpy_constructors()):
                    return torch.load(file, map_location="cpu", weights_only=True)
            return _Quarantine(file, encoding="latin1").load()
        except pickle.UnpicklingError as error:
            raise BankError(
                f"{path} is refused: loading it would call something other than arrays and containers ({error}); "
                "if you trust it, load it yourself and use FeatureBank.from_arrays"
            ) from error
        except (EOFError, ValueError, TypeError, AttributeError, IndexError, KeyError, RuntimeError) as error:
            raise BankError(
                f"{path} cannot be read as a pickle ({error}); it is cut short or of another kind"
            ) from error


class _Quarantine(pickle.Unpickler):
    """Knows the names below and no other."""

    def find_class(self, module: str, name: str) -> Any:
        if (module, name) in HARMLESS:
            return HARMLESS[module, name]
        raise pickle.UnpicklingError(f"it names {module}.{name}")


def _bytes_of_text(text: Any, encoding: Any) -> bytes:
    """Stand in for `_codecs.encode`, with which old protocols write bytes; other codecs may do more than that."""
    if encoding != "latin1":
        raise pickle.UnpicklingError(f"it asks for the codec {encoding!r}")
    return str(text).encode("latin1")


def _storage_of_bytes(data: bytes) -> Any:
    """Stand in for torch's loader of storages inside plain pickles."""
    return torch.load(io.BytesIO(data), map_location="cpu", weights_only=True)


def _numpy_constructors() -> list[Any]:
    array = np.zeros(1, np.float32)
    types = [type(np.dtype(kind)) for kind in ("f2", "f4", "f8", "i1", "i2", "i4", "i8", "u1", "U1")]
    return [array.__reduce__()[0], np.ndarray, np.dtype, *types]


def _harmless() -> Mapping[tuple[str, str], Any]:
    known: dict[tuple[str, str], Any] = {
        ("numpy", "ndarray"): np.ndarray,
        ("numpy", "dtype"): np.dtype,
        ("collections", "OrderedDict"): OrderedDict,
        ("collections", "defaultdict"): defaultdict,
        ("_codecs", "encode"): _bytes_of_text,
        ("torch.storage", "_load_from_bytes"): _storage_of_bytes,
        ("torch._utils", "_rebuild_tensor_v2"): torch._utils._rebuild_tensor_v2,
    }
    rebuild, rebuild_scalar = np.zeros(1).__reduce__()[0], np.float32(0).__reduce__()[0]
    from_buffer = np.zeros(1).__reduce_ex__(5)[0]
    for package in ("numpy.core", "numpy._core"):  # its name before and since NumPy 2
        known[f"{package}.multiarray", "_reconstruct"] = rebuild
        known[f"{package}.multiarray", "scalar"] = rebuild_scalar
        known[f"{package}.numeric", "_frombuffer"] = from_buffer
    for module in ("builtins", "__builtin__"):
        known.update({(module, kind.__name__): kind for kind in (list, dict, tuple, set)})
    return known


HARMLESS = _harmless()


def _is_array(value: Any) -> bool:
    return isinstance(value, (np.ndarray, torch.Tensor))


def _array(value: Any) -> np.ndarray:
    if isinstance(value, torch.Tensor):
        value = value.detach().float() if value.dtype == torch.bfloat16 else value.detach()
        return np.asarray(value.numpy())
    if isinstance(value, Sequence) and len(value) and _is_array(value[0]):
        return np.stack([_array(v) for v in value])
    return np.asarray(value)


def _bank_of_classes(content: Mapping[Any, Any], where: str) -> FeatureBank:
    """Make a bank of a mapping class -> features [row, dim], arrays or lists of vectors."""
    keys = [key for key in content if len(content[key])] if _all_sized(content) else []
    if not keys:
        raise BankError(f"{where} holds neither features with labels nor a mapping from class to features")
    if all(isinstance(key, (int, np.integer)) for key in keys):
        keys = sorted(keys)
    try:
        parts = [_array(content[key]) for key in keys]
        table = np.concatenate(parts)
    except ValueError as error:
        raise BankError(f"{where}: classes have features of different shapes ({error})") from error
    labels = np.repeat(np.arange(len(keys)), [len(part) for part in parts])
    return bank_of(table, labels, [str(key) for key in keys], where)


def _all_sized(content: Mapping[Any, Any]) -> bool:
    return all(isinstance(v, (list, tuple)) or (_is_array(v) and v.ndim > 0) for v in content.values())
