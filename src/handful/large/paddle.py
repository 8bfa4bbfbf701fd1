"""PADDLE, streamed: its prototypes move at every iteration, so queries are compared again with the living classes.

Updates and tolerance are those of `handful.methods.paddle`; a class leaves as soon as it is negligible. The first
iteration runs on the shortlists of a pass over all classes; the next ones compare every query with the classes that are
left, in one matrix product per block. At the end, a class that left is checked with the lists of the first pass, which
hold its scores at the support means, and readmitted if it would grow.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from handful.errors import OptionError
from handful.large.candidates import Contenders
from handful.large.checkpoint import load_state
from handful.large.run import Run
from handful.large.shard import Dropped
from handful.large.solution import LargeSolution
from handful.methods.paddle import PaddleOptions, tilted, update_dual, update_prototypes
from handful.numerics.moments import Moments
from handful.shapes import Float, Int

# A class leaves when its share of the query is below this: a thousandth of one query among a thousand. The dense solver
# uses a smaller bound, as it has the queries in memory; here a class that left too early costs one more pass, not an
# error.
NEGLIGIBLE_SHARE = 1e-6


@dataclass
class PaddleCourse:
    """The state of a run, and the one before it, from which the last soft labels came."""

    living: Int[Tensor, "living"]
    prototypes: Float[Tensor, "living dim"]
    dual: Float[Tensor, "living"]
    living_before: Int[Tensor, "before"]
    prototypes_before: Float[Tensor, "before dim"]
    dual_before: Float[Tensor, "before"]
    phase: str = "compare"
    n_iter: int = 0
    converged: bool = False
    readmitted: int = 0
    checked: bool = False
    dropped: list[float] = field(default_factory=list)


TENSORS = ("living", "prototypes", "dual", "living_before", "prototypes_before", "dual_before")


class PaddleRun:
    """The driver; every iteration writes a checkpoint."""

    def __init__(self, run: Run, options: PaddleOptions) -> None:
        if options.record or options.geometry == "gram":
            raise OptionError(
                "a streamed PADDLE keeps no trace and works in feature space; leave out record and geometry"
            )
        self.run, self.options = run, options
        self.contenders = Contenders.of_prototypes(run.means)
        self.n_query = torch.tensor([run.n_query], dtype=torch.float64)
        weight = run.n_query if options.complexity_weight is None else options.complexity_weight
        self.tilt = weight / run.n_query
        # As in the dense solver: below λ = |Q|, or with a floor, no class ever vanishes entirely.
        self.narrows = options.working_set and options.proportion_floor == 0 and self.tilt >= 1
        found = load_state(run.folder, run.name)
        if found is None:
            everyone = torch.arange(run.catalogue.n_classes)
            means, dual = run.means, torch.zeros(len(everyone), dtype=torch.float64)
            self.at = PaddleCourse(everyone, means, dual, everyone, means, dual)
        else:
            saved: dict[str, Any] = {**found[0], **found[1]}
            self.at = PaddleCourse(**saved)
        # A readmitted class does not leave again.
        self.narrows = self.narrows and self.at.readmitted == 0

    def solve(self) -> LargeSolution:
        """Continue from the current state until prototypes stop moving and no class would return."""
        at = self.at
        if at.phase == "compare":
            _, dropped = self._lists()
            at.dropped = [dropped.mass / dropped.n_measured, dropped.largest]
            at.phase = "iterate"
            # No checkpoint of all means: the catalogue gives them again, and the lists exist.
        while True:
            while not at.converged and at.n_iter < self.options.max_iter:
                self._iterate()
            if not self._readmit():
                return self._answer()

    def _iterate(self) -> None:
        at, before = self.at, self.run.crew.traffic
        mass, sums = self._first_moments() if at.n_iter == 0 else self._moments()
        query = Moments(mass.unsqueeze(0), sums.unsqueeze(0))
        dual = update_dual(query.mass, self.n_query, self.options.proportion_floor)[0]
        prototypes = update_prototypes(self.run.support(at.living), query)[0].float()
        moves = (prototypes - at.prototypes).square().sum(-1).sqrt().where(dual > -torch.inf, 0)
        change = float(moves.sum(dtype=torch.float64)) / self.run.catalogue.n_classes
        at.living_before, at.prototypes_before, at.dual_before = at.living, at.prototypes, at.dual
        at.converged = change <= self.options.tol and self.options.tol > 0
        at.n_iter += 1
        kept = dual > (1 + math.log(NEGLIGIBLE_SHARE) if self.narrows else -torch.inf)
        at.living, at.prototypes, at.dual = at.living[kept], prototypes[kept], dual[kept]
        self.run.note_traffic(before)
        self._save()
        left = self.options.max_iter - at.n_iter
        self.run.reporter.iterated("iterate", at.n_iter, change, self.options.tol, left)

    def _first_moments(self) -> tuple[Tensor, Tensor]:
        """V = 0: soft labels over the shortlists."""
        return self.run.moments("iterate", 0, self._lists()[0], torch.zeros(self.run.catalogue.n_classes))

    def _moments(self) -> tuple[Tensor, Tensor]:
        at = self.at
        contenders = Contenders.of_prototypes(at.prototypes)
        mass, sums = self.run.add_up("iterate", at.n_iter, "step", contenders, at.dual.float(), self.tilt)
        return mass, sums

    def _readmit(self) -> bool:
        """Readmit the classes whose share would grow, with the smallest share allowed; return whether there are any.

        The rule is that of `working_set.would_return`, over the lists of the first pass.
        """
        at, n_classes = self.at, self.run.catalogue.n_classes
        if at.checked or not self.narrows or self.tilt > 1 or len(at.living) == n_classes:
            return False
        outside = torch.ones(n_classes).index_fill_(0, at.living_before, 0)
        contenders, tilts = Contenders.of_prototypes(at.prototypes_before), at.dual_before.float()
        grown = self.run.add_up("check", at.n_iter, "growth", self._lists()[0], contenders, tilts, outside)
        returning = (grown > self.run.n_query).nonzero().squeeze(-1)
        at.checked = True
        if len(returning) == 0 or at.n_iter >= self.options.max_iter:
            return False
        at.readmitted += len(returning)
        at.converged = False
        least = torch.full((len(returning),), 1 + math.log(NEGLIGIBLE_SHARE), dtype=torch.float64)
        self.narrows = False
        order = torch.cat([at.living, returning]).sort()
        at.living = order.values
        at.prototypes = torch.cat([at.prototypes, self.run.means[returning]])[order.indices]
        at.dual = torch.cat([at.dual, least])[order.indices]
        self._save()
        return True

    def _answer(self) -> LargeSolution:
        at, run = self.at, self.run
        contenders = Contenders.of_prototypes(at.prototypes_before)
        tilts = tilted(at.dual_before[None], torch.tensor([self.tilt], dtype=torch.float64))[0].float()
        counts = torch.zeros(run.catalogue.n_classes, dtype=torch.float64)
        log_absence = torch.zeros_like(counts)
        held, absent = run.add_up("answer", at.n_iter, "answer_all", contenders, tilts, at.living_before)
        counts[at.living_before], log_absence[at.living_before] = held, absent
        # `1 - Π_n (1 - u_nk)`, as if queries were independent given their probabilities.
        presence = log_absence.expm1().abs()
        return run.solution(
            counts,
            presence,
            at.living,
            at.prototypes,
            n_iter=at.n_iter,
            converged=at.converged,
            dropped_mass=at.dropped[0],
            largest_dropped_mass=at.dropped[1],
            readmitted=at.readmitted,
            tol=self.options.tol,
            unknown_reason="PADDLE does not judge unknown items; use roll_call.",
        )

    def _lists(self) -> tuple[str, Dropped]:
        """Return the name of the first pass's shortlists, and what they drop."""
        return self.run.compare(0, self.contenders)

    def _save(self) -> None:
        fields: dict[str, Any] = dict(vars(self.at))
        self.run.save({name: fields.pop(name) for name in TENSORS}, fields)
