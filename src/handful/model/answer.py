"""The answer about one batch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from handful.model.arrays import Bools, Doubles, Floats, Ints
from handful.model.labels import ItemLabels, NamedLabels
from handful.model.links import NewGroup
from handful.model.summary import BatchSummary


@dataclass(frozen=True, eq=False)
class JointAnswer:
    """The answer about one batch.

    Attributes
    ----------
    probabilities
        q [item, class], as if every item had a class.
    confidence
        [item], the largest probability under the head, before anything is learned from the batch.
    expected_counts, presence
        [class], expected number of items, unknown ones apart, and the chance that there is one.
    joint_weight
        Chance that few classes with about equal shares describe the batch; else each item is labelled alone.
    prior_weight
        γ: how far the weights of the classes hold.
    unknown, interval
        Chance of each item to belong to no class, NaN if the catalogue cannot tell; and an interval for their share.
    unnamed
        [item], the class without a name that a person opened and that the item likely has; -1 for all others.
    limit
        Chance above which an item is rejected.
    groups
        Unknown items that belong together.
    """

    probabilities: Floats
    confidence: Floats
    expected_counts: Doubles
    presence: Doubles
    joint_weight: float
    prior_weight: float
    unknown: Doubles
    unnamed: Ints
    interval: tuple[float, float]
    limit: float
    groups: list[NewGroup] = field(default_factory=list)

    @classmethod
    def of(
        cls,
        labels: ItemLabels,
        named: NamedLabels,
        summary: BatchSummary,
        batch: int = 0,
        groups: Sequence[NewGroup] = (),
    ) -> JointAnswer:
        """Make that of one batch."""
        low, high = summary.interval[batch]
        nothing = np.full(labels.confidence.shape[1], np.nan)
        return cls(
            probabilities=named.probabilities[batch],
            confidence=labels.confidence[batch],
            expected_counts=summary.expected_counts[batch],
            presence=summary.presence[batch],
            joint_weight=float(summary.joint_weight[batch]),
            prior_weight=float(summary.decision.tilts.prior_weight[batch]),
            unknown=nothing if named.unknown is None else named.unknown[batch].astype(np.float64),
            unnamed=named.unnamed[batch],
            interval=(float(low), float(high)),
            limit=float(summary.limit[batch]),
            groups=list(groups),
        )

    def with_excluded(self, excluded: Bools) -> JointAnswer:
        """Put items that were left out back to their places: they are unknown, and count for nothing."""
        n_items = len(excluded)
        if excluded.all():
            nothing = np.zeros_like(self.presence)
            same = replace(self, expected_counts=nothing, presence=nothing, groups=[])
            return replace(same, unknown=np.ones(n_items), interval=(1.0, 1.0))
        places = np.flatnonzero(~excluded)

        def put(values: npt.NDArray[Any], other: float) -> npt.NDArray[Any]:
            table = np.full((n_items, *values.shape[1:]), other, values.dtype)
            table[places] = values
            return table

        share = float(excluded.mean())
        low, high = (share + (1 - share) * end for end in self.interval)
        return replace(
            self,
            probabilities=put(self.probabilities, 1 / self.probabilities.shape[1]),
            confidence=put(self.confidence, float(self.confidence.mean())),
            unknown=put(self.unknown, 1.0),
            unnamed=put(self.unnamed, -1),
            interval=(low, high),
            groups=[group._replace(items=places[group.items]) for group in self.groups],
        )

    @property
    def rejected(self) -> Bools:
        """Items above the limit."""
        return np.asarray(self.unknown > self.limit)
