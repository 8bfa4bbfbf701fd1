"""Labelled data become items that have answers: a folder per class, a table with labels, or a bank.

Whatever has labels is a batch like any other, with one event for each class that names its items.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, Unpack

import numpy as np

from handful.catalogue.file import CatalogueFile
from handful.extraction.items import check_folders, class_label
from handful.extraction.options import Reading
from handful.items.bringing import Brought, stamps_of, take_in
from handful.items.given_vectors import measured_in
from handful.items.listing import listed_table, read_for
from handful.items.stamps import Stamps
from handful.progress import Listener
from handful.reading.class_names import plain_label
from handful.reading.labels import bank_of, label_column, missing_labels
from handful.reading.read import in_hand
from handful.reading.table import Table

# Who says what labels of a file say.
IMPORT = "import"


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
        A folder of images with a folder per class; a table, frame or bank with labels, or `(X, y)`. Items without a
        label are left out and listed.
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
