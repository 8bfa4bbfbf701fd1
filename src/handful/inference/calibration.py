"""Calibration: the scale at which half squared distances are nats, estimated from the support alone.

Leave a support point out of the mean of its class and compare it with two classes, its own and another. With the
features multiplied by c, the odds in favour of its own class are `exp(c² Δ)`, where

    Δ = ½‖z - w_other‖² - ½ (1 - 1/s²) ‖z - w_own⁻‖²,      w_own⁻ = the mean of the s - 1 others of its class,

and c² is the slope of a logistic regression without intercept: it minimises the convex `Σ ln(1 + exp(-c² Δ))` over
pairs of a point and another class. No query is used. Multiplying all features by a constant divides c by it.

A query is compared with means of s points, a left-out point with a mean of s - 1. With σ² the spread of a class, the
expected squared distance is `σ²(1 + 1/s)` for the query and `σ²(1 + 1/(s-1))` for the left-out point; the factor
1 - 1/s² is their quotient. It matters most at two shots: without it the scale of a weak classifier is half as large as
it should be.

Two classes are compared at a time, because where the distances have heavy tails, a softmax over all K classes gives a
scale that is too sharp for the few classes of one query. A few hundred points are enough to estimate one number: if
there are many classes, some are chosen, evenly over the lengths of their means, so that neither order nor names matter.
"""

from __future__ import annotations

import torch
from torch import Tensor

from handful.inference.frame import Frame
from handful.numerics.distances import half_squared_distances
from handful.numerics.lookup import rows_of
from handful.shapes import Bool, Float, Int
from handful.task import TaskBatch

# Classes are chosen until they have about this many points, but no fewer and no more classes than these.
ENOUGH_POINTS, FEWEST_CLASSES, MOST_CLASSES = 256, 16, 64
# Every left-out point is compared with that many other classes.
OTHER_CLASSES = 32
NEWTON_STEPS = 16
# c² times the mean absolute margin is kept in this range. Outside it the support has no information on the scale: all
# pairs are right, or none.
LEAST_NATS, MOST_NATS = 1e-2, 1e2
# If no class has two examples, nothing can be left out, and the spread σ² is estimated from the query's distances to
# its nearest prototypes. On the banks used to choose this value, c²σ² between 6 and 12 is most accurate when few
# classes are present. With weak features and a hundred classes present those values are less accurate than the nearest
# prototype; 15 hardly is.
NATS_OF_SPREAD = 15.0
# Numbers in one block of tasks, of their left-out points or of their margins, chosen to fit a second-level cache.
MARGIN_BLOCK_NUMBERS = 250_000


def squared_scale(frame: Frame) -> Float[Tensor, "task"]:
    """c² of each task; if no class has two examples, nothing can be left out and the query's spread is used."""
    task, shots = frame.task, frame.support.mass
    repeated = (shots > 1).any(-1)
    if not bool(repeated.any()):
        return NATS_OF_SPREAD / _spread_of_query(frame)
    squares = _squares(frame.support.sums) / shots.square()  # of the means, only some of which are needed
    by_length = squares.argsort(-1)
    taken, there = left_out(task, shots, by_length)
    blocks = _blocks(len(shots), taken.shape[-1] * OTHER_CLASSES)
    slopes = torch.cat(
        [
            logistic_slope(*left_out_margins(frame, squares, by_length, taken[rows], there[rows], rows))
            for rows in blocks
        ]
    )
    if not bool(repeated.all()):
        slopes = slopes.where(repeated, NATS_OF_SPREAD / _spread_of_query(frame))
    return slopes.expand(task.n_tasks)


def left_out_margins(
    frame: Frame,
    squares: Float[Tensor, "#task class"],
    by_length: Int[Tensor, "#task class"],
    taken: Int[Tensor, "block point"],
    there: Bool[Tensor, "block point"],
    tasks: slice,
) -> tuple[Float[Tensor, "block point other"], Bool[Tensor, "block point other"]]:
    """Δ of left-out points of some tasks against other classes, and which pairs count; Δ is zero for the others."""
    task, sums, shots, squares = frame.task, frame.support.sums[tasks], frame.support.mass[tasks], squares[tasks]
    support, origin = task.source("support")[tasks], frame.origin[tasks].unsqueeze(-2)
    others = by_length[tasks, evenly(task.n_classes, OTHER_CLASSES)]
    own = task.support_labels.expand(len(frame.support.mass), -1)[tasks].gather(-1, taken)
    count = shots.gather(-1, own)
    # ‖z - w⁻‖² = (s/(s-1))² ‖z - w‖² for the mean w⁻ of the s-1 others; times 1 - 1/s².
    stretch, share = (count + 1) / (count - 1).clamp(min=1), count.reciprocal().unsqueeze(-1)
    means = rows_of(sums, others).div_(shots.gather(-1, others).unsqueeze(-1))

    products = squares.new_empty(*taken.shape, others.shape[-1])
    own_side = torch.empty_like(count)
    for rows in _blocks(len(shots), taken.shape[-1] * task.dim):
        points = rows_of(support[rows], taken[rows]).sub_(origin[rows])
        torch.bmm(points, means[rows].mT, out=products[rows])
        away = rows_of(sums[rows], own[rows])
        torch.addcmul(points, away, share[rows], value=-1, out=away)
        own_side[rows] = _squares(points) - stretch[rows] * _squares(away)
    margins = torch.add(squares.gather(-1, others).unsqueeze(1), own_side.unsqueeze(-1)).mul_(0.5).sub_(products)
    counts = (others.unsqueeze(1) != own.unsqueeze(-1)) & there.unsqueeze(-1)
    return margins.masked_fill_(~counts, 0), counts


def logistic_slope(
    margins: Float[Tensor, "block point other"], counts: Bool[Tensor, "block point other"]
) -> Float[Tensor, "block"]:
    """`argmin_b Σ ln(1 + exp(-b Δ))` over the pairs that count, by Newton's method from `2 mean(Δ) / var(Δ)`."""
    flat = margins.flatten(1)
    total = counts.flatten(1).sum(-1).clamp(min=1).to(flat.dtype)
    size = flat.abs().sum(-1) / total
    # With a single class, or if all points coincide, no pair has any information and any scale will do.
    size = size.where(size > 0, 1)
    scaled = flat / size.unsqueeze(-1)
    mean = scaled.sum(-1) / total
    variance = torch.linalg.vecdot(scaled, scaled) / total - mean.square()
    slope = (2 * mean / variance.clamp(min=1e-6)).clamp(LEAST_NATS, MOST_NATS)
    # Newton's method converges quadratically: after a step of √ε the next step is below rounding.
    negligible = torch.finfo(slope.dtype).eps ** 0.5
    for _ in range(NEWTON_STEPS):
        pulls = torch.mul(scaled, -slope.unsqueeze(-1)).sigmoid_().mul_(scaled)  # Δ σ(-bΔ)
        pull = pulls.sum(-1)
        bend = torch.linalg.vecdot(pulls, scaled - pulls)
        # Far from the optimum the curvature is close to zero, so no step may change the slope more than fourfold.
        before = slope
        slope = (slope + pull / bend.clamp(min=1e-12)).clamp(slope / 4, slope * 4).clamp(LEAST_NATS, MOST_NATS)
        if bool(((slope - before).abs() <= negligible * slope).all()):
            break
    nats: Tensor = slope / size
    return nats


def left_out(
    task: TaskBatch, shots: Float[Tensor, "#task class"], by_length: Int[Tensor, "#task class"]
) -> tuple[Int[Tensor, "#task point"], Bool[Tensor, "#task point"]]:
    """Positions in the support of the points to leave out, padded to the longest task, and which are not padding."""
    wanted = (ENOUGH_POINTS / shots.mean(-1)).long().clamp(FEWEST_CLASSES, MOST_CLASSES)
    chosen = torch.zeros_like(shots, dtype=torch.bool)
    for n_chosen in sorted(set(wanted.tolist())):
        places = by_length[:, evenly(task.n_classes, n_chosen)]
        chosen |= torch.zeros_like(chosen).scatter_(-1, places, True) & (wanted == n_chosen).unsqueeze(-1)
    chosen &= shots > 1
    labels = task.support_labels.expand(len(shots), -1)
    usable = chosen.gather(-1, labels if task.support_mask is None else labels.where(task.support_mask, 0))
    if task.support_mask is not None:
        usable = usable & task.support_mask
    most = max(1, int(usable.sum(-1).max()))
    there = torch.arange(most, device=labels.device) < usable.sum(-1, keepdim=True)
    taken = torch.zeros(len(usable), most, dtype=torch.int64, device=labels.device)
    taken[there] = usable.nonzero()[:, 1]
    return taken, there


def _blocks(n_tasks: int, numbers: int) -> list[slice]:
    """Cut tasks of `numbers` numbers each into blocks."""
    size = max(1, MARGIN_BLOCK_NUMBERS // numbers)
    return [slice(start, start + size) for start in range(0, n_tasks, size)]


def _squares(vectors: Float[Tensor, "*batch dim"]) -> Float[Tensor, "*batch"]:
    """`‖x‖²` in one pass, without the array of squares."""
    lengths: Tensor = torch.linalg.vector_norm(vectors, dim=-1)
    return lengths.square_()


def evenly(n: int, most: int) -> Int[Tensor, "place"]:
    """At most `most` of the indices 0 … n-1, spread evenly from the first to the last."""
    return torch.linspace(0, n - 1, min(n, most)).round().long()


def _spread_of_query(frame: Frame) -> Float[Tensor, "task"]:
    """`E‖z - μ‖²` from the distances of the items to their nearest prototypes."""
    nearest = half_squared_distances(frame.query, frame.support.mean()).amin(-1)
    between = frame.support.mean().square().sum(-1).mean(-1)
    return spread_of(nearest, frame.query_mask, frame.support.mass, between)


def spread_of(
    nearest: Float[Tensor, "task query"],
    mask: Bool[Tensor, "task query"] | None,
    shots: Float[Tensor, "#task class"],
    between: Float[Tensor, "#task"],
) -> Float[Tensor, "task"]:
    """`E‖z - μ‖²` from `½‖z - w‖²` to the nearest prototype: for a mean of s others, `E‖z - w‖² = (1 + 1/s) E‖z - μ‖²`.

    `between` is the mean squared length of the prototypes about their origin.
    """
    mean = nearest.mean(-1) if mask is None else nearest.where(mask, 0).sum(-1) / mask.sum(-1)
    spread = 2 * mean / (1 + 1 / shots).mean(-1)
    # A query that repeats the examples has no spread of its own: what is left is rounding of the distances between
    # prototypes. If these coincide too, any scale will do.
    spread = spread.clamp(min=torch.finfo(spread.dtype).eps * between)
    return spread.where(spread > 0, 1)
