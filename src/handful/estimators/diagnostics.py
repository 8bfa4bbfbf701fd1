"""Diagnostics: what looks wrong with an answer, what it means and what to do about it.

Every check compares one number with one threshold. Thresholds were chosen on three banks (clinc150, cub200 and
omniglot659), between what ordinary batches give and what broken ones do; the numbers beside them are those of
`python studies/diagnostics.py clinc150-minilm cub200-efflite0 omniglot659-conv4 --tasks 30`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from handful.calibration import MOST_NATS, evenly
from handful.errors import (
    CalibrationBorderWarning,
    CollapseWarning,
    HandfulWarning,
    NotConvergedWarning,
    UnlikeSupportWarning,
)
from handful.frame import Frame
from handful.numerics.distances import half_squared_distances
from handful.shapes import Float, Int

# An answer has collapsed when one class takes this share of the labels, while of the items' own nearest classes it is
# named by fewer than a third, and by less than half as many again as some other class. This finds 162 of the 173 times
# that published PADDLE gave one class to unit vectors of five, and 2 of the 132 answers of one class to batches of one.
COLLAPSED_SHARE = 0.95
LEAST_AGREEMENT = 1 / 3
LEAST_LEAD = 1.5
# Of fewer items, or left-out examples, nothing can be said.
FEWEST_ITEMS = 10
# Half the items lie further from their nearest prototype than this times the distance of left-out examples from their
# own. Ordinary batches: up to 1.55, and up to 1.24 with five classes or more. Vectors with their dimensions in another
# order: from 1.79. Items whose classes are not in the catalogue: 0.7 to 2.1, so it cannot be relied on to find these.
MOST_DISTANCE = 1.6
# Where no left-out pair is wrong the calibration creeps towards its sharp border: half way counts. With all classes of
# a bank c² times the mean margin was 5 to 29 nats; with 5 classes, which left-out pairs often keep apart without a
# mistake, half the catalogues had more than 50. Labels that belong to other rows: up to 0.7, any others from 2.9.
SHARP_NATS = 0.5 * MOST_NATS
SOFT_NATS = 1.0
# Left-out examples, and classes they are compared with, that take part in that mean.
MOST_POINTS, MOST_OTHERS = 256, 32


@dataclass(frozen=True)
class Diagnostic:
    """One thing that looks wrong.

    Attributes
    ----------
    name : str
        `not_converged`, `collapsed`, `calibration_border` or `unlike_support`.
    message : str
        What was seen, what it means and what to do.
    value, threshold : float
        The number looked at, and the one it should not have passed.
    warning : type
        The warning that says the same.

    Examples
    --------
    Vectors whose dimensions come in another order than the catalogue's:

    >>> import warnings
    >>> import numpy as np
    >>> from handful.estimators import PaddleClassifier
    >>> rng = np.random.default_rng(0)
    >>> X, y = rng.normal(size=(20, 16)).repeat(5, axis=0) + 0.7 * rng.normal(size=(100, 16)), np.arange(20).repeat(5)
    >>> with warnings.catch_warnings(action="ignore"):
    ...     found = PaddleClassifier().fit(X, y).infer(X[:40, ::-1])
    >>> for diagnostic in found.diagnostics:
    ...     print(f"{diagnostic.name}: {diagnostic.value:.1f} passes {diagnostic.threshold}")
    unlike_support: 2.9 passes 1.6
    """

    name: str
    message: str
    value: float
    threshold: float
    warning: type[HandfulWarning]


def diagnose(
    frame: Frame,
    labels: Int[Tensor, "query"],
    classes: list[str],
    squared_scale: float | None,
    *,
    n_iter: int,
    converged: bool,
) -> tuple[Diagnostic, ...]:
    """Look at the answer for a single task, as the method saw it.

    `classes` are names to be used in the messages; `squared_scale` is c² where the method calibrates, else None;
    `n_iter` and `converged` say how the method ended.
    """
    halves = half_squared_distances(frame.query, frame.support.mean())[0]
    found = [
        not_converged(n_iter, converged),
        collapsed(labels, halves, classes),
        unlike_support(frame, halves),
    ]
    if squared_scale is not None:
        found.append(calibration_border(frame, squared_scale))
    return tuple(diagnostic for diagnostic in found if diagnostic is not None)


def warnings_of(diagnostics: tuple[Diagnostic, ...]) -> Iterator[HandfulWarning]:
    """Return the diagnostics as warnings."""
    return (diagnostic.warning(diagnostic.message) for diagnostic in diagnostics)


def not_converged(n_iter: int, converged: bool) -> Diagnostic | None:
    """Whether the iterations ran out before the answer stood still."""
    if converged:
        return None
    return Diagnostic(
        "not_converged",
        f"The answer was still changing after {n_iter} iterations. Items between two classes may change label; "
        "allow more iterations, options={'max_iter': ...} of TransductiveClassifier, or label a larger batch.",
        n_iter,
        n_iter,
        NotConvergedWarning,
    )


def collapsed(
    labels: Int[Tensor, "query"], halves: Float[Tensor, "query class"], classes: list[str]
) -> Diagnostic | None:
    """Whether nearly all labels are one class, and few items are nearest to that class."""
    counts = torch.bincount(labels, minlength=len(classes))
    winner = int(counts.argmax())
    if len(classes) == 1 or len(labels) < FEWEST_ITEMS or counts[winner] < COLLAPSED_SHARE * len(labels):
        return None
    nearest = torch.bincount(halves.argmin(-1), minlength=len(classes)) / len(labels)
    agreement, rival = (
        float(nearest[winner]),
        float(nearest[torch.arange(len(classes), device=nearest.device) != winner].max()),
    )
    if agreement >= LEAST_AGREEMENT or agreement >= LEAST_LEAD * rival:
        return None
    return Diagnostic(
        "collapsed",
        f"{int(counts[winner])} of {len(labels)} items were labelled {classes[winner]!r}, but only {agreement:.0%} of "
        "them lie nearest to it: the batch was probably drawn into one class. Use PaddleClassifier, which finds the "
        "scale of the features by itself; if this is it, look whether batch and catalogue come from the same model "
        "and the same preprocessing.",
        agreement,
        LEAST_AGREEMENT,
        CollapseWarning,
    )


def unlike_support(frame: Frame, halves: Float[Tensor, "query class"]) -> Diagnostic | None:
    """Whether the items lie much further from all classes than examples do from their own.

    `median_n min_k ½‖z_n - w_k‖²` of the query against `median_i ½‖z_i - w_y‖² (s + 1)/(s - 1)` of the support: the
    distance of a left-out example, corrected for the s - 1 others that its mean then has where a query's has s.
    """
    own = expected_half_distances(frame)
    if min(len(own), len(halves)) < FEWEST_ITEMS:
        return None
    # Examples that all coincide lie at no distance from one another.
    usual = max(float(own.median()), torch.finfo(own.dtype).eps)
    ratio = float(halves.amin(-1).median()) / usual
    if ratio <= MOST_DISTANCE:
        return None
    return Diagnostic(
        "unlike_support",
        f"Half the items lie at least {ratio:.3g} times as far (in squares) from their nearest class as a left-out "
        "example from its own: the batch looks unlike the catalogue, and its labels mean little. Look whether both "
        "come from the same model and the same preprocessing, and whether the catalogue has the classes of this batch.",
        ratio,
        MOST_DISTANCE,
        UnlikeSupportWarning,
    )


def expected_half_distances(frame: Frame) -> Float[Tensor, "point"]:
    """`½‖z_i - w_y‖² (s + 1)/(s - 1)` of the examples whose class has another: how far a query would lie."""
    shots = frame.support.mass[0][frame.task.support_labels[0]]
    return _left_out_half_distances(frame, (shots > 1).nonzero()[:, 0])


def mean_margin(frame: Frame) -> float:
    """`mean |½‖z_i - w_k‖² - ½‖z_i - w_y‖² (s + 1)/(s - 1)|` over some left-out examples and other classes, or 0."""
    labels, means = frame.task.support_labels[0], frame.support.mean()[0]
    usable = (frame.support.mass[0][labels] > 1).nonzero()[:, 0]
    chosen, others = usable[evenly(len(usable), MOST_POINTS)], evenly(len(means), MOST_OTHERS).to(labels.device)
    points = frame.task.support[0][chosen] - frame.origin[0]
    halves = half_squared_distances(points[None], means[None, others])[0]
    margins = halves - _left_out_half_distances(frame, chosen).unsqueeze(-1)
    pairs = margins[labels[chosen].unsqueeze(-1) != others]
    return float(pairs.abs().mean()) if len(pairs) else 0.0


def calibration_border(frame: Frame, squared_scale: float) -> Diagnostic | None:
    """Whether the calibration ran to a border: c² times the mean margin, in nats, far above or below what is usual."""
    nats = squared_scale * mean_margin(frame)
    if nats >= SHARP_NATS:
        return Diagnostic(
            "calibration_border",
            "Left-out examples all lie nearest to their own class, so the catalogue cannot say how far distances may "
            "be trusted, and a very sharp scale was taken: items are labelled almost one by one. All is well if the "
            "classes are that far apart; otherwise look for copies of the same example in a class, and give more "
            "varied ones.",
            nats,
            SHARP_NATS,
            CalibrationBorderWarning,
        )
    if 0 < nats <= SOFT_NATS:
        return Diagnostic(
            "calibration_border",
            "Left-out examples lie hardly nearer to their own class than to others: these features do not tell the "
            "classes apart, and labels are little better than guesses. Look whether the labels belong to these rows, "
            "and try features of another model.",
            nats,
            SOFT_NATS,
            CalibrationBorderWarning,
        )
    return None


def _left_out_half_distances(frame: Frame, chosen: Int[Tensor, "point"]) -> Float[Tensor, "point"]:
    labels = frame.task.support_labels[0][chosen]
    shots = frame.support.mass[0][labels]
    points = frame.task.support[0][chosen] - frame.origin[0]
    away = points - frame.support.mean()[0][labels]
    return 0.5 * away.square().sum(-1) * (shots + 1) / (shots - 1)
