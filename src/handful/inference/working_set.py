"""The working set: while a mixture is fitted, classes that lose their mass leave the computation.

In a query with few classes present, most of the K columns of every array belong to classes whose share becomes
negligible within a few iterations. `narrow` drops them. At the end `would_return` checks each dropped class against the
converged solution. If none would gain mass again, the answer is also a fixed point of the iteration over all classes.

`iterate` runs the first iterations block by block, on arrays of all classes that fit the cache. The many iterations
that follow run on few classes of all tasks together, so that each call into the array library has more to do.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Generic, TypeVar

import torch
from torch import Tensor

from handful.inference.frame import Frame, Labels
from handful.numerics.fixed_point import Outcome, fixed_point
from handful.numerics.geometry import Space, masked
from handful.numerics.groups import Part, joined, width_for
from handful.numerics.simplex import SoftLabels
from handful.shapes import Bool, Float, Int

P = TypeVar("P")

# A class leaves when its share of the query, falling at its present rate for that many more iterations, would end below
# this. Most shares fall faster and faster and get there sooner; one that hardly falls must itself be this small.
LOOK_AHEAD = 4
NEGLIGIBLE_SHARE = 1e-11
# Iterations that are run block by block; no task converges that early.
FIRST_ITERATIONS = 5
# If the log-likelihood of a query fell by more than this since the first iteration, its task is solved again.
LARGEST_FALL = 35.0


@dataclass(frozen=True)
class WorkingSetProblem(Generic[P]):
    """What stays the same while a task is solved."""

    space: Space[P]
    query_mask: Bool[Tensor, "task query"] | None
    n_query: Float[Tensor, "task"]
    tilt: Float[Tensor, "task"]
    classes: Int[Tensor, "task class"] | None = None  # which of the task's classes are in `space`; None means all


@dataclass(frozen=True)
class WorkingSetState(Generic[P]):
    """What one iteration passes to the next."""

    prototypes: P
    dual: Float[Tensor, "#task class"]


@dataclass(frozen=True)
class WorkingSetLabels:
    """Soft labels over the classes in the working set, and which those are."""

    u: SoftLabels
    classes: Int[Tensor, "task class"] | None


@dataclass(frozen=True)
class First:
    """Labels over all classes of the queries of a block, from the very first iteration."""

    weights: Float[Tensor, "task query class"]
    log_normaliser: Float[Tensor, "task query"]
    tilt: Float[Tensor, "task"]


@dataclass(frozen=True)
class Start(Generic[P]):
    """A block after its first iterations."""

    part: Part[WorkingSetProblem[P], WorkingSetState[P]]
    first: First


Step = Callable[[WorkingSetProblem[P], WorkingSetState[P]], tuple[WorkingSetState[P], SoftLabels]]


def mean_move(problem: WorkingSetProblem[P], new: WorkingSetState[P], old: WorkingSetState[P]) -> Float[Tensor, "task"]:
    """`mean_k ‖w_k - w_k'‖` over all classes of the task; a dropped class does not move."""
    moves = problem.space.moves(new.prototypes, old.prototypes)
    return moves.where(new.dual > -torch.inf, 0).sum(-1) / problem.space.n_classes


def narrow(
    problem: WorkingSetProblem[P], state: WorkingSetState[P], previous: WorkingSetState[P]
) -> tuple[WorkingSetProblem[P], WorkingSetState[P]]:
    """Drop the classes whose share is vanishing, and remove columns once half of them or more can go.

    Which classes are dropped is decided per task. The task that needs most sets the number of columns; the others fill
    up with dropped classes, which changes nothing.
    """
    fall = (state.dual - previous.dual).clamp(max=0)
    alive = state.dual + LOOK_AHEAD * fall > 1 + math.log(NEGLIGIBLE_SHARE)
    state = WorkingSetState(state.prototypes, state.dual.where(alive, -torch.inf))
    width = width_for(int(alive.sum(-1).max()), state.dual.shape[-1])
    return (problem, state) if 2 * width > state.dual.shape[-1] else restrict(problem, state, width)


def restrict(
    problem: WorkingSetProblem[P], state: WorkingSetState[P], width: int
) -> tuple[WorkingSetProblem[P], WorkingSetState[P]]:
    """Keep the `width` columns of the classes that hold most."""
    if width >= state.dual.shape[-1]:
        return problem, state
    kept = state.dual.topk(width).indices.sort().values
    space, prototypes = problem.space.restrict(state.prototypes, kept)
    classes = kept if problem.classes is None else problem.classes.gather(-1, kept)
    return replace(problem, space=space, classes=classes), WorkingSetState(prototypes, state.dual.gather(-1, kept))


def iterate(
    step: Step[Any],
    pose: Callable[[Frame], tuple[WorkingSetProblem[Any], WorkingSetState[Any]]],
    frame: Frame,
    blocks: Iterable[Frame],
    *,
    max_iter: int,
    tol: float,
) -> tuple[Outcome[Labels], Bool[Tensor, "task"]]:
    """Iterate `step` on a shrinking set of classes until each task converges.

    Returns
    -------
    outcome : Outcome[Labels]
        Labels over all classes; dropped classes have weight zero.
    wrong : Bool[Tensor, "task"]
        Tasks in which a dropped class would gain mass again: their outcome is invalid.
    """
    n_first = min(FIRST_ITERATIONS, max_iter - 1)
    starts = [_start(step, *pose(block), n_first) for block in blocks]
    firsts, groups = [start.first for start in starts], joined([start.part for start in starts], restrict)
    del starts  # the groups now hold everything
    whole = _blank(frame)
    n_iter = torch.empty(frame.task.n_tasks, dtype=torch.int64, device=frame.task.device)
    converged = torch.empty_like(n_iter, dtype=torch.bool)
    while groups:
        rows, problem, state = groups.pop()
        outcome = fixed_point(
            partial(_labelled, step),
            mean_move,
            problem,
            state,
            n_tasks=len(rows),
            device=rows.device,
            max_iter=max_iter,
            tol=tol,
            narrow=narrow,
            merge=partial(_write, whole, frame, rows),
            done=n_first,
        )
        n_iter[rows], converged[rows] = outcome.n_iter, outcome.converged
    return Outcome(whole, n_iter, converged, None), would_return(frame, firsts, whole)


def would_return(frame: Frame, firsts: list[First], labels: Labels) -> Bool[Tensor, "task"]:
    """Whether a dropped class would gain mass again: `(1/|Q|) Σ_n p(z_n|k) / Σ_j π_j p(z_n|j) > 1`.

    This is the factor by which an iteration multiplies a vanishing proportion at λ = |Q|; above λ = |Q| a vanishing
    proportion always vanishes faster. A dropped class is at its support mean, as in the first iteration, so
    `p(z_n|k) / Σ_j π_j p(z_n|j) = K u_nk exp(L_n - L_n')`, with U and the log-normalisers L from the first iteration,
    at `π_j = 1/K`, and the present L'. Weights that counted as zero in the first iteration can matter only if L fell by
    more than `LARGEST_FALL`; a task in which this happens is reported as wrong.
    """
    start, wrong = 0, []
    for block in firsts:
        rows = slice(start, start + len(block.weights))
        start = rows.stop
        falls = block.log_normaliser - labels.log_normaliser[rows]
        if frame.query_mask is not None:
            falls = falls.where(frame.query_mask[rows], -torch.inf)
        growth = torch.bmm(falls.clamp(max=LARGEST_FALL).exp_().unsqueeze(1), block.weights).squeeze(1)
        growth = growth * (frame.task.n_classes / frame.n_query[rows]).unsqueeze(-1)
        returns = ((growth > 1) & (labels.proportions[rows] == 0)).any(-1)
        wrong.append((returns | (falls.amax(-1) > LARGEST_FALL)) & (block.tilt == 1))
    return torch.cat(wrong)


def _start(step: Step[P], problem: WorkingSetProblem[P], state: WorkingSetState[P], n_first: int) -> Start[P]:
    """Run the first iterations of a block."""
    first: SoftLabels | None = None
    for _ in range(n_first):
        previous = state
        state, u = step(problem, state)
        first = first or u
        problem, state = narrow(problem, state, previous)
    if first is None:
        _, first = step(problem, state)
    needs = (state.dual > -torch.inf).sum(-1).expand(len(first.weights))
    return Start(Part(problem, state, needs), First(first.weights, first.log_normaliser(), problem.tilt))


def _labelled(
    step: Step[P], problem: WorkingSetProblem[P], state: WorkingSetState[P]
) -> tuple[WorkingSetState[P], WorkingSetLabels]:
    state, u = step(problem, state)
    return state, WorkingSetLabels(u, problem.classes)


def _blank(frame: Frame) -> Labels:
    """Labels in which every class has weight zero."""
    task = frame.task
    shape = (task.n_tasks, task.query_slots, task.n_classes)
    like = frame.n_query
    log_u = torch.full(shape, -torch.inf, dtype=like.dtype, device=like.device)
    return Labels(log_u, like.new_zeros(shape[0], shape[2]), like.new_zeros(shape[:2]))


def _write(
    whole: Labels, frame: Frame, rows: Int[Tensor, "some"], pieces: list[tuple[Tensor, WorkingSetLabels]]
) -> Labels:
    """Write the answers of narrowed problems into labels over all classes, which are blank before."""
    n_query, n_classes = whole.log_assignments.shape[1:]
    for positions, answer in pieces:
        at, u = rows[positions], answer.u
        weights = masked(u.weights, None if frame.query_mask is None else frame.query_mask[at])
        shares = weights.sum(-2) / frame.n_query[at].unsqueeze(-1)
        log_u = u.log() if frame.query_mask is None else u.log().where(frame.query_mask[at].unsqueeze(-1), -torch.inf)
        whole.log_normaliser[at] = u.log_normaliser()
        if answer.classes is None:
            whole.log_assignments[at], whole.proportions[at] = log_u, shares
            continue
        whole.proportions[at.unsqueeze(-1), answer.classes] = shares
        first = (at.unsqueeze(-1) * n_query + torch.arange(n_query, device=at.device)).unsqueeze(-1) * n_classes
        whole.log_assignments.view(-1)[first + answer.classes.unsqueeze(1)] = log_u
    return whole
