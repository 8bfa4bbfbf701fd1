"""Calibrated PADDLE, streamed: its prototypes stand still while proportions settle, so queries are compared once.

The steps are those of `handful.methods.calibrated_paddle`, whose functions are called here; what differs is where the
sums over queries come from. One pass over all K classes leaves every query a shortlist; the iterations live on the
lists and on the counts N_k, which add. A list of the first pass may hold none of the few classes that are left after
some iterations; so once they are few, and at every halving of their number, the queries are compared again with those
alone. Begun at a sixteenth, these comparisons cost less than an eighth of the first together; where a loop settles
with more classes than that, up to one half, the one that follows costs their share.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from handful.large.candidates import Contenders
from handful.large.checkpoint import load_state
from handful.large.run import Run
from handful.large.shard import Dropped
from handful.large.solution import LargeSolution
from handful.methods.calibrated_paddle import (
    CLASSES_AT_SCALE,
    SHARPEST,
    SOFTEST,
    CalibratedPaddleOptions,
)
from handful.methods.paddle import update_prototypes
from handful.numerics.dirichlet import concentration_step, dirichlet_divergence
from handful.numerics.moments import Moments
from handful.proportions import FIRST_ITERATIONS, State, classes_found, expected_log, typical_shots
from handful.shapes import Float, Int

# A class with a smaller expected count leaves the computation.
LEAST_COUNT = 1e-3
# Short lists drop more than a thousandth of a query; their loops end at this change of a count per query.
TOLERANCE_PER_QUERY = 1e-5
# The queries are compared again when so many of the contending classes are left: the first time a share that makes it
# cheap, unless the loop has settled before; then at every halving.
FIRST_SHARE, LATER_SHARE = 1 / 16, 1 / 2
# Times that classes may return to the working set.
MOST_RETURNS = 3


@dataclass
class Course:
    """Where a run stands: all that its driver must not lose.

    `living` names the shortlists, which are made where they are not there; `settled` says whether the loop is to end.
    Both are decided before a checkpoint is written, so that a run resumes with the step an undisturbed one takes next.
    """

    counts: Float[Tensor, "1 class"]
    previous: Float[Tensor, "1 class"]
    living: Int[Tensor, "living"]
    phase: str = "compare"
    concentration: float = 0.0
    previous_concentration: float = 0.0
    comparisons: int = 0
    returns: int = 0
    in_loop: int = 0
    settled: bool = False
    n_iter: int = 0
    converged: bool = True
    spread_out: bool = False
    factor: float = SHARPEST
    readmitted: int = 0
    uniform_log: float = 0.0
    dropped: list[float] = field(default_factory=list)

    def state(self) -> State:
        """Posterior of the proportions now."""
        return State(self.counts, torch.tensor([self.concentration], dtype=torch.float64))

    def previous_state(self) -> State:
        """And one iteration ago, from which the last soft labels came."""
        return State(self.previous, torch.tensor([self.previous_concentration], dtype=torch.float64))


TENSORS = ("counts", "previous", "living")


class CalibratedRun:
    """The driver; every `_phase` leaves a checkpoint and names the next."""

    def __init__(self, run: Run, options: CalibratedPaddleOptions, squared_scale: float) -> None:
        self.run, self.options, self.squared_scale = run, options, squared_scale
        self.n_query = torch.tensor([run.n_query], dtype=torch.float64)
        self.tol = options.tol if run.lists_are_whole else max(options.tol, TOLERANCE_PER_QUERY * run.n_query)
        n_classes = run.catalogue.n_classes
        found = load_state(run.folder)
        if found is None:
            zeros = torch.zeros(1, n_classes, dtype=torch.float64)
            self.at = Course(zeros, zeros, torch.arange(n_classes))
        else:
            saved: dict[str, Any] = {**found[0], **found[1]}
            self.at = Course(**saved)

    def solve(self) -> LargeSolution:
        """Go through the phases from where the run stands."""
        phases = {
            "compare": self._compare,
            "first": self._first,
            "judge": self._judge,
            "second": self._second,
            "check": self._check,
        }
        while self.at.phase in phases:
            phases[self.at.phase]()
        return self._answer()

    # -- phases ------------------------------------------------------------------------------------------------------

    def _compare(self) -> None:
        name, dropped = self._lists_of(torch.arange(self.run.catalogue.n_classes))
        uniform = self.run.count(name, torch.zeros(self.run.catalogue.n_classes), 1.0)
        # What the lists lack of Σ_n ln Σ_k exp(-D_nk) is known for the measured queries.
        missing = dropped.log_ratio / dropped.n_measured * self.run.n_query
        self.at.dropped = [dropped.mass / dropped.n_measured, dropped.largest]
        self.at.uniform_log = uniform.log_normaliser + missing
        self.at.counts = uniform.counts.unsqueeze(0)
        self.at.concentration = 1 / self.run.catalogue.n_classes
        self._go_on("first")

    def _first(self) -> None:
        while self.at.in_loop < FIRST_ITERATIONS - 1:
            self._iterate(learn=False)
        self._settle(FIRST_ITERATIONS - 1)
        self._go_on("judge")

    def _judge(self) -> None:
        """Uniform proportions, where the method takes them; else the scale for as many classes as were found."""
        at, run = self.at, self.run
        log_likelihood = run.count(self._lists(), self._tilts(at.state()), 1.0).log_normaliser
        evidence = log_likelihood - float(dirichlet_divergence(at.counts, at.state().concentration))
        uniform_evidence = at.uniform_log - run.n_query * math.log(run.catalogue.n_classes)
        hardly_uneven = at.concentration >= float(typical_shots(run.catalogue.shots))
        at.spread_out = uniform_evidence > evidence or hardly_uneven
        if at.spread_out:
            at.living = torch.arange(run.catalogue.n_classes)
        else:
            found = float(classes_found(at.state(), self.n_query))
            at.factor = min(SHARPEST, max(SOFTEST, math.sqrt(found / CLASSES_AT_SCALE)))
        self._go_on("second")

    def _second(self) -> None:
        self._settle(0)
        # Only a class that left can return; uniform proportions leave none out.
        self._go_on("check" if len(self.at.living) < self.run.catalogue.n_classes else "answer")

    def _check(self) -> None:
        """Take in again the classes that would hold something now."""
        at = self.at
        tilts = expected_log(at.state(), self.n_query)[0, 0].float()
        taken = torch.zeros(self.run.catalogue.n_classes, dtype=torch.float64)
        everyone, _ = self._lists_of(torch.arange(self.run.catalogue.n_classes))
        for part in self.run.crew.run("returning", everyone, self._lists(), tilts, at.factor / SHARPEST, at.living):
            taken += part
        returning = (taken >= LEAST_COUNT).nonzero().squeeze(-1)
        if len(returning) == 0 or at.returns == MOST_RETURNS:
            at.converged = at.converged and len(returning) == 0
            self._go_on("answer")
            return
        at.readmitted += len(returning)
        at.returns += 1
        self._compare_again(torch.cat([at.living, returning]).sort().values)
        self._go_on("second")

    def _answer(self) -> LargeSolution:
        """Prototypes move once, as PADDLE moves them, and the queries are assigned again."""
        at, run = self.at, self.run
        still = torch.zeros(len(at.living))
        before = still if at.spread_out else self._tilts(at.previous_state())
        mass, sums = run.moments("move", at.n_iter, self._lists(), before, at.factor / SHARPEST)
        support = run.catalogue.moments(at.living)
        prototypes = update_prototypes(support, Moments(mass.unsqueeze(0), sums.unsqueeze(0)))[0].float()
        tilts = still if at.spread_out else self._tilts(at.state())
        contenders = Contenders.of(prototypes, at.factor * self.squared_scale)
        held = run.answer(at.n_iter, at.living, "answer", self._lists(), contenders, tilts)
        return run.solution(at, held, prototypes, math.sqrt(self.squared_scale), self.tol)

    # -- iterations --------------------------------------------------------------------------------------------------

    def _settle(self, already: int) -> None:
        """Iterate until no expected count changes; `already` iterations of this loop do not count."""
        at = self.at
        while not at.settled and at.in_loop - already < self.options.max_iter:
            self._iterate(learn=True)
        at.converged = at.converged and (at.settled or self.tol == 0)

    def _decide(self, change: float) -> None:
        """Say what comes after an iteration: lists of fewer classes, the end of the loop, or another iteration."""
        at = self.at
        settled = change <= self.tol
        living = (at.counts[0] >= LEAST_COUNT).nonzero().squeeze(-1)
        share = LATER_SHARE if settled or at.comparisons > 0 else FIRST_SHARE
        if not self.run.lists_are_whole and len(living) <= share * len(at.living):
            self._compare_again(living)
        else:
            at.settled = settled

    def _compare_again(self, living: Int[Tensor, "living"]) -> None:
        """Go on with these classes alone; the queries are compared with them when their lists are asked for."""
        self.at.living, self.at.comparisons = living, self.at.comparisons + 1

    def _iterate(self, *, learn: bool) -> None:
        """Take counts from the posterior of the proportions, then the posterior from the counts."""
        at, name = self.at, self._lists()
        before = self.run.crew.traffic
        found = self.run.count(name, self._tilts(at.state()), at.factor / SHARPEST)
        counts = torch.zeros_like(at.counts)
        counts[0, at.living] = found.counts
        alpha = float(concentration_step(counts, at.state().concentration)) if learn else at.concentration
        change = float((counts - at.counts).abs().max())
        at.previous, at.previous_concentration = at.counts, at.concentration
        at.counts, at.concentration = counts, alpha
        at.in_loop += 1
        at.n_iter += 1
        if learn:
            self._decide(change)
        self.run.note_traffic(before)
        self._save()
        self.run.reporter.iterated("iterate", at.n_iter, change, self.tol, self.options.max_iter - at.in_loop)

    def _go_on(self, phase: str) -> None:
        self.at.phase, self.at.in_loop, self.at.settled = phase, 0, False
        self.run.reporter.began_anew()
        self._save()

    def _save(self) -> None:
        fields: dict[str, Any] = dict(vars(self.at))
        self.run.save({name: fields.pop(name) for name in TENSORS}, fields)

    def _tilts(self, state: State) -> Float[Tensor, "living"]:
        """`E ln π_k` of the living classes."""
        return expected_log(state, self.n_query)[0, 0, self.at.living].float()

    def _lists(self) -> str:
        """Name the shortlists of the living classes."""
        return self._lists_of(self.at.living)[0]

    def _lists_of(self, classes: Int[Tensor, "some"]) -> tuple[str, Dropped]:
        return self.run.compare(self.at.n_iter, classes, SHARPEST * self.squared_scale)
