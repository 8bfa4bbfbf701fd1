"""Items that hold several classes or none: a chance for each class by itself, from scores of one against the rest.

**Presence.** The classes present in a batch are those of roll call, as if every item had one class: an item of two
classes gives weight to both. But a class that always occurs together with others may lose all its items to these. So a
class is also present if it holds `r ≥ 1/2` of what a typical class found holds, items labelled alone: P_k is at least
`r⁴ / (r⁴ + 1/16)`.

**Items.** With c nats per standard deviation as there, but of the scores of absent classes: those of present ones are
spread by what they hold,

    L_nk = c s_nk - ln mean_{m, j absent} exp(c s_mj)

is the log-likelihood ratio that item n holds class k: under the null hypothesis the mean of a likelihood ratio is one,
and scores of absent classes are what the null hypothesis looks like. So it needs neither the level of the sigmoids nor
the share of positives that they were trained with. With π_k the share of items that hold the class, by expectation
maximisation, and P_k the chance that it is present,

    p_nk = P_k σ( L_nk + logit π_k ),    π_k = Σ_n σ(...) / (m + 1).
"""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor

from handful.inference.open_roll_call import Opened
from handful.inference.roll_call_stack import Called
from handful.inference.scores import GivenScores, second_nats
from handful.shapes import Bool, Float

# A class is absent below this chance of being present.
ABSENT = 0.5
# Of the items of a typical class found, the share at which a class is as likely present as not, how steep that is, and
# the fewest items.
HALF_TYPICAL, STEEP, FEWEST = 0.5, 4.0, 1.5
# The first share of items that hold a class, the least and the most, and updates.
FIRST_SHARE, LEAST_SHARE, MOST_SHARE, STEPS = 0.1, 1e-6, 1 - 1e-6, 30


def holding(batches: GivenScores, best: Float[Tensor, "task query"], called: Called) -> Opened:
    """Return the chances that items hold each class, and that they hold none, as their chance of being unknown.

    `best` are the best scores of the items, which differences leave out, in the same unit; `called` is the joint answer
    as if every item had one class.
    """
    nats = second_nats(batches, called.found)
    scores = replace(batches, nats=nats).scores() + best.unsqueeze(-1) * (nats / batches.unit).to(best).view(-1, 1, 1)
    there = torch.ones_like(best, dtype=torch.bool) if batches.mask is None else batches.mask
    presence = together(
        called.presence, (batches.scores().softmax(-1) * there.unsqueeze(-1)).sum(1, dtype=torch.float64)
    )
    chances = held(scores.double(), nats, presence, there, batches.banned)
    none = torch.log1p(-chances.clamp(max=1 - 1e-12)).sum(-1).exp().where(there, 0)
    closed = Opened.closed(
        replace(
            called,
            log_probabilities=chances.log().to(scores),
            expected_counts=chances.sum(1, dtype=torch.float64),
            presence=presence,
        )
    )
    return replace(closed, unknown=none, is_open=torch.ones_like(closed.is_open))


def together(presence: Float[Tensor, "task class"], alone: Float[Tensor, "task class"]) -> Float[Tensor, "task class"]:
    """Raise the chance of classes that hold about as much as those found, items labelled alone."""
    typical = alone.masked_fill(presence < ABSENT, torch.nan).nanquantile(0.5, -1, keepdim=True)
    share = (alone / typical).nan_to_num(0).masked_fill(alone < FEWEST, 0).pow(STEEP)
    return torch.maximum(presence, share / (share + HALF_TYPICAL**STEEP))


def held(
    scores: Float[Tensor, "task query class"],
    nats: Float[Tensor, "task"],
    presence: Float[Tensor, "task class"],
    there: Bool[Tensor, "task query"],
    banned: Bool[Tensor, "task class"] | None,
) -> Float[Tensor, "task query class"]:
    """`p_nk` from scores of any scale and c; zero where a row is padding or a class is banned."""
    usable = torch.ones_like(presence, dtype=torch.bool) if banned is None else ~banned
    absent = usable & (presence < ABSENT)
    # Where all are present, there is nothing better than all of them.
    null = absent.where(absent.any(-1, keepdim=True), usable).unsqueeze(1) & there.unsqueeze(-1)
    n_null = null.sum(-1, keepdim=True)
    means = scores.masked_fill(~null, 0).sum(-1, keepdim=True) / n_null.clamp(min=1)
    squares = (scores - means).masked_fill(~null, 0).square().flatten(1).sum(-1) / n_null.flatten(1).sum(-1)
    scores = scores * (nats / squares.sqrt()).nan_to_num(1, posinf=1).view(-1, 1, 1)
    level = scores.masked_fill(~null, -torch.inf).flatten(1).logsumexp(-1) - n_null.flatten(1).sum(-1).log()
    ratios = scores.masked_fill(~usable.unsqueeze(1), -torch.inf) - level.view(-1, 1, 1)
    n_items = there.sum(-1, keepdim=True)
    shares = torch.full_like(presence, FIRST_SHARE)
    for _ in range(STEPS):
        chances = (ratios + shares.logit().unsqueeze(1)).sigmoid() * there.unsqueeze(-1)
        shares = (chances.sum(1) / (n_items + 1)).clamp(LEAST_SHARE, MOST_SHARE)
    return chances * presence.unsqueeze(1)
