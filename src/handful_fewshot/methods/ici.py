"""LR+ICI: instance credibility inference (Wang, Xu, Liu, Zhang, Fu, CVPR 2020).

Logistic regression that accepts its own labels of the query a few at a time, the most credible first. With X the first
d' principal components of support and query, Y all labels (true ones and the classifier's own, one-hot) and
`X̃ = I - X(XᵀX)⁻¹Xᵀ`, incidental parameters γ correct what a linear fit on X cannot explain:

    min_γ  (1/2N)‖X̃Y - X̃γ‖² + α Σ_i ‖γ_i‖.

The smaller the α at which the row γ_i is already zero, the more credible the query point i. Until every point is
accepted:

    1. label the query with the classifier;
    2. follow the path over α;
    3. accept the `step` most credible new points of each class;
    4. fit the classifier again on the support and all accepted points.

The classifier gets the points in at most N coordinates. This is exact, because its penalty does not depend on
rotations, and its intercept absorbs shifts.

The path is solved as a Huber regression. With U an orthonormal basis of X and λ = Nα, `X̃ = I - U Uᵀ` is a projection,
so the first term is the error of the best fit, `½‖X̃(Y - γ)‖² = min_B ½‖Y - γ - U B‖²`, and for given B the best γ is a
soft threshold:

    r_i = y_i - Bᵀu_i,    γ_i = max(0, 1 - λ/‖r_i‖) r_i,    what remains is  min_B Σ_i huber_λ(‖r_i‖).

So a group lasso with N·K unknowns, at N²K operations per sweep of coordinate descent, becomes a robust regression with
d'K unknowns. It is solved by reweighted least squares; each round lowers the objective:

    w_i = min(1, λ/‖r_i‖),    B = (Uᵀ diag(w) U)⁻¹ Uᵀ diag(w) Y,

and every two rounds are extrapolated, if that lowers it more. As y_i is one-hot,
`‖r_i‖² = 1 - 2 u_iᵀ b_{y_i} + u_iᵀ B Bᵀ u_i`: a round costs N d'², not N K. All λ are solved together.
"""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from handful.shapes import Bool, Float, Int
from handful_fewshot.frame import OneAnswer, OneTask, first_of_each_class, solve_each
from handful_fewshot.methods.method import Method, Options, above, among, at_least
from handful_fewshot.solution import Solution
from handful_fewshot.task import TaskBatch

TIES = ("residual", "position")
# The grid of α of the authors' path: 100 values down to a thousandth of the one at which all γ are zero.
N_LEVELS = 100
SMALLEST_LEVEL = 1e-3
# A level is done when no residual changes by more than this share of λ, the threshold that decides what is zero.
TOLERANCE = 1e-6
MAX_ROUNDS = 2000
# Two rounds are extrapolated by at most this factor; what lowers the objective less than they do is not taken.
FARTHEST = 64.0
# Coordinates in this range are passed to the classifier unscaled.
SMALLEST = 2.0**-12
LARGEST = 2.0**12
# Maximum number of steps of the classifier's solver.
CLASSIFIER_STEPS = 1000


@dataclass(frozen=True)
class IciOptions(Options):
    """Options of LR+ICI.

    **Assumes** that a label the classifier guessed is credible when a linear model on a few principal components
    explains it; nothing about proportions, but in each round `step` guesses are added to every class that has any.
    **Use it** as a self-training baseline around logistic regression. With few components many points vanish at the
    same α. The public code then takes the first in the query, so shuffling a query changes its answer; here the one
    with the smaller residual goes first. With `ties="position"`, the public code's rule, predictions equal those of
    the authors' class. There are no prototypes and no objective; `converged` says whether all points were added.
    **Cost.** One singular value decomposition and about five logistic regressions on min(N, d) coordinates, task by
    task.
    """

    n_components: int = at_least(1, 2)  # d'; in the paper's tables 2 on mini-ImageNet, 5 elsewhere
    step: int = at_least(1, 5)  # most points per class accepted in one round
    inverse_penalty: float = above(0, 10.0)  # C of the logistic regression
    max_iter: int = at_least(0, 100)  # most rounds; zero gives logistic regression on the support
    # Which point comes first when the rows γ_i of several become zero at the same α: the one with the smaller
    # residual, or, as in the public code, the first of the query; the answer then depends on the query's order.
    ties: str = among(TIES, "residual")


class Classifier:
    """Multinomial logistic regression; every fit starts from the previous one.

    Multiplying the points by f and replacing C by C/f² divides the weights by f and leaves the predictions unchanged.
    So points far from one, for which the solver fails, can be given multiplied by `factor`.
    """

    def __init__(self, inverse_penalty: float, factor: float = 1.0) -> None:
        from sklearn.linear_model import LogisticRegression

        penalty = inverse_penalty / factor / factor
        self._model: Any = LogisticRegression(C=penalty, max_iter=CLASSIFIER_STEPS, warm_start=True)

    def fit(self, points: npt.NDArray[np.float64], labels: npt.NDArray[np.int64]) -> None:
        """Fit to labelled points; if the solver does not converge, the result of its last step is used."""
        from sklearn.exceptions import ConvergenceWarning

        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            self._model.fit(points, labels)

    def predict(self, points: npt.NDArray[np.float64]) -> npt.NDArray[np.int64]:
        """Return the most probable class of each point."""
        return np.asarray(self._model.predict(points), dtype=np.int64)

    def log_probabilities(self, points: npt.NDArray[np.float64]) -> Tensor:
        """`ln p_nk`; with two classes the model has a single score."""
        scores = torch.from_numpy(self._model.decision_function(points))
        if scores.ndim == 1:
            scores = torch.stack([-0.5 * scores, 0.5 * scores], -1)
        return scores.log_softmax(-1)


def principal_coordinates(
    points: Float[Tensor, "point dim"], n_components: int
) -> tuple[Float[Tensor, "point rank"], Float[Tensor, "point component"]]:
    """Return the centred points in principal coordinates, and an orthonormal basis of the first components."""
    left, lengths, _ = torch.linalg.svd(points - points.mean(0), full_matrices=False)
    numerical_rank = int((lengths > lengths[0] * len(points) * torch.finfo(points.dtype).eps).sum())
    return left * lengths, left[:, : min(n_components, numerical_rank)].contiguous()


def huber(norms: Float[Tensor, "level point"], level: Float[Tensor, "level 1"]) -> Float[Tensor, "level"]:
    """`Σ_i huber_λ(‖r_i‖)`: half a square up to λ, a line from there."""
    inside = norms.clamp(max=level)
    return (inside * (norms - 0.5 * inside)).sum(-1)


def extrapolated(
    start: Float[Tensor, "level component class"],
    first: Float[Tensor, "level component class"],
    second: Float[Tensor, "level component class"],
) -> Float[Tensor, "level component class"]:
    """`B - 2a r + a² v` after two rounds from B, with r the first step, v what the second differs by, `a = -‖r‖/‖v‖`.

    Rounds get shorter by nearly the same factor each, so two of them tell where they lead (Varadhan and Roland,
    Scandinavian Journal of Statistics, 2008). At a = -1 this is the second round itself.
    """
    step = first - start
    bend = second - first - step
    lengths = [torch.linalg.vector_norm(part, dim=(1, 2)) for part in (step, bend)]
    a = -(lengths[0] / lengths[1].clamp(min=torch.finfo(step.dtype).tiny)).clamp(min=1, max=FARTHEST)[:, None, None]
    farther: Tensor = start - 2 * a * step + a.square() * bend
    return farther


def outlier_path(
    basis: Float[Tensor, "point component"],
    labels: Int[Tensor, "point"],
    n_classes: int,
    n_levels: int,
    smallest: float,
) -> tuple[Float[Tensor, "level"], Float[Tensor, "level point"]]:
    """Return ascending levels λ and `‖r_i‖` of every point at each; `‖γ_i‖ = max(0, ‖r_i‖ - λ)`.

    Levels are equally spaced in logarithms, from `smallest · λ_max` to λ_max, where γ = 0. The basis U has orthonormal
    columns.
    """
    n_components = basis.shape[1]
    one_hot = torch.nn.functional.one_hot(labels, n_classes).to(basis.dtype)
    squares = (basis.unsqueeze(-1) * basis.unsqueeze(-2)).flatten(1)  # u_i u_iᵀ, one row per point

    def residual_norms(fit: Float[Tensor, "level component class"]) -> Float[Tensor, "level point"]:
        explained = (fit.index_select(-1, labels) * basis.mT).sum(1)
        return ((fit @ fit.mT).flatten(1) @ squares.mT).sub_(explained, alpha=2).add_(1).clamp_(min=0).sqrt_()

    def refitted(
        norms: Float[Tensor, "level point"], level: Float[Tensor, "level 1"]
    ) -> Float[Tensor, "level component class"]:
        weights = (level / norms).clamp_(max=1)
        normal = (weights @ squares).reshape(-1, n_components, n_components)
        target = (weights.unsqueeze(1) * basis.mT).flatten(0, 1) @ one_hot
        fit: Tensor = torch.linalg.solve(normal, target.reshape(-1, n_components, n_classes))
        return fit

    least_squares = (basis.mT @ one_hot).unsqueeze(0)
    start = residual_norms(least_squares)
    levels = start.max() * torch.logspace(math.log10(smallest), 0, n_levels, dtype=basis.dtype)
    residuals = torch.empty(n_levels, len(basis), dtype=basis.dtype)
    running = torch.arange(n_levels)
    fit = least_squares.expand(n_levels, -1, -1)
    norms = start.expand(n_levels, -1)
    for _ in range(MAX_ROUNDS // 2):
        level = levels[running].unsqueeze(-1)
        first = refitted(norms, level)
        of_first = residual_norms(first)
        residuals[running] = of_first
        moving = (of_first - norms).abs().amax(-1) > TOLERANCE * level.squeeze(-1)
        if not bool(moving.any()):
            break
        running, level, fit, first, of_first = (part[moving] for part in (running, level, fit, first, of_first))
        second = refitted(of_first, level)
        of_second = residual_norms(second)
        farther = extrapolated(fit, first, second)
        of_farther = residual_norms(farther)
        better = huber(of_farther, level) < huber(of_second, level)
        fit = farther.where(better[:, None, None], second)
        norms = of_farther.where(better[:, None], of_second)
    return levels, residuals


def most_credible(
    basis: Float[Tensor, "point component"],
    labels: Int[Tensor, "point"],
    waiting: Bool[Tensor, "point"],
    n_classes: int,
    options: IciOptions,
) -> Int[Tensor, "chosen"]:
    """Return the positions of the `step` most credible points of each class among those still waiting."""
    levels, residuals = outlier_path(basis, labels, n_classes, N_LEVELS, SMALLEST_LEVEL)
    uncorrected = residuals <= levels.unsqueeze(-1)  # γ_i = 0
    uncorrected[-1] = True  # the path starts at the largest level
    first_level = uncorrected.int().argmax(0)
    within = residuals.gather(0, first_level.unsqueeze(0)).squeeze(0)
    if options.ties == "position":
        within = torch.zeros_like(within)
    candidates = waiting.nonzero().squeeze(-1)
    keys = (first_level[candidates], within[candidates])
    return candidates[first_of_each_class(labels[candidates], keys, options.step)]


def solve_one(task: OneTask, options: IciOptions) -> OneAnswer:
    """Return `ln u_nk` of one task, the rounds taken, and whether all points were accepted; in double precision."""
    support, support_labels, query, n_classes = task
    if n_classes == 1:
        return query.new_zeros(len(query), 1), 0, True
    n_support = len(support)
    coordinates, basis = principal_coordinates(torch.cat([support, query]), options.n_components)
    largest = float(coordinates.abs().max())
    factor = 1.0 if largest == 0 or SMALLEST <= largest <= LARGEST else 2.0 ** -math.floor(math.log2(largest))
    points = (coordinates * factor).numpy()
    trusted = torch.arange(len(points)) < n_support
    classifier = Classifier(options.inverse_penalty, factor)
    classifier.fit(points[:n_support], support_labels.numpy())
    if basis.shape[1] == 0:  # all points coincide: credibility is undefined and irrelevant
        return classifier.log_probabilities(points[n_support:]), 0, True
    n_rounds = 0
    while n_rounds < options.max_iter and not bool(trusted.all()):
        n_rounds += 1
        labels = torch.cat([support_labels, torch.from_numpy(classifier.predict(points[n_support:]))])
        trusted[most_credible(basis, labels, ~trusted, n_classes, options)] = True
        classifier.fit(points[trusted.numpy()], labels[trusted].numpy())
    return classifier.log_probabilities(points[n_support:]), n_rounds, bool(trusted.all())


def solve(task: TaskBatch, options: IciOptions) -> Solution:
    """Solve the tasks one by one."""
    return solve_each(solve_one, task, options)


METHOD = Method(
    "ici",
    IciOptions,
    "l2",
    solve,
    "Wang, Xu, Liu, Zhang, Fu. Instance Credibility Inference for Few-Shot Learning. CVPR 2020.",
)
