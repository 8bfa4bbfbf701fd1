"""What the streamed methods share: a run with its workers, its clock and its checkpoint."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import torch
from torch import Tensor

from handful.catalogue import Catalogue
from handful.large.candidates import Contenders
from handful.large.checkpoint import save_state
from handful.large.crew import Crew
from handful.large.progress import Reporter
from handful.large.shard import Counts, Dropped, Held
from handful.large.solution import LargeSolution
from handful.numerics.moments import Moments
from handful.shapes import Float, Int


def lists_name(classes: Int[Tensor, "some"], squared_scale: float) -> str:
    """Name the shortlists of a set of classes, scored at c²."""
    digest = hashlib.sha256(classes.numpy().tobytes() + repr(squared_scale).encode())
    return f"{len(classes)}-{digest.hexdigest()[:16]}"


class Standing(Protocol):
    """The state that every method keeps of its run."""

    living: Int[Tensor, "living"]
    dropped: list[float]
    readmitted: int

    @property
    def n_iter(self) -> int:
        """Iterations so far."""
        ...

    @property
    def converged(self) -> bool:
        """Whether the tolerance was met."""
        ...


@dataclass(frozen=True, eq=False)
class Run:
    """One problem being solved: K classes, |Q| queries, a crew."""

    catalogue: Catalogue
    class_names: tuple[str, ...]
    n_query: int
    n_shards: int
    list_length: int
    folder: Path
    crew: Crew
    reporter: Reporter
    made: dict[str, Dropped] = field(default_factory=dict)
    sent: list[int] = field(default_factory=list)
    received: list[int] = field(default_factory=list)

    @property
    def lists_are_whole(self) -> bool:
        """Whether a shortlist holds every class."""
        return self.list_length >= self.catalogue.n_classes

    def support(self, classes: Int[Tensor, "some"]) -> Moments:
        """Return the catalogue's moments of some classes, in double precision, under a task axis of length one."""
        shots = self.catalogue.shots[classes].double()
        sums = self.catalogue.means[classes].double() * shots.unsqueeze(-1)
        return Moments(shots.unsqueeze(0), sums.unsqueeze(0))

    def shards(self, stage: str, iteration: int, operation: str, *arguments: Any) -> Iterator[Any]:
        """Run an operation on all shards, with a report after each; results in the order of the shards."""
        began = time.monotonic()
        for done, result in enumerate(self.crew.run(operation, *arguments), start=1):
            self.reporter.shard(stage, iteration, done, self.n_shards, began)
            yield result

    def compare(self, iteration: int, classes: Int[Tensor, "some"], squared_scale: float) -> tuple[str, Dropped]:
        """Make the shortlists of some classes, scored at c² by their means; return their name and total drop.

        The name is a hash of classes and c². So a killed run finds the shards it had made, and never those of another
        set; it only has to remember the set.
        """
        name = lists_name(classes, squared_scale)
        if name not in self.made:
            everyone = len(classes) == self.catalogue.n_classes
            means = self.catalogue.means
            contenders = Contenders.of(means if everyone else means[classes], squared_scale)
            stage = "compare" if everyone else "compare again"
            parts = list(self.shards(stage, iteration, "compare", name, contenders, everyone))
            n, mass, largest, log_ratio = zip(*parts, strict=True)
            self.made[name] = Dropped(sum(n), sum(mass), max(largest), sum(log_ratio))
            self.reporter.began_again()
        return name, self.made[name]

    def count(self, name: str, tilts: Float[Tensor, "class"], factor: float) -> Counts:
        """Add the counts of all shards in their order."""
        counts, log_normaliser = torch.zeros(len(tilts), dtype=torch.float64), 0.0
        for part in self.crew.run("count", name, tilts, factor):
            counts += part.counts
            log_normaliser += part.log_normaliser
        return Counts(counts, log_normaliser)

    def moments(
        self, stage: str, iteration: int, name: str, tilts: Float[Tensor, "class"], factor: float
    ) -> tuple[Float[Tensor, "class"], Float[Tensor, "class dim"]]:
        """Add the moments of all shards in their order, in double precision."""
        mass = torch.zeros(len(tilts), dtype=torch.float64)
        sums = torch.zeros(len(tilts), self.catalogue.means.shape[-1], dtype=torch.float64)
        for part in self.shards(stage, iteration, "moments", name, tilts, factor):
            mass[part.classes] += part.mass
            sums[part.classes] += part.sums
        return mass, sums

    def answer(self, iteration: int, living: Int[Tensor, "living"], operation: str, *arguments: Any) -> Held:
        """Write the answers; add up what the living classes hold, all others holding nothing."""
        nothing = torch.zeros(self.catalogue.n_classes, dtype=torch.float64)
        held = Held(nothing, nothing.clone())
        for part in self.shards("answer", iteration, operation, *arguments, living):
            held.counts[living] += part.counts
            held.log_absence[living] += part.log_absence
        return held

    def save(self, tensors: Mapping[str, Tensor], notes: Mapping[str, Any]) -> None:
        """Replace the checkpoint."""
        save_state(self.folder, tensors, notes)

    def note_traffic(self, before: tuple[int, int]) -> None:
        """Record the bytes an iteration sent and received."""
        now = self.crew.traffic
        self.sent.append(now[0] - before[0])
        self.received.append(now[1] - before[1])

    def solution(
        self,
        at: Standing,
        held: Held,
        prototypes: Float[Tensor, "living dim"],
        scale: float,
        tol: float,
    ) -> LargeSolution:
        """Return the solution, in the original coordinates of the catalogue."""
        origin = self.catalogue.origin
        return LargeSolution(
            folder=self.folder,
            class_names=self.class_names,
            expected_counts=held.counts,
            presence=held.log_absence.expm1().abs(),
            living=at.living,
            prototypes=prototypes + origin,
            support_means=self.catalogue.means[at.living] + origin,
            n_iter=at.n_iter,
            converged=at.converged,
            dropped_mass=at.dropped[0],
            largest_dropped_mass=at.dropped[1],
            readmitted=at.readmitted,
            scale=scale,
            tol=tol,
            bytes_sent=self.sent,
            bytes_received=self.received,
        )
