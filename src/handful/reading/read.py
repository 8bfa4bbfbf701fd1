"""read: the contents of any supported file or folder, as one `Records`; its name and content tell the kind of file."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType

from handful.banks import store
from handful.banks.bank import FeatureBank
from handful.banks.tables import find_column
from handful.errors import BankError
from handful.machine.untrusted import refuse_irregular
from handful.reading.cells import read_cells
from handful.reading.contents import IMAGE_SUFFIXES, FolderFiles
from handful.reading.delimited import read_delimited
from handful.reading.images import archive_above, read_image_archive, read_image_folder
from handful.reading.json_lines import read_json_lines
from handful.reading.numpy_files import read_array_folder, read_npy, read_npz
from handful.reading.parquet import parquet_files, read_parquet
from handful.reading.pickles import read_pickle
from handful.reading.records import PATH_NAME, TEXT_NAMES, Asked, Records, no_items
from handful.reading.spectra import read_mgf, read_msp, read_mzml
from handful.reading.spreadsheet import read_spreadsheet

PICKLES = (".pt", ".pth", ".pkl", ".pickle", ".plk")
# Readers of files by the ending of their names; text can also be packed, `.csv.gz`.
READERS: Mapping[str, Callable[[Path, Asked], Records]] = MappingProxyType(
    {
        ".csv": read_delimited,
        ".tsv": read_delimited,
        ".jsonl": read_json_lines,
        ".xlsx": read_spreadsheet,
        ".parquet": read_parquet,
        ".pq": read_parquet,
        ".npz": read_npz,
        ".npy": read_npy,
        ".h5ad": read_cells,
        ".mgf": read_mgf,
        ".msp": read_msp,
        ".mzml": read_mzml,
        **dict.fromkeys(PICKLES, read_pickle),
    }
)
PACKED = (".csv", ".tsv", ".jsonl")
# Files of which vectors are no column: they are made from something else, or stand alone.
NO_COLUMNS = (".npy", ".mgf", ".msp", ".mzml")


def read(
    path: str | os.PathLike[str],
    *,
    features: str | None = None,
    text: str | None = None,
    trust_pickle: bool = False,
) -> Records:
    r"""Read vectors, texts or images, and their columns, from any supported file or folder.

    Labels, groups and names are chosen afterwards, from the columns. Rows that cannot be read are skipped, counted and
    listed with their lines; a file with more than 5 % of such rows is refused. In a folder of Parquet files, a column
    that a file lacks is missing there; the vectors must be in all files, and a Hive partition may not contradict a
    column.

    Parameters
    ----------
    path : path
        A bank saved by handful; a folder with `features.npy` and perhaps `labels.npy`; `.npy`, `.npz`; Parquet, a file,
        a folder of files or one with Hive partitions; `.csv` and `.tsv` (also `.gz`) with commas, semicolons or tabs,
        in UTF-8, UTF-16 or cp1252; `.jsonl` (also `.gz`); `.xlsx`; `.h5ad`; mass spectra, `.mgf`, `.msp` and
        `.mzML`; images in folders or in a `.zip`; or a pickle (`.pt`, `.pth`, `.pkl`, `.pickle`, `.plk`).
    features : str, optional
        Column or key of the vectors, if it cannot be detected; for one column per dimension, the prefix of their names.
    text : str, optional
        Column of the texts, by default `text`. If it is given, the table is read as texts even if it has vectors,
        unless `features` is given too.
    trust_pickle : bool
        Whether to open pickles, and arrays of objects in `.npy` and `.npz`. A pickle is a program, and opening it runs
        it: use this only for files whose author you trust.

    Returns
    -------
    Records
        The contents of the file, one row per item.

    Examples
    --------
    >>> import tempfile
    >>> file = Path(tempfile.mkdtemp()) / "tickets.csv"
    >>> _ = file.write_text("ticket;text\nT1;where is my bag\nT2;wake me at six\n")
    >>> table = read(file)
    >>> table.n_rows, table.text, list(table.columns)
    (2, 'text', ['ticket', 'text'])
    """
    place = Path(path)
    if (named := features or text) and not has_columns(place):
        raise BankError(f"{place} has no columns, so it has no column {named!r}; leave it out")
    return _with_items(_read(place, Asked(features, text, trust_pickle)), text, place)


def has_columns(path: Path) -> bool:
    """Tell whether vectors are columns with a name: not in a bank, arrays alone, spectra, or images."""
    ending = _ending(path)
    return bool(parquet_files(path)) if ending is None else ending not in NO_COLUMNS


def may_hold_pickles(path: Path) -> bool:
    """Tell whether a file is a pickle, or holds arrays, which can be pickled objects."""
    arrays = (path / "features.npy").exists() and not store.is_bank(path)
    return arrays or _ending(path) in {*PICKLES, ".npz", ".npy"}


def _ending(path: Path) -> str | None:
    """Return the ending that tells the kind of a file; None for folders, archives and unknown files."""
    endings = [ending.lower() for ending in path.suffixes]
    if endings[-1:] == [".gz"]:
        return next((ending for ending in endings[-2:-1] if ending in PACKED), None)
    return endings[-1] if endings and endings[-1] in READERS and not path.is_dir() else None


def _read(place: Path, asked: Asked) -> Records:
    ending = _ending(place)
    archive = archive_above(place)
    if archive is not None:
        return read_image_archive(place, archive)
    if not place.exists():
        raise BankError(f"{place} does not exist; check the path")
    if place.is_dir():
        return _read_folder(place, asked)
    if ending is None:
        raise BankError(
            f"{place} is of an unknown kind; known are folders, .zip, {', '.join(READERS)}; for anything else, load "
            "the arrays and use FeatureBank.from_arrays"
        )
    refuse_irregular(place, BankError)
    return READERS[ending](place, asked)


def _read_folder(place: Path, asked: Asked) -> Records:
    if store.is_bank(place):
        bank = FeatureBank.load(place)
        return Records(str(place), bank.n_rows, vectors=bank.features, bank=bank, provenance=bank.provenance)
    if (place / "features.npy").exists():
        return read_array_folder(place, asked)
    if parquet_files(place):
        return read_parquet(place, asked)
    if not any(place.iterdir()):
        raise BankError(f"{place} is an empty folder; check the path")
    if not any(file.suffix.lower() in IMAGE_SUFFIXES for file in place.rglob("*")):
        raise BankError(
            f"{place} is a folder with neither {store.MANIFEST}, nor features.npy, nor Parquet files, nor images; "
            "check the path"
        )
    return read_image_folder(place)


def _with_items(table: Records, text: str | None, place: Path) -> Records:
    """Check the vectors, or else find the column of texts or of paths, and leave out rows where it is empty."""
    if text is not None and table.images is None and table.vectors is None:
        find_column(table.columns, text, (), "texts", table.where)
    if table.vectors is not None:
        kind, shape = table.vectors.dtype, table.vectors.shape
        if len(shape) != 2 or kind.kind not in "fiu" or 0 in shape:
            raise BankError(
                f"{table.where}: features must be numbers with the axes (row, dim), got {kind} of shape {shape}; "
                "flatten or average other axes first"
            )
        named = text if text in table.columns else None
        return replace(table, text=named)
    if table.images is not None:
        return table
    texts = next((name for name in ((text,) if text else TEXT_NAMES) if name in table.columns), None)
    if PATH_NAME in table.columns and text is None:
        if texts is not None:
            raise BankError(
                f"{table.where} has a column of texts, {texts!r}, and one of paths, {PATH_NAME!r}; name the texts with "
                "`text`, or drop one of them"
            )
        table = _without_gaps(table, PATH_NAME)
        names = tuple(table.values(PATH_NAME))
        return replace(table, names=names, images=FolderFiles(place.parent if place.is_file() else place, names))
    if texts is None:
        raise no_items(list(table.columns), table.where)
    return replace(_without_gaps(table, texts), text=texts)


def _without_gaps(table: Records, column: str) -> Records:
    values = enumerate(table.values(column))
    gaps = {row: value for row, value in values if not isinstance(value, str) or value == ""}
    needed = f"it must have a {column!r} that is not empty"
    return table.without({row: f"{needed}, got {value!r}" for row, value in gaps.items()})
