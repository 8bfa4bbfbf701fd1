"""read: the contents of any supported file or folder, as one `Table`; its name and content tell the kind of file."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from handful.banks import store
from handful.banks.bank import FeatureBank
from handful.errors import BankError, HandfulError, OptionError
from handful.machine.untrusted import absent
from handful.reading.contents import IMAGE_SUFFIXES, NOT_READ, FolderFiles
from handful.reading.field import Reader
from handful.reading.header import PATH_NAME, TEXT_NAMES, Asked, find_column, is_blank, no_columns, no_items
from handful.reading.images import archive_above, image_names, read_image_archive, read_image_folder
from handful.reading.in_hand import has_names, table_in_hand
from handful.reading.numpy_files import read_array_folder
from handful.reading.parquet import parquet_files
from handful.reading.registry import PARQUET, READERS, reader_of, readers
from handful.reading.scores import score_format
from handful.reading.spreadsheet import book_above
from handful.reading.table import Table

# What to do with files that people often have.
HINTS = {
    **dict.fromkeys((".xls", ".xlsb", ".xlsm", ".ods", ".numbers"), "a spreadsheet; save it as .xlsx or .csv"),
    **dict.fromkeys((".model", ".safetensors"), "a model; give the examples or the catalogue that it was made from"),
    ".handful": "a catalogue, or no longer one if it was damaged",
}
PACKED = (".csv", ".tsv", ".jsonl")
# Endings of files that other tools write scores into, and of recordings.
SCORED = (".json", ".csv", ".txt")
SOUNDS = (".wav", ".mp3", ".flac", ".ogg", ".m4a")


def read(
    path: Any,
    *,
    features: str | None = None,
    text: str | None = None,
    trust_pickle: bool = False,
    skip_bad: bool = False,
    header_row: int | None = None,
) -> Table:
    r"""Read vectors, texts or images, and their columns, from any supported file or folder, or from what is in hand.

    Labels, groups and names are chosen afterwards, from the columns. Rows that cannot be read are left out and listed
    in `Table.skipped` with their lines. A file with more than 5% of such rows, and more than one, is refused. Blank
    texts are left out and listed too; blank rows at the end of a file are no rows. In a folder of Parquet files, a
    column that a file lacks is missing there; the vectors must be in all files, and a Hive partition may not contradict
    a column.

    Parameters
    ----------
    path : path, frame, dataset, array or list
        In hand: a frame of pandas, polars or Arrow, a `datasets.Dataset`, an array or tensor of vectors, a list of
        texts or of paths of images, or a pair `(X, y)` of any of these and labels. Or a path: of a bank saved by
        handful; a folder with `features.npy` and perhaps `labels.npy`; `.npy`, `.npz`; Parquet, a file,
        a folder of files or one with Hive partitions; `.csv`, `.tsv` (also `.gz`) and `.txt` with commas, semicolons
        or tabs, in UTF-8, UTF-16 or cp1252; `.txt` with one text per line, without a header; `.jsonl` (also `.gz`);
        `.xlsx`, its first sheet with a table, or the one that the path names, `book.xlsx/sheet`;
        `.h5ad`; mass spectra, `.mgf`, `.msp` and
        `.mzML`; images in folders or in a `.zip`; or a pickle (`.pt`, `.pth`, `.pkl`, `.pickle`, `.plk`).
    features : str, optional
        Column or key of the vectors, if it cannot be detected; for one column per dimension, the prefix of their names.
        Names of columns with commas between them, `height,width`, are measurements; so are all columns of numbers of a
        table that has nothing else, without running numbers, years and dates.
    text : str, optional
        Column of the texts, by default `text`. If it is given, the table is read as texts even if it has vectors,
        unless `features` is given too.
    trust_pickle : bool
        Whether to open pickles, and arrays of objects in `.npy` and `.npz`. A pickle is a program, and opening it runs
        it: use this only for files whose author you trust.
    skip_bad : bool
        Whether to leave out rows that cannot be read however many they are.
    header_row : int, optional
        Line of a `.csv`, `.tsv`, `.txt` or `.xlsx` file with the names of the columns, counted from 1; by default the
        first, or the first below a title.

    Returns
    -------
    Table
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
    asked = Asked(features, text, trust_pickle, skip_bad=skip_bad, header_row=header_row)
    refuse_useless([path], asked)
    return _read_checked(path, asked)


def read_input(path: Any, asked: Asked) -> Table:
    """Read one of several inputs: what its kind of file cannot have is meant for the others."""
    kind = kind_of(path)
    asked = asked._replace(skip_bad=asked.skip_bad and kind.rows)
    if not kind.columns:
        asked = asked._replace(features=None, text=None)
    if not kind.header:
        asked = asked._replace(header_row=None)
    return _read_checked(path, asked)


def _read_checked(path: Any, asked: Asked) -> Table:
    kind = kind_of(path)
    folder = Path()
    if not in_hand(path):
        path = folder = Path(path)
        if (named := asked.features or asked.text) and not kind.columns:
            raise no_columns(path, named)
        if asked.skip_bad and not kind.rows:
            raise BankError(f"{path} is not a table, so it has no rows to skip; leave skip_bad out")
        if archive_above(path) is None and not os.path.exists(book_above(path) or path):
            raise absent(path, BankError)
        if not (asked.features or asked.text):
            _refuse_scores(path)
    return _with_items(kind.read(path, asked), asked, folder).checked(asked.skip_bad)


def _refuse_scores(path: Path) -> None:
    """Refuse a file of scores: its numbers are those of another model, not of the items."""
    if path.suffix.lower() not in SCORED or not path.is_file():
        return
    try:
        found = score_format(path)
    except HandfulError:  # the reader of such files says what is wrong
        return
    if found is not None:
        raise BankError(
            f"{path} has scores of another model ({found.title}); to label its items by them: handful rescore {path} "
            "--out labels.csv"
        )


def in_hand(value: Any) -> bool:
    """Whether a value is read as it is, and not the path of a file."""
    return not isinstance(value, (str, os.PathLike))


def kind_of(path: Any) -> Reader:
    """Tell the kind of a file by its ending, and that of a folder by the files in it."""
    if in_hand(path):
        return Reader(table_in_hand, columns=has_names(path))
    path = Path(path)
    ending = path.suffix.lower()
    if archive_above(path) is not None:
        return Reader(read_image_archive, columns=False)
    if ending == ".gz":
        packed = Path(path.stem).suffix.lower()
        return READERS[packed] if packed in PACKED else Reader(_refuse, columns=False)
    if book_above(path) is not None:
        return READERS[".xlsx"]
    if not os.path.isdir(path):
        return reader_of(ending) or Reader(_refuse, columns=False)
    if store.is_bank(path):
        return Reader(_read_bank, columns=False)
    if (path / "features.npy").exists():
        return Reader(read_array_folder, columns=False, pickles=True)
    return PARQUET if parquet_files(path) else Reader(_read_images, columns=False)


def refuse_useless(inputs: Sequence[Any], asked: Asked) -> None:
    """Refuse a line of names that no input has."""
    if asked.header_row is None:
        return
    called = " and ".join("what is in hand" if in_hand(one) else str(one) for one in inputs)
    if not any(kind_of(one).header for one in inputs):
        endings = ", ".join(ending for ending, kind in readers().items() if kind.header)
        raise OptionError(f"header_row is for {endings} files; got {called}: leave it out")
    if asked.header_row < 1:
        raise OptionError(
            f"lines are counted from 1, so header_row cannot be {asked.header_row}; it is that of the names"
        )


def _refuse(path: Path, asked: Asked) -> Table:
    """Refuse a file of an unknown kind; say what to do about those that people often have."""
    ending = path.suffix.lower()
    hint = f": {HINTS[ending]}" if ending in HINTS else ""
    if ending in IMAGE_SUFFIXES or ending in NOT_READ:
        hint = ": a single image; give the folder that it is in"
    raise BankError(
        f"{path} is of an unknown kind{hint}; known are folders, .zip, {', '.join(readers())}; for anything else, load "
        "the arrays and use FeatureBank.from_arrays"
    )


def _read_bank(path: Path, asked: Asked) -> Table:
    bank = FeatureBank.load(path)
    return Table(str(path), bank.n_rows, vectors=bank.features, bank=bank, provenance=bank.provenance)


def _read_images(path: Path, asked: Asked) -> Table:
    if not any(path.iterdir()):
        raise BankError(f"{path} is an empty folder; check the path")
    names = [file.relative_to(path).as_posix() for file in path.rglob("*")]
    if not image_names(names):
        sounds = [name for name in names if name.lower().endswith(SOUNDS)]
        if sounds:
            raise BankError(
                f"{path} has recordings, such as {sounds[0]}, and handful has no encoder of sounds; give a table of "
                "their vectors, or let BirdNET name the birds in them and run handful rescore on its table"
            )
        raise BankError(
            f"{path} is a folder with neither {store.MANIFEST}, nor features.npy, nor Parquet files, nor images; "
            "check the path"
        )
    return read_image_folder(path)


def _with_items(table: Table, asked: Asked, path: Path) -> Table:
    """Check the vectors, or else find the column of texts or of paths, and leave out rows where it is empty."""
    text = asked.text
    table = table.checked(skip_bad=True)
    if text is not None and table.images is None and table.vectors is None:
        find_column(table.columns, text, (), "texts", table.where)
    if table.vectors is not None:
        kind = table.vectors.dtype
        shape = table.vectors.shape
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
        table = without_gaps(table, PATH_NAME)
        names = tuple(table.values(PATH_NAME))
        return replace(table, names=names, images=FolderFiles(path.parent if path.is_file() else path, names))
    if texts is None:
        raise no_items(list(table.columns), table.where, asked)
    return replace(without_gaps(table, texts), text=texts)


def without_gaps(table: Table, column: str) -> Table:
    """Leave out rows where the column is blank, or no text; blank lines at the end of a file are no rows."""
    values = table.values(column)
    last = len(values)
    if table.lines is not None and values and is_blank(values[-1]):
        rows = list(zip(*(table.values(name) for name in table.columns), strict=True))
        while last and all(map(is_blank, rows[last - 1])):
            last -= 1
    table = table if last == len(values) else table.of_rows(range(last))
    values = values[:last]
    table = table.without({row: f"its {column!r} is blank" for row, v in enumerate(values) if is_blank(v)}, "blank")
    others = {row: v for row, v in enumerate(table.values(column)) if not isinstance(v, str)}
    return table.without({row: f"it must have text in column {column!r}, got {v!r:.60}" for row, v in others.items()})
