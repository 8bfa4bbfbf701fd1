"""Calibration: the scale at which half squared distances are nats, asked of the support alone.

Leave a support point out of its own class's mean and compare it with two classes, its own and another. With the
features multiplied by c, the odds of its own are `exp(c² Δ)`, where

    Δ = ½‖z - w_other‖² - ½‖z - w_own⁻‖²,      w_own⁻ = the mean of its class without it,

and c² is the slope of a logistic regression without intercept: it minimises the convex `Σ ln(1 + exp(-c² Δ))` over
pairs of a point and another class. No query is looked at, and multiplying all features by a constant divides c by it.

Two classes at a time, because the softmax over all K asks for a sharper scale than the few classes of one query bear
where the distances have heavy tails. Some hundred points fix one number well enough: of many classes a part is taken,
evenly over the lengths of their means, so that neither order nor names matter.
"""

from __future__ import annotations

import torch
from torch import Tensor

from handful.frame import Frame
from handful.numerics.distances import half_squared_distances
from handful.shapes import Bool, Float

# Classes bring their points until these are about enough, and every point is compared with so many other classes.
ENOUGH_POINTS, FEWEST_CLASSES, MOST_CLASSES = 256, 16, 64
OTHER_CLASSES = 32
NEWTON_STEPS = 16
# c² times the mean absolute margin is kept in this range: beyond it the support cannot tell (all pairs right, or none).
LEAST_NATS, MOST_NATS = 1e-2, 1e2
# Where no class has two examples nothing can be left out. On three banks of embeddings the regression gives c² times
# the spread E‖z - μ‖² between 8 and 16; the query's distances to its nearest prototypes then stand in for the spread.
NATS_OF_SPREAD = 12.0


def squared_scale(frame: Frame) -> Float[Tensor, "task"]:
    """c² of each task, one task after the other: its points stay in the cache, and a batch takes no more memory."""
    if len(frame.task.support) == 1:
        return _squared_scale(frame)
    return torch.cat([_squared_scale(frame.select(slice(t, t + 1))) for t in range(frame.task.n_tasks)])


def _squared_scale(frame: Frame) -> Float[Tensor, "task"]:
    """c² of tasks that share a support."""
    if bool((frame.support.mass > 1).any()):
        return logistic_slope(*left_out_margins(frame)).expand(frame.task.n_tasks)
    return NATS_OF_SPREAD / _spread_of_query(frame)


def left_out_margins(frame: Frame) -> tuple[Float[Tensor, "#task point other"], Bool[Tensor, "#task point other"]]:
    """Δ of left-out points against other classes, and which of these pairs count."""
    task, means, shots = frame.task, frame.support.mean(), frame.support.mass
    n, n_classes = shots.shape
    rows = torch.arange(n, device=shots.device).unsqueeze(-1)
    n_chosen = max(FEWEST_CLASSES, min(MOST_CLASSES, int(ENOUGH_POINTS / float(shots.mean()))))
    by_length = means.square().sum(-1).argsort(-1)
    chosen, others = (by_length[:, _evenly(n_classes, most)] for most in (n_chosen, OTHER_CLASSES))

    real = torch.ones_like(task.support_labels, dtype=torch.bool) if task.support_mask is None else task.support_mask
    labels = task.support_labels.where(real, 0)
    takes_part = torch.zeros_like(shots, dtype=torch.bool).scatter(-1, chosen, True) & (shots > 1)
    taken, there = _positions(real & takes_part.gather(-1, labels))
    own = labels.gather(-1, taken)
    points = task.support[rows, taken] - frame.origin.unsqueeze(-2)

    count = shots.gather(-1, own)
    # ‖z - w⁻‖ = s/(s-1) ‖z - w‖ for the mean w⁻ of the s-1 others.
    stretch = (count / (count - 1).clamp(min=1)).square()
    without = 0.5 * stretch * (points - means[rows, own]).square().sum(-1)
    margins = half_squared_distances(points, means[rows, others]) - without.unsqueeze(-1)
    return margins, (others.unsqueeze(1) != own.unsqueeze(-1)) & there.unsqueeze(-1)


def logistic_slope(
    margins: Float[Tensor, "#task point other"], counts: Bool[Tensor, "#task point other"]
) -> Float[Tensor, "#task"]:
    """`argmin_b Σ ln(1 + exp(-b Δ))` over the pairs that count, by Newton's method from `2 mean(Δ) / var(Δ)`."""
    weight = counts.to(margins.dtype)
    total = weight.sum((-2, -1)).clamp(min=1)
    size = (margins.abs() * weight).sum((-2, -1)) / total
    # A single class, or points that all coincide: no pair says anything, and any scale will do.
    size = size.where(size > 0, 1)
    scaled = margins / size.reshape(-1, 1, 1)
    mean = (scaled * weight).sum((-2, -1)) / total
    variance = (scaled.square() * weight).sum((-2, -1)) / total - mean.square()
    slope = (2 * mean / variance.clamp(min=1e-6)).clamp(LEAST_NATS, MOST_NATS)
    for _ in range(NEWTON_STEPS):
        wrong = torch.sigmoid(-slope.reshape(-1, 1, 1) * scaled)
        pull = (weight * scaled * wrong).sum((-2, -1))
        bend = (weight * scaled.square() * wrong * (1 - wrong)).sum((-2, -1))
        # Far from the optimum the curvature all but vanishes: no step may change the slope more than fourfold.
        slope = (slope + pull / bend.clamp(min=1e-12)).clamp(slope / 4, slope * 4).clamp(LEAST_NATS, MOST_NATS)
    return slope / size


def _evenly(n_classes: int, most: int) -> Tensor:
    """At most so many places among n, spread evenly from the first to the last."""
    return torch.linspace(0, n_classes - 1, min(n_classes, most)).round().long()


def _positions(usable: Bool[Tensor, "#task support"]) -> tuple[Tensor, Tensor]:
    """Row numbers of the usable points, padded to the longest task, and which of them are there."""
    most = max(1, int(usable.sum(-1).max()))
    slots = torch.arange(most, device=usable.device) < usable.sum(-1, keepdim=True)
    taken = torch.zeros(len(usable), most, dtype=torch.int64, device=usable.device)
    taken[slots] = usable.nonzero()[:, 1]
    return taken, slots


def _spread_of_query(frame: Frame) -> Float[Tensor, "task"]:
    """`E‖z - μ‖²` from `½‖z - w‖²` to the nearest prototype: a mean of s others is (1 + 1/s) times the spread away."""
    nearest = half_squared_distances(frame.query, frame.support.mean()).amin(-1)
    if frame.query_mask is not None:
        nearest = nearest.where(frame.query_mask, 0)
    spread = 2 * nearest.sum(-1) / frame.n_query / (1 + 1 / frame.support.mass).mean(-1)
    return spread.clamp(min=torch.finfo(spread.dtype).tiny)
