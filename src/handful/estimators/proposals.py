"""Proposals: unknown items that belong together, as classes to be named."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from handful.model.links import NewGroup


@dataclass(frozen=True, eq=False)
class Proposal:
    """Items of a batch that look like one class missing from the catalogue.

    Attributes
    ----------
    items : ndarray [size]
        Positions in the batch, the most typical first.
    cohesion : float
        Mean chance that two of the items share a class.
    nearest : label
        The known class that describes them best.
    worth : float
        Expected number of unknown items among them, times the cohesion.

    Examples
    --------
    Once a person has named it, a proposal is a class:

    >>> from handful.estimators import BatchClassifier
    >>> rng = np.random.default_rng(0)
    >>> centres = rng.normal(size=(31, 24))
    >>> X, y = centres[:30].repeat(5, axis=0) + 0.4 * rng.normal(size=(150, 24)), np.arange(30).repeat(5)
    >>> batch = centres[[3] * 12 + [7] * 12 + [30] * 12] + 0.4 * rng.normal(size=(36, 24))
    >>> classifier = BatchClassifier().fit(X, y)
    >>> (proposal,) = classifier.infer(batch).proposals
    >>> sorted(proposal.items.tolist()) == list(range(24, 36))
    True
    >>> grown = classifier.partial_fit(batch[proposal.items], [30] * proposal.size, [30])
    >>> grown.predict(batch[24:]).tolist() == [30] * 12
    True
    """

    items: npt.NDArray[np.int64]
    cohesion: float
    nearest: Any
    worth: float

    @classmethod
    def of(cls, group: NewGroup, classes: npt.NDArray[Any]) -> Proposal:
        """Name the nearest class."""
        return cls(group.items, group.cohesion, classes[group.nearest], group.worth)

    @property
    def size(self) -> int:
        """Number of items."""
        return len(self.items)
