"""Arrays: `.npy`, `.npz`, folders with `features.npy` and perhaps `labels.npy`, and pickles of public few-shot code.

A pickle is a program, so one is opened only if the user trusts it.
"""

from __future__ import annotations

import pickle
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from handful.banks.arrays import WHY_NOT, open_npy, opened_archive
from handful.banks.bank import Provenance
from handful.errors import BankError
from handful.machine.untrusted import read_bytes, read_json, refuse_irregular, unreadable
from handful.reading.header import FEATURE_NAMES, NAME_NAMES, Asked, find_column
from handful.reading.table import Table

# Names of lines in a folder's README, and the fields of Provenance they fill.
README_FIELDS = {
    "data": "dataset",
    "dataset": "dataset",
    "licence": "licence",
    "license": "licence",
    "encoder": "encoder",
    "backbone": "encoder",
    "extraction": "preprocessing",
    "preprocessing": "preprocessing",
}

# Arrays of a file that `scipy.sparse.save_npz` wrote.
SPARSE = {"format", "shape", "data"}


def read_npy(path: Path, asked: Asked) -> Table:
    """Map a `.npy` file of vectors."""
    vectors = open_npy(path, trust_pickle=asked.trust_pickle)
    return Table(str(path), len(vectors) if vectors.ndim else 0, vectors=vectors)


def read_npz(path: Path, asked: Asked) -> Table:
    """Read all arrays of a `.npz` file."""
    with opened_archive(path, trust_pickle=asked.trust_pickle) as archive:
        if set(archive) >= SPARSE:
            raise BankError(
                f"{path} has a sparse matrix of SciPy and no labels; write it with np.savez(path, "
                "features=matrix.toarray(), labels=labels), or reduce it first, for example with TruncatedSVD of "
                "scikit-learn"
            )
        key = find_column(archive, asked.features, FEATURE_NAMES, "features", str(path))
        return table_of_arrays({name: archive[name] for name in archive}, key, str(path))


def table_of_arrays(arrays: Mapping[str, np.ndarray], features: str, where: str) -> Table:
    """Make a table from arrays by name; one of them may hold the names of the classes."""
    vectors = arrays[features]
    rest = {name: array for name, array in arrays.items() if name != features}
    named: dict[str, Any] = {}
    for column in rest:
        names = next((name for name in NAME_NAMES if name in rest and name != column), None)
        if names is not None:
            named[column] = rest[names].tolist()
    return Table(where, len(vectors) if vectors.ndim else 0, vectors=vectors, columns=rest, class_names=named)


def read_array_folder(folder: Path, asked: Asked) -> Table:
    """Read `features.npy` (mapped) and, if they exist, `labels.npy`, `classes.json` and `README.md`."""
    vectors = open_npy(folder / "features.npy", trust_pickle=asked.trust_pickle)
    labels = None
    names = None
    if (folder / "labels.npy").exists():
        labels = np.array(open_npy(folder / "labels.npy", trust_pickle=asked.trust_pickle))
    if (folder / "classes.json").exists():
        names = read_json(folder / "classes.json", BankError, "a list of names")
        if not isinstance(names, list):
            raise BankError(f"{folder / 'classes.json'} must be a list with the name of each label, in order")
    return Table(
        str(folder),
        len(vectors) if vectors.ndim else 0,
        vectors=vectors,
        classes=labels,
        class_names={} if names is None else {"": names},
        provenance=_provenance_of_readme(folder),
    )


def _provenance_of_readme(folder: Path) -> Provenance:
    """Return lines `- Name: text` of a README as fields, and unknown names as notes."""
    fields: dict[str, str] = {}
    if (folder / "README.md").is_file():
        for line in read_bytes(folder / "README.md", BankError).decode("utf-8", "replace").splitlines():
            name, colon, text = line.removeprefix("- ").partition(": ")
            if line.startswith("- ") and colon:
                fields[README_FIELDS.get(name.strip().lower(), name.strip())] = text.strip()
    return Provenance.from_mapping(fields)


# How files of torch.save begin: a zip archive, and before that a pickle of this number.
TORCH_STARTS = (b"PK\x03\x04", b"\x80\x02\x8a\nl\xfc\x9cF\xf9 j\xa8P\x19.")


def read_pickle(path: Path, asked: Asked) -> Table:
    """Read a `.pt`, `.pth`, `.pkl`, `.pickle` or `.plk` file.

    Supported are a mapping with features and labels, a pair of them, a mapping from class to features, and the list of
    means and such mappings that SimpleShot and code based on it write.
    """
    content = load_trusted(path, asked.trust_pickle)
    where = str(path)
    if isinstance(content, (list, tuple)) and not (len(content) == 2 and all(map(_is_array, content))):
        content = next((part for part in content if isinstance(part, Mapping)), None)
    if isinstance(content, (list, tuple)):
        vectors, labels = (_array(part, where) for part in content)
        return Table(where, len(vectors), vectors=vectors, classes=labels)
    if not isinstance(content, Mapping) or not content:
        raise _no_features(where)
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
        raise unreadable(path, "a pickle", error) from error


def _no_features(where: str) -> BankError:
    return BankError(f"{where} has neither features with labels nor a mapping from class to features")


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
        raise _no_features(where)
    if all(isinstance(key, int) for key in keys):
        keys = sorted(keys)
    parts = [_array(content[key], where) for key in keys]
    try:
        table = np.concatenate(parts)
    except ValueError as error:
        raise BankError(f"{where}: classes have features of different shapes ({error})") from error
    labels = np.repeat(np.arange(len(keys)), [len(part) for part in parts])
    return Table(where, len(table), vectors=table, classes=labels, class_names={"": [str(key) for key in keys]})
