"""Diagnostics: what looks wrong with an answer, what it means and what to do about it.

Every check compares one number with one threshold. Thresholds were chosen on three banks (clinc150, cub200 and
omniglot659), between the values of ordinary batches and those of broken ones; the numbers in the comments come from
`python studies/diagnostics.py clinc150-minilm cub200-efflite0 omniglot659-conv4 --tasks 30`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy.typing as npt
import torch
from torch import Tensor

from handful.catalogue.usual import Usual
from handful.errors import (
    CalibrationBorderWarning,
    CollapseWarning,
    HandfulWarning,
    NotConvergedWarning,
    UnlikeSupportWarning,
)
from handful.inference.batches import AgainstOne
from handful.inference.calibration import MOST_NATS
from handful.shapes import Float, Int

# An answer has collapsed when one class takes this share of the labels, although it is the nearest class of fewer than
# a third of the items, and of less than 1.5 times as many as some other class. This finds 162 of the 173 cases in which
# published PADDLE gave a single class to unit vectors of five classes, and flags 2 of the 132 answers of a single class
# to batches that have one.
COLLAPSED_SHARE = 0.95
LEAST_AGREEMENT = 1 / 3
LEAST_LEAD = 1.5
# With fewer items, or left-out examples, nothing is checked.
FEWEST_ITEMS = 10
# Half the items are further from their nearest prototype than this times the distance of left-out examples from their
# own. Ordinary batches: up to 1.55, and up to 1.24 with five classes or more. Vectors with their dimensions in another
# order: from 1.79. Items whose classes are not in the catalogue: 0.7 to 2.1, so the check cannot reliably find these.
MOST_DISTANCE = 1.6
# If no left-out pair is wrong, the calibration drifts towards its sharp border; half way counts as the border. With all
# classes of a bank, c² times the mean margin was 5 to 29 nats. With 5 classes, whose left-out pairs often contain no
# mistake, half the catalogues had more than 50. Labels shuffled between rows: up to 0.7; all others: from 2.9.
SHARP_NATS = 0.5 * MOST_NATS
SOFT_NATS = 1.0


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
        The number checked, and the threshold it passed.
    warning : type
        The corresponding warning class.

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


@dataclass(frozen=True, eq=False)
class Alone:
    """What each item shows on its own."""

    nearest: Callable[[], Int[Tensor, "query"]]  # the class it is nearest to, computed on request
    half_distances: Float[Tensor, "query"]  # to that class, ½‖z - w‖²

    @classmethod
    def of(cls, batch: AgainstOne) -> Alone:
        """Compare one batch with its classes."""
        scores, nearest = batch.nearest()
        return cls(lambda: nearest[0], (0.5 * batch.points[0].square().sum(-1) - scores[0]).clamp_(min=0))


def diagnose(
    labels: Int[Tensor, "query"],
    classes: Sequence[Any] | npt.NDArray[Any],
    alone: Alone,
    usual: Usual,
    squared_scale: float | None,
    *,
    n_iter: int,
    converged: bool,
) -> tuple[Diagnostic, ...]:
    """Check the answer for a single batch, as the method saw it.

    `classes` are labels to be used in the messages; `squared_scale` is c² where the method calibrates, else None;
    `n_iter` and `converged` say how the method ended.
    """
    found = [
        not_converged(n_iter, converged),
        collapsed(labels, alone.nearest, classes),
        unlike_support(alone.half_distances, usual),
    ]
    if squared_scale is not None:
        found.append(calibration_border(usual, squared_scale))
    return tuple(diagnostic for diagnostic in found if diagnostic is not None)


def warnings_of(diagnostics: tuple[Diagnostic, ...]) -> Iterator[HandfulWarning]:
    """Return the diagnostics as warnings."""
    return (diagnostic.warning(diagnostic.message) for diagnostic in diagnostics)


def not_converged(n_iter: int, converged: bool) -> Diagnostic | None:
    """Whether the iterations ran out before the answer settled."""
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
    labels: Int[Tensor, "query"], nearest: Callable[[], Int[Tensor, "query"]], classes: Sequence[Any] | npt.NDArray[Any]
) -> Diagnostic | None:
    """Whether nearly all labels are one class, and few items are nearest to that class."""
    counts = torch.bincount(labels, minlength=len(classes))
    winner = int(counts.argmax())
    if len(classes) == 1 or len(labels) < FEWEST_ITEMS or counts[winner] < COLLAPSED_SHARE * len(labels):
        return None
    shares = torch.bincount(nearest(), minlength=len(classes)) / len(labels)
    agreement = float(shares[winner])
    rival = float(shares[torch.arange(len(classes), device=shares.device) != winner].max())
    if agreement >= LEAST_AGREEMENT or agreement >= LEAST_LEAD * rival:
        return None
    return Diagnostic(
        "collapsed",
        f"{int(counts[winner])} of {len(labels)} items were labelled {str(classes[winner])!r}, but only "
        f"{agreement:.0%} of them are nearest to it: the batch probably collapsed into one class. Use "
        "PaddleClassifier, which finds the scale of the features by itself; if you already use it, check whether "
        "batch and catalogue come from the same model and the same preprocessing.",
        agreement,
        LEAST_AGREEMENT,
        CollapseWarning,
    )


def unlike_support(half_distances: Float[Tensor, "query"], usual: Usual) -> Diagnostic | None:
    """Whether the items are much further from all classes than examples are from their own.

    `median_n min_k ½‖z_n - w_k‖²` of the items against the median of left-out examples from their own class.
    """
    if min(usual.n_left_out, len(half_distances)) < FEWEST_ITEMS:
        return None
    ratio = float(half_distances.median()) / usual.half_distance
    if ratio <= MOST_DISTANCE:
        return None
    return Diagnostic(
        "unlike_support",
        f"Half the items are at least {ratio:.3g} times as far (squared) from their nearest class as a left-out "
        "example from its own: the batch looks unlike the catalogue, and its labels mean little. Check whether both "
        "come from the same model and the same preprocessing, and whether the catalogue has the classes of this batch.",
        ratio,
        MOST_DISTANCE,
        UnlikeSupportWarning,
    )


def calibration_border(usual: Usual, squared_scale: float) -> Diagnostic | None:
    """Whether the calibration ran to a border: c² times the mean margin, in nats, far above or below what is usual."""
    nats = squared_scale * usual.margin
    if nats >= SHARP_NATS:
        return Diagnostic(
            "calibration_border",
            "Left-out examples are all nearest to their own class, so the catalogue cannot tell how far distances can "
            "be trusted, and a very sharp scale was used: items are labelled almost one by one. This is fine if the "
            "classes are that far apart; otherwise look for copies of the same example in a class, and give more "
            "varied ones.",
            nats,
            SHARP_NATS,
            CalibrationBorderWarning,
        )
    if 0 < nats <= SOFT_NATS:
        return Diagnostic(
            "calibration_border",
            "Left-out examples are hardly nearer to their own class than to others: these features do not tell the "
            "classes apart, and labels are little better than guesses. Check whether the labels belong to these rows, "
            "and try features of another model.",
            nats,
            SOFT_NATS,
            CalibrationBorderWarning,
        )
    return None
