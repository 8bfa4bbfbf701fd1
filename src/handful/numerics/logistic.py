"""Multinomial logistic regression, min over W, b of  Σ_n a_n CE(y_n, x_n W + b) + |W|²/(2C), by L-BFGS.

b has no penalty, so moving the origin of the points does not change the minimum. `logistic` compares every example
with all K classes: N·K·d per evaluation. `logistic_near` compares it with the M classes nearest to its own, N·M·d, and
penalises the distance from a given start.

With fewer examples than features, W lies in the span of the examples. The points are then rotated into it first.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor

from handful.shapes import Float, Int

# Pairs of steps and changes of the gradient that L-BFGS remembers, and evaluations that it may use.
MEMORY, MOST_STEPS, MOST_HALVINGS = 10, 200, 20
# A step must lower the loss by this share of what the slope promises (Armijo).
SUFFICIENT = 1e-4
# Stop when the gradient is this share of that at zero: logits then differ from converged ones by less than 1 %.
TOLERANCE = 1e-3
# Numbers in one block of logits, or of gathered classes; blocks bound the memory and fit a second-level cache.
BLOCK_NUMBERS = 2**19
# Examples of one class that are compared with its neighbours in one product.
MOST_TOGETHER = 16


class Linear(NamedTuple):
    """Logits `x W_k + b_k`."""

    weights: Float[Tensor, "class dim"]
    offsets: Float[Tensor, "class"]


def logistic(
    points: Float[Tensor, "point dim"],
    codes: Int[Tensor, "point"],
    n_classes: int,
    inverse_ridge: float,
    *,
    example_weights: Float[Tensor, "point"] | None = None,
    tolerance: float = TOLERANCE,
) -> Linear:
    """Compare every example with all classes.

    Examples
    --------
    >>> points = torch.tensor([[1.0, 0.0], [0.9, 0.1], [0.0, 1.0]])
    >>> head = logistic(points, torch.tensor([0, 0, 1]), 2, inverse_ridge=30.0)
    >>> (points @ head.weights.T + head.offsets).argmax(1).tolist()
    [0, 0, 1]
    """
    inner, basis = _in_span(points)
    counts = points.new_ones(len(points)) if example_weights is None else example_weights.to(points)
    scale, dim = 1 / float(counts.sum()), inner.shape[1]
    rows = max(1, BLOCK_NUMBERS // n_classes)
    blocks = [
        (inner[start : start + rows], codes[start : start + rows].unsqueeze(1), counts[start : start + rows] * scale)
        for start in range(0, len(inner), rows)
    ]
    pull = scale / inverse_ridge

    def value(flat: Tensor) -> tuple[float, Tensor]:
        weights, offsets = flat[: n_classes * dim].view(n_classes, dim), flat[n_classes * dim :]
        gradient = torch.empty_like(flat)
        down, across = gradient[: n_classes * dim].view(n_classes, dim), gradient[n_classes * dim :].zero_()
        torch.mul(weights, pull, out=down)
        loss = torch.zeros((), dtype=torch.float64, device=flat.device)
        for block, own, share in blocks:
            logits = torch.addmm(offsets, block, weights.T)
            loss += _excess(logits, own, share)
            down.addmm_(logits.T, block)
            across += logits.sum(0)
        return float(loss) + 0.5 * pull * float(weights.square().sum()), gradient

    begin = inner.new_zeros(n_classes * (dim + 1))
    steepest = float(value(begin)[1].norm())
    found = _descend(value, begin, tolerance * steepest)
    weights = found[: n_classes * dim].view(n_classes, dim)
    return Linear(weights if basis is None else weights @ basis.T, found[n_classes * dim :])


def logistic_near(
    points: Float[Tensor, "point dim"],
    codes: Int[Tensor, "point"],
    near: Int[Tensor, "class rival"],
    start: Linear,
    inverse_ridge: float,
    offset_ridge: float,
    *,
    example_weights: Float[Tensor, "point"] | None = None,
    tolerance: float = TOLERANCE,
) -> Linear:
    """Compare every example with the classes `near[y_n]`, of which its own must be the first.

    The penalty is `|W - W0|²/(2C) + |b - b0|²/(2C0)`, with W0 and b0 from `start`, C the `inverse_ridge` and C0 the
    `offset_ridge`. Without the second term, the offset of a class that no other class is compared with could grow
    without limit, and the class would win items far from it. The examples of one class share their rivals, so these are
    gathered once per class and not once per example.

    Examples
    --------
    >>> points = torch.nn.functional.normalize(torch.tensor([[1.0, 0.1], [0.9, 0.0], [0.1, 1.0], [0.0, 0.8]]), dim=1)
    >>> codes, means = torch.tensor([0, 0, 1, 1]), torch.eye(2)
    >>> near, start = nearest_classes(means, 2), Linear(20 * means, torch.zeros(2))
    >>> head = logistic_near(points, codes, near, start, inverse_ridge=30.0, offset_ridge=30.0)
    >>> (points @ head.weights.T + head.offsets).argmax(1).tolist()
    [0, 0, 1, 1]
    """
    inner, basis = _in_span(points)
    n_classes, origin = len(near), start.weights if basis is None else start.weights @ basis
    dim, cut = inner.shape[1], len(near) * inner.shape[1]
    counts = points.new_ones(len(points)) if example_weights is None else example_weights.to(points)
    scale = 1 / float(counts.sum())
    pull, lift, blocks = scale / inverse_ridge, scale / offset_ridge, _by_class(inner, codes, near, counts * scale)

    def value(flat: Tensor) -> tuple[float, Tensor]:
        weights, offsets = flat[:cut].view(n_classes, dim), flat[cut:]
        gradient = torch.empty_like(flat)
        down, across = gradient[:cut].view(n_classes, dim), gradient[cut:]
        torch.sub(weights, origin, out=down)
        torch.sub(offsets, start.offsets, out=across)
        loss = 0.5 * (pull * down.square().sum() + lift * across.square().sum()).double()
        down *= pull
        across *= lift
        for block, rivals, share in blocks:
            n, together, _ = block.shape
            there = weights.index_select(0, rivals.flatten()).view(n, -1, dim)
            logits = torch.baddbmm(offsets[rivals].unsqueeze(1), block, there.mT)
            table = logits.view(n * together, -1)
            loss += _excess(table, torch.zeros_like(table[:, :1], dtype=torch.int64), share)
            down.index_add_(0, rivals.flatten(), torch.bmm(logits.mT, block, out=there).view(-1, dim))
            across.index_add_(0, rivals.flatten(), logits.sum(1).flatten())
        return float(loss), gradient

    begin = torch.cat([origin.flatten(), start.offsets])
    # Where the start is nearly the minimum, its gradient is too small to compare others with.
    steepest = float(value(torch.zeros_like(begin))[1].norm())
    found = _descend(value, begin, tolerance * steepest)
    weights = found[:cut].view(n_classes, dim)
    if basis is not None:
        weights = start.weights + (weights - origin) @ basis.T
    return Linear(weights, found[cut:])


def nearest_classes(means: Float[Tensor, "class dim"], most: int) -> Int[Tensor, "class rival"]:
    """Return each class itself and then the classes with the nearest means, `most` in all or as many as there are.

    Examples
    --------
    >>> nearest_classes(torch.tensor([[0.0], [1.0], [3.0]]), 2).tolist()
    [[0, 1], [1, 0], [2, 1]]
    """
    most, rows = min(most, len(means)), max(1, BLOCK_NUMBERS // len(means))
    halves = means.square().sum(1).mul_(0.5)
    found = []
    for start in range(0, len(means), rows):
        part = means[start : start + rows]
        nearness = torch.addmm(-halves, part, means.T)
        itself = torch.arange(start, start + len(part), device=means.device).unsqueeze(1)
        nearness.scatter_(1, itself, torch.inf)
        found.append(nearness.topk(most).indices)
    return torch.cat(found)


def _excess(logits: Float[Tensor, "point class"], own: Int[Tensor, "point 1"], share: Float[Tensor, "point"]) -> Tensor:
    """Return Σ share · CE; the logits are overwritten with their gradient, share · (softmax - one-hot)."""
    top = logits.amax(1, keepdim=True)
    behind = top - logits.gather(1, own)
    total = logits.sub_(top).exp_().sum(1, keepdim=True)
    loss = torch.dot(behind.add_(total.log()).squeeze(1).double(), share.double())
    logits.mul_(share.unsqueeze(1) / total).scatter_add_(1, own, -share.unsqueeze(1))
    return loss


def _in_span(
    points: Float[Tensor, "point dim"],
) -> tuple[Float[Tensor, "point inner"], Float[Tensor, "dim inner"] | None]:
    """Return coordinates in an orthonormal basis of the span of the points, and that basis, if it is smaller."""
    if len(points) >= points.shape[1]:
        return points.contiguous(), None
    basis, triangle = torch.linalg.qr(points.T)
    return triangle.T.contiguous(), basis


def _by_class(
    points: Float[Tensor, "point dim"],
    codes: Int[Tensor, "point"],
    near: Int[Tensor, "class rival"],
    share: Float[Tensor, "point"],
) -> list[tuple[Float[Tensor, "piece together dim"], Int[Tensor, "piece rival"], Float[Tensor, "both"]]]:
    """Cut the examples into pieces of one class each and put pieces of equal length together: nothing is padded."""
    order = codes.argsort(stable=True)
    shots = torch.bincount(codes, minlength=len(near))
    rank = torch.arange(len(codes), device=codes.device) - (shots.cumsum(0) - shots)[codes[order]]
    # The last piece of a class has what is left of it.
    left = shots[codes[order]] - rank // MOST_TOGETHER * MOST_TOGETHER
    length = left.clamp(max=MOST_TOGETHER)
    blocks = []
    for together in torch.unique(length).tolist():
        chosen = order[length == together]
        size = max(1, BLOCK_NUMBERS // ((near.shape[1] + together) * points.shape[1])) * together
        for start in range(0, len(chosen), size):
            rows = chosen[start : start + size]
            block = points[rows].view(-1, together, points.shape[1])
            blocks.append((block, near[codes[rows[::together]]], share[rows]))
    return blocks


def _descend(value: Callable[[Tensor], tuple[float, Tensor]], start: Tensor, enough: float) -> Tensor:
    """Minimise by L-BFGS with backtracking from `start` until the gradient is at most `enough`."""
    here, (loss, gradient) = start, value(start)
    steps: list[tuple[Tensor, Tensor, float]] = []
    rounding = 4 * torch.finfo(start.dtype).eps
    for _ in range(MOST_STEPS):
        size = float(gradient.norm())
        if size <= enough:
            break
        direction = _newton(gradient, steps) if steps else gradient / size
        slope, step = float(torch.dot(gradient, direction)), 1.0
        for _ in range(MOST_HALVINGS):
            there = torch.sub(here, direction, alpha=step)
            new_loss, new_gradient = value(there)
            # What the step gains can be less than the rounding of the loss.
            if new_loss <= loss - SUFFICIENT * step * slope + rounding * abs(loss):
                break
            step /= 2
        else:
            break
        moved, turned = there - here, new_gradient - gradient
        bend = float(torch.dot(moved, turned))
        if bend > rounding * float(torch.dot(turned, turned)):
            steps = [*steps, (moved, turned, 1 / bend)][-MEMORY:]
        here, loss, gradient = there, new_loss, new_gradient
    return here


def _newton(gradient: Tensor, steps: list[tuple[Tensor, Tensor, float]]) -> Tensor:
    """Return the inverse Hessian times the gradient, as far as the steps remember it (the two-loop recursion)."""
    direction, factors = gradient.clone(), []
    for moved, turned, inverse in reversed(steps):
        factors.append(inverse * float(torch.dot(moved, direction)))
        direction.sub_(turned, alpha=factors[-1])
    _, turned, inverse = steps[-1]
    direction /= inverse * float(torch.dot(turned, turned))
    for (moved, turned, inverse), factor in zip(steps, reversed(factors), strict=True):
        direction.add_(moved, alpha=factor - inverse * float(torch.dot(turned, direction)))
    return direction
