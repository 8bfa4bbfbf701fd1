"""Arrays of NumPy: `.npy`, `.npz`, and folders with `features.npy` and perhaps `labels.npy`."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from handful.banks.arrays import open_npy, opened_archive
from handful.banks.bank import Provenance
from handful.errors import BankError
from handful.machine.untrusted import read_bytes, read_json
from handful.reading.header import FEATURE_NAMES, NAME_NAMES, Asked, find_column
from handful.reading.table import Table

# Names of lines in a folder's README, and the fields of Provenance they fill.
README_FIELDS = {
    "data": "dataset",
    "dataset": "dataset",
    "licence": "licence",
    "license": "licence",
    "backbone": "backbone",
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
    vectors, labels, names = open_npy(folder / "features.npy", trust_pickle=asked.trust_pickle), None, None
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
