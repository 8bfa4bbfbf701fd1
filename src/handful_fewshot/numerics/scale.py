"""The factor that turns distances into nats: found from the labelled points of a task and its unlabelled batch.

A method that reads `½‖z - w_k‖²` as nats assumes points of unit variance. For other features the factor c in
`½c²‖z - w_k‖²` is found in two steps.

1. **Calibration.** `θ = c²` maximises the likelihood of the labels of the support, each point as far from the mean of
   its own class as a new one would be, and one term for what is known without labels:

       Σ_n ln softmax_k( -½θ‖z_n - w_k‖² )_{y_n}  +  m (ln θ - θ/θ₀),     θ₀ = D / mean_Q ‖r_n‖²,

   with r_n the residual of point n of the batch from the nearest mean. θ₀ is the factor of unit Gaussians in D
   dimensions. It counts as m points; with one point per class it is all there is. Dimensions are correlated, so D is
   less than their number: `D = R^0.63`, with `R = 1 / mean cos²(r_n, r_m)` over points of different nearest means, the
   number of directions in which residuals are equally wide.
2. **Shares.** Calibrated probabilities are those of single points. EM for the shares of the classes adds up the
   evidence of a whole batch, whose points are wrong together, because a class has one mean. A softer scale allows for
   that, and too soft a scale joins classes. The calibrated probabilities p say how far points are from the means of
   their own classes, `T = Σ_n Σ_k p_nk (d_nk - min_j d_nj)` with `d_nk = ½‖z_n - w_k‖²`. The factor is the smallest one
   at which labels u of EM are not farther away,

       Σ_n Σ_k u_nk (d_nk - min_j d_nj) ≤ (1 + 1/K_e) T,     K_e = 1 / Σ_k π_k².

   The allowance is for chance: distances are alike within a class, so those of a batch are as good as K_e of them. A
   small margin is added, because too soft a scale costs more than too sharp a one.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from handful.shapes import Bool, Float, Int
from handful_fewshot.numerics.fixed_point import fixed_point
from handful_fewshot.numerics.geometry import Moments, Space, masked
from handful_fewshot.numerics.vectors import half_squared_distances, softmax, unit

# ln D / ln R, and m. On sentences, birds and letters, with and without noise, the likelihood of the labels of whole
# batches gives exponents of 0.59 to 0.78, where R is 9 to 860.
EXPONENT = 0.63
WEIGHT_OF_GUESS = 10.0
# R of a batch whose points have all the same nearest mean: that of most batches of sentences and birds.
USUAL_DIRECTIONS = 170.0
# Relative tolerance of θ, and the largest number of Newton steps; no step changes θ by more than a factor e.
TOLERANCE = 1e-4
MOST_STEPS = 50
# The smallest and the largest factor that is tried, relative to the calibrated one; each trial halves the interval of
# its logarithm. EM takes as many iterations each time.
LOWEST = 1 / 3
HIGHEST = 1.5
TRIALS = 5
ITERATIONS = 50
# The factor is this much larger than the smallest one that passes: too sharp costs little, too soft much.
MARGIN = 1.04
# Mean squared distance to the nearest mean below which points coincide, for points of unit length.
COINCIDE = 1e-6


@dataclass(frozen=True)
class LeftOut:
    """Distances of labelled points to the class means, as a new point of the same class would have them."""

    distances: Float[Tensor, "task point class"]  # ½‖z - w_k‖²
    own: Float[Tensor, "task point"]  # the one to its own class
    counts: Bool[Tensor, "task point"]  # whether a point has others of its class
    guess: Float[Tensor, "task"]  # θ₀


def found_factor(
    points: Float[Tensor, "task point dim"],
    labels: Int[Tensor, "task point"],
    mask: Bool[Tensor, "task point"] | None,
    moments: Moments,
    query: Float[Tensor, "task query dim"],
    query_mask: Bool[Tensor, "task query"] | None,
) -> Float[Tensor, "task"]:
    """Return c for points of about unit length; `moments` are those of the labelled points, padding is zero."""
    real = torch.ones_like(query[..., 0], dtype=torch.bool) if query_mask is None else query_mask
    distances = half_squared_distances(query, moments.mean())
    nearest = distances.amin(-1, keepdim=True)
    spread = 2 * _mean(nearest.squeeze(-1), real)
    dimensions = directions(query, moments.mean(), distances.argmin(-1), real) ** EXPONENT
    squares = calibrated(left_out(points, labels, mask, moments, dimensions / spread.clamp(min=COINCIDE)))
    beyond = distances - nearest
    expected = (softmax(-squares[:, None, None] * distances).weights * beyond).sum(-1)
    expected = _mean(expected, real)
    space = Space(query, query_mask, moments).in_few_coordinates()
    low = torch.full_like(squares, LOWEST).log()
    high = torch.full_like(squares, HIGHEST).log()
    for _ in range(TRIALS):
        middle = (low + high) / 2
        weights, shares = mixture(space, squares * (2 * middle).exp(), real)
        allowed = (1 + shares.square().sum(-1)) * expected
        near = _mean((weights * beyond).sum(-1), real) <= allowed
        low = low.where(near, middle)
        high = middle.where(near, high)
    return MARGIN * squares.sqrt() * high.exp()


def directions(
    query: Float[Tensor, "task query dim"],
    means: Float[Tensor, "task class dim"],
    nearest: Int[Tensor, "task query"],
    real: Bool[Tensor, "task query"],
) -> Float[Tensor, "task"]:
    """`R = 1 / mean cos²(r_n, r_m)` over pairs of points with different nearest means."""
    residuals = unit(query - means.gather(-2, nearest.unsqueeze(-1).expand_as(query)))
    pairs = (nearest.unsqueeze(-1) != nearest.unsqueeze(-2)) & real.unsqueeze(-1) & real.unsqueeze(-2)
    total = (residuals @ residuals.mT).square().where(pairs, 0).sum((-2, -1))
    found = pairs.sum((-2, -1)) / total.clamp(min=torch.finfo(total.dtype).tiny)
    return found.clamp(1, query.shape[-1]).where(total > 0, USUAL_DIRECTIONS)


def left_out(
    points: Float[Tensor, "task point dim"],
    labels: Int[Tensor, "task point"],
    mask: Bool[Tensor, "task point"] | None,
    moments: Moments,
    guess: Float[Tensor, "task"],
) -> LeftOut:
    """Distances to the means; the one to the mean of its own n_k points becomes `(n_k+1)/(n_k-1)` times as far.

    A point is part of the mean of its class, so `E‖z - w‖² = (1 - 1/n) s²` for points of variance s². For a new point
    it is `(1 + 1/n) s²`. To leave the point out of the mean would give `(1 + 1/(n-1)) s²`: the other classes, whose
    means have n points, would seem too near, by more than the evidence of a point in many dimensions.
    """
    labels = labels if mask is None else labels.where(mask, 0)
    sizes = moments.mass.gather(-1, labels)
    distances = half_squared_distances(points, moments.mean())
    farther = (sizes + 1) / (sizes - 1).clamp(min=1)
    own = distances.gather(-1, labels.unsqueeze(-1)).squeeze(-1) * farther
    counts = (sizes > 1) if mask is None else (sizes > 1) & mask
    return LeftOut(distances.scatter(-1, labels.unsqueeze(-1), own.unsqueeze(-1)), own, counts, guess)


def calibrated(problem: LeftOut) -> Float[Tensor, "task"]:
    """Return the θ of largest likelihood, by Newton's method in ln θ; each task stops on its own."""
    outcome = fixed_point(newton_step, log_move, problem, problem.guess, max_iter=MOST_STEPS, tol=TOLERANCE)
    return outcome.answer


def log_move(problem: LeftOut, new: Float[Tensor, "task"], old: Float[Tensor, "task"]) -> Float[Tensor, "task"]:
    """`|ln θ - ln θ'|`."""
    return (new / old).log().abs()


def newton_step(problem: LeftOut, squares: Float[Tensor, "task"]) -> tuple[Tensor, Tensor]:
    """`ln θ ← ln θ + g/h`: g is the slope of the likelihood in ln θ, h its curvature where g = 0."""
    p = softmax(-squares[:, None, None] * problem.distances).weights
    mean = (p * problem.distances).sum(-1)
    variance = (p * (problem.distances - mean.unsqueeze(-1)).square()).sum(-1)
    slope = (mean - problem.own).where(problem.counts, 0).sum(-1)
    curvature = variance.where(problem.counts, 0).sum(-1)
    g = squares * slope + WEIGHT_OF_GUESS * (1 - squares / problem.guess)
    h = squares.square() * curvature + WEIGHT_OF_GUESS
    new = squares * (g / h).clamp(-1, 1).exp()
    return new, new


def mixture(
    space: Space, squares: Float[Tensor, "task"], real: Bool[Tensor, "task query"]
) -> tuple[Float[Tensor, "task query class"], Float[Tensor, "task class"]]:
    """EM for unit Gaussians with free shares and means after `z ← θ^½ z`, from the labelled means; labels, shares."""
    by = squares.sqrt()[:, None, None]
    scaled = replace(space, query=by * space.query, support=Moments(space.support.mass, by * space.support.sums))
    n_query = real.sum(-1, keepdim=True)
    prototypes = scaled.support.mean()
    shares = torch.full_like(scaled.support.mass, 1 / scaled.support.mass.shape[-1])
    for _ in range(ITERATIONS):
        weights = masked(softmax(scaled.scores(prototypes) + shares.log().unsqueeze(-2)).weights, real)
        moments = scaled.moments(weights)
        prototypes = (scaled.support + moments).mean()
        shares = moments.mass / n_query
    return weights, shares


def _mean(values: Float[Tensor, "task query"], real: Bool[Tensor, "task query"]) -> Float[Tensor, "task"]:
    return values.where(real, 0).sum(-1) / real.sum(-1)
