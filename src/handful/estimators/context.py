"""What is known about a batch, or about groups, before it is labelled: the same arguments everywhere."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from copy import copy
from typing import Any, TypedDict, cast

import numpy as np
import numpy.typing as npt

from handful.arguments import did_you_mean
from handful.errors import LabelError, OptionError
from handful.estimators.coarse import coarse_names
from handful.estimators.containers import column_of
from handful.estimators.pooling import Siblings, siblings_of
from handful.estimators.prior_weights import prior_of, weights_of
from handful.estimators.sequences import allowed_for_all, given_to_all, sequences_of
from handful.estimators.unknown_share import shares_of
from handful.model.knowledge import FixedLabels, Knowledge, Prior, ToldShare
from handful.model.settings import DEFAULT, Settings
from handful.shapes import Bool, Float, Int


class Known(TypedDict, total=False):
    """What is known about a batch: the same optional arguments everywhere.

    Attributes
    ----------
    prior : array [class], mapping or table
        Weights of the classes before the batch is seen: an array in the order of `classes_`; a mapping from classes to
        weights, or from groups to such mappings; or a frame with the columns `class`, `weight` and, if groups differ,
        `group`. Only ratios matter, and the default weight is one. Evidence in the batch can overcome any weight except
        zero: such a class cannot occur. Classes that a person names or opens in the batch have the mean weight.
    candidates : list of classes, mapping from groups to lists, or list of lists
        The only classes that can occur, as if all others had a weight of zero. A list of lists has one list per item,
        with the only classes that this item can have; None there means all.
    given : mapping from rows to labels
        Labels that a person gave to some items: positions of rows, counted from 0, to labels. These items keep that
        label, and count as examples of their class in this call. They say nothing about how many items are unknown. An
        item with None belongs to none of the classes: it opens a class without a name, which takes items that look like
        it; those that look alike share one. They are `rejected`, their label is None, and each such class is one of the
        `proposals`. The catalogue stays as it is: to keep the examples, call `partial_fit`.
    new_classes : list of labels
        Labels of `given` that the catalogue may not have yet; any other label that it does not have is refused, so that
        a typing mistake does not become a class. `probabilities` have a column for each new class that was given, in
        the order of all labels.
    sequence : [row] or [row, column]
        Items with the same value have the same class: the photographs of one sequence, the segments of one voice. They
        get the mean of their answers. What is known about one of them holds for all. A row without a value (None, NaN)
        stands alone. A sequence that has items in several groups is refused: if its numbers start again in every
        group, give the columns of the group as well.
    pool : True, [row] or [row, column]
        Groups with the same value are siblings: each is labelled with the help of the others where that improves it,
        see `Answer.pooling`. True means that all are siblings.
    order : [row]
        The time of each group, as dates or numbers. Then only earlier siblings help a group, and older ones help less
        if the data suggest so.
    coarse : mapping from classes to coarse classes
        The genus of each species, the tissue of each cell type. Answers then have a coarse class as well, and
        `Answer.sure_labels` says at which level it is sure. A class that is not mentioned is its own. No other class
        may have the name of a coarse class. Labels stay the same.
    expect_unknown : bool, float, (float, float), Answer, list of Answer, or mapping from groups to these
        How many items belong to no class. True: some do, any share of them, and (0, 1) says the same; 0.3: about that
        share, known as well as from ten items; (0.1, 0.5): a share in that range, with probability 0.9; 0 or False:
        none. Answers about earlier batches, best reviewed ones (`given`), tell it too: their items count as up to 20
        items of this batch, each by its `unknown`. The share is a prior: where two populations can be told apart, the
        batch overcomes it. As many items are rejected as are then expected to be unknown, but so few that at most 15%
        of the known items are expected among them. Labels stay the same, unless nothing is unknown. By default handful
        rejects items only where the batch itself is evidence for unknown ones.

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
    new_classes: Any
    sequence: Any
    pool: Any
    order: Any
    coarse: Any
    expect_unknown: Any


def no_argument(name: str, entries: type, others: Iterable[str] = ()) -> OptionError:
    """Return the error for an argument that is no entry of `Known`, or of another TypedDict of what is known.

    `others` are arguments that may have been meant.
    """
    alike = did_you_mean(name, [*entries.__annotations__, *others])
    listed = ", ".join(entries.__annotations__)
    return OptionError(f"there is no argument {name!r}{alike}; what is known about a batch is given as {listed}")


def checked(known: Mapping[str, Any]) -> Known:
    """Refuse arguments that do not exist; what is None is left out, and so is `pool=False`."""
    if unknown := set(known) - set(Known.__annotations__):
        raise no_argument(min(unknown), Known)
    left_out = {name for name, value in known.items() if value is None or (name == "pool" and value is False)}
    return cast(Known, {name: value for name, value in known.items() if name not in left_out})


class BatchContexts:
    """What is known about every group, in the terms of the model; what contradicts itself is refused.

    Parameters
    ----------
    known : Known
        As the caller gave it.
    classes : ndarray [class]
        All classes.
    n_items : int
        Number of items.
    groups : [row], [row, column] or None
        The group of each item.
    given : ndarray [item] or None
        Class of each item that has one for certain, -1 for all others; from the number of classes on it has no name.
    new : ndarray [class] or None
        Classes that a person named in this batch: `prior` and `candidates` are about the others.
    excluded : ndarray [item] or None
        Items that have none of the classes and say nothing about others: left out of everything.
    several : bool
        Whether an item may hold several classes.
    settings : Settings
        Numbers of the model.
    """

    def __init__(
        self,
        known: Known,
        classes: npt.NDArray[Any],
        n_items: int,
        groups: Any = None,
        given: Int[np.ndarray, "item"] | None = None,
        *,
        new: Bool[np.ndarray, "class"] | None = None,
        excluded: Bool[np.ndarray, "item"] | None = None,
        several: bool = False,
        settings: Settings = DEFAULT,
    ) -> None:
        if groups is None and ("pool" in known or "order" in known):
            raise OptionError("pool and order need groups, and there are none; give the argument groups")
        if several and "sequence" in known:
            raise OptionError("sequence says that items have one class, and several says that they may have more")
        if several and "coarse" in known:
            raise OptionError("the probabilities of several classes per item cannot be added up; leave coarse out")
        self.classes = classes
        self.groups: npt.NDArray[Any] | None
        self.group_of: Int[np.ndarray, "item"]
        self.groups, self.group_of = (
            (None, np.zeros(n_items, np.int64)) if groups is None else column_of(groups, n_items, "groups")
        )
        candidates = known.get("candidates")
        by_item = is_by_item(candidates, classes)
        self.allowed = allowed_of(candidates, classes, n_items) if by_item else None
        if self.allowed is not None and new is not None:
            self.allowed |= new
        weights = None
        if "prior" in known or (candidates is not None and not by_item):
            weights = weights_of(known.get("prior"), None if by_item else candidates, classes, self.groups, new)
        n_groups = 1 if self.groups is None else len(self.groups)
        self.prior: Prior | None = None if weights is None else prior_of(weights, n_groups, settings)
        self.siblings: Siblings | None = None
        if "pool" in known or "order" in known:
            self.siblings = siblings_of(known.get("pool"), known.get("order"), n_items, self.group_of)
        self.coarse = coarse_names(known["coarse"], classes) if "coarse" in known else None
        self.unknown_share: Float[np.ndarray, "group two"] | None = None
        if "expect_unknown" in known:
            self.unknown_share = shares_of(known["expect_unknown"], self.groups)
        self.given = given
        self.excluded = excluded
        self._refuse_none()
        self._refuse_impossible("row", range(n_items), np.arange(n_items))
        self.sequence_of: Int[np.ndarray, "item"] | None = None
        self._sequences: list[Any] = []
        if "sequence" in known:
            self._take_sequences(*sequences_of(known["sequence"], n_items))
        self._refuse_excluded()

    def of_group(self, place: int, rows: Int[np.ndarray, "some"]) -> Knowledge:
        """Return what is known about the items of one group."""
        return Knowledge(
            prior=None if self.prior is None else self.prior.of_batches(slice(place, place + 1)),
            allowed=None if self.allowed is None else self.allowed[rows][None],
            labels=None if self.given is None else FixedLabels.of(self.given[rows]),
            share=None if self.unknown_share is None else ToldShare.of(self.unknown_share[place]),
        )

    def of(self, items: Sequence[int], classes: Sequence[int]) -> BatchContexts:
        """Return what is known about some of the items and classes, in this order, for instance all that can be read.

        What is known about a sequence stays, though some of its items are left out.
        """
        if len(items) == len(self.group_of) and list(classes) == list(range(len(self.classes))):
            return self
        same = copy(self)
        rows = np.asarray(items, np.int64)
        left = np.asarray(classes, np.int64)
        places, same.group_of = np.unique(self.group_of[rows], return_inverse=True)
        same.classes = self.classes[left]
        same.groups = None if self.groups is None else self.groups[places]
        same.coarse = None if self.coarse is None else self.coarse[left]
        same.allowed = None if self.allowed is None else self.allowed[np.ix_(rows, left)]
        same.sequence_of = None if self.sequence_of is None else self.sequence_of[rows]
        same.siblings = None if self.siblings is None else self.siblings.of(places)
        same.unknown_share = None if self.unknown_share is None else self.unknown_share[places]
        if self.prior is not None:
            weights = self.prior.shares[np.ix_(places, left)]
            if not weights.any(1).all():
                raise OptionError("no class is left: prior or candidates exclude all that could be read")
            same.prior = Prior.of(weights, self.prior.concentration[places])
        same.excluded = None if self.excluded is None else self.excluded[rows]
        if self.given is not None:
            # Classes without a name stay the last ones.
            n_unnamed = max(int(self.given.max()) + 1 - len(self.classes), 0)
            new = np.full(len(self.classes) + n_unnamed, -1)
            new[left] = np.arange(len(left))
            new[len(self.classes) :] = len(left) + np.arange(n_unnamed)
            given = self.given[rows]
            same.given = np.where(given >= 0, new[given], given)
        same._refuse_impossible("row", items, np.arange(len(rows)))
        return same

    def labels_of(self, items: Iterable[int]) -> dict[int, int | None]:
        """Return the classes of items that were given one, as positions; None for none of the classes."""
        if self.given is None:
            return {}
        codes = {item: int(self.given[item]) for item in items}
        return {item: code if code < len(self.classes) else None for item, code in codes.items()}

    def with_given(self, given: Int[np.ndarray, "item"] | None) -> BatchContexts:
        """Return the same with other classes given; those of one item of a sequence hold for all of them."""
        same = copy(self)
        same.given = given
        if given is not None and self.sequence_of is not None:
            same.given = given_to_all(given, len(self.classes), self._sequences, self.sequence_of)
        return same

    def excluding(self, items: Collection[int]) -> BatchContexts:
        """Return the same with more items left out of everything."""
        if not items:
            return self
        same = copy(self)
        same.excluded = np.zeros(len(self.group_of), dtype=bool) if self.excluded is None else self.excluded.copy()
        same.excluded[sorted(items)] = True
        return same

    def _take_sequences(self, names: list[Any], sequence_of: Int[np.ndarray, "item"]) -> None:
        """Say of all items of a sequence what is known about one of them."""
        self.sequence_of = sequence_of
        self._sequences = names
        _refuse_several_groups(names, sequence_of, self.groups, self.group_of)
        self.allowed = None if self.allowed is None else allowed_for_all(self.allowed, sequence_of)
        self.given = None if self.given is None else given_to_all(self.given, len(self.classes), names, sequence_of)
        self._refuse_impossible("sequence", names, sequence_of)

    def _refuse_none(self) -> None:
        """Refuse items that are none of the classes in a batch that is said to have no such item."""
        if self.given is None or self.unknown_share is None:
            return
        nothing_unknown = self.unknown_share[self.group_of, 0] == 0
        wrong = np.flatnonzero((self.given >= len(self.classes)) & nothing_unknown)
        if len(wrong):
            raise OptionError(
                f"given says that row {wrong[0]} belongs to none of the classes{_more(len(wrong), 'row')}, and "
                "expect_unknown=0 that every item has a class; correct one of them"
            )

    def _refuse_impossible(self, what: str, names: Sequence[Any], of: Int[np.ndarray, "item"]) -> None:
        """Refuse items that can have no class, by the name of their row or sequence."""
        if self.allowed is None:
            return
        possible = self.allowed
        if self.prior is not None:
            possible = possible & self.prior.possible[self.group_of]
        lost = np.unique(of[~possible.any(1)])
        if len(lost):
            by = "candidates" if self.prior is None or not self.allowed.any(1).all() else "prior and candidates"
            raise OptionError(
                f"{by} leave no class for {what} {names[lost[0]]!r}{_more(len(lost), what)}; correct them"
            )

    def _refuse_excluded(self) -> None:
        """Refuse labels of a person that prior or candidates rule out."""
        if self.given is None:
            return
        rows = np.flatnonzero((self.given >= 0) & (self.given < len(self.classes)))
        if len(rows) == 0:
            return
        own = self.given[rows]
        excluded = np.zeros(len(rows), bool) if self.allowed is None else ~self.allowed[rows, own]
        if self.prior is not None:
            excluded |= ~self.prior.possible[self.group_of[rows], own]
        if excluded.any():
            first = int(np.flatnonzero(excluded)[0])
            raise LabelError(
                f"row {rows[first]} was given {self.classes.tolist()[own[first]]!r}, a class that prior or candidates "
                f"exclude for it{_more(int(excluded.sum()), 'row')}; correct one of them"
            )


def _more(n: int, what: str) -> str:
    return "" if n == 1 else f", and for {n - 1:,} more {what}{'s' if n > 2 else ''}"


def _refuse_several_groups(
    names: list[Any],
    sequence_of: Int[np.ndarray, "item"],
    groups: npt.NDArray[Any] | None,
    group_of: Int[np.ndarray, "item"],
) -> None:
    """Refuse sequences that have items in several groups, which are labelled separately."""
    if groups is None:
        return
    first = np.empty(len(names), np.int64)
    first[sequence_of[::-1]] = group_of[::-1]
    elsewhere = np.flatnonzero(group_of != first[sequence_of])
    if len(elsewhere):
        n = len(np.unique(sequence_of[elsewhere]))
        item = int(elsewhere[0])
        places = [groups.tolist()[place] for place in (first[sequence_of[item]], group_of[item])]
        also = "" if n == 1 else f", and {n - 1:,} more {'sequence spans' if n == 2 else 'sequences span'} groups"
        raise OptionError(
            f"sequence {names[sequence_of[item]]!r} has items in the groups {places[0]!r} and {places[1]!r}{also}; "
            "groups are labelled separately, and a sequence has one class. If its numbers start again in every group, "
            "name the columns of both: sequence=['site', 'number'] (--sequence site --sequence number)"
        )


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
            if not len(row):
                raise OptionError(f"item {place} has no candidate; list its classes, or give None for all classes")
            weights = weights_of(None, row, classes, None)
            assert weights is not None
            allowed[place] = weights[0] > 0
    return allowed
