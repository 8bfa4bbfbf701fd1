"""A stack of batches in memory: their scores, on the classes that can matter, and the counts these give.

Exponentials `E_nk = exp(f c² (s_nk - max_k s_nk))` are computed once per factor. An iteration is two thin products:

    r_n = Σ_k E_nk t_k,    N_k = t_k Σ_n E_nk / r_n    with    t_k = exp(tilt_k).

E is in double precision and holds differences of up to 690 nats; a larger difference is treated as 690.

A class enters only if it gets a share of the items at equal proportions. It leaves permanently when its count is
negligible and would be negligible with a larger prior too. At the end all classes are checked against the answer; a
batch in which one would return is solved again with every class.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, fields, replace
from itertools import product
from typing import Any, Protocol, runtime_checkable

import torch
from torch import Tensor

from handful.inference.joint import DONE, OPENING, SHARPEST, JointRules, JointState, Tally, advance, opening, tilts
from handful.numerics.fixed_point import COMPACT_SHARE, take
from handful.numerics.geometry import Space, columns_of
from handful.numerics.simplex import softmax
from handful.shapes import Bool, Float, Int

# A class enters if its count at equal proportions is at least this share of one item.
LEAST_AT_FIRST = 0.02
# A class leaves when its count is less than this, and would be less with no count of its own at α = m/K, which α hardly
# exceeds when m classes occur.
NEGLIGIBLE_COUNT = 1e-9
# A prototype whose class holds fewer items than this does not move.
NEGLIGIBLE_MASS = 1e-6
# Items that all classes without a column may hold together at the end.
NEGLIGIBLE_RETURN = 1e-6
# Exponents are clamped at these values, in double and in single precision.
LOWEST, LOWEST_SINGLE = -690.0, -80.0
# Every that many iterations, classes that may leave are removed.
NARROW_EVERY = 4
# Scores in one block when all classes are compared: together with a copy, they fit a second-level cache.
BLOCK_SCORES = 200_000
# Widths of the groups in which batches go on together; the last one has all columns.
GROUP_WIDTHS = (16, 64)


@runtime_checkable
class Batches(Protocol):
    """Batches of items, and the classes each is compared with."""

    @property
    def n_classes(self) -> int:
        """K."""
        ...

    @property
    def mask(self) -> Bool[Tensor, "task query"] | None:
        """False where a row is padding."""
        ...

    @property
    def n_query(self) -> Float[Tensor, "task"]:
        """|Q| of each batch."""
        ...

    @property
    def shots(self) -> Float[Tensor, "task"]:
        """Typical number of examples of a class."""
        ...

    @property
    def squared_scale(self) -> Float[Tensor, "task"]:
        """c², known once all batches were scored."""
        ...

    def scored(self) -> tuple[Float[Tensor, "task query class"], Iterator[slice]]:
        """Return room for the scores `⟨z, w⟩ - ½‖w‖²`, and an iterator that fills it block by block."""
        ...

    def select(self, rows: Int[Tensor, "some"]) -> Batches:
        """Return some of the batches, which were scored before."""
        ...

    def space(self, classes: Int[Tensor, "task column"] | None) -> Space[Any]:
        """Return the space in which prototypes of some classes, or all, move."""
        ...


@dataclass(frozen=True)
class FirstLook:
    """What one look at all classes says."""

    scores: Float[Tensor, "task query class"]  # ⟨z, w⟩ - ½‖w‖²
    highest: Float[Tensor, "task query"]
    counts: Float[Tensor, "task class"]  # at equal proportions and the sharp factor
    uniform: Float[Tensor, "task"]  # their log-evidence


@dataclass(frozen=True)
class Settled:
    """Final proportions of some batches, on the columns of the classes that hold items."""

    rows: Int[Tensor, "some"]  # which batches these are
    state: JointState
    classes: Int[Tensor, "some column"]


@dataclass(frozen=True)
class Labelled:
    """`ln u_nk` of all classes, and the posteriors behind it, in groups of batches with the same number of columns."""

    log_assignments: Float[Tensor, "task query class"]
    proportions: Float[Tensor, "task class"]  # what each class holds, as a share of the batch
    highest: Float[Tensor, "task query"]  # score of each item's nearest class
    groups: list[Settled]

    def of_tasks(self, name: str) -> Tensor:
        """Return a field of the states, batch by batch."""
        rows = torch.cat([group.rows for group in self.groups])
        values = torch.cat([getattr(group.state, name) for group in self.groups])
        return values[rows.argsort()]


def label(batches: Batches, *, max_iter: int, tol: float) -> Labelled:
    """Settle the proportions of every batch, move prototypes once and assign the items."""
    first = compare(batches)
    need = int((first.counts >= LEAST_AT_FIRST).sum(-1).max())
    width = rounded_width(2 * need, batches.n_classes)  # with room, or all
    groups = settle(batches, first, width, max_iter=max_iter, tol=tol)
    proportions, returns = assign(batches, first, groups)
    if width < batches.n_classes:
        # Uniform proportions won over few classes; perhaps only because a class did not enter.
        for group in groups:
            returns[group.rows[group.state.spread_out]] = True
    if bool(returns.any()):
        rows = returns.nonzero().squeeze(-1)
        again = batches.select(rows)
        repeated = compare(again)
        others = settle(again, repeated, batches.n_classes, max_iter=max_iter, tol=tol)
        proportions[rows], _ = assign(again, repeated, others)
        first.scores[rows] = repeated.scores
        kept = [take(group, ~returns[group.rows], len(group.rows)) for group in groups]
        moved = [replace(group, rows=rows[group.rows]) for group in others]
        groups = [group for group in (*kept, *moved) if len(group.rows) > 0]
    if batches.mask is not None:
        first.scores.masked_fill_(~batches.mask.unsqueeze(-1), -torch.inf)
    return Labelled(first.scores, proportions, first.highest, groups)


def compare(batches: Batches) -> FirstLook:
    """Compare the items with all classes, and count at equal proportions and the sharp factor."""
    scores, blocks = batches.scored()
    n_tasks, slots, n_classes = scores.shape
    highest, counts = scores.new_empty(n_tasks, slots), scores.new_zeros(n_tasks, n_classes)
    uniform = -batches.n_query * math.log(n_classes)
    # Some items of one batch, or some batches.
    n_items, n_batches = max(1, min(slots, BLOCK_SCORES // n_classes)), max(1, BLOCK_SCORES // (slots * n_classes))
    room = scores.new_empty(n_batches * n_items * n_classes)
    for filled in blocks:
        start, stop, _ = filled.indices(n_tasks)
        for first, item in product(range(start, stop, n_batches), range(0, slots, n_items)):
            rows, items = slice(first, min(first + n_batches, stop)), slice(item, item + n_items)
            block = scores[rows, items]
            best = block.amax(-1)
            nats = (SHARPEST * batches.squared_scale[rows]).to(block).reshape(-1, 1, 1)
            near = torch.sub(block, best.unsqueeze(-1), out=room[: block.numel()].view(block.shape))
            total = near.mul_(nats).clamp_(min=LOWEST_SINGLE).exp_().sum(-1)
            shares, logs = total.reciprocal(), total.log()
            if batches.mask is not None:
                shares, logs = shares * batches.mask[rows, items], logs * batches.mask[rows, items]
            counts[rows] += torch.bmm(shares.unsqueeze(1), near).squeeze(1)
            highest[rows, items] = best
            uniform[rows] += logs.sum(-1, dtype=torch.float64)
    return FirstLook(scores, highest, counts, uniform)


def settle(batches: Batches, first: FirstLook, width: int, *, max_iter: int, tol: float) -> list[Settled]:
    """Find the proportions, starting with `width` columns for the classes that hold most at first."""
    n_classes = batches.n_classes
    classes = largest(first.counts, width)
    columns = Columns(batches, first, classes)
    rules = JointRules(batches.n_query, n_classes, batches.shots, first.uniform, max_iter, tol)
    state = opening(first.counts.gather(-1, classes).double(), n_classes)
    for _ in range(OPENING):
        state = advance(state, rules, columns.count)
    # Batches that need about the same number of columns continue together.
    needs = torch.tensor([_group_width(need, width) for need in columns.alive(state).sum(-1).tolist()])
    groups = []
    for width in sorted(set(needs.tolist())):
        rows = (needs == width).nonzero().squeeze(-1).to(classes.device)
        part, begun = columns.take(rows), take(state, rows, len(needs))
        kept = part.narrow(begun, width)
        found = _settled(part, take(rules, rows, len(needs)), _on_columns(begun, kept))
        holds = rounded_width(int((found.counts > NEGLIGIBLE_MASS).sum(-1).max()), width)
        last = largest(found.counts, holds)
        groups.append(Settled(rows, _on_columns(found, last), classes[rows].gather(-1, kept).gather(-1, last)))
    return groups


def _settled(columns: Columns, rules: JointRules, state: JointState) -> JointState:
    """Advance until every batch is done; a finished batch keeps the state it has then, with all its columns."""
    n_tasks, width = state.counts.shape
    final = JointState(*(torch.zeros_like(getattr(state, f.name)) for f in fields(JointState)))
    rows = torch.arange(n_tasks, device=state.counts.device)
    places = torch.arange(width, device=state.counts.device).expand(n_tasks, -1)
    waiting = torch.ones_like(rows, dtype=torch.bool)
    for iteration in range(1, 2 * rules.max_iter + 3):
        state = advance(state, rules, columns.count)
        if state.factor is not columns.factor:
            columns.refactor(state.factor)
        done = waiting & (state.stage >= DONE)
        if bool(done.any()):
            for f in fields(JointState):
                values, room = getattr(state, f.name)[done], getattr(final, f.name)
                if values.ndim == 2:
                    values = values.new_zeros(len(values), width).scatter_(-1, places[done], values)
                room[rows[done]] = values
            waiting = waiting & ~done
            if not bool(waiting.any()):
                break
            if float(waiting.float().mean()) <= 1 - COMPACT_SHARE:
                columns = columns.take(waiting)
                rules, state = take(rules, waiting, len(rows)), take(state, waiting, len(rows))
                rows, places, waiting = rows[waiting], places[waiting], waiting[waiting]
        if iteration % NARROW_EVERY == 0:
            need = rounded_width(int(columns.alive(state).sum(-1).max()), state.counts.shape[-1])
            if 2 * need <= state.counts.shape[-1]:
                kept = columns.narrow(state, need)
                state, places = _on_columns(state, kept), places.gather(-1, kept)
    return final


class Columns:
    """Exponentials of the scores on some columns of each batch: what answers `joint.advance`."""

    def __init__(self, batches: Batches, first: FirstLook, classes: Int[Tensor, "task column"]) -> None:
        self.n_classes, self.n_query = batches.n_classes, batches.n_query
        self.mask = None if batches.mask is None else batches.mask.double()
        # Score of a class minus that of the nearest class, at c² = 1.
        self.less_near = columns_of(first.scores, classes).double() - first.highest.unsqueeze(-1)
        self.squared_scale = batches.squared_scale
        self.factor = torch.full_like(self.squared_scale, SHARPEST)
        self.near = self._exponentials(slice(None))

    def count(self, tilt: Float[Tensor, "task column"], likelihood: bool) -> Tally:
        """`N_k = Σ_n u_nk`, and the log-likelihood relative to that of the nearest classes."""
        shift = tilt.amax(-1, keepdim=True)
        t = (tilt - shift).exp_()
        r = torch.bmm(self.near, t.unsqueeze(-1)).squeeze(-1)
        shares = r.reciprocal() if self.mask is None else self.mask / r
        pull = torch.bmm(shares.unsqueeze(1), self.near).squeeze(1)
        self._last = pull, shift
        if not likelihood:
            return Tally(t * pull, None)
        logs = r.log_() if self.mask is None else r.log_() * self.mask
        return Tally(t * pull, logs.sum(-1) + self.n_query * shift.squeeze(-1))

    def alive(self, state: JointState) -> Bool[Tensor, "task column"]:
        """Which classes have a count that is not negligible, or would have one with a larger prior and no count."""
        pull, shift = self._last
        larger = torch.maximum(state.concentration, state.counts.clamp(max=1).sum(-1) / self.n_classes)
        alone = (torch.digamma(larger).unsqueeze(-1) - shift).exp_() * pull
        return torch.maximum(state.counts, alone) > NEGLIGIBLE_COUNT

    def narrow(self, state: JointState, width: int) -> Int[Tensor, "task column"]:
        """Keep the `width` columns of the classes that hold most, and return which."""
        kept = largest(state.counts.where(self.alive(state), -1), width)
        if width < state.counts.shape[-1]:
            self.less_near, self.near = columns_of(self.less_near, kept), columns_of(self.near, kept)
            self._last = self._last[0].gather(-1, kept), self._last[1]
        return kept

    def take(self, rows: Tensor) -> Columns:
        """Return the columns of some batches."""
        part = object.__new__(Columns)
        part.n_classes, part.n_query = self.n_classes, self.n_query[rows]
        part.mask = None if self.mask is None else self.mask[rows]
        part.less_near, part.near = self.less_near[rows], self.near[rows]
        part.squared_scale, part.factor = self.squared_scale[rows], self.factor[rows]
        part._last = self._last[0][rows], self._last[1][rows]
        return part

    def refactor(self, factor: Float[Tensor, "task"]) -> None:
        """Compute the exponentials again where the factor has changed."""
        rows = (factor != self.factor).nonzero().squeeze(-1)
        self.factor = factor
        if len(rows) > 0:
            self.near[rows] = self._exponentials(rows)

    def _exponentials(self, rows: Tensor | slice) -> Tensor:
        nats = (self.factor * self.squared_scale)[rows].reshape(-1, 1, 1)
        return (self.less_near[rows] * nats).clamp_(min=LOWEST).exp_()


def assign(
    batches: Batches, first: FirstLook, groups: list[Settled]
) -> tuple[Float[Tensor, "task class"], Bool[Tensor, "task"]]:
    """Overwrite the scores with `ln u_nk`; return proportions, and whether a class without a column returns."""
    scores, few = first.scores, []
    items = torch.arange(scores.shape[1], device=scores.device).reshape(1, -1, 1)
    nats, empty = scores.new_ones(len(scores), 1, 1), scores.new_zeros(*scores.shape[:2], 1)
    held = scores.new_zeros(len(scores), batches.n_classes)
    returns = torch.zeros(len(scores), dtype=torch.bool, device=scores.device)
    for group in groups:
        even = group.state.spread_out
        for row in group.rows[even].tolist():
            held[row] = _assign_evenly(batches.select(group.rows.new_tensor([row])), scores[row])
        if bool(even.all()):
            continue
        part = take(group, ~even, len(even)) if bool(even.any()) else group
        rows = part.rows
        places = rows.reshape(-1, 1, 1), items, part.classes.unsqueeze(1)
        chosen = batches if len(rows) == len(scores) else batches.select(rows)  # all of them, in their order
        log_u, nats[rows], alone = _assign_few(chosen, scores[places], part)
        empty[rows] = alone
        # Upper bound: an item gives a class without a count at most what it would give its nearest class.
        most = (alone + nats[rows] * first.highest[rows].unsqueeze(-1)).squeeze(-1).exp_()
        returns[rows] = batches.n_classes * _over_items(most, batches.mask, rows) > NEGLIGIBLE_RETURN
        few.append((rows, part.classes, log_u))
    torch.addcmul(empty, scores, nats, out=scores)
    for rows, classes, log_u in few:
        scores[rows.reshape(-1, 1, 1), items, classes.unsqueeze(1)] = log_u
        held[rows.unsqueeze(-1), classes] = _over_items(log_u.exp().mT, batches.mask, rows.unsqueeze(-1))
        for place in returns[rows].nonzero().squeeze(-1).tolist() if classes.shape[-1] < batches.n_classes else ():
            weights = scores[rows[place]].clamp(min=LOWEST_SINGLE).exp_().index_fill_(-1, classes[place], 0)
            total = _over_items(weights.sum(-1), batches.mask, rows[place])
            returns[rows[place]] = float(total) > NEGLIGIBLE_RETURN
        if classes.shape[-1] == batches.n_classes:
            returns[rows] = False
    return held / batches.n_query.to(held).unsqueeze(-1), returns


def _assign_few(
    batches: Batches, at_columns: Float[Tensor, "task query column"], found: Settled
) -> tuple[Tensor, Tensor, Tensor]:
    """`ln u_nk` on the columns; for all other classes, the factor on the scores and the term added to them."""
    state, near = found.state, batches.space(found.classes)
    nats = (state.factor * batches.squared_scale).reshape(-1, 1, 1)
    before = tilts(state.counts_before, state.concentration_before).unsqueeze(1)
    u = softmax(before + nats * at_columns).weights.to(at_columns)
    moved = near.scores((near.support + near.moments(u)).mean())
    logits = tilts(state.counts, state.concentration).unsqueeze(1) + nats * moved
    log_total = logits.logsumexp(-1, keepdim=True)
    alone = torch.digamma(state.concentration).reshape(-1, 1, 1) - log_total
    return (logits - log_total).to(moved), nats.to(moved), alone.to(moved)


def _assign_evenly(batches: Batches, scores: Float[Tensor, "query class"]) -> Float[Tensor, "class"]:
    """Assign one batch under uniform proportions, at the sharp factor: all prototypes move."""
    nats, space = (SHARPEST * batches.squared_scale).to(scores), batches.space(None)
    u = softmax((scores * nats).unsqueeze(0)).weights
    moved = softmax(space.scores((space.support + space.moments(u)).mean()).mul_(nats))
    scores.copy_(moved.log()[0])
    return _over_items(moved.weights[0].mT, batches.mask, 0)


def _over_items(values: Tensor, mask: Tensor | None, rows: Tensor | int) -> Tensor:
    """Sum over the items (the last axis) without padding."""
    return (values if mask is None else values * mask[rows]).sum(-1)


def rounded_width(need: int, most: int) -> int:
    """Return the next power of two, at least eight, but no more than `most`."""
    return min(most, max(8, 1 << (need - 1).bit_length()))


def _group_width(need: int, most: int) -> int:
    """Return the width of the group for a batch of that need: few groups, because each pays for its own iterations."""
    return min(most, next((width for width in GROUP_WIDTHS if need <= width), most))


def largest(counts: Float[Tensor, "task column"], width: int) -> Int[Tensor, "task width"]:
    """Return the columns of the classes that hold most, in increasing order."""
    if width == counts.shape[-1]:
        return torch.arange(width, device=counts.device).expand(len(counts), -1)
    return counts.topk(width).indices.sort().values


def _on_columns(state: JointState, kept: Int[Tensor, "task column"]) -> JointState:
    """Keep some columns of the counts."""
    return replace(state, counts=state.counts.gather(-1, kept), counts_before=state.counts_before.gather(-1, kept))
