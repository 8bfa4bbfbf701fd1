"""Inference: the joint answer about one batch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from handful.catalogue import Catalogue
from handful.dispatch import solve
from handful.estimators.diagnostics import Diagnostic, collapsed, diagnose, not_converged
from handful.inference.frame import Frame
from handful.inference.roll_call_stack import label
from handful.methods.roll_call import RollCallOptions
from handful.numerics.distances import half_squared_distances
from handful.shapes import Float
from handful.task import TaskBatch

# A class is present if its chance of being present is at least this.
PRESENT = 0.5


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
        Classes that are more likely present than not, those with most items first.
    presence : ndarray [class]
        Chance that the class occurs at least once, in the order of `classes_`. With `roll_call`, calibrated on other
        data. With every other method `1 - Π_n (1 - p_nk)`, as if items were independent given their probabilities.
    n_iter, converged : int, bool
        Iterations taken, and whether the tolerance was met.
    joint_weight : float or None
        With `roll_call`, λ: the answer is λ times the joint one plus 1 - λ times that of each item alone. Zero where
        joint labels would not help. None for other methods.
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
    joint_weight: float | None
    diagnostics: tuple[Diagnostic, ...]


def inferred(
    catalogue: Catalogue,
    query: Float[Tensor, "item dim"],
    options: RollCallOptions,
    names: npt.NDArray[Any] | None = None,
) -> Inference:
    """Label one batch against a fitted catalogue; labels as an array, probabilities as a tensor.

    `names` are the names of the classes, if they are not their labels.
    """
    found = label(catalogue.against(query.unsqueeze(0)), max_iter=options.max_iter, tol=options.tol)
    classes = catalogue.classes if names is None else names
    weight, n_iter, converged = float(found.joint_weight[0]), int(found.n_iter[0]), bool(found.converged[0])
    return answer(
        classes,
        found.log_probabilities[0].double().exp_(),
        found.presence[0].cpu().numpy(),
        weight,
        diagnose(
            catalogue.head,
            len(query),
            float(found.confidence[0].mean()),
            n_iter=n_iter,
            converged=converged,
        ),
        n_iter=n_iter,
        converged=converged,
    )


def of_solution(task: TaskBatch, method: str, options: dict[str, Any], classes: npt.NDArray[Any]) -> Inference:
    """Solve a single task with any method, and read the answer."""
    solution, frame = solve(method, task, **options), Frame(task)
    weights = solution.log_assignments[0].exp().double()
    n_iter, converged = int(solution.n_iter[0]), bool(solution.converged[0])
    nearest = half_squared_distances(frame.query, frame.support.mean())[0].argmin(-1)
    found = [not_converged(n_iter, converged), collapsed(weights.argmax(-1), nearest, classes)]
    return answer(
        classes,
        weights,
        presence_if_independent(weights).cpu().numpy(),
        None,
        tuple(diagnostic for diagnostic in found if diagnostic is not None),
        n_iter=n_iter,
        converged=converged,
    )


def answer(
    classes: npt.NDArray[Any],
    weights: Float[Tensor, "item class"],
    chances: npt.NDArray[np.float64],
    joint_weight: float | None,
    diagnostics: tuple[Diagnostic, ...],
    *,
    n_iter: int,
    converged: bool,
) -> Inference:
    """Read an answer off the weights of the classes, which need not sum to one yet."""
    weights = weights / weights.sum(-1, keepdim=True)
    counts = weights.sum(0).cpu().numpy()
    order = np.argsort(-counts, kind="stable")
    return Inference(
        labels=classes[weights.argmax(-1).cpu().numpy()],
        probabilities=weights,
        class_proportions=counts / len(weights),
        expected_counts=counts,
        present_classes=classes[order[chances[order] >= PRESENT]],
        presence=chances,
        n_iter=n_iter,
        converged=converged,
        joint_weight=joint_weight,
        diagnostics=diagnostics,
    )


def presence_if_independent(probabilities: Float[Tensor, "item class"]) -> Float[Tensor, "class"]:
    """`1 - Π_n (1 - p_nk)` of each class, through logarithms, so that many small probabilities add up accurately."""
    return torch.log1p(-probabilities.clamp(max=1)).sum(0).expm1().abs()
