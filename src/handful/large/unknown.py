"""Unknown items of a streamed batch: the rules of `handful.inference.open_roll_call`, in one more pass over the rows.

Labels are those of the closed answer, and no groups are proposed: both would need the batch to be labelled again.
Otherwise three things differ from a batch in memory:

- Rows are divided into parts of at most `MOST_LINKED` that are linked with one another, from `DEALT_ROWS` rows at a
  time.
- Copies of an item are recognised among these rows.
- An item is compared with the classes of its shortlist.

What items say about share and drift adds over shards. How unknown items are told apart depends on whether the items of
the batch stand alone, which is known only after the pass, so both cases are added up.
"""

from __future__ import annotations

import hashlib
from dataclasses import astuple, dataclass
from functools import cached_property
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import embedding_bag

from handful.inference.head import Head
from handful.inference.left_out import row_hashes
from handful.inference.open_roll_call import EVIDENCE, LEAST_HELD, MOST_LINKED, group_sizes, link_items, over_links
from handful.inference.strangers import Strangers
from handful.inference.unknown_share import ALONE, Likelihoods, Posterior, chances_of, likelihoods, posterior_of
from handful.large.candidates import Lists
from handful.shapes import Float

# Rows that are divided into parts together; they are in memory at once.
DEALT_ROWS = 8 * MOST_LINKED


class Looks(NamedTuple):
    """What each item looks like: t, the size n of its group, and how much it counts as evidence."""

    t: Float[Tensor, "item"]
    n: Float[Tensor, "item"]
    weights: Float[Tensor, "item"]


class Evidence(NamedTuple):
    """What items say about the share of unknown ones; parts of a batch add."""

    cases: Likelihoods  # if the items of the batch do not stand alone, and if they do
    sizes: float  # Σ n

    def with_part(self, other: Evidence) -> Evidence:
        """Add other items."""
        return Evidence(self.cases.with_part(other.cases), self.sizes + other.sizes)


@dataclass(frozen=True, eq=False)
class Background:
    """What items are compared with; it is sent to workers.

    Attributes
    ----------
    strangers : Strangers
        What the catalogue tells about unknown items.
    centre, means, lengths : Float[Tensor, "dim"], Float[Tensor, "class dim"], Float[Tensor, "class"]
        Centre of the class means, these means μ_k, and their squared lengths without noise.
    offset, moved : Float[Tensor, "dim"], Float[Tensor, "class"]
        d, and `⟨W_k, d⟩`.
    tilts : Float[Tensor, "class"]
        Of the joint answer; -inf for classes that hold next to nothing.
    spread : float
        V.
    """

    strangers: Strangers
    centre: Float[Tensor, "dim"]
    means: Float[Tensor, "class dim"]
    lengths: Float[Tensor, "class"]
    offset: Float[Tensor, "dim"]
    moved: Float[Tensor, "class"]
    tilts: Float[Tensor, "class"]
    spread: float

    @classmethod
    def of(
        cls,
        head: Head,
        strangers: Strangers,
        offset: Float[Tensor, "dim"],
        tilts: Float[Tensor, "class"],
        counts: Float[Tensor, "class"],
    ) -> Background:
        """Make it from the closed answer: its offset, tilts and expected counts."""
        assert head.spread is not None
        nothing = counts < min(LEAST_HELD, float(counts.max()))
        d = offset.to(head.means)
        return cls(
            strangers,
            head.means.mean(0),
            head.means,
            head.means.square().sum(1) - head.spread / head.mass,
            d,
            head.weights @ d,
            tilts.to(head.means).masked_fill(nothing, -torch.inf),
            head.spread,
        )

    @cached_property
    def name(self) -> str:
        """Hash of it all, under which the looks of a shard are kept."""
        digest = hashlib.sha256(repr((astuple(self.strangers), self.spread, DEALT_ROWS)).encode())
        for tensor in (self.means, self.lengths, self.offset, self.moved, self.tilts):
            digest.update(tensor.contiguous().numpy().data)
        return f"unknown-{digest.hexdigest()[:16]}"

    def looks(self, points: Float[Tensor, "item dim"], lists: Lists) -> Looks:
        """Compare the group of each item with the classes of the item."""
        n_items = len(points)
        scores = lists.scores + lists.of_classes(self.tilts)
        # An item whose classes hold nothing is compared with them all the same.
        scores = scores.where(scores.isfinite().any(1, keepdim=True), lists.scores)
        u = scores.softmax(1)
        said = (u * (lists.scores - lists.of_classes(self.moved))).sum(1, keepdim=True)
        lengths = (u * lists.of_classes(self.lengths)).sum(1)
        _, which, copies = torch.unique(row_hashes(points), return_inverse=True, return_counts=True)
        t, n = torch.empty(2, n_items, dtype=torch.float64)
        # Dealt in turn: a batch is often sorted.
        n_parts = -(-n_items // MOST_LINKED)
        for part in range(n_parts):
            mine = slice(part, n_items, n_parts)
            x = points[mine].unsqueeze(0)
            links = link_items(x, torch.ones(x.shape[:2], dtype=torch.bool), self.centre, self.strangers)
            n[mine] = group_sizes(links.linked, links.weights, which[mine].unsqueeze(0))[0]
            centroids = links.centroids[0] - self.offset
            means = embedding_bag(lists.classes[mine], self.means, per_sample_weights=u[mine], mode="sum")
            distances = centroids.square().sum(1) + lengths[mine] - 2 * (centroids * means).sum(1)
            score = over_links(links.linked, links.weights, said[mine].unsqueeze(0))[0, :, 0]
            noise = self.spread - self.spread / n[mine]
            t[mine] = self.strangers.statistic(distances.double() + noise, score.double())
        return Looks(t, n, 1 / (n * copies[which]))

    def evidence(self, looks: Looks) -> Evidence:
        """Add up what items say, in both cases."""
        t, n, weights = (part.expand(2, -1) for part in looks)
        cases = likelihoods(self.strangers, t, n, weights, torch.tensor([False, True]))
        return Evidence(cases, float(looks.n.sum()))


class Verdict(NamedTuple):
    """What is known about the share of unknown items."""

    background: Background
    posterior: Posterior
    alone: bool

    @classmethod
    def of(cls, background: Background, evidence: Evidence) -> Verdict:
        """Read it off the evidence of all items."""
        alone = evidence.sizes < ALONE * float(evidence.cases.n_items[0])
        cases = Likelihoods(*(part[int(alone)].unsqueeze(0) for part in evidence.cases))
        return cls(background, posterior_of(cases), alone)

    @property
    def interval(self) -> tuple[float, float]:
        """Of the share, 90 %."""
        low, high = self.posterior.interval[0].tolist()
        return low, high

    @property
    def is_open(self) -> bool:
        """Whether there is evidence for something unknown."""
        return float(self.posterior.evidence) > EVIDENCE

    def chances(self, looks: Looks) -> Float[Tensor, "item"]:
        """Return the chance of each item to be unknown."""
        t, n = looks.t.unsqueeze(0), looks.n.unsqueeze(0)
        return chances_of(self.background.strangers, t, n, torch.tensor([self.alone]), self.posterior)[0]
