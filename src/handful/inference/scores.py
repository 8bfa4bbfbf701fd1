"""Scores of another model as a source for roll call: no examples, so the scale comes from the scores themselves.

**Differences.** Only differences between the classes of one item count: of logits and similarities themselves, of
`ln p` for probabilities, of `ln p/(1-p)` for sigmoids. A model that was trained on classes of unequal weight prefers
the frequent ones; where these weights are known, `ln w_k` is subtracted.

**Unit.** Differences are measured in their own standard deviation, over the classes of an item and over all items of a
call. So a factor on all scores and an offset per item change nothing.

**Nats.** One standard deviation is worth c nats. Most likely values of c were 1.8 to 3.1 for six kinds of scores on
clinc150 (cosines to names, to 1 and to 5 examples, three logistic heads), and joint labels are equally good from 0.7 to
1.4 times the most likely c. Batches of few classes want it softer: `c = 1.4 + h/(h + 10)` with h classes found in a
first pass at c = 2.1. Labelled items multiply c by their most likely factor, drawn towards one.

**Not given.** A list of the best m of K scores, or a probability that was rounded to zero, says that the others are
lower. The best scores of an item lie like the largest of an exponential sample whose scale is one standard deviation:
`E[s_(2) - s_(m)] = 1/2 + ... + 1/(m-1)`. A score that is not given lies `0.2 + 0.38 ln(K/m)` standard deviations below
the last one: there the missing scores together weigh as much as they do in complete ones.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import NamedTuple

import torch
from torch import Tensor

from handful.inference.prior import Prior
from handful.inference.roll_call import Alone, Count, State, leant, trust
from handful.inference.roll_call_stack import Called, ScoredBatches, label
from handful.shapes import Bool, Float, Int

# Nats per standard deviation: in the first pass, and where no and many classes are found; half-way at that many.
FIRST, LOW, RISE, HALF_RISE = 2.1, 1.4, 1.0, 10.0
# λ is one half at this many items per class found.
TRUST, TRUST_POWER = 3.5, 3.0
# Share of the other classes found, (h - 1)/(K - 1): from the first on λ falls, and from the second on it is zero. On
# clinc150, with 1,000 items, joint labels by cosines to names gain 5 points at 0.3, nothing at 0.5, and lose 2 at 0.7.
FEW_FOUND, MOST_FOUND = 0.3, 0.6
# How far below the last score given the others are, in standard deviations: a constant, and per ln(K/m).
BELOW, BELOW_PER_LOG = 0.2, 0.38
# ln of the factor on c: its standard deviation among models, and the values that it may have.
LOG_FACTOR_SD, MOST_LOG_FACTOR, LOG_FACTORS = 0.25, 2.0, 81
# Nats by which the class of a labelled item leads.
LABELLED_LEAD = 60.0
# The first pass ends at a change of a count that many times as large.
ROUGHER = 100.0
# Scores in one block.
BLOCK_SCORES = 2**22


def _logarithms(p: Tensor) -> Tensor:
    return p.log()


def _log_odds(p: Tensor) -> Tensor:
    # A sigmoid that was rounded to one is as far from one as its precision can tell.
    return p.log() - (1 - p).clamp(min=torch.finfo(p.dtype).eps / 2).log()


# How values of each kind become numbers whose differences are nats, up to a factor.
KINDS: dict[str, Callable[[Tensor], Tensor]] = {
    "logits": torch.clone,
    "probabilities": _logarithms,
    "sigmoid": _log_odds,
    "similarities": torch.clone,
}


class Differences(NamedTuple):
    """Scores of every item relative to its best one."""

    given: Float[Tensor, "item class"]  # NaN where none is given
    ceiling: Float[Tensor, "item"]  # scores that are not given are not higher; zero if nothing is known
    best: Float[Tensor, "item"]  # what was subtracted; the lowest of all if an item has none


def differences(
    values: Float[Tensor, "item class"], kind: str, model_weights: Float[Tensor, "class"] | None = None
) -> Differences:
    """Return the differences between the scores of every item.

    A probability of zero was rounded, so it is not given; but it is lower than the lowest of all that are not zero.
    NaN means that the score may be anything below those given.
    """
    given, best = torch.empty_like(values), torch.empty_like(values[:, 0])
    rounded = torch.zeros_like(best, dtype=torch.bool)
    lowest = torch.inf
    for rows in _blocks(values):
        part = KINDS[kind](values[rows])
        rounded[rows] = part.isneginf().any(1)
        lowest = min(lowest, float(part[part.isfinite()].min())) if bool(part.isfinite().any()) else lowest
        if model_weights is not None:
            part -= model_weights.log().to(part)
        missing = ~part.isfinite()
        own = part.masked_fill(missing, -torch.inf).amax(1, keepdim=True)
        given[rows] = (part - own).masked_fill(missing, torch.nan)
        best[rows] = own.squeeze(1)
    ceiling = torch.where(rounded & best.isfinite(), (lowest - best).clamp(max=0), 0)
    return Differences(given, ceiling, best.masked_fill(best.isinf(), lowest if lowest < torch.inf else 0))


def spread(
    scores: Float[Tensor, "item class"],
    banned: Bool[Tensor, "group class"] | None = None,
    group_of: Int[Tensor, "item"] | None = None,
) -> float:
    """Return the standard deviation of the differences, over all items; classes that are banned do not count.

    Items without a gap say nothing; if none has one, the unit is one. Lists of two count only if there is nothing else:
    the best score leads by more than chance, and it leads most where rounding has left just two.
    """
    squares, n_complete, gaps, n_cut, leads, n_pairs = 0.0, 0, 0.0, 0, 0.0, 0
    for rows in _blocks(scores):
        part = scores[rows].double()
        left = torch.ones_like(part, dtype=torch.bool)
        if banned is not None:
            left = ~banned[torch.zeros_like(rows) if group_of is None else group_of[rows]]
        given = left & ~part.isnan()
        n_left, n_given = left.sum(1), given.sum(1)
        part = part.masked_fill(~given, 0)
        means = part.sum(1) / n_given.clamp(min=1)
        variances = (part - means.unsqueeze(1)).masked_fill(~given, 0).square().sum(1) / n_given.clamp(min=1)
        says = variances > 0
        complete, cut = says & (n_given == n_left), says & (n_given < n_left) & (n_given > 2)
        pairs = says & (n_given < n_left) & (n_given == 2)
        squares, n_complete = squares + float(variances[complete].sum()), n_complete + int(complete.sum())
        if bool(cut.any()):
            gaps += _gaps(part[cut].masked_fill(~given[cut], -torch.inf), n_given[cut], n_left[cut])
            n_cut += int(cut.sum())
        leads, n_pairs = leads + 2 * float(variances[pairs].sqrt().sum()), n_pairs + int(pairs.sum())
    if n_complete + n_cut == 0:
        return leads / n_pairs if n_pairs else 1.0
    return (n_complete * math.sqrt(squares / max(n_complete, 1)) + gaps) / (n_complete + n_cut)


def _gaps(scores: Float[Tensor, "item class"], n_given: Int[Tensor, "item"], n_classes: Int[Tensor, "item"]) -> float:
    """Gap between the second and the last of an item's best scores, over that of an exponential sample; their sum.

    The lower half of complete scores does not lie like that, and is left aside.
    """
    last = torch.minimum(n_given, (n_classes // 2).clamp(min=3))
    ranked = scores.topk(int(last.max()), dim=1).values
    gaps = ranked[:, 1] - ranked.gather(1, last.unsqueeze(1) - 1).squeeze(1)
    expected = (1 / torch.arange(1, int(last.max()), dtype=torch.float64, device=last.device)).cumsum(0) - 1
    return float((gaps / expected[last - 2]).sum())


def factor_of_labelled(
    scores: Differences, codes: Int[Tensor, "item"], unit: float, banned: Bool[Tensor, "item class"] | None
) -> float:
    """Return the factor on c under which labelled items are most likely, with `ln f ~ N(0, 1/16)`.

    `banned` are the classes that each item cannot have.
    """
    logits = _filled(Differences(*(part.double() for part in scores)), banned, unit) * (FIRST / unit)
    logs = torch.linspace(-MOST_LOG_FACTOR, MOST_LOG_FACTOR, LOG_FACTORS, dtype=torch.float64)
    found = [
        float((logits * math.exp(log)).log_softmax(1).gather(1, codes.unsqueeze(1)).sum())
        - 0.5 * (log / LOG_FACTOR_SD) ** 2
        for log in logs.tolist()
    ]
    return math.exp(logs[found.index(max(found))].item())


@dataclass(frozen=True, eq=False)
class GivenScores(ScoredBatches):
    """Batches of items with scores that another model gave them.

    Attributes
    ----------
    differences : Differences
        Scores [task, query, class], and the ceiling of those that are not given [task, query].
    mask : Bool[Tensor, "task query"] or None
        False where a row is padding.
    unit : float
        Standard deviation of the differences.
    nats : Float[Tensor, "task"]
        c, nats per unit.
    codes : Int[Tensor, "task query"] or None
        Classes of items that are labelled already, -1 for all others.
    prior : Prior or None
        What is known in advance about the shares of the classes.
    """

    differences: Differences
    mask: Bool[Tensor, "task query"] | None
    unit: float
    nats: Float[Tensor, "task"]
    codes: Int[Tensor, "task query"] | None = None
    prior: Prior | None = None
    weights: Float[Tensor, "task query"] | None = None

    @property
    def sizes(self) -> tuple[int, int, int]:
        """Number of batches, of rows in each, and of classes."""
        n_tasks, n_slots, n_classes = self.differences.given.shape
        return n_tasks, n_slots, n_classes

    @property
    def device(self) -> torch.device:
        """Where the scores are."""
        return self.differences.given.device

    def scores(self) -> Float[Tensor, "task query class"]:
        """`S_nk = c d_nk / sd`; of labelled items, their class leads."""
        banned = None if self.banned is None else self.banned.unsqueeze(1)
        scores = _filled(self.differences, banned, self.unit)
        scores = scores * (self.nats / self.unit).to(scores).view(-1, 1, 1)
        if self.codes is None:
            return scores
        places = self.codes.clamp(min=0).unsqueeze(-1)
        lead = torch.full_like(scores, -LABELLED_LEAD).scatter_(-1, places, 0)
        if banned is not None:
            lead.masked_fill_(banned, -torch.inf)
        return lead.where((self.codes >= 0).unsqueeze(-1), scores)

    def alone(self, count: Count) -> Alone:
        """No constants but those of the prior."""
        tilts = torch.zeros(self.sizes[0], self.sizes[2], dtype=torch.float64, device=self.device)
        known = Alone(tilts, count(tilts), tilts[:, :0], torch.ones_like(self.n_query))
        return leant(known, self.n_query, count, self.prior)

    def joint_weight(self, state: State) -> Float[Tensor, "task"]:
        """λ is one half at 3.5 items per class found, and zero where most classes are found."""
        others = (state.found - 1) / (self.candidates - 1).clamp(min=1)
        crowd = ((MOST_FOUND - others) / (MOST_FOUND - FEW_FOUND)).clamp(0, 1)
        return crowd * trust(state, torch.full_like(state.per_class, TRUST), TRUST_POWER)


def label_scores(batches: GivenScores, *, max_iter: int, tol: float) -> Called:
    """Label every batch twice: `batches.nats` are those of the first pass, which says how many classes there are."""
    found = label(batches, max_iter=max_iter, tol=ROUGHER * tol).found
    return label(replace(batches, nats=second_nats(batches, found)), max_iter=max_iter, tol=tol)


def second_nats(batches: GivenScores, found: Float[Tensor, "task"]) -> Float[Tensor, "task"]:
    """Return c of batches in which that many classes were found."""
    return batches.nats / FIRST * (LOW + RISE * found / (found + HALF_RISE))


def _filled(
    scores: Differences, banned: Bool[Tensor, "*item class"] | None, unit: float
) -> Float[Tensor, "*item class"]:
    """Scores with those that are not given below the last one; -inf if banned. An item with none has equal ones."""
    found = scores.given
    missing = found.isnan()
    if bool(missing.any()):
        left = torch.ones_like(missing) if banned is None else ~banned.expand_as(missing)
        given = left & ~missing
        n_left, n_given = left.sum(-1, keepdim=True), given.sum(-1, keepdim=True)
        last = found.masked_fill(~given, torch.inf).amin(-1, keepdim=True).clamp(max=0)
        depth = BELOW + BELOW_PER_LOG * (n_left / n_given.clamp(min=1)).log()
        low = torch.minimum(last, scores.ceiling.unsqueeze(-1)) - unit * depth.to(found)
        found = low.where(missing, found)
    return found if banned is None else found.masked_fill(banned, -torch.inf)


def _blocks(scores: Float[Tensor, "item class"]) -> Iterator[Int[Tensor, "block"]]:
    size = max(1, BLOCK_SCORES // max(1, scores.shape[1]))
    for start in range(0, len(scores), size):
        yield torch.arange(start, min(start + size, len(scores)), device=scores.device)
