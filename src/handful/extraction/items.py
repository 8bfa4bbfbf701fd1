"""Items: what to extract features from, in a fixed order, with labels and a hash of the contents.

Whatever `handful.reading.read` reads as images or texts: folders and .zip files of images, whose folder is their class,
and tables with a column of texts, or of paths of image files relative to the table.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from handful.arguments import some_of
from handful.errors import BankError
from handful.machine.untrusted import writable
from handful.reading import Skipped, Table, read
from handful.reading.class_names import plain_label
from handful.reading.contents import Content, Contents, FolderFiles, Unreadable, pick
from handful.reading.header import find_column
from handful.reading.labels import label_column, missing_labels

# The class of items whose class is unknown.
UNLABELLED = "unlabelled"

ItemKind: TypeAlias = Literal["image", "text"]
# What items of each kind are called, one and several.
CALLED: dict[ItemKind, tuple[str, str]] = {"image": ("photograph", "photographs"), "text": ("text", "texts")}


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
    rows : sequence of int
        Positions of the items in what was read.
    skipped : tuple of Skipped
        Items that were left out.
    hashes : tuple of str
        SHA-256 of the content of each item alone.
    """

    kind: ItemKind
    names: tuple[str, ...]
    labels: npt.NDArray[np.int64]
    class_names: tuple[str, ...]
    source: Contents
    data_hash: str
    rows: Sequence[int] = ()
    skipped: tuple[Skipped, ...] = ()
    hashes: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.names)

    def take(self, items: Sequence[int]) -> Items:
        """Keep these items alone, in this order; the classes stay."""
        return replace(
            self,
            names=tuple(self.names[item] for item in items),
            labels=self.labels[list(items)],
            source=pick(self.source, items),
            data_hash=hashlib.sha256(f"{self.data_hash} {list(items)}".encode()).hexdigest(),
            rows=[self.rows[item] for item in items],
            skipped=(),
            hashes=tuple(self.hashes[item] for item in items),
        )


def list_items(
    path: str | Path | Table,
    *,
    split: str | None = None,
    labelled: bool = True,
    id_column: str | None = None,
    labels: str | None = None,
    text: str | None = None,
    skip_bad: bool = False,
    header_row: int | None = None,
) -> Items:
    r"""List the items at `path` (see the module's docstring) and hash all of them.

    Parameters
    ----------
    path : str, Path or Table
        Folder, archive or table; or what `handful.reading.read` returned for it.
    split : str, optional
        Only the rows of a table whose column `split` has this value.
    labelled : bool
        Whether items need classes. If not, images may be anywhere in the folder, a table needs no column of labels, and
        all items are of one class, `unlabelled`.
    id_column : str, optional
        Column of a table that identifies an item; by default the path of an image, and for a sentence one with a usual
        name, such as `id`, or else the number of the row.
    labels : str, optional
        Column of a table with the classes; by default one with a usual name, such as `label`.
    text : str, optional
        Column of a table with the sentences; by default one with a usual name, such as `text`.
    skip_bad : bool
        Whether to leave out any number of rows that cannot be read, see `handful.read`.
    header_row : int, optional
        Line of the names of columns, see `handful.read`.

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
    table = path if isinstance(path, Table) else read(path, text=text, skip_bad=skip_bad, header_row=header_row)
    if table.vectors is not None:
        raise BankError(f"{table.where} contains vectors, but images or sentences were expected; check the path")
    if table.classes is not None:  # folders of images
        check_folders(table, split, labelled, id_column, labels)
    names_of_classes = [UNLABELLED] * table.n_rows
    if labelled:
        column = label_column(table, labels)
        table = table.without(missing_labels(table.values(column) if column else table.classes, table), "without label")
        table.warn_of_skipped()
        given = table.values(column) if column else table.classes
        names_of_classes = [class_label(value, row, column, table) for row, value in enumerate(given)]
    chosen: Sequence[int] = range(table.n_rows)
    if split is not None:
        splits = table.values(find_column(table.columns, "split", (), "splits", table.where))
        if split not in splits:
            raise BankError(f"{table.where} has no split {split!r}; choose from {some_of(sorted(set(splits)))}")
        chosen = [row for row in chosen if splits[row] == split]
    names = table.item_names(id_column)
    source = tuple(table.values(table.text)) if table.text else table.images
    assert source is not None
    if isinstance(source, FolderFiles) and table.classes is None:
        _check_paths(source, chosen)
    everything = len(chosen) == table.n_rows
    classes = _sorted_classes(set(map(writable, names_of_classes)))
    places = {name: k for k, name in enumerate(classes)}
    codes = np.array([places[writable(names_of_classes[row])] for row in chosen], dtype=np.int64)
    names = tuple(writable(names[row]) for row in chosen)
    contents = source if everything else pick(source, chosen)
    data_hash, hashes = _hashes_of(names, codes, classes, contents)
    return Items(
        "text" if table.text else "image",
        names,
        codes,
        classes,
        contents,
        data_hash,
        rows=[table.rows[row] for row in chosen],
        skipped=table.skipped,
        hashes=hashes,
    )


def class_label(value: Any, row: int, column: str, table: Table) -> str:
    """Return the class of a row as text; refuse what is neither text nor a whole number."""
    if not isinstance(value, (str, int)) or isinstance(value, bool):
        raise BankError(
            f"{table.where}: {table.row_name(table.rows[row])} must have a {column!r} that is text or a whole number, "
            f"got {value!r}; fix or drop that row"
        )
    return str(plain_label(value))


def check_folders(
    table: Table,
    split: str | None,
    labelled: bool,
    id_column: str | None,
    labels: str | None,
) -> None:
    """Refuse names of columns for images in folders, and images outside of folders where these are needed."""
    assert table.names is not None
    if split is not None:
        raise BankError(f"a split can be chosen only from a table with a column 'split', got {table.where}")
    columns = ((id_column, "images are known by their paths"), (labels, "the class of an image is its folder"))
    for column, instead in columns:
        if column is not None:
            raise BankError(f"{table.where} is not a table, so it has no column {column!r}; {instead}")
    outside = next((name for name in table.names if "/" not in name), None)
    if outside is not None and labelled:
        raise BankError(
            f"{table.where} must have one folder per class, but {outside!r} is in none; move it into the folder of its "
            "class, or list paths and labels in a table"
        )


def _check_paths(source: FolderFiles, chosen: Sequence[int]) -> None:
    missing = [name for row in chosen if not (source.root / (name := source.names[row])).is_file()]
    if missing:
        raise BankError(
            f"the table names {len(missing)} file(s) that do not exist, the first is {missing[0]!r}; paths are "
            f"relative to {source.root}"
        )


def _sorted_classes(classes: Collection[str]) -> tuple[str, ...]:
    # Longer ones are names rather than counts, and Python refuses to turn thousands of digits into a number.
    numbers = all(label.isdecimal() and len(label) <= 18 for label in classes)
    return tuple(sorted(classes, key=(lambda label: (int(label), label)) if numbers else None))


def _hashes_of(
    names: Sequence[str], codes: npt.NDArray[np.int64], classes: tuple[str, ...], source: Contents
) -> tuple[str, tuple[str, ...]]:
    """Return the hash of all items with their names and labels, and that of the content of each."""
    digest = hashlib.sha256(json.dumps(classes).encode() + b"\n")
    hashes = list[str]()
    for name, label, content in zip(names, codes.tolist(), source, strict=True):
        try:
            hashes.append(hashlib.sha256(_bytes(content)).hexdigest())
        except UnicodeEncodeError as error:
            raise BankError(f"{name} has half a character ({error.reason}); fix or drop it") from error
        digest.update(json.dumps([name, label, hashes[-1]]).encode() + b"\n")
    return digest.hexdigest(), tuple(hashes)


def _bytes(content: Content) -> bytes:
    if isinstance(content, Unreadable):
        return content.reason.encode()
    return content.encode() if isinstance(content, str) else content
