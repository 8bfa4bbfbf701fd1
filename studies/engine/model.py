"""Label a batch: `S = z Wᵀ + b`, its place, the classes present, class means that move once, and the classes again.

This file is the model from end to end; every step is one call. The only product of items and classes is in `scores`.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from engine.place import place
from engine.positions import gains
from engine.presence import class_noise, present

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Classes:
    """What is known about the classes: a linear head and their means, about one origin.

    Attributes
    ----------
    weights, offsets
        W [class, dim] and b [class]; scores are nats under equal shares of all classes.
    means, shots
        Mean [class, dim] and number of the examples of each class.
    spread
        Mean squared distance of an example from the mean of its class; None if there are too few examples.
    """

    weights: Floats
    offsets: Floats
    means: Floats
    shots: Floats
    spread: float | None

    @cached_property
    def noise(self) -> Floats:
        """Noise of each class, for the chains."""
        return class_noise(self.means)

    def scores(self, points: Floats) -> Floats:
        """`S_nk`, [item, class]."""
        return np.asarray(points @ self.weights.T + self.offsets)


class JointLabels(NamedTuple):
    """The answer for one batch."""

    probabilities: Floats  # [item, class]
    presence: Floats  # [class]
    natural: float  # chance that the sizes of the classes are too uneven to label jointly
    offset: Floats  # [dim], of the batch


def label(points: Floats, classes: Classes, log_weights: Floats | None = None) -> JointLabels:
    """Label the items [item, dim] of one batch jointly.

    `log_weights` [class] is what is known about the classes of the batch in advance, in nats; -inf rules a class out.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> means = rng.normal(size=(30, 16))
    >>> classes = Classes(means, -(means**2).sum(1) / 2, means, np.full(30, 5.0), spread=16.0)
    >>> truth = np.repeat([2, 11, 17], 8)
    >>> found = label(means[truth] + rng.normal(size=(24, 16)), classes)
    >>> bool((found.probabilities.argmax(1) == truth).mean() > 0.9), np.flatnonzero(found.presence > 0.5).tolist()
    (True, [2, 11, 17])
    """
    scores = classes.scores(points)
    if log_weights is not None:
        scores = scores + log_weights
    head = (classes.weights, classes.means, classes.shots, classes.spread)
    where = place(points, scores, *head)
    scores, inside = scores + where.tilts, points - where.offset
    first = present(scores, classes.shots, classes.noise)
    moved = gains(inside, first.given, *head)
    found = present(scores + (1 - first.natural) * moved, classes.shots, classes.noise)
    return JointLabels(found.probabilities, found.presence, found.natural, where.offset)
