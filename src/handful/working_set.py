"""The working set: while a mixture is fitted, classes that have lost their mass leave the computation.

In a query with few classes present, most of the K columns of every array belong to classes whose share falls below any
count within a few iterations. `narrow` goes on without them. At the end `would_return` checks each class that was left
out against the converged solution: where none would take mass again, the answer is a fixed point of the iteration over
all classes too, and the check is the proof.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Generic, TypeVar

import torch
from torch import Tensor

from handful.numerics.geometry import Space
from handful.numerics.simplex import SoftLabels
from handful.shapes import Bool, Float, Int

P = TypeVar("P")

# A class with a smaller share of the query than this leaves the working set.
NEGLIGIBLE_SHARE = 1e-6


@dataclass(frozen=True)
class Problem(Generic[P]):
    """What stays the same while a task is solved."""

    space: Space[P]
    query_mask: Bool[Tensor, "task query"] | None
    n_query: Float[Tensor, "task"]
    tilt: Float[Tensor, "task"]
    classes: Int[Tensor, "task class"] | None = None  # which of the task's classes are in `space`; None means all


@dataclass(frozen=True)
class State(Generic[P]):
    """What one iteration hands to the next."""

    prototypes: P
    dual: Float[Tensor, "#task class"]


def mean_move(problem: Problem[P], new: State[P], old: State[P]) -> Float[Tensor, "task"]:
    """`mean_k ‖w_k - w_k'‖` over all classes of the task; a class that is out stands still."""
    moves = problem.space.moves(new.prototypes, old.prototypes)
    return moves.where(new.dual > -torch.inf, 0).sum(-1) / problem.space.n_classes


def narrow(problem: Problem[P], state: State[P]) -> tuple[Problem[P], State[P]]:
    """Put out the classes that hold next to nothing, and go on without their columns once those are half or more.

    Who is out is decided task by task. How many columns remain is set by the task that needs most; the others fill up
    with classes that are out, which changes nothing.
    """
    alive = state.dual > 1 + math.log(NEGLIGIBLE_SHARE)
    state = State(state.prototypes, state.dual.where(alive, -torch.inf))
    n_alive = int(alive.sum(-1).max())
    if 2 * n_alive > state.dual.shape[-1]:
        return problem, state
    kept = state.dual.topk(n_alive).indices.sort().values
    space, prototypes = problem.space.restrict(state.prototypes, kept)
    classes = kept if problem.classes is None else problem.classes.gather(-1, kept)
    return replace(problem, space=space, classes=classes), State(prototypes, state.dual.gather(-1, kept))


def widen(problem: Problem[P], u: SoftLabels) -> SoftLabels:
    """Give the classes that were left out no weight."""
    if problem.classes is None:
        return u
    shape = (*u.weights.shape[:-1], problem.space.n_classes)
    index = problem.classes.unsqueeze(1).expand_as(u.weights)
    weights = u.weights.new_zeros(shape).scatter_(-1, index, u.weights)
    shifted = u.shifted.new_full(shape, -torch.inf).scatter_(-1, index, u.shifted)
    return replace(u, weights=weights, shifted=shifted)


def would_return(problem: Problem[P], u: SoftLabels, proportions: Float[Tensor, "task class"]) -> Bool[Tensor, "task"]:
    """Whether a class that was left out would take mass again: `(1/|Q|) Σ_n p(z_n|k) / Σ_j π_j p(z_n|j) > 1`.

    This is the factor by which an iteration multiplies a vanishing proportion at λ = |Q|; above λ = |Q| a vanishing
    proportion always vanishes faster.
    """
    support = problem.space.support
    log_ratio = problem.space.scores(support.mean()) + (1 - u.log_normaliser()).unsqueeze(-1)
    if problem.query_mask is not None:
        log_ratio = log_ratio.where(problem.query_mask.unsqueeze(-1), -torch.inf)
    log_growth = log_ratio.logsumexp(-2) - problem.n_query.log().unsqueeze(-1)
    return ((log_growth > 0) & (proportions == 0) & (problem.tilt == 1).unsqueeze(-1)).any(-1)
