"""What batches are compared with: a head, what items of no class look like, and the settings."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from handful.model.arrays import Bools, Floats
from handful.model.head import LinearHead
from handful.model.means import class_slopes
from handful.model.settings import DEFAULT, Settings
from handful.model.unknown_of_catalogue import UnknownModel


@dataclass(frozen=True, eq=False)
class Reference:
    """What batches are compared with.

    The last `n_unnamed` classes of the head have no name: a person said of their examples that they are none of the
    others. They take part like all classes, and are unknown items in the answer.
    """

    head: LinearHead
    unknown_model: UnknownModel | None = None
    n_unnamed: int = 0
    settings: Settings = DEFAULT

    @property
    def n_classes(self) -> int:
        """Number of classes, with and without a name."""
        return len(self.head.weights)

    @property
    def n_named(self) -> int:
        """Number of classes that have a name."""
        return self.n_classes - self.n_unnamed

    @property
    def is_unnamed(self) -> Bools:
        """Which classes have no name, [class]."""
        return np.arange(self.n_classes) >= self.n_named

    @cached_property
    def slopes(self) -> Floats:
        """β of each class."""
        return class_slopes(self.head.weights, self.head.means)

    @cached_property
    def centre(self) -> Floats:
        """Centre of the class means."""
        return np.asarray(self.head.means.mean(0))

    @property
    def spread(self) -> float:
        """V; zero if the catalogue cannot tell."""
        return self.head.spread or 0.0

    @cached_property
    def lengths(self) -> Floats:
        """Squared length of each class mean, less noise."""
        return np.asarray((self.head.means**2).sum(1) - self.spread / self.head.mass)
