"""Other people's files as banks: folders of arrays, `.npz`, Parquet, CSV, feature pickles, Hugging Face `datasets`."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from handful.banks import store
from handful.banks.arrays import open_npy, opened_archive
from handful.banks.bank import BLOCK_ROWS, FeatureBank, Provenance
from handful.banks.parquet import read_parquet
from handful.banks.pickles import read_pickle
from handful.banks.tables import FEATURE_NAMES, LABEL_NAMES, NAME_NAMES, bank_of, find_column
from handful.banks.wide import is_wide_csv, read_wide_csv
from handful.errors import BankError
from handful.machine.untrusted import read_bytes, read_json

PICKLE_ENDINGS = (".pt", ".pth", ".pkl", ".pickle", ".plk")
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


def read_bank(
    path: str | os.PathLike[str],
    *,
    features: str | None = None,
    labels: str | None = None,
    trust_pickle: bool = False,
) -> FeatureBank:
    """Read a bank from any supported file or folder.

    Parameters
    ----------
    path : path
        A bank saved by handful; a folder with `features.npy`, `labels.npy` and optionally `classes.json`; a `.npz`
        file; a Parquet file or a folder of them, with a column of lists or one column per dimension; a `.csv` file with
        one column per dimension; or a feature pickle (`.pt`, `.pth`, `.pkl`, `.pickle`, `.plk`).
    features, labels : str, optional
        Names of the columns or keys, where they cannot be detected; of one column per dimension, what the names begin
        with.
    trust_pickle : bool
        Whether to open pickles, and arrays of objects in `.npy` and `.npz`. A pickle is a program, and opening it runs
        what it says: say so only of files whose author you trust.

    Returns
    -------
    FeatureBank
        The bank.

    Examples
    --------
    >>> import tempfile
    >>> place = tempfile.mkdtemp() + "/features.npz"
    >>> np.savez(place, embeddings=np.eye(3, dtype="float32"), y=["ant", "bee", "ant"])
    >>> read_bank(place).class_names
    ('ant', 'bee')
    """
    place = Path(path)
    named = {"features": features, "labels": labels}
    if not place.exists():
        raise BankError(f"{place} does not exist; check the path")
    if not has_columns(place) and (given := features or labels):
        raise BankError(f"{place} has no columns, so none of them is {given!r}; leave the names of columns out")
    if place.is_dir():
        if store.is_bank(place):
            return FeatureBank.load(place)
        if (place / "features.npy").exists():
            return _read_folder(place, trust_pickle)
        shards = sorted(place.glob("*.parquet"))
        if shards:
            return read_parquet(shards, **named)
        if not any(place.iterdir()):
            raise BankError(f"{place} is an empty folder; check the path")
        raise BankError(
            f"{place} is a folder with neither {store.MANIFEST}, nor features.npy, nor Parquet files; check the path"
        )
    ending = place.suffix.lower()
    if ending == ".npz":
        return _read_npz(place, **named, trust_pickle=trust_pickle)
    if ending in (".parquet", ".pq"):
        return read_parquet([place], **named)
    if ending in PICKLE_ENDINGS:
        return read_pickle(place, **named, trust_pickle=trust_pickle)
    if is_wide_csv(place, features):
        matrix, columns = read_wide_csv(place, features)
        classes = find_column(columns, labels, LABEL_NAMES, "labels", str(place))
        return bank_of(matrix, columns[classes], None, str(place))
    if ending == ".csv":
        raise BankError(
            f"{place} has no numbered columns (0, 1, … or emb_0, emb_1, …), so it holds no vectors; if it holds "
            "sentences or paths, extract their features first"
        )
    raise BankError(
        f"{place} has an unknown ending; known are folders, .npz, .parquet, .csv and "
        f"{', '.join(PICKLE_ENDINGS)}; for anything else, load the arrays and use FeatureBank.from_arrays"
    )


def has_columns(path: Path) -> bool:
    """Tell whether features are a column with a name: not in a bank, a folder of arrays or a `.npy` file."""
    return not (store.is_bank(path) or (path / "features.npy").exists() or path.suffix.lower() == ".npy")


def from_hugging_face(dataset: Any, *, features: str | None = None, labels: str | None = None) -> FeatureBank:
    """Make a bank from a Hugging Face `datasets.Dataset` with a column of vectors and one of labels.

    Names of a `ClassLabel` column become the class names.

    Parameters
    ----------
    dataset : datasets.Dataset
        The rows.
    features, labels : str, optional
        Names of the two columns, where they cannot be detected.

    Returns
    -------
    FeatureBank
        The bank.

    Examples
    --------
    >>> from datasets import Dataset
    >>> rows = {"embedding": [[0.0, 1.0], [1.0, 0.0], [0.1, 1.0]], "label": ["ant", "bee", "ant"]}
    >>> from_hugging_face(Dataset.from_dict(rows))
    FeatureBank(3 rows, 2 dimensions of float32, 2 classes)
    """
    if isinstance(dataset, Mapping):
        raise BankError(f"choose one split of the dataset, for instance dataset[{next(iter(dataset), 'train')!r}]")
    where = "the dataset"
    vectors = find_column(dataset.column_names, features, FEATURE_NAMES, "features", where)
    rest = [name for name in dataset.column_names if name != vectors]
    classes = find_column(rest, labels, LABEL_NAMES, "labels", where)
    table: np.ndarray | None = None
    numbers: list[Any] = []
    for batch in dataset.iter(batch_size=BLOCK_ROWS):
        try:
            block = np.asarray(batch[vectors], dtype=np.float32)
        except (ValueError, TypeError) as error:
            raise BankError(f"column {vectors!r} must hold vectors of numbers, all equally long ({error})") from error
        if table is None:
            table = np.empty((len(dataset), *block.shape[1:]), np.float32)
        if block.shape[1:] != table.shape[1:]:
            raise BankError(f"vectors of column {vectors!r} have shapes {table.shape[1:]} and {block.shape[1:]}")
        table[len(numbers) : len(numbers) + len(block)] = block
        numbers.extend(np.asarray(batch[classes]).tolist())
    if table is None:
        raise BankError("the dataset has no rows")
    names = getattr(dataset.features[classes], "names", None)
    return bank_of(table, numbers, names, where)


def _read_folder(folder: Path, trust_pickle: bool) -> FeatureBank:
    """Read `features.npy` (mapped), `labels.npy`, and, if they exist, `classes.json` and `README.md`."""
    features, labels = (open_npy(folder / f"{name}.npy", trust_pickle=trust_pickle) for name in ("features", "labels"))
    names = None
    if (folder / "classes.json").exists():
        names = read_json(folder / "classes.json", BankError, "a list of names")
        if not isinstance(names, list):
            raise BankError(f"{folder / 'classes.json'} must be a list with the name of each label, in order")
    return bank_of(features, np.array(labels), names, str(folder), provenance=_provenance_of_readme(folder))


def _provenance_of_readme(folder: Path) -> Provenance:
    """Return lines `- Name: text` of a README as fields, and unknown names as notes."""
    fields: dict[str, str] = {}
    if (folder / "README.md").is_file():
        for line in read_bytes(folder / "README.md", BankError).decode("utf-8", "replace").splitlines():
            name, colon, text = line.removeprefix("- ").partition(": ")
            if line.startswith("- ") and colon:
                fields[README_FIELDS.get(name.strip().lower(), name.strip())] = text.strip()
    return Provenance.from_mapping(fields)


def _read_npz(file: Path, *, features: str | None, labels: str | None, trust_pickle: bool) -> FeatureBank:
    with opened_archive(file, trust_pickle=trust_pickle) as archive:
        vectors = find_column(archive, features, FEATURE_NAMES, "features", str(file))
        rest = [name for name in archive if name != vectors]
        classes = find_column(rest, labels, LABEL_NAMES, "labels", str(file))
        names = next((name for name in NAME_NAMES if name in rest and name != classes), None)
        class_names = None if names is None else archive[names].tolist()
        return bank_of(archive[vectors], archive[classes], class_names, str(file))
