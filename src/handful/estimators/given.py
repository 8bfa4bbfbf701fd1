"""Items whose class a person gave: they are examples of their class, and their label is fixed.

Such an item counts as one example, like any other. When it counts three times, the rest of the batch is labelled less
accurately (docs/do/review.md has the figures).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from handful.catalogue import Catalogue
from handful.catalogue.labels import places_of
from handful.engine.model import NO_CLASS
from handful.errors import LabelError
from handful.estimators.containers import labels_of
from handful.shapes import Float, Int


def with_given(
    catalogue: Catalogue, features: Float[np.ndarray, "item dim"], given: Mapping[int, Any]
) -> tuple[Catalogue, Float[np.ndarray, "item dim"], Int[np.ndarray, "item"] | None]:
    """Add the given items to the catalogue; return it, the batch, and the class of each item, -1 where none was given.

    Where nothing is given, the catalogue is the same, and None stands for the classes.

    Parameters
    ----------
    catalogue
        What the batch is compared with.
    features
        The batch.
    given
        Positions of items to labels, of classes that the catalogue has or of new ones; None for an item that belongs to
        no class. Such an item is no example, and has the class `NO_CLASS`.

    Examples
    --------
    >>> catalogue = Catalogue.of(np.eye(3), np.array(["cat", "dog", "fox"]))
    >>> more, _, codes = with_given(catalogue, np.eye(3)[[1, 1, 0]], {2: "cat", 0: "wolf"})
    >>> more.classes.tolist(), codes.tolist()
    (['cat', 'dog', 'fox', 'wolf'], [3, -1, 0])
    """
    rows = list(given)
    if any(isinstance(row, bool) or not isinstance(row, (int, np.integer)) for row in rows):
        raise LabelError("given must map positions of rows, counted from 0, to labels")
    if rows and not 0 <= min(rows) <= max(rows) < len(features):
        wrong = next(row for row in rows if not 0 <= row < len(features))
        raise LabelError(f"a label was given for row {wrong}, but the batch has rows 0 to {len(features) - 1}")
    if not rows:
        return catalogue, features, None
    codes = np.full(len(features), -1, dtype=np.int64)
    codes[[row for row in rows if given[row] is None]] = NO_CLASS
    rows = [row for row in rows if given[row] is not None]
    if not rows:
        return catalogue, features, codes
    labels = labels_of([given[row] for row in rows])
    more = catalogue.with_examples(features[rows], labels)
    codes[rows] = places_of(labels, more.classes)
    return more, features, codes
