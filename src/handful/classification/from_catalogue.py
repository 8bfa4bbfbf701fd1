"""What a catalogue gives those who label: its model, how its examples look, and vectors that it has already."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from handful.catalogue.file import CatalogueFile
from handful.classification.labelled import Shown
from handful.errors import OptionError
from handful.extraction.items import Items
from handful.fitted import FittedModel
from handful.items.embedding import encoder_of
from handful.items.fitting import examples_in, model_of, names_of_items, table_of, where
from handful.items.given_vectors import measured_in
from handful.items.looking_up import pictures_of
from handful.reading.table import Table
from handful.shapes import Float


class KnownExamples(NamedTuple):
    """The examples of a catalogue: a model, or a table of measurements; and how they look, if that can be shown."""

    examples: Table | FittedModel
    shown: Shown | None


def known_examples(file: CatalogueFile, *, without_batch: str | None = None) -> KnownExamples | None:
    """Return the examples of a catalogue; None if it has none.

    Parameters
    ----------
    file
        The catalogue.
    without_batch
        A batch whose items are left out.
    """
    found = examples_in(file, without_batch=without_batch)
    if not found:
        return None
    items = list(found)
    labels = list(found.values())
    pictures = pictures_of(file, items)
    names = names_of_items(file, file.rows(items))
    shown = None if pictures is None else Shown(pictures, names, np.array(labels))
    examples = table_of(file, items, labels) if measured_in(file) else model_of(file, without_batch=without_batch)
    return KnownExamples(examples, shown)


def examples_at(path: Path) -> KnownExamples:
    """Return the examples of a catalogue in a file; refuse one that has none."""
    with CatalogueFile.open(path, create=False) as file:
        found = known_examples(file)
        if found is None:
            raise OptionError(f"nobody has named an item of {where(file)} yet; name some first: handful review {path}")
        return found


def known_vectors(path: Path, items: Items) -> dict[int, Float[np.ndarray, "dim"]]:
    """Return the vectors of those items whose contents are in a catalogue, by their positions."""
    keys = [bytes.fromhex(digits) for digits in items.hashes]
    with CatalogueFile.open(path, create=False) as file:
        encoder = encoder_of(file)
        if encoder is None:
            return {}
        contents = file.contents_with(list(dict.fromkeys(keys)))
        vectors = file.vectors(encoder, list(contents.values()))
    return {at: vectors[contents[key]] for at, key in enumerate(keys) if contents.get(key) in vectors}


def in_order(
    n_items: int, known: dict[int, Float[np.ndarray, "dim"]], others: Sequence[int], points: Float[np.ndarray, "o dim"]
) -> Float[np.ndarray, "item dim"]:
    """Return known vectors and those of other positions, in the order of the positions.

    Examples
    --------
    >>> in_order(4, {2: np.ones(1), 0: np.zeros(1)}, [3], np.full((1, 1), 3.0)).tolist()
    [[0.0], [1.0], [3.0]]
    """
    rows = {**known, **dict(zip(others, points, strict=True))}
    return np.stack([rows[at] for at in range(n_items) if at in rows])
