"""What is known about a batch, or about groups, before it is labelled: the same arguments everywhere."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypedDict, cast

import numpy as np
import numpy.typing as npt

from handful.engine.model import Context
from handful.engine.prior import Prior
from handful.errors import OptionError
from handful.estimators.pooling import Siblings, siblings_of
from handful.estimators.prior_weights import prior_of, weights_of
from handful.shapes import Int


class Known(TypedDict, total=False):
    """What is known about a batch: the same optional arguments everywhere.

    Attributes
    ----------
    prior : array [class], mapping or table
        Weights of the classes before the batch is seen: an array in the order of `classes_`; a mapping from classes to
        weights, or from groups to such mappings; or a frame with the columns `class`, `weight` and, if groups differ,
        `group`. Only ratios matter, and the default weight is one. Evidence in the batch can overcome any weight except
        zero: such a class cannot occur.
    candidates : list of classes, mapping from groups to lists, or list of lists
        The only classes that can occur, as if all others had a weight of zero. A list of lists has one list per item,
        with the only classes that this item can have; None there means all.
    given : mapping from rows to labels
        Labels that a person gave to some items: positions of rows, counted from 0, to labels. These items keep that
        label, and count as examples of their class in this call; an item with None belongs to no class. A label that
        the catalogue does not have is a new class; `probabilities` then have a column for it, in the order of all
        labels. The catalogue stays as it is: to keep the examples, call `partial_fit`.
    sequence : [row] or [row, column]
        Items with the same value have the same class: the photographs of one sequence, the segments of one voice. They
        get the mean of their answers.
    pool : True, [row] or [row, column]
        Groups with the same value are siblings: each is labelled with the help of the others where that improves it,
        see `Answer.pooling`. True means that all are siblings.
    order : [row]
        The time of each group, as dates or numbers. Then only earlier siblings help a group, and older ones help less
        if the data suggest so.
    coarse : mapping from classes to coarse classes
        The genus of each species, the tissue of each cell type. Answers then have a coarse class as well, and
        `Answer.sure_labels` says at which level it is sure. A class that is not mentioned is its own. Labels stay the
        same.

    Examples
    --------
    >>> from handful.estimators import BatchClassifier
    >>> X, y = [[0.0, 1.0], [0.1, 1.0], [1.0, 0.0], [1.0, 0.1], [-1.0, 0.0]], ["up", "up", "right", "right", "left"]
    >>> classifier = BatchClassifier().fit(X, y)
    >>> known = {"candidates": ["up", "left"]}
    >>> classifier.predict([[0.9, 1.0]], **known).tolist(), classifier.infer([[0.9, 1.0]], **known).labels.tolist()
    (['up'], ['up'])
    """

    prior: Any
    candidates: Any
    given: Mapping[int, Any] | None
    sequence: Any
    pool: Any
    order: Any
    coarse: Any


def checked(known: Mapping[str, Any]) -> Known:
    """Refuse arguments that do not exist; what is None is left out, and so is `pool=False`."""
    unknown = set(known) - set(Known.__annotations__)
    if unknown:
        raise OptionError(
            f"there is no argument {min(unknown)!r}; what is known about a batch is given as "
            f"{', '.join(Known.__annotations__)}"
        )
    return cast(Known, {name: value for name, value in known.items() if value is not None and value is not False})


class BatchContexts:
    """What is known about every group, in the terms of the engine.

    Parameters
    ----------
    known : Known
        As the caller gave it.
    classes : ndarray [class]
        All classes.
    groups, group_of : ndarray [group] or None, ndarray [item]
        Names of the groups, and the group of each item.
    given : ndarray [item] or None
        Class of each item that has one for certain.
    """

    def __init__(
        self,
        known: Known,
        classes: npt.NDArray[Any],
        groups: npt.NDArray[Any] | None,
        group_of: Int[np.ndarray, "item"],
        given: Int[np.ndarray, "item"] | None,
    ) -> None:
        if groups is None and ("pool" in known or "order" in known):
            raise OptionError("pool and order need groups, and there are none; give the argument groups")
        candidates = known.get("candidates")
        by_item = is_by_item(candidates, classes)
        self.allowed = allowed_of(candidates, classes, len(group_of)) if by_item else None
        weights = weights_of(known.get("prior"), None if by_item else candidates, classes, groups)
        n_groups = 1 if groups is None else len(groups)
        self.prior: Prior | None = None if weights is None else prior_of(weights, n_groups)
        if self.allowed is not None and self.prior is not None:
            possible = self.allowed & np.isfinite(self.prior.log_shares)[group_of]
            if not possible.any(1).all():
                row = int(np.flatnonzero(~possible.any(1))[0])
                raise OptionError(f"prior rules out every class among the candidates of row {row}; correct one of them")
        self.siblings: Siblings | None = siblings_of(known.get("pool"), known.get("order"), len(group_of), group_of)
        self.given = given

    def of_group(self, place: int, rows: Int[np.ndarray, "some"]) -> Context:
        """Return what is known about the items of one group."""
        context = Context.of(self.prior, place, None if self.given is None else self.given[rows])
        if self.allowed is None:
            return context
        return Context(context.log_shares, context.concentration, self.allowed[rows], context.given)


def is_by_item(candidates: Any, classes: npt.NDArray[Any]) -> bool:
    """Whether candidates are those of single items: a list whose entries are lists, or None.

    A tuple is a list too, unless classes are tuples.
    """
    if isinstance(candidates, (str, bytes, Mapping, set, frozenset)) or not hasattr(candidates, "__len__"):
        return False
    values = list(candidates)
    lists: tuple[type, ...] = (list, set, frozenset, np.ndarray)
    if any(isinstance(value, lists) for value in values):
        lists = (*lists, tuple)
    elif not (classes.dtype.kind == "O" and any(isinstance(name, tuple) for name in classes.tolist())):
        lists = (tuple,)
    return len(values) > 0 and all(value is None or isinstance(value, lists) for value in values)


def allowed_of(candidates: Any, classes: npt.NDArray[Any], n_items: int) -> npt.NDArray[np.bool_]:
    """Return which classes each item can have, [item, class]."""
    rows = list(candidates)
    if len(rows) != n_items:
        raise OptionError(f"candidates of single items must have one list per row, {n_items}, got {len(rows)}")
    allowed = np.ones((n_items, len(classes)), bool)
    for place, row in enumerate(rows):
        if row is not None:
            weights = weights_of(None, row, classes, None)
            assert weights is not None
            allowed[place] = weights[0] > 0
    return allowed
