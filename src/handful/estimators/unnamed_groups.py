"""Groups without a name: what an answer has beside its classes where there is no catalogue."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from handful.shapes import Bool, Float, Int


@dataclass(frozen=True, eq=False)
class UnnamedGroups:
    """What belongs to an answer whose classes are the names said so far; items of groups without a name are rejected.

    Attributes
    ----------
    chances : ndarray [item, class]
        The chance of each item to have each class: those with a name, and then the groups without one.
    group : ndarray [item]
        The group without a name of each item, counted from 0; -1 if it has a name, or if a person said that it gets
        none, or if it looks like such an item.
    n_groups : int
        Number of groups without a name.
    unasked : ndarray [item]
        A number for each group of items that look alike and of which nobody has answered any: if one of them is not of
        the class that is nearest, none is. -1 for all other items.
    directions : ndarray [item, dim]
        Unit vectors of the items from the mean of the batch.
    even : float
        The cosine of these at which two items are as likely of one class as of two.
    """

    chances: Float[np.ndarray, "item all"]
    group: Int[np.ndarray, "item"]
    n_groups: int
    unasked: Int[np.ndarray, "item"]
    directions: Float[np.ndarray, "item dim"]
    even: float

    @property
    def not_named(self) -> Bool[np.ndarray, "item"]:
        """Items that are like nothing named so far."""
        return np.asarray(self.group >= 0)

    @property
    def chance_of_group(self) -> Float[np.ndarray, "item"]:
        """The chance of each item that is not named to belong to its group; 0 for all others."""
        own = self.chances.shape[1] - self.n_groups + self.group
        return np.asarray(np.where(self.not_named, self.chances[np.arange(len(own)), own], 0.0))
