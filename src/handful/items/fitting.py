"""model_of: the model of a catalogue, fitted to everything that people named, and kept until they name something else.

Items with an answer are examples, one for each content and class. The model is kept in the catalogue itself, under a
name that has a hash of all that it was fitted to, so it is fitted again exactly when something changed.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from handful.banks import FeatureBank
from handful.banks.bank import Provenance
from handful.catalogue.file import CatalogueFile, ItemRow, is_catalogue_file
from handful.catalogue.said import examples_of
from handful.errors import FileFormatError, OptionError, StorageError
from handful.fitted import FittedModel, Record, load_model, save_model
from handful.items.embedding import encoder_of
from handful.items.given_vectors import measured_in, measurements_of
from handful.items.looking_up import vectors_of, with_vectors
from handful.reading.table import Table
from handful.version import __version__

# Columns of the tables that are made of items.
TEXT = "text"
LABEL = "label"
# How the name of the cache of a model begins.
CACHED = "model "
# Letters of the values of other columns that a model knows. [letters; work]
MOST_LETTERS = 200


def examples_in(file: CatalogueFile, *, without_batch: str | None = None) -> dict[int, str]:
    """Return the items that have a class by an answer, one for each content and class.

    Parameters
    ----------
    file
        The catalogue.
    without_batch
        A batch whose items are left out: those that are in it now. What was in it once and went is an example beside
        others; alone it is none, so that a batch that is named from nothing stays one.

    Examples
    --------
    >>> from handful.items import import_labelled
    >>> file = CatalogueFile.open()
    >>> _ = import_labelled(file, (np.eye(3)[[0, 1, 0]], ["fox", "owl", "fox"]), "monday")
    >>> examples_in(file), examples_in(file, without_batch="monday")
    ({1: 'fox', 2: 'owl'}, {})
    """
    here = file.said.places.get(without_batch, {}) if without_batch is not None else {}
    said = {item: label for item, label in examples_of(file.said, file.said.answers).items() if item not in here}
    rows = {row.item: row for row in file.rows(with_vectors(file, list(said)))}
    if without_batch is not None and all(row.batch == without_batch for row in rows.values()):
        return {}
    first = {(row.hash, said[item]): item for item, row in reversed(rows.items())}
    return {item: said[item] for item in sorted(first.values())}


def table_of(file: CatalogueFile, items: Sequence[int], labels: Sequence[str] | None = None) -> Table:
    """Return items as a table of their vectors and other columns; with `labels`, these are a column, too."""
    rows = file.rows(items)
    columns: dict[str, Any] = {}
    for at, row in enumerate(rows):
        for name, value in (row.columns or {}).items():
            columns.setdefault(name, [None] * len(rows))[at] = value
    if any(row.text is not None for row in rows):
        columns[TEXT] = [row.text or "" for row in rows]
    if labels is not None:
        columns[LABEL] = list(labels)
    names = names_of_items(file, rows)
    if measured_in(file):
        table = measurements_of(file, items)
        beside = {} if labels is None else {LABEL: list(labels)}
        return replace(table, names=names, columns={**table.columns, **beside})
    return Table(
        str(file.path or "the catalogue"),
        len(rows),
        vectors_of(file, items),
        columns=columns,
        names=names,
        provenance=Provenance(encoder=made_by(file)),
    )


def names_of_items(file: CatalogueFile, rows: Sequence[ItemRow]) -> tuple[str, ...]:
    """Return where each item is in its batch; of one that is gone, its number."""
    batches = {batch: file.said.places.get(batch, {}) for batch in {row.batch for row in rows}}
    return tuple(batches[row.batch].get(row.item, f"item {row.item}") for row in rows)


def made_by(file: CatalogueFile) -> str:
    """Return what made the vectors of a catalogue, as models and banks record it; empty if that is not known."""
    encoder = encoder_of(file)
    return "" if encoder is None else f"{encoder.name}, weights {encoder.weights}"


def model_of(file: CatalogueFile, *, without_batch: str | None = None) -> FittedModel:
    """Return a model that is fitted to the examples of a catalogue, in the order of `examples_in`.

    It is fitted when something was named since the last time, and kept in the catalogue if that can be written.

    Parameters
    ----------
    file, without_batch
        As in `examples_in`.

    Examples
    --------
    >>> from handful.items import import_labelled
    >>> file = CatalogueFile.open()
    >>> _ = import_labelled(file, (np.eye(3), ["fox", "owl", "elk"]), "monday")
    >>> model_of(file).classes.tolist()
    ['elk', 'fox', 'owl']
    """
    refuse_measurements(file)
    examples = examples_in(file, without_batch=without_batch)
    if not examples:
        raise OptionError(f"nobody has named an item of {where(file)} yet; name some first: handful review")
    rows = file.rows(list(examples))
    key = CACHED + _hash_of(file, rows, list(examples.values()))
    found = _kept(file, key)
    if found is None:
        found = _fitted(file, examples)
        _keep(file, key, found)
    return found.with_record(Record(made_by(file), columns=_columns(rows)))


def model_at(path: str | os.PathLike[str]) -> FittedModel:
    """Return the model in a file: that of a catalogue, or one that was saved."""
    if not is_catalogue_file(path):
        return load_model(path)
    with CatalogueFile.open(path, create=False) as file:
        return model_of(file)


def refuse_measurements(file: CatalogueFile) -> None:
    """Refuse a catalogue of measurements, which are scaled for each batch and so have no model of their own."""
    if measured_in(file):
        raise OptionError(
            f"{where(file)} has measurements, which are scaled together with each batch, so it has no model; give the "
            "catalogue itself to handful classify"
        )


def where(file: CatalogueFile) -> str:
    """Return what a message calls a catalogue."""
    return str(file.path or "the catalogue")


def _fitted(file: CatalogueFile, examples: Mapping[int, str]) -> FittedModel:
    names, codes = np.unique(np.array(list(examples.values())), return_inverse=True)
    bank = FeatureBank.from_arrays(vectors_of(file, list(examples)), codes, names.tolist())
    fitted = FittedModel.of_bank(bank)
    _ = fitted.reference.unknown_model
    return fitted.relabelled(names)


def _hash_of(file: CatalogueFile, rows: Sequence[ItemRow], labels: Sequence[str]) -> str:
    """Return a hash of everything that a model depends on."""
    about = [__version__, *map(list, file.encoders), labels]
    digest = hashlib.sha256(json.dumps(about).encode())
    for row in rows:
        digest.update(row.hash)
    return digest.hexdigest()


def _kept(file: CatalogueFile, key: str) -> FittedModel | None:
    """Return the model that is kept under a name; None if there is none that can be read."""
    content = file.cached(key)
    if content is None:
        return None
    with tempfile.TemporaryDirectory(prefix="handful-") as work, suppress(FileFormatError):
        place = Path(work) / "kept.model"
        place.write_bytes(content)
        return load_model(place)
    return None


def _keep(file: CatalogueFile, key: str, model: FittedModel) -> None:
    """Keep a model in place of an earlier one; one that cannot be kept is fitted again next time."""
    if not file.writable:
        return
    with tempfile.TemporaryDirectory(prefix="handful-") as work, suppress(StorageError):
        place = Path(work) / "kept.model"
        save_model(model, place)
        file.cache_newest(CACHED, key, place.read_bytes())


def _columns(rows: Sequence[ItemRow]) -> dict[str, dict[int, Any]]:
    """Return the other columns of the examples, by their positions, as far as they are short texts or numbers."""
    found: dict[str, dict[int, Any]] = {}
    for at, row in enumerate(rows):
        for name, value in (row.columns or {}).items():
            short = isinstance(value, str) and 0 < len(value) <= MOST_LETTERS
            if short or (isinstance(value, (int, float)) and math.isfinite(value)):
                found.setdefault(name, {})[at] = value
    return found
