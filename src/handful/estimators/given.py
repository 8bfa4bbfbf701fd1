"""Items whose class a person gave: they are examples of their class, and their label is fixed.

Such an item counts as one example, like any other. When it counts three times, the rest of the batch is labelled less
accurately. An item that is none of the classes is an example of a class without a name.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from handful.arguments import did_you_mean
from handful.errors import LabelError, OptionError
from handful.estimators.containers import labels_of
from handful.fitted import FittedModel
from handful.fitted.labels import places_of
from handful.model.arrays import spread_rows
from handful.model.links import Anchors, groups_of_answers
from handful.reading.class_names import is_missing
from handful.shapes import Bool, Float, Int


class GivenRows(NamedTuple):
    """Rows whose class a person gave, in increasing order, and these classes as positions."""

    rows: Int[np.ndarray, "some"]
    codes: Int[np.ndarray, "some"]

    def of_items(self, n_items: int) -> Int[np.ndarray, "item"] | None:
        """Return the class of each item, -1 where none was given; None if nothing was given."""
        if len(self.rows) == 0:
            return None
        codes = np.full(n_items, -1, np.int64)
        codes[self.rows] = self.codes
        return codes


class GivenCatalogue(NamedTuple):
    """A catalogue with given items as examples.

    Attributes
    ----------
    catalogue : FittedModel
        The classes of the catalogue, those that a person named, and last those without a name. If there are any of
        these, its labels are positions.
    classes : ndarray [class]
        Labels of the classes that have a name.
    new : ndarray [class]
        Which of them a person named.
    given : GivenRows
        The items, and their classes; from `len(classes)` on they have no name.
    """

    catalogue: FittedModel
    classes: npt.NDArray[Any]
    new: Bool[np.ndarray, "class"]
    given: GivenRows


def with_given(
    catalogue: FittedModel,
    features: Float[np.ndarray, "item dim"],
    given: Mapping[int, Any] | None,
    new_classes: Any = None,
) -> GivenCatalogue:
    """Add the given items to the catalogue, as examples of their classes.

    Items that belong to none of the classes open classes without a name, one for all of them that look alike. The head
    is fitted from that of the catalogue, so that a person does not wait for it.

    Parameters
    ----------
    catalogue
        What the batch is compared with.
    features
        The items of the batch.
    given
        Positions of items to labels; None for an item that belongs to no class.
    new_classes
        Labels that the catalogue may not have; any other label must be one of its classes.

    Examples
    --------
    >>> catalogue = FittedModel.of(np.eye(4)[:3], np.array(["cat", "dog", "fox"]))
    >>> batch = np.eye(4)[[1, 1, 0, 3]]
    >>> found = with_given(catalogue, batch, {2: "cat", 0: "wolf", 3: None}, ["wolf"])
    >>> found.classes.tolist(), found.given.rows.tolist(), found.given.codes.tolist(), found.catalogue.n_unnamed
    (['cat', 'dog', 'fox', 'wolf'], [0, 2, 3], [3, 0, 4], 1)
    """
    if given is None and new_class_names(new_classes):
        raise OptionError("new_classes lists labels of given that are new, but no label is given; leave it out")
    given = {} if given is None else given
    rows = np.array(sorted(rows_given(given, len(features))), np.int64)  # whatever was said first
    if len(rows) == 0:
        return GivenCatalogue(catalogue, catalogue.classes, np.zeros(catalogue.n_classes, bool), GivenRows(rows, rows))
    is_none = np.array([given[row] is None for row in rows.tolist()])
    named = rows[~is_none]
    labels = labels_of([given[row] for row in named.tolist()]) if len(named) else catalogue.classes[:0]
    _refuse_new(catalogue, named, labels, new_classes)
    more = catalogue.with_examples(features[named], labels) if len(named) else catalogue
    classes = more.classes
    codes = np.empty(len(rows), np.int64)
    codes[~is_none] = places_of(labels, classes)
    before = catalogue
    n_unnamed = 0
    if is_none.any():
        groups = _groups_of(catalogue, features, rows[is_none])
        codes[is_none] = len(classes) + groups
        n_unnamed = int(groups.max()) + 1
        before = catalogue.relabelled(places_of(catalogue.classes, classes))
        more = more.relabelled(np.arange(len(classes))).with_examples(features[rows[is_none]], codes[is_none])
    more = more.updated_from(before, for_a_batch=True).with_unnamed(n_unnamed)
    return GivenCatalogue(more, classes, places_of(classes, catalogue.classes) < 0, GivenRows(rows, codes))


def _refuse_new(catalogue: FittedModel, rows: Int[np.ndarray, "some"], labels: npt.NDArray[Any], new: Any) -> None:
    """Refuse a label that is neither a class of the catalogue nor announced as new."""
    unknown = catalogue.unknown(labels) if len(labels) else []
    if not unknown:
        return
    announced = new_class_names(new)
    wrong = next((label for label in unknown if label not in announced), None)
    if wrong is not None:
        row = next(row for row, label in zip(rows.tolist(), labels.tolist(), strict=True) if label == wrong)
        raise no_such_class(f"row {row}", wrong, [*catalogue.classes.tolist(), *announced])


def _groups_of(
    catalogue: FittedModel, features: Float[np.ndarray, "item dim"], rows: Int[np.ndarray, "some"]
) -> Int[np.ndarray, "some"]:
    """Return which items that are none of the classes look alike; each its own group if the catalogue cannot tell."""
    model = None if catalogue.only_names else catalogue.unknown_model
    if model is None:
        return np.arange(len(rows))
    some = catalogue.points(features[spread_rows(len(features), catalogue.reference.settings.most_anchors)])
    reference = catalogue.reference
    anchors = Anchors.of(some[None], reference.centre, model.pair_odds, np.arange(len(some))[None], reference.settings)
    return groups_of_answers(anchors, catalogue.points(features[rows]))


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
    found = [] if new_classes is None else list(labels_of(list(new_classes)).tolist())
    if any(map(is_missing, found)):
        raise LabelError("new_classes has a label that is missing, NaN or blank; give the class another name")
    return found


def no_such_class(who: str, label: Any, classes: Collection[Any]) -> LabelError:
    """Return the error for a label that is no class, with the class that is spelled most alike."""
    return LabelError(
        f"{who} was given the label {label!r}, which is none of the {len(classes):,} classes"
        f"{did_you_mean(label, classes)}; correct it, or, if the class is new, list it in new_classes"
    )
