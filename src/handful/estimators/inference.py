"""Inference: the joint answer about one batch."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from handful.catalogue import Catalogue
from handful.catalogue.usual import Usual
from handful.dispatch import solve
from handful.estimators.diagnostics import Alone, Diagnostic, diagnose
from handful.inference.calibration import squared_scale
from handful.inference.frame import Frame
from handful.inference.stack import label
from handful.methods.calibrated_paddle import CalibratedPaddleOptions
from handful.numerics.distances import half_squared_distances
from handful.shapes import Float, Int
from handful.task import TaskBatch

# A class is present if its expected count in the batch is at least this.
PRESENT_COUNT = 0.5


@dataclass(frozen=True, eq=False)
class Inference:
    """The joint answer about one batch.

    `labels` and `probabilities` come in the container of the batch: an array for an array or a list; for a tensor a
    tensor on the same device (labels that are not numbers come as an array); for a frame of pandas a Series and a
    DataFrame with its index; for polars and Arrow their own. What belongs to classes is always a NumPy array.

    Attributes
    ----------
    labels : [item]
        The most probable class of each item, as one of the labels given to `fit`.
    probabilities : [item, class]
        `p_nk`, columns in the order of `classes_`.
    class_proportions, expected_counts : ndarray [class]
        Share of the batch, and number of its items, that each class is expected to hold: `Σ_n p_nk`.
    present_classes : ndarray
        Classes with an expected count of at least one half, the largest first.
    presence : ndarray [class]
        `1 - Π_n (1 - p_nk)`: the probability that the class occurs at least once, if items are independent given their
        probabilities. In the order of `classes_`.
    n_iter, converged : int, bool
        Iterations taken, and whether the tolerance was met.
    scale : float or None
        The c that calibration finds from the examples alone: c times the features, after the method's transform, have
        half squared distances in nats. Methods use it in different ways. None for methods that find none.
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


def inferred(
    catalogue: Catalogue,
    query: Float[Tensor, "item dim"],
    options: CalibratedPaddleOptions,
    names: npt.NDArray[Any] | None = None,
) -> Inference:
    """Label one batch against a fitted catalogue; labels as an array, probabilities as a tensor.

    `names` are the names of the classes, if they are not their labels.
    """
    batches = catalogue.against(query.unsqueeze(0))
    found = label(batches, max_iter=options.max_iter, tol=options.tol)
    group = found.groups[0]
    log_u, points = found.log_assignments[0], batches.points[0]
    # If few classes are left, the others hold next to nothing: their exponentials are skipped.
    columns = None if bool(group.state.spread_out[0]) else group.classes[0]
    return _inference(
        catalogue.classes if names is None else names,
        (log_u if columns is None else log_u[:, columns]).double().exp_(),
        columns,
        Alone(lambda: batches.nearest()[1][0], (0.5 * points.square().sum(-1) - found.highest[0]).clamp_(min=0)),
        catalogue.usual,
        float(batches.squared_scale[0]),
        n_iter=int(group.state.n_iter[0]),
        converged=bool(group.state.converged[0]),
    )


def of_solution(task: TaskBatch, method: str, options: dict[str, Any], classes: npt.NDArray[Any]) -> Inference:
    """Solve a single task with any method, and read the answer."""
    solution, frame = solve(method, task, **options), Frame(task)
    halves = half_squared_distances(frame.query, frame.support.mean())[0]
    return _inference(
        classes,
        solution.log_assignments[0].exp().double(),
        None,
        Alone(lambda: halves.argmin(-1), halves.amin(-1)),
        Usual.of(frame),
        float(squared_scale(frame)[0]) if method == "calibrated_paddle" else None,
        n_iter=int(solution.n_iter[0]),
        converged=bool(solution.converged[0]),
    )


def _inference(
    classes: npt.NDArray[Any],
    weights: Float[Tensor, "item column"],
    columns: Int[Tensor, "column"] | None,
    alone: Alone,
    usual: Usual,
    square: float | None,
    *,
    n_iter: int,
    converged: bool,
) -> Inference:
    """Read an answer off the weights of the classes that have a column, or of all; they need not sum to one yet."""
    weights = weights / weights.sum(-1, keepdim=True)
    labels = weights.argmax(-1)
    counts, chances = (values.cpu().numpy() for values in (weights.sum(0), presence(weights)))
    probabilities = weights
    if columns is not None:
        labels, places = columns[labels], columns.cpu().numpy()
        probabilities = weights.new_zeros(len(weights), len(classes)).index_copy_(1, columns, weights)
        counts, chances = _spread_over(len(classes), places, counts), _spread_over(len(classes), places, chances)
    order = np.argsort(-counts, kind="stable")
    return Inference(
        labels=classes[labels.cpu().numpy()],
        probabilities=probabilities,
        class_proportions=counts / len(weights),
        expected_counts=counts,
        present_classes=classes[order[counts[order] >= PRESENT_COUNT]],
        presence=chances,
        n_iter=n_iter,
        converged=converged,
        scale=None if square is None else math.sqrt(square),
        diagnostics=diagnose(labels, classes, alone, usual, square, n_iter=n_iter, converged=converged),
    )


def presence(probabilities: Float[Tensor, "item class"]) -> Float[Tensor, "class"]:
    """`1 - Π_n (1 - p_nk)` of each class, through logarithms, so that many small probabilities add up accurately."""
    return torch.log1p(-probabilities.clamp(max=1)).sum(0).expm1().abs()


def _spread_over(n: int, places: npt.NDArray[np.int64], values: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Return the values in their places among n zeros."""
    whole = np.zeros(n)
    whole[places] = values
    return whole
