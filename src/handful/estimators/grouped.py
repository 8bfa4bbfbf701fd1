"""Many batches at once: every group of rows is one joint batch, all against the same classes.

What a group is labelled does not depend on the other groups, unless they are pooled (`handful.engine.pooling`): then
all are labelled once alone, and again with what their siblings hold as a prior.

One long file: it is one value with its tables, and half of it documents fields.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from handful.engine.head import LinearHead
from handful.engine.model import JointAnswer
from handful.engine.prior import Prior
from handful.errors import LabelError
from handful.estimators.answer_tables import (
    MOST_LINES,
    Top,
    aligned,
    are_doubtful,
    as_array,
    columns_of_items,
    counted,
    listed,
    top_of,
)
from handful.estimators.batches import GroupedItems, by_group
from handful.estimators.columns import column_of
from handful.estimators.containers import container_of
from handful.estimators.diagnostics import diagnose
from handful.estimators.inference import PRESENT, UNJUDGED, Doubts, Inference, answer
from handful.estimators.pooling import Pooling, siblings_of
from handful.estimators.prior_weights import prior_of, weights_of
from handful.estimators.proposals import Proposal
from handful.shapes import Float, Int


@dataclass(frozen=True, eq=False)
class GroupedInference:
    """The joint answers about many batches.

    Attributes
    ----------
    labels, probabilities : [item], [item, class]
        As in `Inference`, in the order of the rows given.
    groups : ndarray [group]
        Distinct values of the column of groups, in increasing order.
    group_of : ndarray [item]
        Position in `groups` of each item's group.
    expected_counts, presence : ndarray [group, class]
        As in `Inference`, one row per group.
    joint_weight : ndarray [group]
        As in `Inference`.
    confidence : ndarray [group]
        Mean over the items of a group of the largest probability under the head.
    n_zero : ndarray [group]
        Vectors of zeros in each group, which say nothing about a class.
    unknown, rejected : [item], ndarray [item]
        As in `Inference`, in the order of the rows given.
    unknown_interval : ndarray [group, 2]
        As in `Inference`, one row per group.
    unknown_reason : str or None
        As in `Inference`, the same for all groups.
    proposals : tuple of tuple of Proposal
        As in `Inference`, one entry per group. Items are positions within the group.
    classes : ndarray [class]
        Labels of the classes, in the order of all columns.
    head : LinearHead or None
        What the groups were compared with; None if another model gave the scores.
    several : bool
        Whether an item may hold several classes, see `handful.infer_scores`; then `probabilities` are those of each
        class by itself.
    prior_weight : ndarray [group] or None
        As in `Inference`; what siblings hold is a prior too.
    pooling : Pooling or None
        Whether groups were labelled with the help of their siblings, and what it gained.

    `found[group]` is the `Inference` about one group, with its diagnostics.

    Examples
    --------
    >>> from handful.estimators import PaddleClassifier
    >>> rng = np.random.default_rng(0)
    >>> centres = rng.normal(size=(20, 16))
    >>> X, y = centres.repeat(5, axis=0) + 0.7 * rng.normal(size=(100, 16)), np.arange(20).repeat(5)
    >>> truth = np.array([3] * 6 + [7] * 4 + [11] * 5)
    >>> site = np.array(["marsh"] * 10 + ["wood"] * 5)
    >>> order = rng.permutation(15)
    >>> batch = centres[truth[order]] + 0.7 * rng.normal(size=(15, 16))
    >>> found = PaddleClassifier().fit(X, y).infer(batch, groups=site[order])
    >>> {str(name): found[name].present_classes.tolist() for name in found.groups}
    {'marsh': [3, 7], 'wood': [11]}
    >>> bool((found.labels == truth[order]).all())
    True
    """

    labels: Any
    probabilities: Any
    groups: npt.NDArray[Any]
    group_of: Int[np.ndarray, "item"]
    expected_counts: Float[np.ndarray, "group class"]
    presence: Float[np.ndarray, "group class"]
    joint_weight: Float[np.ndarray, "group"]
    confidence: Float[np.ndarray, "group"]
    n_zero: Int[np.ndarray, "group"]
    unknown: Any
    rejected: npt.NDArray[np.bool_]
    unknown_interval: Float[np.ndarray, "group 2"]
    unknown_reason: str | None
    proposals: tuple[tuple[Proposal, ...], ...]
    classes: npt.NDArray[Any]
    head: LinearHead | None
    several: bool
    prior_weight: Float[np.ndarray, "group"] | None
    pooling: Pooling | None

    def __len__(self) -> int:
        """Return the number of groups."""
        return len(self.groups)

    def __repr__(self) -> str:
        groups, items = counted(len(self), "group", "groups"), counted(len(self.group_of), "item", "items")
        present = int((self.presence >= PRESENT).any(0).sum())
        classes = counted(len(self.classes), "class", "classes")
        judged = "" if self.unknown_reason is None else f", {UNJUDGED}"
        return f"GroupedInference({groups}, {items}, {present:,} of {classes} present in some group{judged})"

    def top(self, k: int = 3) -> Top:
        """Return the k most probable classes of every item, with their probabilities; see `Inference.top`.

        Parameters
        ----------
        k : int
            How many; all if the catalogue has fewer.

        Returns
        -------
        Top
            `labels` and `probabilities`, [item, k], in the order of the rows given.

        Examples
        --------
        >>> from handful.estimators import PaddleClassifier
        >>> X, y = [[0.0, 1.0], [0.1, 1.0], [1.0, 0.0], [1.0, 0.1]], ["up", "up", "right", "right"]
        >>> found = PaddleClassifier().fit(X, y).infer([[0.0, 2.0], [3.0, 0.1]], groups=["a", "b"])
        >>> found.top(2).labels.tolist()
        [['up', 'right'], ['right', 'up']]
        """
        return top_of(as_array(self.probabilities), self.classes, k)

    def to_frame(self) -> Any:
        """Return one row per item, as a table; see `Inference.to_frame`.

        Returns
        -------
        DataFrame or Table
            With the group of each item in a column `group`, before the others.

        Examples
        --------
        >>> from handful.estimators import PaddleClassifier
        >>> X, y = [[0.0, 1.0], [0.1, 1.0], [1.0, 0.0], [1.0, 0.1]], ["up", "up", "right", "right"]
        >>> found = PaddleClassifier().fit(X, y).infer([[0.0, 2.0], [3.0, 0.1]], groups=["a", "b"])
        >>> found.to_frame()[["group", "label"]].to_numpy().tolist()
        [['a', 'up'], ['b', 'right']]
        """
        columns = columns_of_items(as_array(self.probabilities), self.classes, as_array(self.unknown), self.rejected)
        columns = {"group": self.groups[self.group_of], **columns}
        return container_of(self.probabilities).frame(columns, self.probabilities)

    def by_class(self) -> Any:
        """Return one row per group and class present there, as a table; the classes with most items come first.

        Returns
        -------
        DataFrame or Table
            As in `Inference.by_class`, with the group in a column `group`, before the others.

        Examples
        --------
        >>> from handful.estimators import PaddleClassifier
        >>> rng = np.random.default_rng(0)
        >>> centres = rng.normal(size=(20, 16))
        >>> X, y = centres.repeat(5, axis=0) + 0.7 * rng.normal(size=(100, 16)), np.arange(20).repeat(5)
        >>> batch = centres[[3] * 6 + [7] * 4 + [11] * 5] + 0.7 * rng.normal(size=(15, 16))
        >>> found = PaddleClassifier().fit(X, y).infer(batch, groups=["marsh"] * 10 + ["wood"] * 5)
        >>> print(found.by_class().round(1)[["group", "class", "expected_count"]])
           group  class  expected_count
        0  marsh      3             6.0
        1  marsh      7             4.0
        2   wood     11             5.0
        """
        places, codes = np.nonzero(self.presence >= PRESENT)
        counts = self.expected_counts[places, codes]
        order = np.lexsort((-counts, places))
        places, codes, counts = places[order], codes[order], counts[order]
        columns = {
            "group": self.groups[places],
            "class": self.classes[codes],
            "expected_count": counts,
            "proportion": counts / np.bincount(self.group_of, minlength=len(self))[places],
            "presence": self.presence[places, codes],
        }
        return container_of(self.probabilities).frame(columns, None)

    def summary(self) -> str:
        """Say in plain text what was found, one line per group.

        Returns
        -------
        str
            Of each group the items, the doubtful and the rejected ones, and the classes present, the largest first.

        Examples
        --------
        >>> from handful.estimators import PaddleClassifier
        >>> rng = np.random.default_rng(0)
        >>> centres = rng.normal(size=(20, 16))
        >>> X, y = centres.repeat(5, axis=0) + 0.7 * rng.normal(size=(100, 16)), np.arange(20).repeat(5)
        >>> batch = centres[[3] * 6 + [7] * 4 + [11] * 5] + 0.7 * rng.normal(size=(15, 16))
        >>> print(PaddleClassifier().fit(X, y).infer(batch, groups=["marsh"] * 10 + ["wood"] * 5).summary())
        2 groups, 15 items, 20 classes.
        group  items  doubtful  rejected  classes present
        marsh     10         0         0  3, 7
        wood       5         0         0  11
        """
        best = self.top(2).probabilities
        doubtful = are_doubtful(best[:, 0], best[:, 1] if best.shape[1] == 2 else np.zeros(len(best))) & ~self.rejected
        sizes, n_doubtful, n_rejected = (
            np.bincount(self.group_of, weights=weights, minlength=len(self)).astype(int)
            for weights in (None, doubtful, self.rejected)
        )
        shown = range(min(len(self), MOST_LINES))
        rejected = [f"{n_rejected[i]:,}" if self.unknown_reason is None else "not judged" for i in shown]
        table = aligned(
            [
                ["group", "items", "doubtful", "rejected"],
                *([str(self.groups[i]), f"{sizes[i]:,}", f"{n_doubtful[i]:,}", rejected[i]] for i in shown),
            ]
        )
        order = (np.argsort(-self.expected_counts[i], kind="stable") for i in shown)
        present = [
            listed(self.classes[codes[self.presence[i][codes] >= PRESENT]])
            for i, codes in zip(shown, order, strict=True)
        ]
        lines = [
            f"{counted(len(self), 'group', 'groups')}, {counted(len(self.group_of), 'item', 'items')}, "
            f"{counted(len(self.classes), 'class', 'classes')}.",
            *(f"{line}  {said}" for line, said in zip(table, ["classes present", *present], strict=True)),
        ]
        if len(self) > MOST_LINES:
            lines.append(f"And {len(self) - MOST_LINES:,} more groups, see by_class().")
        if self.unknown_reason is not None:
            lines.append(self.unknown_reason)
        return "\n".join(lines)

    def __getitem__(self, group: Any) -> Inference:
        """Return the answer about one group, in the container of the batch; items are in the order of the rows."""
        name = group.item() if isinstance(group, np.generic) else group
        if not isinstance(name, Hashable) or name not in self._places:
            raise LabelError(f"there is no group {group!r}; see groups for those that there are")
        place = self._places[name]
        rows = self._rows[place]
        labels, unknown, table = (
            container_of(column).rows(column, rows) for column in (self.labels, self.unknown, self.probabilities)
        )
        low, high = self.unknown_interval[place].tolist()
        doubts = Doubts(
            as_array(unknown),
            (low, high),
            self.rejected[rows],
            self.proposals[place],
            self.expected_counts[place],
            self.unknown_reason,
        )
        found = answer(
            self.classes,
            table if isinstance(table, Tensor) else torch.from_numpy(np.array(as_array(table), dtype=np.float64)),
            self.presence[place],
            float(self.joint_weight[place]),
            None if self.prior_weight is None else float(self.prior_weight[place]),
            diagnose(self.head, len(rows), float(self.confidence[place]), n_zero=int(self.n_zero[place])),
            doubts,
            several=self.several,
        )
        return replace(found, labels=labels, unknown=unknown, probabilities=table)

    @cached_property
    def _places(self) -> dict[Any, int]:
        """Position of each group."""
        return {name: place for place, name in enumerate(self.groups.tolist())}

    @cached_property
    def _rows(self) -> list[Int[np.ndarray, "item"]]:
        """Rows of each group."""
        sizes = np.bincount(self.group_of, minlength=len(self))
        return np.split(np.argsort(self.group_of, kind="stable"), np.cumsum(sizes)[:-1])


class Known(NamedTuple):
    """What the caller knows about groups: weights of classes, which groups are siblings, and their order."""

    prior: Any = None
    candidates: Any = None
    pool: Any = None
    order: Any = None


def priors_of(
    items: GroupedItems, names: npt.NDArray[Any], group_of: Int[np.ndarray, "item"], known: Known
) -> tuple[Prior | None, Pooling | None]:
    """Return the prior of every group: what the caller knows, and what siblings hold when labelled without it."""
    weights = weights_of(known.prior, known.candidates, items.classes, names)
    prior = None if weights is None else prior_of(weights, len(names))
    siblings = siblings_of(known.pool, known.order, len(items), group_of)
    if siblings is None:
        return prior, None
    counts, labels = np.zeros((2, len(names), len(items.classes)))
    for place, _, found in by_group(items, group_of, prior):
        counts[place] = found.expected_counts
        codes = found.probabilities.argmax(1)[~found.rejected]
        labels[place] = np.bincount(codes, minlength=len(items.classes))
    return siblings.prior(counts, labels, prior)


def inferred_by_group(items: GroupedItems, groups: Any, known: Known) -> GroupedInference:
    """Label every group jointly; labels as an array, probabilities as a tensor."""
    names, group_of = column_of(groups, len(items), "groups")
    prior, pooling = priors_of(items, names, group_of, known)
    probabilities, of_groups = np.empty((len(items), len(items.classes))), list[JointAnswer]()
    unknown, rejected = np.empty(len(items)), np.empty(len(items), dtype=bool)
    for _, rows, found in by_group(items, group_of, prior):
        probabilities[rows], unknown[rows], rejected[rows] = found.probabilities, found.unknown, found.rejected
        of_groups.append(replace(found, probabilities=found.probabilities[:0]))  # one copy of a large table
    if not items.several:
        probabilities /= probabilities.sum(-1, keepdims=True)
    return GroupedInference(
        labels=items.classes[probabilities.argmax(-1)],
        probabilities=torch.from_numpy(probabilities),
        groups=names,
        group_of=group_of,
        expected_counts=np.stack([found.expected_counts for found in of_groups]),
        presence=np.stack([found.presence for found in of_groups]),
        joint_weight=np.array([found.joint_weight for found in of_groups]),
        confidence=np.array([found.confidence.mean() for found in of_groups]),
        n_zero=np.bincount(group_of, weights=items.zero, minlength=len(names)).astype(np.int64),
        unknown=unknown,
        rejected=rejected,
        unknown_interval=np.array([found.interval for found in of_groups]),
        unknown_reason=items.unknown_reason,
        proposals=tuple(tuple(Proposal.of(group, items.classes) for group in found.groups) for found in of_groups),
        classes=items.classes,
        head=items.head,
        several=items.several,
        prior_weight=None if prior is None else np.array([found.prior_weight for found in of_groups]),
        pooling=pooling,
    )


def labels_by_group(items: GroupedItems, groups: Any, known: Known) -> tuple[npt.NDArray[Any], npt.NDArray[np.bool_]]:
    """Return the labels and the rejected items alone: probabilities are never held for all rows at once."""
    codes, rejected = np.empty(len(items), np.int64), np.empty(len(items), dtype=bool)
    names, group_of = column_of(groups, len(items), "groups")
    prior, _ = priors_of(items, names, group_of, known)
    for _, rows, found in by_group(items, group_of, prior):
        codes[rows], rejected[rows] = found.probabilities.argmax(1), found.rejected
    return items.classes[codes], rejected
