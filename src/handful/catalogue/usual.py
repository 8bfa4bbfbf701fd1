"""How far examples of a catalogue usually are from their own class, and how much further from others.

Left out of its own class of s examples, an example is `½ (s + 1)/(s - 1) ‖z - w‖²` from the mean of the others. The
factor corrects for the fact that items of a batch are compared with the mean of all s examples.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from handful.inference.calibration import evenly
from handful.inference.frame import Frame
from handful.numerics.distances import half_squared_distances
from handful.shapes import Float, Int

# Numbers of left-out examples, and of classes compared with them, used for the mean margin.
MOST_POINTS, MOST_OTHERS = 256, 32


@dataclass(frozen=True)
class Usual:
    """Distances of left-out examples.

    Attributes
    ----------
    n_left_out : int
        Examples whose class has another.
    half_distance : float
        Median of their half squared distances from their own class.
    margin : float
        Mean absolute difference to the half squared distances from other classes; 0 if there is nothing to compare.
    """

    n_left_out: int
    half_distance: float
    margin: float

    @classmethod
    def of(cls, frame: Frame) -> Usual:
        """Compute them from the support of a single task."""
        own = expected_half_distances(frame)
        if len(own) == 0:
            return cls(0, 0.0, 0.0)
        # Examples that all coincide have distance zero.
        return cls(len(own), max(float(own.median()), torch.finfo(own.dtype).eps), mean_margin(frame))


def left_out_half_distances(frame: Frame, chosen: Int[Tensor, "point"]) -> Float[Tensor, "point"]:
    """`½‖z_i - w_y‖² (s + 1)/(s - 1)` of some examples."""
    labels = frame.task.support_labels[0][chosen]
    shots = frame.support.mass[0][labels]
    points = frame.task.support[0][chosen] - frame.origin[0]
    away = points - frame.support.mean()[0][labels]
    return 0.5 * away.square().sum(-1) * (shots + 1) / (shots - 1)


def expected_half_distances(frame: Frame) -> Float[Tensor, "point"]:
    """Return the distances of all examples whose class has another: how far an item would be."""
    return left_out_half_distances(frame, _with_company(frame))


def mean_margin(frame: Frame) -> float:
    """`mean |½‖z_i - w_k‖² - ½‖z_i - w_y‖² (s + 1)/(s - 1)|` over some left-out examples and other classes, or 0."""
    labels, means, usable = frame.task.support_labels[0], frame.support.mean()[0], _with_company(frame)
    chosen, others = usable[evenly(len(usable), MOST_POINTS)], evenly(len(means), MOST_OTHERS).to(labels.device)
    points = frame.task.support[0][chosen] - frame.origin[0]
    halves = half_squared_distances(points[None], means[None, others])[0]
    margins = halves - left_out_half_distances(frame, chosen).unsqueeze(-1)
    pairs = margins[labels[chosen].unsqueeze(-1) != others]
    return float(pairs.abs().mean()) if len(pairs) else 0.0


def _with_company(frame: Frame) -> Int[Tensor, "point"]:
    """Return the examples whose class has another."""
    return (frame.support.mass[0][frame.task.support_labels[0]] > 1).nonzero()[:, 0]
