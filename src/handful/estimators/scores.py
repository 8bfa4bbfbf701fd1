"""Labels from the scores of another model: no examples, no features."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Unpack

import numpy as np
import numpy.typing as npt

from handful.arguments import takes
from handful.errors import LabelError, OptionError, TaskError
from handful.estimators.answer import Answer, rows_of_groups
from handful.estimators.batches import Batches
from handful.estimators.containers import frame_of, labels_of, values_of, vectors_of
from handful.estimators.context import BatchContexts, Known, checked
from handful.estimators.diagnostics import HIGH_SCORE, overturned_scores, warnings_of
from handful.estimators.given import rows_given
from handful.estimators.items import ScoredItems
from handful.estimators.prior_weights import class_places, weights_of
from handful.fitted.labels import distinct
from handful.model.scores import KINDS, differences, factor_of_labelled, in_nats, unit_of
from handful.reading.class_names import plain_label
from handful.shapes import Bool, Float, Int

# Probabilities of the classes may sum to this much, because of rounding. [chance; convention]
MOST_IN_ALL = 1.02
# Kinds whose values lie between zero and one.
CHANCES = ("probabilities", "sigmoid")


@dataclass(frozen=True, eq=False)
class TopScores:
    """The best scores of every item, where a model gives no others.

    Attributes
    ----------
    classes : sequence of sequences of labels
        One list per item, in any order; lists may differ in length, and may be empty.
    scores : sequence of sequences of numbers
        The scores of these classes.

    Examples
    --------
    Classes that are not listed have lower scores than those that are:

    >>> import handful
    >>> names = [["cow", "deer"], ["cow", "elk"], ["cow", "fox"], ["deer", "cow"]]
    >>> top = handful.TopScores(names, [[0.9, 0.1], [0.8, 0.1], [0.9, 0.1], [0.5, 0.4]])
    >>> found = handful.infer_scores(top, ["cow", "deer", "elk", "fox"], kind="probabilities")
    >>> found.labels.tolist(), found.probabilities.shape
    (['cow', 'cow', 'cow', 'cow'], (4, 4))
    """

    classes: Sequence[Sequence[Any]]
    scores: Sequence[Sequence[float]]

    def table(self, classes: Any) -> tuple[Float[np.ndarray, "item class"], npt.NDArray[Any]]:
        """Return all scores, NaN where none is given, and the classes: those given, or all that are listed."""
        names = [list(map(plain_label, values_of(row))) for row in self.classes]
        values = [list(values_of(row)) for row in self.scores]
        if [len(row) for row in names] != [len(row) for row in values]:
            raise TaskError(
                "TopScores must have one score for each class of an item; classes and scores differ in length"
            )
        listed = [name for row in names for name in row]
        every = distinct(np.asarray(listed))[0] if classes is None else _distinct_classes(classes)
        table = np.full((len(names), len(every)), np.nan)
        item = np.repeat(np.arange(len(names)), [len(row) for row in names])
        places = class_places(listed, every)
        if len(np.unique(item * len(every) + places)) < len(places):
            raise TaskError("TopScores lists a class twice for the same item; keep the better score")
        table[item, places] = _as_numbers([value for row in values for value in row])
        if np.isnan(table[item, places]).any():
            raise TaskError("TopScores has NaN among its scores; leave out the classes that have none")
        return table, every


@takes(Known)
def infer_scores(
    scores: Any,
    classes: Any = None,
    *,
    kind: str,
    groups: Any = None,
    model_prior: Any = None,
    several: bool = False,
    unlisted: bool = False,
    **known: Unpack[Known],
) -> Answer:
    """Label all items jointly from the scores that another model gave them, and say which classes are present.

    Only differences between the scores of one item matter, and the gaps between the best ones are the unit: multiplying
    all scores by a factor, or adding a number to the scores of an item, changes nothing. All items of the call share
    one unit, also across groups, so pass all groups of one model together.

    A class that the model did not list for an item, or whose probability was rounded to zero, is not its label. An item
    without any score may have every class.

    Where joint labels would not help, `joint_weight` is zero, and every item keeps the class of its best score.

    Parameters
    ----------
    scores : [item, class] or TopScores
        An array, a tensor, or a frame of pandas, polars or Arrow with one column per class; or the best few of every
        item.
    classes : [class] or None
        Labels of the columns. None means the names of the columns of a frame, the numbers 0, 1, ... for an array, and
        all classes that occur for `TopScores`.
    kind : {"logits", "probabilities", "sigmoid", "similarities"}
        "logits" are unbounded scores, before a softmax or a sigmoid. "probabilities" sum to at most one over the
        classes of an item. "sigmoid" is a chance for each class by itself. "similarities" are cosines, or negative
        distances.
    groups : object
        As in `BatchClassifier.infer`.
    model_prior : array [class], mapping, table or None
        How frequent the classes were when the model was trained, in the forms of `prior`. The model prefers frequent
        classes, and this is undone. Logits must then be on the model's own scale.
    several : bool
        Whether an item may have several classes, or none; needs the kind "sigmoid".
    unlisted : bool
        Whether an item may also have a class that the model did not list for it. Its scores are taken to lie below all
        that are listed.
    prior, candidates, given, new_classes, sequence, pool, order, coarse, expect_unknown : object
        As in `BatchClassifier.infer`. Arrays of weights are in the order of the columns. Items whose labels are given
        say how reliable the scores are, and keep their label; it must be one of the classes.

    Returns
    -------
    Answer
        `unknown` is NaN: scores do not tell which items belong to none of the classes.

        With `several`, `probabilities` are the chances that the item has each class, and their sum over the classes is
        its expected number of classes. `labels` is the class with the largest chance. `expected_counts` are items that
        have the class. `unknown` is the chance that the item has none
        of the classes, as if these were independent, and `rejected` are items that more likely have none than any.
        `presence` and `present_classes` are those of the batch, as always.

    Examples
    --------
    A model that is right about half of the items, and a batch of two of a hundred classes:

    >>> import numpy as np
    >>> import handful
    >>> rng = np.random.default_rng(0)
    >>> truth = np.repeat([3, 58], 20)
    >>> logits = rng.normal(size=(40, 100))
    >>> logits[np.arange(40), truth] += 2.5
    >>> found = handful.infer_scores(logits, kind="logits")
    >>> np.flatnonzero(found.presence > 0.9).tolist()
    [3, 58]
    >>> float((logits.argmax(1) == truth).mean()), float((found.labels == truth).mean())
    (0.525, 0.925)

    Scores on another scale give the same answer:

    >>> softmax = np.exp(0.3 * logits) / np.exp(0.3 * logits).sum(1, keepdims=True)
    >>> bool((handful.infer_scores(softmax, kind="probabilities").labels == found.labels).all())
    True
    """
    if kind not in KINDS:
        raise OptionError(f"kind must be one of {', '.join(KINDS)}, got {kind!r}")
    about = checked(known)
    labelled: Any = about.get("given", {})
    if "expect_unknown" in about:
        raise OptionError(
            "scores do not tell which items belong to no class; leave expect_unknown out, or have a class for them, "
            "such as 'blank'"
        )
    if "new_classes" in about:
        raise OptionError("a new class has no scores; leave new_classes out, and give labels that have scores")
    if several and (kind != "sigmoid" or len(labelled)):
        raise OptionError(
            "several needs the kind sigmoid, and no given labels: a label would not say what else is present"
        )
    values, names = _table(scores, classes, kind)
    n_items = len(values)
    rows, codes = _codes(labelled, names, n_items)
    contexts = BatchContexts(about, names, n_items, groups, codes, several=several)
    banned = _banned(contexts)
    relative, best = differences(values, kind, _model_weights(model_prior, names, kind), unlisted=unlisted)
    unit = unit_of(relative, banned)
    listed = ~np.isnan(relative)
    if rows and codes is not None:
        own = in_nats(relative, unit)[rows]
        if banned is not None:
            own = np.where(banned[rows], -np.inf, own)
        unit /= factor_of_labelled(own, codes[rows])
    items = ScoredItems(
        in_nats(relative, unit, unlisted=True),
        in_nats(best, unit),
        None if unlisted or listed.all() else listed,
        names,
        several,
    )
    found = Batches(items, contexts).answer(frame_of(scores))
    if kind in CHANCES and not several:
        found = _with_overturned(found, values, banned, codes)
    for warning in warnings_of(found.diagnostics) if groups is None else ():
        warnings.warn(warning, stacklevel=2)
    return found


def _with_overturned(
    found: Answer,
    values: Float[np.ndarray, "item class"],
    banned: Bool[np.ndarray, "item class"] | None,
    given: Int[np.ndarray, "item"] | None,
) -> Answer:
    """Say which items have another label than the class of their high score; bans and given labels are on purpose."""
    own = np.where(np.isnan(values), -np.inf, values).argmax(1)
    top = values[np.arange(len(own)), own]
    high = top >= HIGH_SCORE
    if banned is not None:
        high &= ~np.broadcast_to(banned, values.shape)[np.arange(len(own)), own]
    if given is not None:
        high &= given < 0
    lost = high & (own != found.codes[:, 0])
    of_groups = []
    before = [found.diagnostics] if found.groups is None else found.diagnostics
    for rows, others in zip(rows_of_groups(found), before, strict=True):
        items = np.flatnonzero(lost[rows])
        items = items[np.argsort(-top[rows][items], kind="stable")]
        diagnostic = overturned_scores(tuple(items.tolist()), int(high[rows].sum()))
        of_groups.append(others if diagnostic is None else (*others, diagnostic))
    return replace(found, diagnostics=of_groups[0] if found.groups is None else tuple(of_groups))


def _banned(contexts: BatchContexts) -> Bool[np.ndarray, "item class"] | None:
    """Classes that items cannot have; None if they can have all."""
    of_groups = None if contexts.prior is None else ~contexts.prior.possible
    banned = None if of_groups is None or not of_groups.any() else of_groups[contexts.group_of]
    if contexts.allowed is None:
        return banned
    return ~contexts.allowed if banned is None else banned | ~contexts.allowed


def _table(scores: Any, classes: Any, kind: str) -> tuple[Float[np.ndarray, "item class"], npt.NDArray[Any]]:
    """Return the scores as numbers, NaN where none is given, and the classes."""
    if isinstance(scores, TopScores):
        values, names = scores.table(classes)
    else:
        values = _as_array(vectors_of(scores))
        if values.ndim != 2:
            raise TaskError(f"scores must have the axes (item, class), got shape {tuple(values.shape)}")
        columns = getattr(scores, "column_names", getattr(scores, "columns", None)) if classes is None else classes
        if columns is None or (classes is None and len(columns) != values.shape[1]):
            columns = np.arange(values.shape[1])
        names = _distinct_classes(columns)
        if len(names) != values.shape[1]:
            raise TaskError(
                f"classes must name each of the {values.shape[1]} columns of scores, got {len(names)} names"
            )
        if not np.isfinite(values).all():
            raise TaskError(
                "scores has NaN or infinity; drop these items, give the best scores alone as TopScores, and rule out "
                "classes with candidates"
            )
    if 0 in values.shape:
        raise TaskError(f"scores must have at least one item and one class, got shape {tuple(values.shape)}")
    if kind in CHANCES:
        _check_chances(values, kind)
    return values, names


def _check_chances(values: Float[np.ndarray, "item class"], kind: str) -> None:
    if (values < 0).any() or (values > 1).any():
        raise TaskError(
            f"{kind} must lie between 0 and 1, got {np.nanmin(values):.4g} to {np.nanmax(values):.4g}; scores of any "
            "size are logits or similarities"
        )
    if kind == "probabilities" and (np.nansum(values, 1, dtype=np.float64) > MOST_IN_ALL).any():
        raise TaskError(
            "probabilities must sum to at most one over the classes of an item; one for each class by itself is of the "
            "kind sigmoid"
        )


def _as_array(values: Any) -> Float[np.ndarray, "..."]:
    """Return numbers in single or double precision; a tensor comes from any device."""
    if hasattr(values, "column_names"):
        values = np.column_stack([column.to_numpy() for column in values.columns])
    numbers = _as_numbers(values.to_numpy() if hasattr(values, "to_numpy") else values)
    return numbers.astype(
        np.float32 if numbers.dtype.itemsize < np.dtype(np.float64).itemsize else np.float64, copy=False
    )


def _as_numbers(values: Any) -> npt.NDArray[Any]:
    try:
        found = np.asarray(values)
        return found if found.dtype.kind == "f" else found.astype(np.float64)
    except (TypeError, ValueError) as error:
        raise TaskError(f"scores must be numbers, one for every item and class ({error})") from error


def _distinct_classes(classes: Any) -> npt.NDArray[Any]:
    names = labels_of(classes)
    if names.dtype.kind == "O" and all(isinstance(name, str) for name in names.tolist()):
        names = names.astype(str)
    if names.ndim != 1 or len(distinct(names)[0]) < len(names):
        raise LabelError("classes must be a list of distinct labels; some occur twice, or it has another shape")
    return names


def _model_weights(model_prior: Any, classes: npt.NDArray[Any], kind: str) -> Float[np.ndarray, "class"] | None:
    if model_prior is None:
        return None
    if kind == "similarities":
        raise OptionError("model_prior needs scores of a trained model; similarities do not prefer frequent classes")
    weights = weights_of(model_prior, None, classes, None)
    assert weights is not None
    if (weights == 0).any():
        raise OptionError(
            "model_prior must be positive: a class of weight zero has no scores to correct; see candidates"
        )
    return np.asarray(weights[0])


def _codes(
    labelled: Mapping[int, Any], classes: npt.NDArray[Any], n_items: int
) -> tuple[list[int], Int[np.ndarray, "item"] | None]:
    """Return the labelled rows, and the class of every row, -1 if it is not labelled; None if none is."""
    rows = rows_given(labelled, n_items)
    if not rows:
        return rows, None
    if any(label is None for label in labelled.values()):
        raise OptionError("scores do not tell which items belong to no class; leave out items that were given None")
    codes = np.full(n_items, -1)
    codes[rows] = class_places(list(labelled.values()), classes)
    return rows, codes
