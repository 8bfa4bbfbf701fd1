"""Roll call, streamed: the rules are those of `handful.inference.roll_call`, the counts come from shortlists.

Queries are compared with all K classes once. This gives every query a shortlist of the classes that describe it best.
All iterations need only the lists and the counts N_k, which add up over shards, and so does the answer. An absent class
loses at most 7 nats, so a class that no query lists cannot become present.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import Any

import numpy as np
import torch
from torch import Tensor

from handful.inference.head import Head
from handful.inference.roll_call import DONE, Alone, Rules, State, advance, alone, joint_weight, opening, presence
from handful.large.candidates import Contenders
from handful.large.checkpoint import load_state
from handful.large.remote_rows import Rows
from handful.large.run import Run
from handful.large.shard import Dropped, Held
from handful.large.solution import LargeSolution
from handful.large.unknown import Background, Evidence, Verdict
from handful.methods.roll_call import RollCallOptions
from handful.shapes import Float

# A class with a smaller expected count is not listed among the living.
LEAST_COUNT = 1e-3
# Queries from which the spread of a batch is estimated, if the examples do not tell it.
SAMPLED_QUERIES = 1024


@dataclass
class RollCallCourse:
    """The state of a run: everything its driver must not lose. Until items are labelled alone, there is nothing."""

    alone: Alone | None = None
    joint: State | None = None
    dropped: list[float] = field(default_factory=list)

    @property
    def n_iter(self) -> int:
        """Iterations so far."""
        return 0 if self.joint is None else int(self.joint.n_iter)

    @property
    def converged(self) -> bool:
        """Whether the tolerance was met."""
        return self.joint is not None and bool(self.joint.converged)

    def parts(self) -> tuple[dict[str, Tensor], dict[str, Any]]:
        """Return the tensors, and everything else."""
        assert self.alone is not None
        assert self.joint is not None
        joint = {f"joint_{f.name}": getattr(self.joint, f.name) for f in fields(State)}
        alone = {f"alone_{name}": tensor for name, tensor in self.alone._asdict().items()}
        return {**alone, **joint}, {"dropped": self.dropped}

    @classmethod
    def of_parts(cls, tensors: dict[str, Tensor], notes: dict[str, Any]) -> RollCallCourse:
        """Undo `parts`."""
        joint = State(**{f.name: tensors[f"joint_{f.name}"] for f in fields(State)})
        return cls(Alone(*(tensors[f"alone_{name}"] for name in Alone._fields)), joint, **notes)


class RollCallRun:
    """The driver: compare, label alone, settle, answer; every iteration writes a checkpoint."""

    def __init__(self, run: Run, options: RollCallOptions, queries: Rows) -> None:
        self.run, self.options, self.queries = run, options, queries
        self.head: Head = run.catalogue.head
        self.contenders = Contenders.of(self.head.weights, self.head.offsets)
        self.n_query = torch.tensor([run.n_query], dtype=torch.float64)
        self.n_classes = torch.tensor([run.catalogue.n_classes], dtype=torch.float64)
        found = load_state(run.folder, run.name)
        self.at = RollCallCourse() if found is None else RollCallCourse.of_parts(*found)

    def solve(self) -> LargeSolution:
        """Continue from the current state."""
        at, run = self.at, self.run
        name, dropped = run.compare(at.n_iter, self.contenders)
        if at.alone is None:
            at.alone = self._alone(name, dropped)
        rules = Rules.of(at.alone.counts, self.n_query, self.n_classes, self.options.max_iter, self.options.tol)
        if at.joint is None:
            at.joint = opening(rules)
            run.save(*at.parts())
            run.reporter.began_again()
        while int(at.joint.stage) < DONE:
            self._iterate(name, at.alone, rules)
        return self._answer(name, at.alone, at.joint)

    def _alone(self, name: str, dropped: Dropped) -> Alone:
        """Estimate offset and shares; a killed run does this again."""
        self.at.dropped = [dropped.mass / dropped.n_measured, dropped.largest]
        total = self.run.add_up("add up", 0, "total")
        spread = self.head.spread
        if spread is None:
            rows = np.linspace(0, self.queries.n_rows - 1, min(SAMPLED_QUERIES, self.queries.n_rows)).astype(np.int64)
            sample = torch.from_numpy(self.queries.take(np.unique(rows)).astype(np.float32, copy=False))
            # Each query is a batch of its own, so that they are compared with all classes block by block.
            spread = float(self.run.catalogue.against(sample.unsqueeze(1)).spread.mean())
        return alone(
            self.head,
            (total / self.run.n_query).unsqueeze(0),
            self.n_query,
            torch.full_like(self.n_query, spread),
            lambda tilts: self._count(name, tilts),
        )

    def _iterate(self, name: str, alone: Alone, rules: Rules) -> None:
        before, traffic = self.at.joint, self.run.crew.traffic
        assert before is not None
        # A class that has almost no items when each query is labelled alone stays absent, as in a stack in memory.
        present = rules.alone > 0
        after = advance(before, rules, lambda kept: self._count(name, alone.tilts + kept.log()) * present)
        self.at.joint = after
        self.run.save(*self.at.parts())
        self.run.note_traffic(traffic)
        change = float((after.counts - before.counts).abs().max())
        if int(after.stage) > int(before.stage):
            self.run.reporter.began_again()
        self.run.reporter.iterated("iterate", self.at.n_iter, change, float(rules.tolerance), int(after.left))

    def _answer(self, name: str, alone: Alone, joint: State) -> LargeSolution:
        at, run = self.at, self.run
        weight = float(joint_weight(joint, torch.full_like(self.n_query, self.head.typical_shots)))
        answer = (name, alone.tilts[0].float(), joint.kept[0].float(), weight)
        held: Held = run.add_up("answer", at.n_iter, "answer", *answer)
        verdict = self._verdict(name, alone, joint, held)
        if verdict is not None:
            held = run.add_up("answer", at.n_iter, "answer", *answer, verdict)
        living = (held.counts >= LEAST_COUNT).nonzero().squeeze(-1)
        return run.solution(
            at,
            held.counts,
            presence(joint, held.counts.unsqueeze(0), held.largest.unsqueeze(0), self.n_classes)[0],
            living,
            self.head.means[living],
            tol=float(self.options.tol),
            joint_weight=weight,
            confidence=held.confidence / run.n_query,
            unknown_share=None if verdict is None else held.unknown / run.n_query,
            unknown_interval=(0.0, 1.0) if verdict is None else verdict.interval,
            is_open=verdict is not None and verdict.is_open,
        )

    def _verdict(self, name: str, alone: Alone, joint: State, held: Held) -> Verdict | None:
        """Find the share of unknown queries; None if the catalogue cannot tell."""
        strangers = self.run.catalogue.strangers
        if strangers is None:
            return None
        tilts = alone.tilts[0] + joint.kept[0].log()
        background = Background.of(self.head, strangers, alone.offset[0], tilts, held.counts)
        evidence: Evidence = self.run.add_up("look", self.at.n_iter, "look", name, background)
        return Verdict.of(background, evidence)

    def _count(self, name: str, tilts: Float[Tensor, "1 class"]) -> Float[Tensor, "1 class"]:
        return self.run.count(name, tilts[0].float()).unsqueeze(0)
