"""Labelled data become items that have answers: a folder per class, a table with labels, a bank, or a model's file.

Whatever has labels is a batch like any other, with one event for each class that names its items.
"""

from __future__ import annotations

import hashlib
import os
from pathlib import Path
from typing import Any, Unpack

import numpy as np

from handful.catalogue.file import Arrival, CatalogueFile, ItemContent
from handful.errors import BankError
from handful.extraction.items import check_folders, class_label
from handful.extraction.options import Reading
from handful.items.bringing import Brought, stamps_of, take_in
from handful.items.given_vectors import measured_in
from handful.items.listing import Listing, distinct_places, listed_table, read_for
from handful.items.looking_up import picture_name
from handful.items.stamps import Stamps
from handful.machine.untrusted import writable
from handful.progress import Listener
from handful.reading.class_names import plain_label
from handful.reading.contents import FolderFiles
from handful.reading.labels import bank_of, label_column, missing_labels
from handful.reading.read import in_hand
from handful.reading.table import Skipped, Table

# Who says what labels of a file say.
IMPORT = "import"
# Endings of files of fitted catalogues, as `handful.fitted.files` has them.
MODELS = (".handful", ".model", ".safetensors")
# Column that tells who said what an example of an older catalogue is, when, and which file it was in.
SAID = "said"


def import_labelled(
    catalogue: CatalogueFile,
    source: Any,
    batch: str | None = None,
    *,
    person: str = IMPORT,
    on_progress: Listener | None = None,
    **reading: Unpack[Reading],
) -> Brought:
    """Bring labelled items, and name them as they are labelled; those that have had an answer keep it.

    Called again after it was interrupted, it goes on.

    Parameters
    ----------
    catalogue
        The catalogue.
    source
        A folder of images with a folder per class; a table, frame or bank with labels, or `(X, y)`; or the file of a
        fitted catalogue. Items without a label are left out and listed.
    batch
        Name of the batch; by default that of the file or folder.
    person
        Who says it.
    on_progress, **reading
        As in `bring`.

    Examples
    --------
    >>> catalogue = CatalogueFile.open()
    >>> print(import_labelled(catalogue, (np.eye(3), ["fox", "owl", "fox"]), "examples"))
    3 rows are new
    >>> {item: one.label for item, one in catalogue.said.answers.items()}
    {1: 'fox', 2: 'owl', 3: 'fox'}
    """
    name = batch or ("examples" if in_hand(source) else Path(os.path.abspath(source)).stem)
    if not in_hand(source) and Path(source).suffix.lower() in MODELS:
        listing, labels, pictures = _of_model(Path(source))
        found = take_in(catalogue, name, listing, reading, labels=labels, person=person)
        catalogue.cache_all(pictures)
        return found
    table, classes = _labelled(read_for(source, reading), reading)
    stamps = Stamps.read(catalogue.cached(stamps_of(name)))
    listing = listed_table(table, source, stamps=stamps, measured=measured_in(catalogue), reading=reading)
    given = dict(zip(table.rows, classes, strict=True))
    labels = {one.place: given[row] for one, row in zip(listing.arrivals, listing.rows, strict=True)}
    return take_in(catalogue, name, listing, reading, labels=labels, person=person, on_progress=on_progress)


def _labelled(table: Table, reading: Reading) -> tuple[Table, list[str]]:
    """Return the rows that have a label, and the label of each."""
    labels = reading.get("labels")
    if table.bank is not None and labels is None:
        bank = table.bank
        return table, [str(plain_label(bank.class_names[code])) for code in bank.labels.tolist()]
    in_folders = table.images is not None and table.classes is not None
    if in_folders:
        check_folders(table, None, True, reading.get("id_column"), labels)
    column = label_column(table, labels)
    given = table.values(column) if column else table.classes
    table = table.without(missing_labels(given, table), "without label")
    given = table.values(column) if column else table.classes
    if table.vectors is None:
        return table, [class_label(value, row, column, table) for row, value in enumerate(given)]
    names = table.class_names.get(column)
    bank = bank_of(np.zeros((table.n_rows, 1), np.float32), given, names, table.where)
    return table, [bank.class_names[code] for code in bank.labels.tolist()]


def _of_model(file: Path) -> tuple[Listing, dict[str, str], dict[str, bytes]]:
    """List the examples of a fitted catalogue, as far as its file keeps them; their classes, and small pictures.

    An image that still is where it came from is known by its content, and so is a text that the file keeps. Any other
    example is its vector; a small picture of it is kept as long as there is room for it.
    """
    from handful.fitted.files import load_model  # with scipy, which nothing else here needs

    found = load_model(file)
    record = found.record
    points = np.ascontiguousarray(found.examples.points, "<f4")
    if not len(points):
        raise BankError(f"{file} has names of classes and no examples; give the names to a review instead")
    positions = found.examples.positions.tolist()
    folder = Path(os.path.abspath(file)).parent
    names = []
    contents = []
    columns: list[dict[str, Any]] = []
    pictures = {}
    for at, vector in zip(positions, points, strict=True):
        source = record.sources.get(at)
        called = "" if source is None else "/".join(filter(None, (source.file, source.item)))
        names.append(called or f"row {at}")
        preview = record.previews.get(at)
        digits = "" if source is None else source.content
        content = _content(folder / called if called else None, record.kind, preview, digits, vector)
        contents.append(content)
        if content.kind == "vector" and isinstance(preview, bytes):
            pictures[picture_name(content.hash)] = preview
        beside = {name: values[at] for name, values in record.columns.items() if at in values}
        columns.append(beside if source is None or not str(source) else {**beside, SAID: str(source)})
    places = distinct_places(names)
    arrivals = tuple(Arrival(*one) for one in zip(places, contents, columns, strict=True))
    labels = [str(plain_label(label)) for label in found.examples.labels.tolist()]
    lost = found.n_examples - len(points)
    left = Skipped(len(points), f"{lost:,} more examples", "the file keeps a sample, and these are not in it")
    listing = Listing(
        str(file),
        record.kind or "vector",
        arrivals,
        tuple(range(len(arrivals))),
        skipped=(left,) if lost else (),
        folder=folder,
        file=file.absolute(),
        vectors=points,
        encoder=record.encoder,
    )
    return listing, dict(zip(places, labels, strict=True)), pictures


def _content(path: Path | None, kind: str, preview: str | bytes | None, digits: str, vector: np.ndarray) -> ItemContent:
    """Return what an example is, as far as that is still known."""
    if kind == "text" and isinstance(preview, str) and writable(preview) == preview:
        key = hashlib.sha256(preview.encode()).digest()
        if key.hex().startswith(digits):
            return ItemContent(key, "text", preview)
    if kind == "image" and path is not None and digits:
        (content,) = FolderFiles(path.parent, (path.name,))
        if isinstance(content, bytes):
            key = hashlib.sha256(content).digest()
            if key.hex().startswith(digits):
                return ItemContent(key, "image")
    return ItemContent(hashlib.sha256(vector.data).digest(), "vector")
