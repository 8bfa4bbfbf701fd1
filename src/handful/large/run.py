"""What the streamed methods share: a run with its workers, its clock and its checkpoint."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from handful.catalogue import Catalogue
from handful.large.candidates import Contenders
from handful.large.checkpoint import save_state
from handful.large.crew import Crew
from handful.large.progress import Reporter
from handful.large.shard import Dropped
from handful.large.solution import LargeSolution
from handful.machine.folders import Folder
from handful.numerics.moments import Moments
from handful.shapes import Float, Int


@dataclass(frozen=True, eq=False)
class Run:
    """One problem being solved: K classes, |Q| queries, a crew; `name` is a hash of what the run was started with."""

    name: str
    catalogue: Catalogue
    class_names: tuple[str, ...]
    n_query: int
    n_shards: int
    folder: Folder
    crew: Crew
    reporter: Reporter
    made: dict[str, Dropped] = field(default_factory=dict)
    sent: list[int] = field(default_factory=list)
    received: list[int] = field(default_factory=list)

    @property
    def means(self) -> Float[Tensor, "class dim"]:
        """Means of all classes, about the origin."""
        return torch.as_tensor(self.catalogue.means)

    def support(self, classes: Int[Tensor, "some"]) -> Moments:
        """Return the catalogue's moments of some classes, in double precision, under a task axis of length one."""
        shots = torch.as_tensor(self.catalogue.shots)[classes].double()
        sums = self.means[classes].double() * shots.unsqueeze(-1)
        return Moments(shots.unsqueeze(0), sums.unsqueeze(0))

    def add_up(self, stage: str, iteration: int, operation: str, *arguments: Any) -> Any:
        """Run an operation on all shards, with reports, and return the sum of the results."""
        began = time.monotonic()

        def report(done: int) -> None:
            self.reporter.shard(stage, iteration, done, self.n_shards, began)

        return self.crew.add_up(operation, *arguments, report=report)

    def compare(self, iteration: int, contenders: Contenders) -> tuple[str, Dropped]:
        """Make the shortlists of all classes; return their name and total drop.

        The name is a hash of what queries are compared with. So a killed run finds the shards it had made, and never
        those of another comparison.
        """
        if contenders.name not in self.made:
            self.made[contenders.name] = self.add_up("compare", iteration, "compare", contenders.name, contenders)
            self.reporter.began_again()
        return contenders.name, self.made[contenders.name]

    def moments(
        self, stage: str, iteration: int, name: str, tilts: Float[Tensor, "class"]
    ) -> tuple[Float[Tensor, "class"], Float[Tensor, "class dim"]]:
        """Add the moments of all shards, in double precision."""
        mass = torch.zeros(len(tilts), dtype=torch.float64)
        sums = torch.zeros(len(tilts), self.catalogue.dim, dtype=torch.float64)
        found = self.add_up(stage, iteration, "moments", name, tilts)
        mass[found.classes] = found.mass
        sums[found.classes] = found.sums.double()
        return mass, sums

    def save(self, tensors: Mapping[str, Tensor], notes: Mapping[str, Any]) -> None:
        """Replace the checkpoint."""
        save_state(self.folder, self.name, tensors, notes)

    def note_traffic(self, before: tuple[int, int]) -> None:
        """Record the bytes an iteration sent and received."""
        now = self.crew.traffic
        self.sent.append(now[0] - before[0])
        self.received.append(now[1] - before[1])

    def solution(
        self,
        expected_counts: Float[Tensor, "class"],
        presence: Float[Tensor, "class"],
        living: Int[Tensor, "living"],
        prototypes: Float[Tensor, "living dim"],
        **others: Any,
    ) -> LargeSolution:
        """Return the solution, in the original coordinates of the catalogue; `others` are further fields of it."""
        origin = torch.as_tensor(self.catalogue.origin)
        return LargeSolution(
            folder=self.folder.called,
            class_names=self.class_names,
            expected_counts=expected_counts,
            presence=presence,
            living=living,
            prototypes=prototypes + origin,
            support_means=self.means[living] + origin,
            bytes_sent=self.sent,
            bytes_received=self.received,
            **others,
        )
