"""Inference: what one batch says, jointly."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from handful.estimators.diagnostics import Diagnostic

# A class is called present when the batch is expected to hold at least this much of an item of it.
PRESENT_COUNT = 0.5


@dataclass(frozen=True, eq=False)
class Inference:
    """What one batch says, jointly.

    `labels` and `probabilities` come in the container of the batch: an array for an array or a list; for a tensor a
    tensor on the same device (labels that are no numbers come as an array); for a frame of pandas a Series and a
    DataFrame with its index; for polars and Arrow their own. What belongs to classes is always a NumPy array.

    Attributes
    ----------
    labels : [item]
        The most probable class of each item, as the labels given to `fit`.
    probabilities : [item, class]
        `p_nk`, columns in the order of `classes_`.
    class_proportions, expected_counts : ndarray [class]
        Share of the batch, and number of its items, that each class is expected to hold: `Σ_n p_nk`.
    present_classes : ndarray
        Classes with an expected count of at least one half, the largest first.
    presence : ndarray [class]
        `1 - Π_n (1 - p_nk)`: how sure it is that the class occurs at least once, items taken as independent once their
        probabilities are known. In the order of `classes_`.
    n_iter, converged : int, bool
        Iterations taken, and whether the tolerance was met.
    scale : float or None
        The c that calibration finds from the examples alone: c times the features, after the method's transform, have
        half squared distances in nats. What the method makes of it is its own affair. None for methods that find none.
    diagnostics : tuple of Diagnostic
        What looks wrong, with what it means and what to do; empty on an ordinary batch.

    Examples
    --------
    >>> from handful.estimators import PaddleClassifier
    >>> rng = np.random.default_rng(0)
    >>> centres = rng.normal(size=(20, 16))
    >>> X, y = centres.repeat(5, axis=0) + 0.7 * rng.normal(size=(100, 16)), np.arange(20).repeat(5)
    >>> batch = centres[[3] * 6 + [7] * 4] + 0.7 * rng.normal(size=(10, 16))
    >>> found = PaddleClassifier().fit(X, y).infer(batch)
    >>> found.present_classes.tolist(), found.expected_counts[[3, 7, 8]].round(1).tolist()
    ([3, 7], [6.0, 4.0, 0.0])
    >>> found.labels.tolist()
    [3, 3, 3, 3, 3, 3, 7, 7, 7, 7]
    """

    labels: Any
    probabilities: Any
    class_proportions: npt.NDArray[np.float64]
    expected_counts: npt.NDArray[np.float64]
    present_classes: npt.NDArray[Any]
    presence: npt.NDArray[np.float64]
    n_iter: int
    converged: bool
    scale: float | None
    diagnostics: tuple[Diagnostic, ...]


def presence(probabilities: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """`1 - Π_n (1 - p_nk)` of each class, by way of logarithms: small chances of many items add up without rounding."""
    with np.errstate(divide="ignore"):  # p = 1: the class is there for certain
        chances: npt.NDArray[np.float64] = np.abs(np.expm1(np.log1p(-np.minimum(probabilities, 1)).sum(0)))
    return chances
