"""Inference: the joint answer about one batch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from handful.catalogue import Catalogue
from handful.dispatch import solve
from handful.estimators.diagnostics import Diagnostic, collapsed, diagnose, not_converged
from handful.inference.frame import Frame
from handful.inference.new_groups import NewGroup
from handful.inference.open_roll_call import label_open
from handful.inference.prior import Prior
from handful.methods.roll_call import RollCallOptions
from handful.numerics.distances import half_squared_distances
from handful.shapes import Float
from handful.task import TaskBatch

# A class is present if its chance of being present is at least this.
PRESENT = 0.5


@dataclass(frozen=True, eq=False)
class Proposal:
    """Items of a batch that look like one class that the catalogue does not have.

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

    >>> from handful.estimators import PaddleClassifier
    >>> rng = np.random.default_rng(0)
    >>> centres = rng.normal(size=(31, 24))
    >>> X, y = centres[:30].repeat(5, axis=0) + 0.4 * rng.normal(size=(150, 24)), np.arange(30).repeat(5)
    >>> batch = centres[[3] * 12 + [7] * 12 + [30] * 12] + 0.4 * rng.normal(size=(36, 24))
    >>> classifier = PaddleClassifier().fit(X, y)
    >>> (proposal,) = classifier.infer(batch).proposals
    >>> sorted(proposal.items.tolist()) == list(range(24, 36))
    True
    >>> classifier.add_classes(batch[proposal.items], [30] * proposal.size).predict(batch[24:]).tolist() == [30] * 12
    True
    """

    items: npt.NDArray[np.int64]
    cohesion: float
    nearest: Any
    worth: float

    @classmethod
    def of(cls, group: NewGroup, classes: npt.NDArray[Any]) -> Proposal:
        """Name the nearest class."""
        return cls(group.items.cpu().numpy(), group.cohesion, classes[group.nearest], group.worth)

    @property
    def size(self) -> int:
        """Number of items."""
        return len(self.items)


@dataclass(frozen=True, eq=False)
class Inference:
    """The joint answer about one batch.

    `labels`, `probabilities` and `unknown` come in the container of the batch: an array for an array or a list; for a
    tensor a tensor on the same device (labels that are not numbers come as an array); for a frame of pandas a Series
    and a DataFrame with its index; for polars and Arrow their own. Everything else is a NumPy array.

    Attributes
    ----------
    labels : [item]
        The most probable class of each item, as one of the labels given to `fit`.
    probabilities : [item, class]
        `p_nk`, columns in the order of `classes_`.
    class_proportions, expected_counts : ndarray [class]
        Share of the batch, and number of its items, that each class is expected to hold: `Σ_n p_nk`. In a batch
        with unknown items, those of known ones: `Σ_n (1 - unknown_n) p_nk`.
    present_classes : ndarray
        Classes that are more likely present than not, those with most items first. Unknown items do not count.
    presence : ndarray [class]
        Chance that the class occurs at least once, in the order of `classes_`. With `roll_call`, calibrated on other
        data. With every other method `1 - Π_n (1 - p_nk)`, as if items were independent given their probabilities.
    n_iter, converged : int, bool
        Iterations taken, and whether the tolerance was met.
    joint_weight : float or None
        With `roll_call`, λ: the answer is λ times the joint one plus 1 - λ times that of each item alone. Zero where
        joint labels would not help. None for other methods.
    prior_weight : float or None
        With a prior, γ: how far the batch agrees with it, from 0, it contradicts the prior and was labelled without, to
        1. None without a prior.
    diagnostics : tuple of Diagnostic
        What looks wrong, with what it means and what to do; empty on an ordinary batch.
    unknown : [item]
        With `roll_call`, the chance that the item belongs to none of the classes. NaN if the catalogue cannot tell,
        because fewer than 20 of its examples could be left out or because it is too large to train on; and for all
        other methods.
    unknown_share, unknown_interval : float, tuple of float
        Mean of `unknown`, and an interval of 90 % for the share of unknown items in this batch. NaN and (0, 1)
        if the catalogue cannot tell.
    rejected : ndarray [item]
        Items that are rather unknown than known, if there is enough evidence that the batch has any (a Bayes factor of
        3). Without it none are rejected, and `labels` are the same as if nothing could be unknown.
    proposals : tuple of Proposal
        Groups of rejected items that look like classes of their own, those of most worth first.

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
    prior_weight: float | None
    diagnostics: tuple[Diagnostic, ...]
    unknown: Any
    unknown_share: float
    unknown_interval: tuple[float, float]
    rejected: npt.NDArray[np.bool_]
    proposals: tuple[Proposal, ...]


def inferred(
    catalogue: Catalogue,
    query: Float[Tensor, "item dim"],
    options: RollCallOptions,
    names: npt.NDArray[Any] | None = None,
    prior: Prior | None = None,
) -> Inference:
    """Label one batch against a fitted catalogue; labels as an array, probabilities as a tensor.

    `names` are the names of the classes, if they are not their labels.
    """
    opened = label_open(
        catalogue.against(query.unsqueeze(0), prior=prior),
        catalogue.strangers,
        max_iter=options.max_iter,
        tol=options.tol,
    )
    found = opened.called
    classes = catalogue.classes if names is None else names
    low, high = opened.interval[0].tolist()
    doubts = Doubts(
        opened.unknown[0].cpu().numpy(),
        (low, high),
        opened.rejected[0].cpu().numpy(),
        tuple(Proposal.of(group, classes) for group in opened.groups[0]),
        found.expected_counts[0].cpu().numpy(),
    )
    weight, n_iter, converged = float(found.joint_weight[0]), int(found.n_iter[0]), bool(found.converged[0])
    return answer(
        classes,
        found.log_probabilities[0].double().exp_(),
        found.presence[0].cpu().numpy(),
        weight,
        None if prior is None else float(found.prior_weight[0]),
        diagnose(
            catalogue.head,
            len(query),
            float(found.confidence[0].mean()),
            n_iter=n_iter,
            converged=converged,
        ),
        doubts,
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
        None,
        tuple(diagnostic for diagnostic in found if diagnostic is not None),
        Doubts(
            np.full(len(weights), np.nan), (0.0, 1.0), np.zeros(len(weights), bool), (), weights.sum(0).cpu().numpy()
        ),
        n_iter=n_iter,
        converged=converged,
    )


class Doubts(NamedTuple):
    """What is known about unknown items, and the counts of known ones."""

    unknown: npt.NDArray[np.float64]
    interval: tuple[float, float]
    rejected: npt.NDArray[np.bool_]
    proposals: tuple[Proposal, ...]
    counts: npt.NDArray[np.float64]


def answer(
    classes: npt.NDArray[Any],
    weights: Float[Tensor, "item class"],
    chances: npt.NDArray[np.float64],
    joint_weight: float | None,
    prior_weight: float | None,
    diagnostics: tuple[Diagnostic, ...],
    doubts: Doubts,
    *,
    n_iter: int,
    converged: bool,
) -> Inference:
    """Read an answer off the weights of the classes, which need not sum to one yet."""
    weights = weights / weights.sum(-1, keepdim=True)
    order = np.argsort(-doubts.counts, kind="stable")
    return Inference(
        labels=classes[weights.argmax(-1).cpu().numpy()],
        probabilities=weights,
        class_proportions=doubts.counts / len(weights),
        expected_counts=doubts.counts,
        present_classes=classes[order[chances[order] >= PRESENT]],
        presence=chances,
        n_iter=n_iter,
        converged=converged,
        joint_weight=joint_weight,
        prior_weight=prior_weight,
        diagnostics=diagnostics,
        unknown=doubts.unknown,
        unknown_share=float(doubts.unknown.mean()),
        unknown_interval=doubts.interval,
        rejected=doubts.rejected,
        proposals=doubts.proposals,
    )


def presence_if_independent(probabilities: Float[Tensor, "item class"]) -> Float[Tensor, "class"]:
    """`1 - Π_n (1 - p_nk)` of each class, through logarithms, so that many small probabilities add up accurately."""
    return torch.log1p(-probabilities.clamp(max=1)).sum(0).expm1().abs()
