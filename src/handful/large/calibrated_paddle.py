"""Calibrated PADDLE, streamed: the rules are those of `handful.inference.joint`, the counts come from shortlists.

Prototypes do not move while proportions settle, so queries are compared once: one pass over all K classes gives every
query a shortlist, and the iterations need only the lists and the counts N_k, which add up over shards. A list of the
first pass may hold none of the few classes that are left after some iterations. So once few are left, and whenever
their number has halved, the queries are compared again with those classes alone. These comparisons begin when a
sixteenth is left, and together cost less than an eighth of the first. If a loop settles with more classes than that, up
to one half, the comparison that follows costs their share of the first.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, fields, replace
from typing import Any

import torch
from torch import Tensor

from handful.inference.joint import (
    DONE,
    OPEN,
    SHARPEST,
    SOFTENED,
    Rules,
    State,
    Tally,
    advance,
    opening,
    tilts,
    typical_shots,
)
from handful.large.candidates import Contenders
from handful.large.checkpoint import load_state
from handful.large.run import Run
from handful.large.shard import Dropped
from handful.large.solution import LargeSolution
from handful.methods.calibrated_paddle import CalibratedPaddleOptions
from handful.methods.paddle import update_prototypes
from handful.numerics.moments import Moments
from handful.shapes import Float, Int

# A class with a smaller expected count leaves the computation.
LEAST_COUNT = 1e-3
# Shortlists drop more than a thousandth of a query; their loops end at this change of a count per query.
TOLERANCE_PER_QUERY = 1e-5
# The queries are compared again when this share of the contending classes is left. The first share is small enough to
# make it cheap (unless the loop settles before); after that, at every halving.
FIRST_SHARE, LATER_SHARE = 1 / 16, 1 / 2
# How often classes may return to the working set.
MOST_RETURNS = 3


@dataclass
class StreamedState:
    """The state of a run: everything its driver must not lose.

    `living` names the shortlists, which are made if they do not exist. It is decided before a checkpoint is written, so
    that a resumed run takes the same next step as an uninterrupted one.
    """

    living: Int[Tensor, "living"]
    joint: State | None = None  # over the living classes; None until the queries were compared
    uniform: float = 0.0
    comparisons: int = 0
    returns: int = 0
    readmitted: int = 0
    checked: bool = False
    dropped: list[float] = field(default_factory=list)

    @property
    def n_iter(self) -> int:
        """Iterations so far."""
        return 0 if self.joint is None else int(self.joint.n_iter)

    @property
    def converged(self) -> bool:
        """Whether every loop so far met the tolerance."""
        return self.joint is None or bool(self.joint.converged)

    def parts(self) -> tuple[dict[str, Tensor], dict[str, Any]]:
        """Return the tensors, and everything else."""
        notes = {name: value for name, value in vars(self).items() if name not in ("living", "joint")}
        joint = {} if self.joint is None else {f.name: getattr(self.joint, f.name) for f in fields(State)}
        return {"living": self.living, **joint}, notes

    @classmethod
    def of_parts(cls, tensors: dict[str, Tensor], notes: dict[str, Any]) -> StreamedState:
        """Undo `parts`."""
        living = tensors.pop("living")
        return cls(living, State(**tensors) if tensors else None, **notes)


class CalibratedRun:
    """The driver: compare, settle, check, answer; every step writes a checkpoint."""

    def __init__(self, run: Run, options: CalibratedPaddleOptions, squared_scale: float) -> None:
        self.run, self.squared_scale = run, squared_scale
        self.everyone = torch.arange(run.catalogue.n_classes)
        self.tol = options.tol if run.lists_are_whole else max(options.tol, TOLERANCE_PER_QUERY * run.n_query)
        self.max_iter = options.max_iter
        found = load_state(run.folder)
        self.at = StreamedState(self.everyone) if found is None else StreamedState.of_parts(*found)

    def solve(self) -> LargeSolution:
        """Continue from the current state."""
        at = self.at
        joint = self._compare() if at.joint is None else at.joint
        rules = Rules(
            n_query=torch.tensor([self.run.n_query], dtype=torch.float64),
            n_classes=len(self.everyone),
            shots=typical_shots(self.run.catalogue.shots.double()).reshape(1),
            uniform=torch.tensor([at.uniform], dtype=torch.float64),
            max_iter=self.max_iter,
            tol=self.tol,
        )
        while not at.checked:
            while int(joint.stage) < DONE:
                joint = self._iterate(joint, rules)
            joint = self._check(joint)
        return self._answer(joint)

    # -- steps -------------------------------------------------------------------------------------------------------

    def _compare(self) -> State:
        """Count at equal proportions."""
        run, at = self.run, self.at
        name, dropped = self._lists_of(self.everyone)
        counts, log_likelihood = run.count(name, torch.zeros(len(self.everyone)), 1.0)
        # The part of Σ_n ln Σ_k exp(-D_nk) that the lists lack is known for the measured queries.
        missing = dropped.log_ratio / dropped.n_measured * run.n_query
        at.dropped = [dropped.mass / dropped.n_measured, dropped.largest]
        at.uniform = log_likelihood + missing - run.n_query * math.log(len(self.everyone))
        at.joint = opening(counts.unsqueeze(0), len(self.everyone))
        self._save()
        self.run.reporter.began_again()
        return at.joint

    def _iterate(self, before: State, rules: Rules) -> State:
        """Advance once; then continue with the living classes alone, if few are left."""
        at, name, traffic = self.at, self._lists(), self.run.crew.traffic

        def count(tilt: Float[Tensor, "1 living"], likelihood: bool) -> Tally:
            counts, log_likelihood = self.run.count(name, tilt[0].float(), float(before.factor) / SHARPEST)
            return Tally(
                counts.unsqueeze(0), torch.tensor([log_likelihood], dtype=torch.float64) if likelihood else None
            )

        after = advance(before, rules, count)
        moved_on = int(after.stage) != int(before.stage)
        if bool(after.spread_out):
            after, at.living = self._on(after, self.everyone), self.everyone
        elif int(before.stage) != OPEN and int(after.n_iter) > int(before.n_iter):
            living = self._living(after)
            share = LATER_SHARE if moved_on or at.comparisons > 0 else FIRST_SHARE
            if not self.run.lists_are_whole and len(living) <= share * len(at.living):
                # The counts come from other lists now: the loop continues.
                after = replace(self._on(after, living), stage=before.stage, in_stage=before.in_stage + 1)
                at.living, at.comparisons = living, at.comparisons + 1
        at.joint = after
        self._save()
        if at.n_iter > int(before.n_iter):  # else it was only checked
            self.run.note_traffic(traffic)
            change = float((after.counts - after.counts_before).abs().max())
            self.run.reporter.iterated("iterate", at.n_iter, change, self.tol, self.max_iter - int(after.in_stage))
        return after

    def _check(self, joint: State) -> State:
        """Readmit the classes that would hold something now."""
        at, run = self.at, self.run
        at.checked = True
        if len(at.living) < len(self.everyone):
            all_tilts = tilts(self._on(joint, self.everyone).counts, joint.concentration)[0].float()
            taken = torch.zeros(len(self.everyone), dtype=torch.float64)
            first, _ = self._lists_of(self.everyone)
            factor = float(joint.factor) / SHARPEST
            for part in run.crew.run("returning", first, self._lists(), all_tilts, factor, at.living):
                taken += part
            returning = (taken >= LEAST_COUNT).nonzero().squeeze(-1)
            if len(returning) > 0 and at.returns == MOST_RETURNS:
                joint = replace(joint, converged=torch.zeros_like(joint.converged))
            elif len(returning) > 0:
                living = torch.cat([at.living, returning]).sort().values
                stage = torch.full_like(joint.stage, SOFTENED)
                joint = replace(self._on(joint, living), stage=stage, in_stage=torch.zeros_like(stage))
                at.living, at.checked = living, False
                at.readmitted, at.returns = at.readmitted + len(returning), at.returns + 1
        at.joint = joint
        self._save()
        self.run.reporter.began_again()
        return joint

    def _answer(self, joint: State) -> LargeSolution:
        """Move the prototypes once, as PADDLE does, and assign the queries again."""
        at, run = self.at, self.run
        even, still = bool(joint.spread_out), torch.zeros(len(at.living))
        before = still if even else tilts(joint.counts_before, joint.concentration_before)[0].float()
        after = still if even else tilts(joint.counts, joint.concentration)[0].float()
        mass, sums = run.moments("move", at.n_iter, self._lists(), before, float(joint.factor) / SHARPEST)
        moved = update_prototypes(run.support(at.living), Moments(mass.unsqueeze(0), sums.unsqueeze(0)))[0].float()
        contenders = Contenders.of(moved, float(joint.factor) * self.squared_scale)
        held = run.answer(at.n_iter, at.living, "answer", self._lists(), contenders, after)
        return run.solution(at, held, moved, math.sqrt(self.squared_scale), self.tol)

    # -- what the steps need -----------------------------------------------------------------------------------------

    def _living(self, joint: State) -> Int[Tensor, "living"]:
        """Return the classes that hold something."""
        return self.at.living[joint.counts[0] >= LEAST_COUNT]

    def _on(self, joint: State, classes: Int[Tensor, "some"]) -> State:
        """Return the counts for another set of classes than the living; classes that have left hold nothing."""

        def moved(counts: Float[Tensor, "1 living"]) -> Float[Tensor, "1 some"]:
            whole = counts.new_zeros(1, len(self.everyone))
            whole[:, self.at.living] = counts
            return whole[:, classes]

        return replace(joint, counts=moved(joint.counts), counts_before=moved(joint.counts_before))

    def _save(self) -> None:
        self.run.save(*self.at.parts())

    def _lists(self) -> str:
        """Name the shortlists of the living classes."""
        return self._lists_of(self.at.living)[0]

    def _lists_of(self, classes: Int[Tensor, "some"]) -> tuple[str, Dropped]:
        return self.run.compare(self.at.n_iter, classes, SHARPEST * self.squared_scale)
