"""Prior weights of the classes: what is known about a batch before it is seen.

Weights w_k give shares `π_k ∝ w_k`, the base measure of a Dirichlet of concentration c. A weight of zero is a ban: the
class is left out of everything, as if the head did not have it. All other weights are soft, in two ways.

**The batch may contradict all of them.** The shares are taken to be `π_k ∝ w_k^γ`, with γ between 0, the weights say
nothing, and 1, they hold. γ is drawn towards one, `γ ~ N(1, 1/4)`, and is estimated from the batch by expectation
maximisation. That starts at γ = 0, so the batch decides first:

    N_k = Σ_n p_nk(γ),    γ = argmax Σ_k N_k ln π_k(γ) - 2 (γ - 1)².

**A single class may contradict its own.** With `a_k = c π_k`, a class is tilted by

    t_k = ln[ (N_k + a_k) / (N_k + max_j a_j) ]

and N_k follows from that, until both agree. A class of a small share loses as much as its share says while it holds
nothing, and nothing once it holds many more items than the prior expects of any class. So a small batch depends mostly
on the prior, and a large one on itself. Equal weights change nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from handful.shapes import Bool, Float

# c of weights that a user gives.
CONCENTRATION = 300.0
# Precision of γ around one, updates of γ, and Newton steps in each.
PRECISION, TRUST_STEPS, NEWTON_STEPS = 4.0, 8, 4
# Updates of the counts that weaken the prior class by class.
FADE_STEPS = 8


@dataclass(frozen=True, eq=False)
class Prior:
    """Shares of the classes in each batch before it is seen; make one with `Prior.of`.

    Attributes
    ----------
    log_shares : Float[Tensor, "task class"]
        ln π_k; -inf for classes that are banned.
    concentration : Float[Tensor, "task"]
        c.
    """

    log_shares: Float[Tensor, "task class"]
    concentration: Float[Tensor, "task"]

    @classmethod
    def of(cls, weights: Float[Tensor, "task class"], concentration: Float[Tensor, "task"]) -> Prior:
        """Make one from weights, of which at least one per batch is positive."""
        return cls(weights.log().log_softmax(-1), concentration)  # the sum of the weights may overflow

    @property
    def banned(self) -> Bool[Tensor, "task class"]:
        """Classes of weight zero."""
        return self.log_shares.isneginf()

    def rows(self, rows: Tensor) -> Prior:
        """Return the prior of some of the batches."""
        return Prior(self.log_shares[rows], self.concentration[rows])

    def to(self, device: torch.device | str) -> Prior:
        """Return the prior on another device."""
        return Prior(self.log_shares.to(device), self.concentration.to(device))


class Leaning(NamedTuple):
    """What a prior makes of each batch."""

    tilts: Float[Tensor, "task class"]  # t_k, on top of the tilts given; zero for banned classes
    trust: Float[Tensor, "task"]  # γ


def lean(
    prior: Prior,
    n_query: Float[Tensor, "task"],
    count: Callable[[Float[Tensor, "task class"]], Float[Tensor, "task class"]],
) -> Leaning:
    """Weigh a prior against the batch; `count(tilts)` returns `Σ_n p_nk` under constants per class, none if banned."""
    banned = prior.banned
    log_weights = (prior.log_shares - prior.log_shares.amax(-1, keepdim=True)).masked_fill(banned, 0)
    n = n_query.unsqueeze(-1)
    trust = torch.zeros_like(n)
    for _ in range(TRUST_STEPS):
        seen = (count(trust * log_weights) * log_weights).sum(-1, keepdim=True)
        for _ in range(NEWTON_STEPS):
            shares = _shares(trust, log_weights, banned)
            mean = (shares * log_weights).sum(-1, keepdim=True)
            variance = (shares * log_weights.square()).sum(-1, keepdim=True) - mean.square()
            slope = seen - n * mean - PRECISION * (trust - 1)
            trust = (trust + slope / (n * variance + PRECISION)).clamp(0, 1)
    expected = prior.concentration.unsqueeze(-1) * _shares(trust, log_weights, banned)
    most = expected.amax(-1, keepdim=True)
    tilts = torch.zeros_like(log_weights)
    for _ in range(FADE_STEPS):
        counts = count(tilts)
        tilts = ((counts + expected) / (counts + most)).log().masked_fill(banned, 0)
    return Leaning(tilts, trust.squeeze(-1))


def _shares(
    trust: Float[Tensor, "task 1"], log_weights: Float[Tensor, "task class"], banned: Bool[Tensor, "task class"]
) -> Float[Tensor, "task class"]:
    """`π_k ∝ w_k^γ`."""
    return (trust * log_weights).masked_fill(banned, -torch.inf).softmax(-1)
