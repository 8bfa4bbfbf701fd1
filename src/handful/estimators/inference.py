"""Inference: the joint answer about one batch.

One long file: it is one value with its tables, and half of it documents fields.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from handful.catalogue import Catalogue
from handful.engine.model import Context
from handful.engine.prior import Prior
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
    undecided,
)
from handful.estimators.containers import container_of
from handful.estimators.diagnostics import Diagnostic, collapsed, diagnose, not_converged
from handful.estimators.proposals import Proposal
from handful.fewshot.dispatch import solve
from handful.fewshot.numerics.distances import half_squared_distances
from handful.fewshot.solvers.frame import Frame
from handful.fewshot.task import TaskBatch
from handful.shapes import Bool, Float, Int

# A class is present if its chance of being present is at least this.
PRESENT = 0.5
# Said instead of a number of rejected items.
UNJUDGED = "unknown items not judged"


@dataclass(frozen=True, eq=False)
class Inference:
    """The joint answer about one batch.

    `labels`, `probabilities` and `unknown` come in the container of the batch: an array for an array or a list; for a
    tensor a tensor on the same device (labels that are not numbers come as an array); for a frame of pandas a Series
    and a DataFrame with its index; for polars and Arrow their own. Everything else is a NumPy array.

    Attributes
    ----------
    classes : ndarray [class]
        All classes: those of a catalogue in increasing order, those of scores in the order of their columns.
    labels : [item]
        The most probable class of each item, as one of the labels given to `fit`.
    probabilities : [item, class]
        `p_nk`, columns in the order of `classes`.
    class_proportions, expected_counts : ndarray [class]
        Share of the batch, and number of its items, that each class is expected to hold: `Σ_n p_nk`. In a batch
        with unknown items, those of known ones: `Σ_n (1 - unknown_n) p_nk`.
    present_classes : ndarray
        Classes that are more likely present than not, those with most items first. Unknown items do not count.
    presence : ndarray [class]
        Chance that the class occurs at least once, in the order of `classes`. With `roll_call`, that of its model,
        which takes items of one class to be wrong together. With every other method `1 - Π_n (1 - p_nk)`, as if items
        were independent given their probabilities.
    n_iter, converged : int, bool
        Iterations taken, and whether the tolerance was met. With `roll_call`, one and True: it does not iterate.
    joint_weight : float or None
        With `roll_call`, the chance that few classes with about equal shares describe the batch: the answer is that
        many times the joint one, and else that of each item alone. None for other methods.
    prior_weight : float or None
        With a prior, γ: how far the batch agrees with it, from 0 (it contradicts the prior and was labelled without it)
        to 1.
        None without a prior.
    diagnostics : tuple of Diagnostic
        What looks wrong, with what it means and what to do; empty on an ordinary batch.
    unknown : [item]
        With `roll_call`, the chance that the item belongs to none of the classes. NaN if the catalogue cannot tell,
        because fewer than 20 of its examples could be left out or because it is too large to train on; and for all
        other methods.
    unknown_share, unknown_interval : float, tuple of float
        Mean of `unknown`, and an interval of 90 % for the share of unknown items in this batch. NaN and (0, 1)
        if the catalogue cannot tell.
    unknown_reason : str or None
        Why unknown items could not be judged, and what to do, as a sentence; None if they were. With a reason, nothing
        is rejected, which does not mean that nothing is unknown.
    rejected : ndarray [item]
        Items that are more likely unknown than known, if there is enough evidence that the batch has any: more, the
        farther the batch is from the catalogue as a whole. Without it none are rejected, and `labels` are the same as
        if nothing could be unknown.
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
    >>> found
    Inference(10 items, 2 of 20 classes present, 0 items doubtful, 0 rejected)
    >>> found.present_classes.tolist(), found.expected_counts[[3, 7, 8]].round(1).tolist()
    ([3, 7], [6.0, 4.0, 0.0])
    >>> found.labels.tolist()
    [3, 3, 3, 3, 3, 3, 7, 7, 7, 7]
    """

    classes: npt.NDArray[Any]
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
    unknown_reason: str | None
    rejected: npt.NDArray[np.bool_]
    proposals: tuple[Proposal, ...]

    def __repr__(self) -> str:
        items = counted(len(self.rejected), "item", "items")
        doubtful = counted(int(self.doubtful.sum()), "item", "items")
        present = f"{len(self.present_classes):,} of {counted(len(self.classes), 'class', 'classes')} present"
        rejected = f"{int(self.rejected.sum()):,} rejected" if self.unknown_reason is None else UNJUDGED
        return f"Inference({items}, {present}, {doubtful} doubtful, {rejected})"

    @property
    def doubtful(self) -> npt.NDArray[np.bool_]:
        """Items with `p₁ < (1 + p₂) / 2`, for the probabilities of the most probable class and of the next.

        Rejected items are not in doubt between two classes: they look like none.
        """
        best = self.top(2).probabilities
        second = best[:, 1] if best.shape[1] == 2 else np.zeros(len(best))
        return are_doubtful(best[:, 0], second) & ~np.asarray(self.rejected)

    def top(self, k: int = 3) -> Top:
        """Return the k most probable classes of every item, with their probabilities.

        Parameters
        ----------
        k : int
            How many; all if the catalogue has fewer.

        Returns
        -------
        Top
            `labels` and `probabilities`, [item, k], the most probable first.

        Examples
        --------
        >>> from handful.estimators import PaddleClassifier
        >>> X, y = [[0.0, 1.0], [0.1, 1.0], [1.0, 0.0], [1.0, 0.1]], ["up", "up", "right", "right"]
        >>> found = PaddleClassifier().fit(X, y).infer([[0.0, 2.0], [3.0, 0.1]])
        >>> found.top(2).labels.tolist()
        [['up', 'right'], ['right', 'up']]
        """
        return top_of(as_array(self.probabilities), self.classes, k)

    def to_frame(self) -> Any:
        """Return one row per item, as a table.

        Returns
        -------
        DataFrame or Table
            Of polars or Arrow if the batch was; else of pandas, with the index of the batch if it had one. The columns
            are `label`, `probability`, `runner_up`, `runner_up_probability`, `doubtful`, `unknown` and `rejected`.

        Examples
        --------
        >>> from handful.estimators import PaddleClassifier
        >>> X, y = [[0.0, 1.0], [0.1, 1.0], [1.0, 0.0], [1.0, 0.1]], ["up", "up", "right", "right"]
        >>> table = PaddleClassifier().fit(X, y).infer([[0.0, 2.0], [3.0, 0.1]]).to_frame()
        >>> print(table[["label", "runner_up", "rejected"]])
           label runner_up  rejected
        0     up     right     False
        1  right        up     False
        """
        columns = columns_of_items(
            as_array(self.probabilities), self.classes, as_array(self.unknown), np.asarray(self.rejected)
        )
        return container_of(self.probabilities).frame(columns, self.probabilities)

    def by_class(self) -> Any:
        """Return one row per class, as a table, those with most items first.

        Returns
        -------
        DataFrame or Table
            As in `to_frame`. The columns are `class`, `expected_count`, `proportion` and `presence`.

        Examples
        --------
        >>> from handful.estimators import PaddleClassifier
        >>> X, y = [[0.0, 1.0], [0.1, 1.0], [1.0, 0.0], [1.0, 0.1]], ["up", "up", "right", "right"]
        >>> found = PaddleClassifier().fit(X, y).infer([[0.0, 2.0], [3.0, 0.1], [2.0, 0.0]])
        >>> found.by_class()["class"].tolist()
        ['right', 'up']
        """
        order = np.argsort(-self.expected_counts, kind="stable")
        columns = {
            "class": self.classes[order],
            "expected_count": self.expected_counts[order],
            "proportion": self.class_proportions[order],
            "presence": self.presence[order],
        }
        return container_of(self.probabilities).frame(columns, None)

    def summary(self) -> str:
        """Say in plain text what was found.

        Returns
        -------
        str
            Items, the classes present with their expected counts, doubtful items, unknown ones, and diagnostics.

        Examples
        --------
        >>> from handful.estimators import PaddleClassifier
        >>> rng = np.random.default_rng(0)
        >>> centres = rng.normal(size=(20, 16))
        >>> X, y = centres.repeat(5, axis=0) + 0.7 * rng.normal(size=(100, 16)), np.arange(20).repeat(5)
        >>> batch = centres[[3] * 6 + [7] * 4] + 0.7 * rng.normal(size=(10, 16))
        >>> print(PaddleClassifier().fit(X, y).infer(batch).summary())
        10 items, 2 of 20 classes present.
        class  expected count  presence
        3                 6.0      1.00
        7                 4.0      1.00
        """
        lines = [
            f"{counted(len(self.rejected), 'item', 'items')}, {len(self.present_classes):,} of "
            f"{counted(len(self.classes), 'class', 'classes')} present."
        ]
        order = np.argsort(-self.expected_counts, kind="stable")
        present = order[self.presence[order] >= PRESENT]
        if len(present):
            rows = [
                [str(self.classes[k]), f"{self.expected_counts[k]:.1f}", f"{self.presence[k]:.2f}"]
                for k in present[:MOST_LINES]
            ]
            lines += aligned([["class", "expected count", "presence"], *rows])
        if len(present) > MOST_LINES:
            lines.append(f"And {len(present) - MOST_LINES:,} more, see by_class().")
        doubtful = np.flatnonzero(self.doubtful)
        if len(doubtful):
            lines.append(f"{counted(len(doubtful), 'doubtful item', 'doubtful items')}: {listed(doubtful)}.")
        rejected, (low, high) = np.flatnonzero(self.rejected), self.unknown_interval
        if len(rejected):
            look = counted(len(rejected), "item looks", "items look")
            lines.append(
                f"{look} like none of the classes: {listed(rejected)}. "
                f"The share of such items is {low:.0%} to {high:.0%}."
            )
        said = self.unknown_reason or (undecided(high) if len(rejected) == 0 else "")
        lines += [said] if said else []
        lines += [
            f"Perhaps a new class of {proposal.size:,} items, nearest to {proposal.nearest}: {listed(proposal.items)}."
            for proposal in self.proposals
        ]
        return "\n".join([*lines, *(f"Warning: {diagnostic.message}" for diagnostic in self.diagnostics)])


def inferred(
    catalogue: Catalogue,
    query: Float[Tensor, "item dim"],
    names: npt.NDArray[Any] | None = None,
    prior: Prior | None = None,
    given: Int[np.ndarray, "item"] | None = None,
) -> Inference:
    """Label one batch against a fitted catalogue; labels as an array, probabilities as a tensor.

    `names` are the names of the classes, if they are not their labels; `given` is the class of each item whose class
    is known for certain, and -1 for all others.
    """
    found = catalogue.label(query, Context.of(prior, given=given))
    classes = catalogue.classes if names is None else names
    doubts = Doubts(
        found.unknown,
        found.interval,
        found.rejected,
        tuple(Proposal.of(group, classes) for group in found.groups),
        found.expected_counts,
        catalogue.unknown_reason,
    )
    n_zero = int(without_direction(query, catalogue.transform).sum())
    return answer(
        classes,
        torch.from_numpy(found.probabilities.astype(np.float64)),
        found.presence,
        found.joint_weight,
        None if prior is None else found.prior_weight,
        diagnose(catalogue.head, len(query), float(found.confidence.mean()), n_zero=n_zero),
        doubts,
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
            np.full(len(weights), np.nan),
            (0.0, 1.0),
            np.zeros(len(weights), bool),
            (),
            weights.sum(0).cpu().numpy(),
            f"Unknown items are not judged by the method {method!r}; use PaddleClassifier.",
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
    reason: str | None  # why nothing is known


def answer(
    classes: npt.NDArray[Any],
    weights: Float[Tensor, "item class"],
    chances: npt.NDArray[np.float64],
    joint_weight: float | None,
    prior_weight: float | None,
    diagnostics: tuple[Diagnostic, ...],
    doubts: Doubts,
    *,
    n_iter: int = 1,
    converged: bool = True,
    several: bool = False,
) -> Inference:
    """Read an answer off the weights of the classes, which need not sum to one yet.

    With `several` they are chances of each class by itself, and stay as they are.
    """
    if not several:
        weights = weights / weights.sum(-1, keepdim=True)
    order = np.argsort(-doubts.counts, kind="stable")
    return Inference(
        classes=classes,
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
        unknown_reason=doubts.reason,
        rejected=doubts.rejected,
        proposals=doubts.proposals,
    )


def without_direction(query: Float[Tensor, "item dim"], transform: str) -> Bool[np.ndarray, "item"]:
    """Items that have no direction, where only directions are compared."""
    return ((query == 0).all(-1) & (transform == "l2")).cpu().numpy()


def presence_if_independent(probabilities: Float[Tensor, "item class"]) -> Float[Tensor, "class"]:
    """`1 - Π_n (1 - p_nk)` of each class, through logarithms, so that many small probabilities add up accurately."""
    return torch.log1p(-probabilities.clamp(max=1)).sum(0).expm1().abs()
