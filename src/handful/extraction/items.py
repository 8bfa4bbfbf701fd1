"""Items: what to extract features from, in a fixed order, with labels and a hash of the contents.

`list_items(path)` tells from the path what it holds:

- a folder, or a .zip, or a folder inside a .zip (`omniglot.zip/base`): images, the folder of an image is its class;
- a table (.csv, .jsonl, each also .gz): a column `label`, a column `text` (sentences) or `path` (image files, relative
  to the table), and optionally `split`, from which one can be chosen.

Items can be grouped: by columns of a table, or by `folder`, the folder of an image inside the folder or .zip.

Nothing is unpacked: images inside a .zip are read from there.

One long file: the kinds of places that hold items differ in a few lines each.
"""

from __future__ import annotations

import csv
import errno
import gzip
import hashlib
import io
import json
import lzma
import zipfile
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from handful.arguments import some_of
from handful.banks.carried import Carried
from handful.banks.tables import labelled_rows
from handful.errors import ItemsError
from handful.extraction.decode import IMAGE_SUFFIXES, Unreadable
from handful.machine.untrusted import (
    ALWAYS_UNFOLDED,
    MOST_UNFOLDING,
    parse_json,
    read_bytes,
    refuse_irregular,
    refuse_unfolding,
    writable,
)

TABLE_SUFFIXES = (".csv", ".csv.gz", ".jsonl", ".jsonl.gz")
# What images in folders are grouped by.
FOLDER = "folder"
# The class of items whose class is unknown.
UNLABELLED = "unlabelled"
# An image file is read no further than this: inside a .zip a small entry can expand to any size.
MAX_FILE_BYTES = 256 * 2**20
# What Python raises about a damaged archive. RuntimeError: an entry is encrypted, or, as NotImplementedError, packed in
# an unknown way. OSError: its offset is impossible, or its bz2 or lzma data are damaged.
DAMAGED_ENTRY = (zipfile.BadZipFile, zlib.error, lzma.LZMAError, EOFError, RuntimeError, ValueError, OSError)

Kind: TypeAlias = Literal["image", "text"]
Content: TypeAlias = bytes | str | Unreadable


@dataclass(frozen=True)
class FolderFiles:
    """Files below a folder, read when iterated over; slices like a tuple of their contents."""

    root: Path
    names: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.names)

    def __getitem__(self, rows: slice) -> FolderFiles:
        return replace(self, names=self.names[rows])

    def __iter__(self) -> Iterator[Content]:
        for name in self.names:
            with (self.root / name).open("rb") as stream:
                yield _limited(stream)


@dataclass(frozen=True)
class ZipFiles:
    """Files inside a .zip, read when iterated over; slices like a tuple of their contents."""

    archive: Path
    names: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.names)

    def __getitem__(self, rows: slice) -> ZipFiles:
        return replace(self, names=self.names[rows])

    def __iter__(self) -> Iterator[Content]:
        with zipfile.ZipFile(self.archive) as archive:
            for name in self.names:
                try:
                    with archive.open(name) as stream:
                        content = _limited(stream)
                except DAMAGED_ENTRY as error:
                    if isinstance(error, OSError) and error.errno not in (None, errno.EINVAL):
                        raise  # the disk's fault, not the file's
                    content = Unreadable(f"{type(error).__name__}: {error}")
                yield content


Source: TypeAlias = FolderFiles | ZipFiles | tuple[str, ...]


@dataclass(frozen=True, eq=False)
class Items:
    """An ordered list of images or sentences with their classes.

    Attributes
    ----------
    kind : "image" or "text"
        What `source` yields: bytes of an image file, or a sentence.
    names : tuple of str
        How to find an item again: its path inside the folder or archive, or its line in the table; always text that can
        be written, even where a file name is not.
    labels : Int[ndarray, "item"]
        Position of its class in `class_names`.
    class_names : tuple of str
        Sorted; by value when all are whole numbers. All splits of a table have the same classes, even where a class has
        no row.
    source : FolderFiles, ZipFiles or tuple of str
        The contents, read only when iterated over; a slice of it is small enough to send to another machine.
    data_hash : str
        SHA-256 over name, label and every byte of every item; the same for a folder and its .zip.
    groups : mapping of str to sequence
        The columns of groups that were asked for, one value per item.
    carried : Carried
        All columns of a table, one value per item.
    """

    kind: Kind
    names: tuple[str, ...]
    labels: npt.NDArray[np.int64]
    class_names: tuple[str, ...]
    source: Source
    data_hash: str
    groups: Mapping[str, Sequence[Any]] = field(default_factory=dict)
    carried: Carried = field(default_factory=Carried)

    def __len__(self) -> int:
        return len(self.names)


def list_items(
    path: str | Path,
    *,
    split: str | None = None,
    labelled: bool = True,
    groups: Sequence[str] = (),
    item_column: str | None = None,
    label_column: str | None = None,
) -> Items:
    r"""List the items at `path` (see the module's docstring) and hash all of them.

    Parameters
    ----------
    path : str or Path
        Folder, archive or table.
    split : str, optional
        Only the rows of a table whose column `split` has this value.
    labelled : bool
        Whether items need classes. If not, images may be anywhere in the folder, a table needs no column `label`, and
        all items are of one class, `unlabelled`.
    groups : sequence of str
        Columns that say to which group an item belongs; `folder` for images in folders.
    item_column : str, optional
        Column of a table that identifies an item; by default the path of an image, and the number of the row of a
        sentence.
    label_column : str, optional
        Column of a table with the classes; by default `label`.

    Returns
    -------
    Items
        Names, classes and hashes of the items; they are read later.

    Examples
    --------
    >>> import tempfile
    >>> table = Path(tempfile.mkdtemp()) / "sentences.csv"
    >>> _ = table.write_text("text,label\nwhere is my bag,luggage\nwake me at six,alarm\n")
    >>> items = list_items(table)
    >>> len(items), items.class_names
    (2, ('alarm', 'luggage'))
    """
    path = Path(path)
    if path.name.lower().endswith(TABLE_SUFFIXES):
        return _list_table(path, split, labelled, groups, item_column, label_column or "label")
    if split is not None:
        raise ItemsError(f"a split can be chosen only from a table with a column 'split', got {path}; leave it out")
    if item_column is not None:
        raise ItemsError(f"{path} is not a table, so it has no column {item_column!r}; images are known by their paths")
    if label_column is not None:
        raise ItemsError(
            f"{path} is not a table, so it has no column {label_column!r}; the class of an image is its folder"
        )
    if path.is_dir():
        return _with_folders(_list_folder(path, labelled), groups, path)
    archive = _archive_above(path)
    if archive is None:
        raise ItemsError(
            f"expected a folder, a .zip or a table ({', '.join(TABLE_SUFFIXES)}) of items, got {path}, "
            f"which {'is none of these' if path.exists() else 'does not exist'}; check the path"
        )
    return _with_folders(_list_archive(archive, path.relative_to(archive).as_posix(), labelled), groups, path)


def holds_items(path: str | Path) -> bool:
    """Whether `list_items` can list it: a table or an archive by its name, a folder if it has an image."""
    path = Path(path)
    if path.name.lower().endswith(TABLE_SUFFIXES) or _archive_above(path) is not None:
        return True
    return path.is_dir() and any(file.suffix.lower() in IMAGE_SUFFIXES for file in path.rglob("*"))


def pick(source: Source, positions: Sequence[int]) -> Source:
    """Return the contents at these positions, in this order, not yet read."""
    if isinstance(source, tuple):
        return tuple(source[position] for position in positions)
    return replace(source, names=tuple(source.names[position] for position in positions))


def _list_folder(root: Path, labelled: bool) -> Items:
    if not any(root.iterdir()):
        raise ItemsError(f"{root} is an empty folder; check the path")
    found = (file.relative_to(root).as_posix() for file in root.rglob("*") if file.is_file())
    names = _image_names(found, str(root), labelled)
    return _of_folders(names, FolderFiles(root, names), labelled)


def _list_archive(archive: Path, inside: str, labelled: bool) -> Items:
    prefix = "" if inside == "." else f"{inside}/"
    try:
        with zipfile.ZipFile(archive) as opened:
            entries = [name for name in opened.namelist() if name.startswith(prefix)]
    except DAMAGED_ENTRY as error:
        raise ItemsError(f"{archive} is not a complete .zip file ({error}); download or pack it again") from error
    found = (name.removeprefix(prefix) for name in dict.fromkeys(entries))
    names = _image_names(found, f"{archive}/{inside}", labelled)
    return _of_folders(names, ZipFiles(archive, tuple(prefix + name for name in names)), labelled)


def _with_folders(items: Items, groups: Sequence[str], where: Path) -> Items:
    """Add the folder of each image, if the items are to be grouped."""
    if not groups:
        return items
    other = next((name for name in groups if name != FOLDER), None)
    if other is not None:
        raise ItemsError(
            f"{where} holds images in folders, which have no column {other!r}; group them by {FOLDER!r}, or list paths "
            "and groups in a table"
        )
    outside = [name for name in items.names if "/" not in name]
    if outside:
        raise ItemsError(
            f"{outside[0]!r} is in no folder of {where}, so it belongs to no group; move it into one, or remove it"
        )
    folders = {FOLDER: [name.rsplit("/", 1)[0] for name in items.names]}
    return replace(items, groups=folders, carried=Carried(folders))


def _list_table(
    table: Path,
    split: str | None,
    labelled: bool,
    groups: Sequence[str],
    item_column: str | None,
    label_column: str,
) -> Items:
    rows = list(_table_rows(table))
    if not rows:
        wanted = f"a column {label_column!r} and a column" if labelled else "a column"
        raise ItemsError(f"{table} has no rows; expected {wanted} 'text' or 'path'")
    columns = [name for name in ("text", "path") if name in rows[0]]
    if len(columns) != 1:
        raise ItemsError(
            f"{table} must have either a column 'text' (sentences) or a column 'path' (images), "
            f"got the columns {some_of(rows[0])}; rename or drop columns"
        )
    values = _column(rows, columns[0], table)
    chosen: Sequence[int] = range(len(rows))
    labels: list[str | None] = [UNLABELLED] * len(rows)
    if labelled:
        chosen = labelled_rows([row.get(label_column) for row in rows], str(table), ItemsError) or chosen
        labels = [None] * len(rows)
        for row, value in zip(chosen, _column(rows, label_column, table, (str, int), chosen), strict=True):
            labels[row] = str(value)
    if split is not None:
        of_split = _rows_of_split(_column(rows, "split", table), split, table)
        chosen = [row for row in of_split if labels[row] is not None]
    kept = tuple(values[row] for row in chosen)
    there: list[Any] = list(dict.fromkeys(name for row in rows for name in row))
    for name, role in [*((name, "groups") for name in groups), *([(item_column, "items")] if item_column else [])]:
        if name not in there:
            raise ItemsError(f"{table} has no column {name!r} for the {role}; it has {some_of(rows[0])}")
    carried = {name: [rows[row].get(name) for row in chosen] for name in there if name is not None}
    besides: dict[str, Any] = {"groups": {name: carried[name] for name in groups}, "carried": Carried(carried)}
    asked = None if item_column is None else tuple(str(v) for v in _column(rows, item_column, table, (str, int, float)))
    if asked is not None:
        besides["names"] = tuple(writable(asked[row]) for row in chosen)
    if columns[0] == "text":
        names = tuple(f"row {row}" for row in chosen)
        return replace(_items("text", names, labels, kept, chosen), **besides)
    missing = [value for value in kept if not (table.parent / value).is_file()]
    if missing:
        raise ItemsError(
            f"{table} names {len(missing)} file(s) that do not exist, the first is {missing[0]!r}; "
            f"paths are relative to {table.parent}"
        )
    return replace(_items("image", kept, labels, FolderFiles(table.parent, kept), chosen), **besides)


def _rows_of_split(splits: Sequence[str], wanted: str, table: Path) -> list[int]:
    rows = [row for row, split in enumerate(splits) if split == wanted]
    if not rows:
        raise ItemsError(f"{table} has no split {wanted!r}; there are {some_of(sorted(set(splits)))}")
    return rows


def _table_rows(table: Path) -> Iterator[Mapping[str, Any]]:
    refuse_irregular(table, ItemsError)
    try:
        text = _unpacked(table).decode("utf-8-sig")
    except FileNotFoundError as error:
        raise ItemsError(f"{table} does not exist; check the path") from error
    except (gzip.BadGzipFile, EOFError, zlib.error, ValueError) as error:
        raise ItemsError(f"{table} is not a complete table in UTF-8 ({error}); write it again") from error
    if ".csv" in [suffix.lower() for suffix in table.suffixes[-2:]]:
        try:
            yield from csv.DictReader(io.StringIO(text, newline=""))
        except csv.Error as error:
            raise ItemsError(f"{table} is not a CSV file ({error}); write it again") from error
        return
    # Not splitlines(): it also cuts at characters that may occur inside a JSON string, such as U+2028.
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip():
            continue
        try:
            row = parse_json(line)
        except ValueError as error:
            raise ItemsError(f"line {number} of {table} is not JSON ({error}); expected one object per line") from error
        if not isinstance(row, dict):
            raise ItemsError(f"line {number} of {table} must be an object with 'label' and 'text' or 'path'")
        yield row


def _unpacked(table: Path) -> bytes:
    """Return the table's bytes; of a .gz, no more are decompressed than a genuine table has."""
    if table.suffix.lower() != ".gz":
        return read_bytes(table, ItemsError)
    packed = table.stat().st_size
    most = max(ALWAYS_UNFOLDED, MOST_UNFOLDING * packed)
    with gzip.open(table) as stream:
        data = stream.read(most + 1)
    refuse_unfolding("it", packed, len(data))
    return data


def _column(
    rows: Sequence[Mapping[str, Any]], name: str, table: Path, types: Any = str, chosen: Sequence[int] | None = None
) -> list[Any]:
    """Return one column of the chosen rows, by default all, refusing rows that lack it."""
    numbers = range(len(rows)) if chosen is None else chosen
    for number in numbers:
        row = rows[number]
        if not isinstance(row.get(name), types) or isinstance(row[name], bool) or row[name] == "":
            raise ItemsError(
                f"row {number} of {table} must have a {name!r} that is not empty, got {row.get(name)!r}; "
                "fix or drop that row"
            )
    return [rows[number][name] for number in numbers]


def _image_names(found: Iterable[str], where: str, labelled: bool) -> tuple[str, ...]:
    """Images among the files, sorted; hidden files, and folders that archivers add, are left out."""
    names = []
    for name in found:
        parts = name.split("/")
        if Path(name).suffix.lower() in IMAGE_SUFFIXES and not any(p.startswith((".", "__MACOSX")) for p in parts):
            names.append(name)
    if not names:
        raise ItemsError(f"{where} holds no image ({', '.join(sorted(IMAGE_SUFFIXES))}); check the path")
    outside = [name for name in names if "/" not in name]
    if outside and labelled:
        raise ItemsError(
            f"{where} must hold one folder per class, but {outside[0]!r} is in none; "
            "move it into the folder of its class, or list paths and labels in a table"
        )
    # By folder first, 'cat/9.png' before 'cat-wild/1.png', so that rows of a class stay together.
    return tuple(sorted(names, key=lambda name: tuple(f"/{name}".rsplit("/", 1))))


def _of_folders(names: tuple[str, ...], source: Source, labelled: bool) -> Items:
    labels: list[str | None] = [name.rsplit("/", 1)[0] if labelled else UNLABELLED for name in names]
    return _items("image", names, labels, source, range(len(names)))


def _items(
    kind: Kind, names: tuple[str, ...], labels: Sequence[str | None], source: Source, chosen: Sequence[int]
) -> Items:
    """Assign numbers to the classes that occur in all labels, and hash the chosen rows, which have labels."""
    names, own = tuple(map(writable, names)), {label: writable(label) for label in set(labels) if label is not None}
    # Longer ones are names rather than counts, and Python refuses to turn thousands of digits into a number.
    numbers = all(label.isdecimal() and len(label) <= 18 for label in own.values())
    class_names = tuple(sorted(set(own.values()), key=(lambda label: (int(label), label)) if numbers else None))
    places = {name: k for k, name in enumerate(class_names)}
    position = {label: places[name] for label, name in own.items()}
    kept = np.array([position[label] for row in chosen if (label := labels[row]) is not None], dtype=np.int64)
    digest = hashlib.sha256(json.dumps(class_names).encode() + b"\n")
    for name, label, content in zip(names, kept.tolist(), source, strict=True):
        try:
            entry = [name, label, hashlib.sha256(_bytes(content)).hexdigest()]
        except UnicodeEncodeError as error:
            raise ItemsError(f"{name} holds half a character ({error.reason}); fix or drop it") from error
        digest.update(json.dumps(entry).encode() + b"\n")
    return Items(kind, names, kept, class_names, source, digest.hexdigest())


def _bytes(content: Content) -> bytes:
    if isinstance(content, Unreadable):
        return content.reason.encode()
    return content.encode() if isinstance(content, str) else content


def _limited(stream: Any) -> bytes | Unreadable:
    data: bytes = stream.read(MAX_FILE_BYTES + 1)
    if len(data) > MAX_FILE_BYTES:
        return Unreadable(f"the file is larger than {MAX_FILE_BYTES} bytes, which no image should be")
    return data


def _archive_above(path: Path) -> Path | None:
    """Return the .zip file that `path` is, or is inside of."""
    return next((p for p in (path, *path.parents) if p.suffix.lower() == ".zip" and p.is_file()), None)
