"""Calibrated PADDLE: PADDLE's mixture, its scale asked of the support and its prior of the query. Nothing to tune.

Three things decide how published PADDLE does on new features, and none of them is in its objective: the scale of the
features, how strongly few classes are preferred, and how far prototypes may follow the query. Here

1. **scale**: features are multiplied by c, with c² from left-out pairs of the support (`handful.calibration`);
2. **prior**: the proportions π have a symmetric Dirichlet prior, `π ~ Dir(α, …, α)`, integrated out by variational
   Bayes, and α is the value that makes the expected counts of the query most probable: small where few classes occur,
   large where all do. With `D_nk = ½c²‖z_n - w_k‖²` to the support means and `N_k = Σ_Q u_nk`,

       u_n = softmax_k( -D_nk + ψ(N_k + α) ),     α ← α Σ_k [ψ(N_k + α) - ψ(α)] / (K [ψ(|Q| + Kα) - ψ(Kα)]),

   from α = 1/K. Uniform proportions (α → ∞) are taken instead if they have the higher evidence, or if α reaches the
   shots s: a prototype of s examples is off by a share 1/s of the spread, which makes counts uneven by itself;
3. **two passes**: a sharp scale keeps apart classes that are easily confused, but lets strays of a large class go to
   classes of their own; a soft one does the opposite. The more classes occur, the more there is to confuse. So the
   first pass is sharp, 1.6 c², and the second has `√(K̂/12.5) c²`, at most 1.6 c² and at least 0.4 c², where
   `K̂ = |Q|² / Σ_k N_k²` is the number of classes the first pass found, each weighed by its size;
4. **prototypes** move once, as PADDLE moves them, and the query is assigned again.

While proportions are sought (`handful.proportions`), classes that hold nothing leave the computation. They are checked
at the end, and a task in which one would return is solved again with all classes.

PADDLE's own `v_k = 1 + ln û_k` is the limit of `ψ(N_k + α)` for large counts and α → 0, but for constants. Dirichlet
prior and its estimation: Minka, *Estimating a Dirichlet distribution*, 2000. Frozen prototypes with free proportions:
Saerens, Latinne and Decaestecker 2002. The numbers of step 3 were chosen on three banks (docs/methods).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import torch
from torch import Tensor

from handful import proportions
from handful.calibration import squared_scale
from handful.frame import Frame, Labels
from handful.methods.method import Method, require
from handful.numerics.fixed_point import Outcome, merged, replace_tasks, take
from handful.numerics.geometry import Space
from handful.numerics.groups import Part, joined, width_for
from handful.numerics.simplex import SoftLabels, softmax
from handful.proportions import FIRST_ITERATIONS, Problem, State, expected_log, held, without_count
from handful.shapes import Bool, Float
from handful.solution import Solution
from handful.task import TaskBatch

# Step 3: factors on c²; with so many classes present, c² is used as the regression gives it.
SHARPEST, SOFTEST = 1.6, 0.4
CLASSES_AT_SCALE = 12.5


@dataclass(frozen=True)
class CalibratedPaddleOptions:
    """Options of calibrated PADDLE: only how long it may take.

    Attributes
    ----------
    max_iter, tol : int, float
        A pass ends when no class's expected count changes by more than `tol` queries, at the latest after `max_iter`
        iterations.
    """

    max_iter: int = 1000
    tol: float = 1e-3

    def __post_init__(self) -> None:
        """Refuse values outside their range."""
        require(self.max_iter >= 1, "max_iter must be at least 1", self.max_iter)
        require(self.tol >= 0, "tol must be at least 0", self.tol)


@dataclass(frozen=True)
class Block:
    """What the first look at some tasks leaves for the last."""

    space: Space[Any]
    scale: Float[Tensor, "task"]  # c²
    even: SoftLabels  # at uniform proportions and the sharp scale
    uniform: Float[Tensor, "task"]  # their evidence
    part: Part[Problem, State]


@dataclass(frozen=True)
class Passes:
    """What the two passes found, over all classes of each task."""

    factor: Float[Tensor, "task"]  # on c²
    spread_out: Bool[Tensor, "task"]  # whether proportions are taken as uniform
    before: State
    after: State  # the posterior from the labels that `before` gives
    has_column: Bool[Tensor, "task class"]
    sharp_concentration: Float[Tensor, "task"]  # α of the first pass, and its normalisers, for the check
    sharp_normaliser: Float[Tensor, "task query"]


def look(frame: Frame, *, narrowing: bool) -> Block:
    """Find the scale, compare the query with the support means, and begin to count at the sharp scale."""
    scale, space = squared_scale(frame), frame.space("auto", FIRST_ITERATIONS)
    scores = at(SHARPEST * scale, space.scores(space.support.mean()))
    problem = Problem(scores, frame.query_mask, frame.n_query, frame.task.n_classes)
    even, part = proportions.begin(problem, narrowing=narrowing)
    return Block(space, scale, even, proportions.uniform_evidence(problem, even), part)


def two_passes(
    problem: Problem,
    state: State,
    uniform: Float[Tensor, "task"],
    shots: Float[Tensor, "task"],
    options: CalibratedPaddleOptions,
) -> Outcome[Passes]:
    """Settle at the sharp scale, count the classes, settle at the scale for as many."""
    seek = partial(proportions.settle, max_iter=options.max_iter, tol=options.tol)
    first = seek(problem, state)
    found = first.answer.after
    u = proportions.assign(problem, found)
    spread_out = (uniform > proportions.evidence(problem, found, u)) | (found.concentration >= shots)
    factor = (proportions.classes_found(found, problem.n_query) / CLASSES_AT_SCALE).sqrt().clamp(SOFTEST, SHARPEST)
    factor = factor.where(~spread_out, SHARPEST)
    second = seek(replace(problem, scores=at(factor / SHARPEST, problem.scores)), found)

    def whole(posterior: State) -> State:
        return State(proportions.over_all_classes(problem, posterior.counts), posterior.concentration)

    passes = Passes(
        factor=factor,
        spread_out=spread_out,
        before=whole(second.answer.before),
        after=whole(second.answer.after),
        has_column=proportions.over_all_classes(problem, torch.ones_like(state.counts)) > 0,
        sharp_concentration=found.concentration,
        sharp_normaliser=u.log_normaliser(),
    )
    n_iter = first.n_iter + second.n_iter + FIRST_ITERATIONS - 1
    return Outcome(passes, n_iter, first.converged & second.converged, None)


def move(block: Block, found: Passes) -> tuple[SoftLabels, Bool[Tensor, "task"]]:
    """Move prototypes once and assign the query again; also whether a class without a column would return."""
    space, problem, nats = block.space, block.part.problem, found.factor * block.scale
    n_query, n_classes, mask = problem.n_query, problem.n_classes, problem.query_mask
    even, means = found.spread_out.reshape(-1, 1, 1), space.support.mean()
    tilt = expected_log(found.before, n_query).where(~even, 0)
    most = n_classes if bool(even.any()) else int((found.after.counts > 0).sum(-1).max())
    width = width_for(most, n_classes)
    kept = None if width == n_classes else found.after.counts.topk(width).indices.sort().values.unsqueeze(1)
    near, start = (space, means) if kept is None else space.restrict(means, kept.squeeze(1))
    u = softmax(at(nats, near.scores(start)) + (tilt if kept is None else tilt.gather(-1, kept)))
    scores = near.scores((near.support + near.moments(u.weights)).mean())
    if kept is not None:
        scores = space.scores(means).scatter_(-1, kept.expand_as(scores), scores)
    moved = softmax(at(nats, scores) + expected_log(found.after, n_query).where(~even, 0))
    if bool(found.has_column.all()):
        return moved, torch.zeros_like(found.spread_out)

    rise = block.even.log_normaliser() - found.sharp_normaliser
    rise = rise + without_count(found.sharp_concentration, problem).unsqueeze(-1)
    at_first = held(block.even.weights, rise, mask) / found.sharp_concentration.unsqueeze(-1)
    rise = moved.log_normaliser() - u.log_normaliser()
    at_last = held(moved.weights, rise, mask) / found.after.concentration.unsqueeze(-1)
    returns = torch.maximum(at_first, at_last.where(~even.squeeze(-1), 0)).masked_fill_(found.has_column, 0)
    return moved, returns.sum(-1) > proportions.NEGLIGIBLE_SHARE_OF_PRIOR


@dataclass(frozen=True)
class Found:
    """The answer over all classes, and what the prototypes that belong to it are made from."""

    labels: Labels
    passes: Passes
    scale: Float[Tensor, "task"]


def find(frame: Frame, options: CalibratedPaddleOptions, *, narrowing: bool) -> tuple[Outcome[Found], Tensor]:
    """Look at the tasks block by block, settle those of all blocks together, move block by block."""
    # In feature space tasks may share their support as one array, so they stay together.
    together = frame.geometry("auto", FIRST_ITERATIONS) == "feature"
    blocks = [look(part, narrowing=narrowing) for part in ([frame] if together else frame.blocks())]
    uniform = torch.cat([b.uniform for b in blocks])
    shots = proportions.typical_shots(frame.support.mass).expand(frame.task.n_tasks)
    groups = joined([b.part for b in blocks], proportions.restrict)
    outcome = merged([(rows, two_passes(p, state, uniform[rows], shots[rows], options)) for rows, p, state in groups])
    task, passes, start, wrong = frame.task, outcome.answer, 0, []
    log_u = frame.n_query.new_empty(task.n_tasks, task.query_slots, task.n_classes)
    labels = Labels(log_u, log_u.new_empty(task.n_tasks, task.n_classes), log_u[..., 0].clone())
    for block in blocks:
        rows = slice(start, start + len(block.scale))
        start = rows.stop
        u, returns = move(block, take(passes, rows, task.n_tasks))
        wrong.append(returns)
        frame.write(labels, rows, u)
    found = Found(labels, passes, torch.cat([b.scale for b in blocks]))
    return Outcome(found, outcome.n_iter, outcome.converged, None), torch.cat(wrong)


def solve(task: TaskBatch, options: CalibratedPaddleOptions) -> Solution:
    """Scale, proportions at a sharp scale, proportions at the scale for as many classes as that found, one move."""
    frame = Frame(task)
    outcome, wrong = find(frame, options, narrowing=True)
    if len(rows := wrong.nonzero().squeeze(-1)) > 0:
        outcome = replace_tasks(outcome, rows, find(frame.select(rows), options, narrowing=False)[0])
    found = outcome.answer
    prototypes, n_iter = partial(_prototypes, found.passes, found.scale), outcome.n_iter
    return frame.solution(found.labels, n_iter=n_iter, converged=outcome.converged, find_prototypes=prototypes)


def at(nats: Float[Tensor, "task"], scores: Float[Tensor, "task query class"]) -> Tensor:
    """Scores at a scale."""
    return nats.reshape(-1, 1, 1) * scores


def _prototypes(found: Passes, scale: Float[Tensor, "task"], frame: Frame, weights: Tensor) -> Tensor:
    """Means over the support and the query as the second pass labels it."""
    space, even = frame.space("auto", FIRST_ITERATIONS), found.spread_out.reshape(-1, 1, 1)
    tilt = expected_log(found.before, frame.n_query).where(~even, 0)
    return frame.prototypes(softmax(at(found.factor * scale, space.scores(space.support.mean())) + tilt).weights)


METHOD = Method(
    name="calibrated_paddle",
    options=CalibratedPaddleOptions,
    transform="l2",
    solve=solve,
    in_blocks=True,
    citation="handful; after Martin et al., NeurIPS 2022, Saerens et al. 2002 and Minka 2000.",
)
