"""Open roll call: a class of the catalogue for every item, and the chance that it has none of them.

The closed answer (`handful.inference.roll_call_stack`) is computed first. Then

1. **Links.** Two items share a class with log-odds `A + B cos + b`. A and B come from the catalogue
   (`handful.inference.strangers`), b from the pairs of the batch. An item keeps its `NEAR` strongest links; with
   weights w_nm that sum to one, it stands for a group of `1/Σ_m w_nm²` items, or for itself alone.
2. **Unlikeness.** The centroid of its group is compared with the classes that the joint answer gives the item, which
   yields the statistic t, and the t of all items the share of unknown ones and the chance g_n of each.
3. **Again.** If the evidence for something unknown is weak, the closed answer stays. Else items count 1 - g_n towards
   everything that is estimated from the batch, and it is labelled again, twice. An item has the label `(1-g)` times of
   this answer and g times of the closed one.
4. **Groups.** Items that are more likely unknown than known are gathered into new groups
   (`handful.inference.new_groups`).

Links take a square of memory. A batch of more than `MOST_LINKED` items is therefore divided into parts, and an item has
links within its part. Groups are sought among the `MOST_GATHERED` most likely unknown items.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, fields, replace
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import normalize

from handful.inference.head import Head
from handful.inference.left_out import row_hashes
from handful.inference.new_groups import NewGroup, new_groups
from handful.inference.roll_call_stack import AgainstHead, Called, label
from handful.inference.strangers import Strangers
from handful.inference.unknown_share import Share, share_of
from handful.numerics.fixed_point import merged, take
from handful.shapes import Bool, Float, Int

# Links that an item keeps.
NEAR = 10
# Items that can be linked with one another, and unknown items among which groups are sought.
MOST_LINKED, MOST_GATHERED = 512, 2048
# Chance that two items share a class: first guess, limits, most updates, relative change at which they end, and pairs
# that it is estimated from.
PAIR_CHANCE, LEAST_PAIRS, MOST_PAIRS, PAIR_STEPS, PAIR_TOLERANCE, PAIRS = 0.1, 1e-4, 0.9, 60, 1e-5, 2**14
# A batch is closed unless the Bayes factor for something unknown is larger.
EVIDENCE = 3.0
# How often an open batch is labelled again. All but the last end at a change of a count that many times as large.
ROUNDS, ROUGHER = 2, 100.0
# An item counts at least this much, so that a batch of unknown items is still a batch.
LEAST_WEIGHT = 1e-3
# Classes that hold less than this of all items in the closed answer are not compared with any.
LEAST_HELD = 0.05
# Numbers in one block.
BLOCK_NUMBERS = 2**22
# Separates the hashes of batches.
ODD = 0x9E3779B97F4A7C15 - 2**64
# An item is rejected above this chance.
REJECTED = 0.5
# The given class of an item that is known to belong to none.
NO_CLASS = -2


@dataclass(frozen=True, eq=False)
class Opened:
    """The answer for each batch, open where there is evidence for something unknown.

    Attributes
    ----------
    called : Called
        The labels. Expected counts and presence are those of known items.
    unknown : Float[Tensor, "task query"]
        Chance that the item belongs to no class; NaN if the catalogue cannot tell, zero where a row is padding.
    interval : Float[Tensor, "task 2"]
        Of the share of unknown items, 90 %.
    is_open : Bool[Tensor, "task"]
        Whether there is evidence for something unknown.
    groups : list of list of NewGroup
        New groups of each batch.
    none : Bool[Tensor, "task query"] or None
        Items that are known to belong to no class.
    """

    called: Called
    unknown: Float[Tensor, "task query"]
    interval: Float[Tensor, "task 2"]
    is_open: Bool[Tensor, "task"]
    groups: list[list[NewGroup]]
    none: Bool[Tensor, "task query"] | None = None

    @classmethod
    def closed(cls, called: Called) -> Opened:
        """Return the answer if nothing is known about unknown items."""
        unknown = torch.full_like(called.confidence, torch.nan, dtype=torch.float64)
        return cls(
            called,
            unknown,
            unknown.new_tensor([[0.0, 1.0]]).repeat(len(unknown), 1),
            torch.zeros(len(unknown), dtype=torch.bool, device=unknown.device),
            [[] for _ in range(len(unknown))],
        )

    @property
    def rejected(self) -> Bool[Tensor, "task query"]:
        """Items that are more likely unknown than known, in open batches, and those known to belong to no class."""
        rejected = (self.unknown > REJECTED) & self.is_open.unsqueeze(-1)
        return rejected if self.none is None else rejected | self.none

    def heard(self, given: Int[Tensor, "task query"]) -> Opened:
        """Return the answer if items are known to have a class, or none (`NO_CLASS`), whatever they look like.

        They count in full, or not at all. By Markov's inequality a class is present with a chance of at most its
        expected count.
        """
        none, classed = given == NO_CLASS, given >= 0
        unknown = self.unknown * ~classed  # NaN stays NaN
        counting = (1 - unknown).where(self.is_open.unsqueeze(-1), 1.0).masked_fill(none, 0)
        counts = torch.bmm(counting.unsqueeze(1), self.called.log_probabilities.double().exp()).squeeze(1)
        counts = counts.where((none | classed).any(-1, keepdim=True), self.called.expected_counts)
        presence = self.called.presence
        called = replace(
            self.called,
            expected_counts=counts,
            presence=torch.minimum(presence, counts).where(none.any(-1, keepdim=True), presence),
        )
        groups = [
            [left for new in found if len((left := new._replace(items=new.items[~classed[row, new.items]])).items) > 1]
            for row, found in enumerate(self.groups)
        ]
        return replace(self, called=called, unknown=unknown.masked_fill(none, 1), groups=groups, none=none)


def label_open(batches: AgainstHead, strangers: Strangers | None, *, max_iter: int, tol: float) -> Opened:
    """Label every batch, and say which of its items belong to no class.

    Without `strangers` the answer is the closed one, and nothing is known about unknown items.
    """
    answer = closed = label(batches, max_iter=max_iter, tol=tol)
    if strangers is None or batches.points.shape[1] == 0:
        return Opened.closed(closed)
    whole = look = _Look.at(batches, strangers, closed.expected_counts)
    n_tasks, device = len(batches.points), batches.points.device
    rows = torch.arange(n_tasks, device=device)
    unknown = torch.empty_like(whole.sizes, dtype=torch.float64)
    interval = unknown.new_empty(n_tasks, 2)
    is_open = torch.zeros(n_tasks, dtype=torch.bool, device=device)
    groups: list[list[NewGroup]] = [[] for _ in range(n_tasks)]
    for step in range(ROUNDS):
        share = look.share(answer.offset, answer.tilts)
        unknown[rows], interval[rows] = share.chances, share.interval
        opened = share.evidence > EVIDENCE
        is_open[rows] = opened
        # A batch that turns out to be closed keeps the closed answer.
        rows, look = rows[opened], look.some(opened)
        if len(rows) == 0:
            return Opened(closed, unknown, interval, is_open, groups)
        # Only the last answer has to be exact: the others say which items count.
        answer = label(
            _weighted(batches, rows, unknown[rows]), max_iter=max_iter, tol=tol if step == ROUNDS - 1 else ROUGHER * tol
        )
    for row in rows.tolist():
        groups[row] = whole.groups(row, unknown[row])
    mixed = _mixed(take(closed, rows, n_tasks), answer, unknown[rows])
    pieces = [(rows, mixed)]
    if len(rows) < n_tasks:
        pieces.append(((~is_open).nonzero()[:, 0], take(closed, ~is_open, n_tasks)))
    return Opened(merged(pieces), unknown, interval, is_open, groups)


def _weighted(batches: AgainstHead, rows: Int[Tensor, "open"], unknown: Float[Tensor, "open query"]) -> AgainstHead:
    """Return some batches, with items that count as far as they are known."""
    weights = (1 - unknown).clamp(min=LEAST_WEIGHT).to(batches.points.dtype)
    mask = None if batches.mask is None else batches.mask[rows]
    points = batches.points if len(rows) == len(batches.points) else batches.points[rows]
    prior = None if batches.prior is None else batches.prior.rows(rows)
    given = None if batches.given is None else batches.given[rows]
    return AgainstHead(points, mask, batches.head, weights if mask is None else weights * mask, prior, given)


def _mixed(closed: Called, known: Called, unknown: Float[Tensor, "task query"]) -> Called:
    """Mix the labels of known and of all items; counts are those of known items."""
    chances = unknown.to(closed.log_probabilities).unsqueeze(-1)
    q = known.log_probabilities.exp().mul_(1 - chances).addcmul_(chances, closed.log_probabilities.exp())
    counts = torch.bmm((1 - unknown).unsqueeze(1), q.double()).squeeze(1)
    return replace(
        known, log_probabilities=q.log_(), alone=closed.alone, confidence=closed.confidence, expected_counts=counts
    )


@dataclass(frozen=True, eq=False)
class _Look:
    """What batches look like before they are labelled: links and groups of their items.

    Copies of an item are linked like others, but twelve of them are neither more evidence nor a group with less noise.
    """

    head: Head
    strangers: Strangers
    points: Float[Tensor, "task item dim"]
    mask: Bool[Tensor, "task item"]
    which: Int[Tensor, "task item"]  # equal for copies
    log_odds: Float[Tensor, "task"]  # b
    linked: Int[Tensor, "task item link"]
    weights: Float[Tensor, "task item link"]
    squares: Float[Tensor, "task item"]  # squared length of the centroid of the item's group
    sizes: Float[Tensor, "task item"]  # n
    evidence: Float[Tensor, "task item"]  # what an item counts: 1/(n · copies); zero if its class is given
    columns: Int[Tensor, "task column"]  # classes that items are compared with
    used: Bool[Tensor, "task column"]

    @classmethod
    def at(cls, batches: AgainstHead, strangers: Strangers, counts: Float[Tensor, "task class"]) -> _Look:
        """Link the items of every batch; classes that hold nothing of the closed answer are left aside."""
        points, (n_tasks, n_slots) = batches.points, batches.points.shape[:2]
        mask = batches.mask
        if mask is None:
            mask = torch.ones(n_tasks, n_slots, dtype=torch.bool, device=points.device)
        n_of = mask.sum(1)
        links = min(NEAR + 1, n_slots)
        linked = torch.zeros(n_tasks, n_slots, links, dtype=torch.int64, device=points.device)
        weights, squares = points.new_zeros(n_tasks, n_slots, links), torch.zeros_like(points[..., 0])
        log_odds = torch.zeros(n_tasks, dtype=torch.float64, device=points.device)
        centre = batches.head.means.mean(0)
        small = (n_of <= MOST_LINKED).nonzero()[:, 0]
        slots = int(n_of[small].max()) if len(small) else 0
        size = max(1, BLOCK_NUMBERS // max(1, slots**2))
        for start in range(0, len(small), size):
            rows = small[start : start + size]
            found = link_items(points[rows, :slots], mask[rows, :slots], centre, strangers)
            width = found.linked.shape[-1]
            linked[rows, :slots, :width], weights[rows, :slots, :width] = found.linked, found.weights
            squares[rows, :slots], log_odds[rows] = found.centroids.square().sum(2), found.log_odds
        for row in (n_of > MOST_LINKED).nonzero()[:, 0].tolist():
            # Assigned in turn: a batch is often sorted.
            n_parts = -(-int(n_of[row]) // MOST_LINKED)
            for part in range(n_parts):
                mine = slice(part, int(n_of[row]), n_parts)
                found = link_items(points[row, mine].unsqueeze(0), mask[row, mine].unsqueeze(0), centre, strangers)
                width = found.linked.shape[-1]
                linked[row, mine, :width] = found.linked[0] * n_parts + part
                weights[row, mine, :width] = found.weights[0]
                squares[row, mine] = found.centroids[0].square().sum(1)
                log_odds[row] += found.log_odds[0] / n_parts
        tasks = torch.arange(n_tasks, device=points.device).unsqueeze(1)
        # Rows of two batches are different, and so is padding from items.
        keys = row_hashes(points.flatten(0, 1)).view(n_tasks, n_slots) + (2 * tasks + mask.long()) * ODD
        _, which, copies = torch.unique(keys, return_inverse=True, return_counts=True)
        sizes = group_sizes(linked, weights, which).where(mask, 1.0)
        width = max(1, int((counts >= LEAST_HELD).sum(1).max()))
        columns = counts.topk(width).indices.sort().values
        return cls(
            batches.head,
            strangers,
            points,
            mask,
            which,
            log_odds,
            linked,
            weights,
            squares,
            sizes,
            (mask if batches.given is None else mask & (batches.given < 0)) / (sizes * copies[which]),
            columns,
            (counts.gather(1, columns) >= LEAST_HELD) | (width == 1),
        )

    def some(self, rows: Tensor) -> _Look:
        """Return the look of some of the batches."""
        cut = {f.name: getattr(self, f.name)[rows] for f in fields(self) if f.name not in {"head", "strangers"}}
        return replace(self, **cut)

    def share(self, offset: Float[Tensor, "task dim"], tilts: Float[Tensor, "task class"]) -> Share:
        """Compare each group with the classes of its item; offset and tilts are those of the joint answer."""
        t = torch.empty_like(self.sizes)
        n_tasks, n_slots, dim = self.points.shape
        size = max(1, BLOCK_NUMBERS // (n_slots * (dim + 1)))
        for start in range(0, n_tasks, size):
            rows = torch.arange(start, min(start + size, n_tasks), device=t.device)
            t[rows] = self.some(rows)._statistic(offset[rows], tilts[rows])
        return share_of(self.strangers, t, self.sizes, self.evidence)

    def _statistic(
        self, offset: Float[Tensor, "task dim"], tilts: Float[Tensor, "task class"]
    ) -> Float[Tensor, "task item"]:
        head, points = self.head, self.points
        assert head.spread is not None
        moved = offset.to(points).unsqueeze(2)
        means, classes = head.means[self.columns], head.weights[self.columns]
        lengths = means.square().sum(2) - head.spread / head.mass[self.columns]
        scores = torch.baddbmm(head.offsets[self.columns].unsqueeze(1), points, classes.mT)
        leaning = tilts.gather(1, self.columns).masked_fill(~self.used, -torch.inf)
        u = (scores + leaning.to(scores).unsqueeze(1)).softmax(2)
        # Of the centroid x of a group: ⟨x - d, μ_k⟩ and |x - d|².
        near = over_links(self.linked, self.weights, torch.bmm(points, means.mT)) - torch.bmm(means, moved).mT
        squares = (
            self.squares
            - 2 * over_links(self.linked, self.weights, torch.bmm(points, moved)).squeeze(2)
            + moved.square().sum(1)
        )
        distances = squares + (u * (lengths.unsqueeze(1) - 2 * near)).sum(2)
        said = (u * (scores - torch.bmm(classes, moved).mT)).sum(2, keepdim=True)
        said = over_links(self.linked, self.weights, said).squeeze(2)
        return self.strangers.statistic(distances.double() + head.spread - head.spread / self.sizes, said.double())

    def groups(self, task: int, unknown: Float[Tensor, "item"]) -> list[NewGroup]:
        """Gather the items of one batch that are more likely unknown than known."""
        places = (unknown > REJECTED).nonzero()[:, 0]
        if len(places) > MOST_GATHERED:
            places = unknown.argsort(descending=True, stable=True)[:MOST_GATHERED].sort().values
        head, points = self.head, self.points[task, places]
        inside = normalize(points - head.means.mean(0), dim=1)
        a, b = self.strangers.pair_odds
        log_odds = b * (inside @ inside.T) + a + float(self.log_odds[task])
        scores = torch.addmm(head.offsets, points, head.weights.T)
        found = new_groups(log_odds, points, unknown[places], scores, self.which[task, places])
        return [group._replace(items=places[group.items]) for group in found]


def over_links(
    linked: Int[Tensor, "task item link"],
    weights: Float[Tensor, "task item link"],
    values: Float[Tensor, "task item number"],
) -> Float[Tensor, "task item number"]:
    """`Σ_m w_nm x_m`."""
    total = torch.zeros_like(values)
    for link in range(linked.shape[2]):
        rows = linked[:, :, link].unsqueeze(2).expand(-1, -1, values.shape[2])
        total.addcmul_(values.gather(1, rows), weights[:, :, link].unsqueeze(2))
    return total


def group_sizes(
    linked: Int[Tensor, "task item link"], weights: Float[Tensor, "task item link"], which: Int[Tensor, "task item"]
) -> Float[Tensor, "task item"]:
    """`1/Σ w²`: how many items the group of each stands for; `which` is equal for copies, which count as one item."""
    of_links = which.gather(1, linked.flatten(1)).view_as(linked)
    same = (of_links.unsqueeze(3) == of_links.unsqueeze(2)).to(weights)
    shares = torch.matmul(same, weights.unsqueeze(3)).squeeze(3)
    # At least one: rounding can make the sum larger than one, and a group of fewer items than one is evidence against
    # its own likelihood.
    return (1 / (weights * shares).sum(2).double()).clamp(min=1)


class Links(NamedTuple):
    """The strongest links of each item, their weights, `Σ_m w_nm z_m`, and b of each batch."""

    linked: Int[Tensor, "task item link"]
    weights: Float[Tensor, "task item link"]
    centroids: Float[Tensor, "task item dim"]
    log_odds: Float[Tensor, "task"]


def link_items(
    points: Float[Tensor, "task item dim"],
    mask: Bool[Tensor, "task item"],
    centre: Float[Tensor, "dim"],
    strangers: Strangers,
) -> Links:
    """Link items within each batch."""
    directions = normalize(points - centre, dim=2)
    a, b = strangers.pair_odds
    odds = torch.bmm(directions, directions.mT).mul_(b).add_(a)
    log_odds = _pair_log_odds(odds, mask.sum(1))
    odds += log_odds.to(odds).view(-1, 1, 1)
    odds.masked_fill_(~mask.unsqueeze(1), -torch.inf).diagonal(dim1=1, dim2=2).fill_(torch.inf)
    # By odds: many chances are equal to one.
    strongest = odds.topk(min(NEAR + 1, points.shape[1]), 2)
    weights = strongest.values.sigmoid()
    weights /= weights.sum(2, keepdim=True)
    centroids = torch.bmm(odds.zero_().scatter_(2, strongest.indices, weights), points)
    return Links(strongest.indices, weights, centroids, log_odds)


def _pair_log_odds(odds: Float[Tensor, "task item item"], n_of: Int[Tensor, "task"]) -> Float[Tensor, "task"]:
    """Log-odds that two items of a batch share a class: the most likely ones, by expectation maximisation.

    Of more than `PAIRS` pairs, some evenly over their odds, so that the order of the items does not matter.
    """
    n_pairs = n_of * (n_of - 1) // 2
    if int(n_pairs.max()) == 0:
        return torch.full_like(n_of, math.log(PAIR_CHANCE / (1 - PAIR_CHANCE)), dtype=torch.float64)
    one, other = torch.triu_indices(odds.shape[1], odds.shape[2], 1, device=odds.device)
    pairs = odds[:, one, other].masked_fill_(other >= n_of.unsqueeze(1), -torch.inf)
    if pairs.shape[1] > PAIRS:
        place, counted = torch.arange(PAIRS, device=odds.device), n_pairs.clamp(1, PAIRS).unsqueeze(1)
        chosen = (2 * place + 1) * n_pairs.unsqueeze(1) // (2 * counted)
        pairs = pairs.sort(descending=True).values.gather(1, chosen.clamp(max=pairs.shape[1] - 1))
        pairs, n_pairs = pairs.masked_fill(place >= counted, -torch.inf), n_pairs.clamp(max=PAIRS)
    some = n_pairs > 0
    chance = torch.full_like(n_pairs, PAIR_CHANCE, dtype=torch.float64)
    for _ in range(PAIR_STEPS):
        shifted = pairs + torch.logit(chance).to(odds).unsqueeze(1)
        found = shifted.sigmoid_().sum(1, dtype=torch.float64) / n_pairs
        found = found.clamp(LEAST_PAIRS, MOST_PAIRS).where(some, chance)
        before, chance = chance, found
        if bool(((chance - before).abs() <= PAIR_TOLERANCE * before).all()):
            break
    return torch.logit(chance)
