"""Items whose class a person gave: they are examples of their class, and their label is fixed.

Such an item counts as one example, like any other. When it counts three times, the rest of the batch is labelled less
accurately.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any

import numpy as np

from handful.arguments import did_you_mean
from handful.catalogue import Catalogue
from handful.catalogue.labels import places_of
from handful.engine.model import NO_CLASS
from handful.errors import LabelError, OptionError
from handful.estimators.containers import labels_of
from handful.reading.class_names import is_missing
from handful.shapes import Float, Int


def with_given(
    catalogue: Catalogue,
    features: Float[np.ndarray, "item dim"],
    given: Mapping[int, Any] | None,
    new_classes: Any = None,
) -> tuple[Catalogue, Float[np.ndarray, "item dim"], Int[np.ndarray, "item"] | None]:
    """Add the given items to the catalogue; return it, the batch, and the class of each item, -1 where none was given.

    The head is fitted from that of the catalogue, so that a person does not wait for it. Where nothing is given, the
    catalogue is the same, and None stands for the classes.

    Parameters
    ----------
    catalogue
        What the batch is compared with.
    features
        The batch.
    given
        Positions of items to labels; None for an item that belongs to no class. Such an item is no example, and has the
        class `NO_CLASS`.
    new_classes
        Labels that the catalogue may not have; any other label must be one of its classes.

    Examples
    --------
    >>> catalogue = Catalogue.of(np.eye(3), np.array(["cat", "dog", "fox"]))
    >>> more, _, codes = with_given(catalogue, np.eye(3)[[1, 1, 0]], {2: "cat", 0: "wolf"}, ["wolf"])
    >>> more.classes.tolist(), codes.tolist()
    (['cat', 'dog', 'fox', 'wolf'], [3, -1, 0])
    """
    if new_classes is not None and given is None:
        raise OptionError("new_classes lists labels of given that are new, but no label is given; leave it out")
    rows = sorted(rows_given({} if given is None else given, len(features)))  # whatever was said first
    if not rows:
        return catalogue, features, None
    assert given is not None
    codes = np.full(len(features), -1, dtype=np.int64)
    codes[[row for row in rows if given[row] is None]] = NO_CLASS
    rows = [row for row in rows if given[row] is not None]
    if not rows:
        return catalogue, features, codes
    labels = labels_of([given[row] for row in rows])
    unknown = catalogue.unknown(labels)
    if unknown:
        announced = new_class_names(new_classes)
        wrong = next((label for label in unknown if label not in announced), None)
        if wrong is not None:
            row = next(row for row, label in zip(rows, labels.tolist(), strict=True) if label == wrong)
            raise no_such_class(f"row {row}", wrong, [*catalogue.classes.tolist(), *announced])
    more = catalogue.with_examples(features[rows], labels).updated_from(catalogue, for_a_batch=True)
    codes[rows] = places_of(labels, more.classes)
    return more, features, codes


def rows_given(given: Any, n_items: int) -> list[int]:
    """Return the rows that were given a label; refuse what is no row, and labels that say nothing."""
    if not isinstance(given, Mapping) or any(
        isinstance(row, bool) or not isinstance(row, (int, np.integer)) for row in given
    ):
        raise LabelError("given must map positions of rows, counted from 0, to labels")
    wrong = next((row for row in given if not 0 <= row < n_items), None)
    if wrong is not None:
        raise LabelError(f"a label was given for row {wrong}, but the batch has rows 0 to {n_items - 1}")
    for row, label in given.items():
        refuse_missing(row, label)
    return list(given)


def refuse_missing(row: int, label: Any) -> None:
    """Refuse a label that says nothing; None says that a row belongs to no class."""
    if label is not None and is_missing(label):
        raise LabelError(f"row {row} was given the label {label!r}; give a class, or None for none of them")


def new_class_names(new_classes: Any) -> list[Any]:
    """Return the new classes that were announced."""
    if isinstance(new_classes, (str, bytes)) or not isinstance(new_classes, Iterable | None):
        raise OptionError(f"new_classes must be a list of labels, got {new_classes!r}; put it in a list")
    return [] if new_classes is None else list(labels_of(list(new_classes)).tolist())


def no_such_class(who: str, label: Any, classes: Collection[Any]) -> LabelError:
    """Return the error for a label that is no class, with the class that is spelled most alike."""
    return LabelError(
        f"{who} was given the label {label!r}, which is none of the {len(classes):,} classes"
        f"{did_you_mean(label, classes)}; correct it, or, if the class is new, list it in new_classes (--new-class)"
    )
