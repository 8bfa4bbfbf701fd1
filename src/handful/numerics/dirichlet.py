"""Symmetric Dirichlet priors over proportions, estimated from expected counts.

Classes without a count may be left out of the arrays; `n_classes` is then the total number of classes.
"""

from __future__ import annotations

import torch
from torch import Tensor

from handful.shapes import Float

# Outside this range a concentration means "one class" or "all classes equal" for any number of queries.
SMALLEST, LARGEST = 1e-4, 1e3


def concentration_step(
    counts: Float[Tensor, "task class"], concentration: Float[Tensor, "task"], n_classes: int | None = None
) -> Float[Tensor, "task"]:
    """`α ← α Σ_k [ψ(N_k + α) - ψ(α)] / (K [ψ(N + Kα) - ψ(Kα)])`: one step of Minka's fixed-point iteration.

    It never lowers the likelihood of the counts, `ln Γ(Kα) - ln Γ(N + Kα) + Σ_k [ln Γ(N_k + α) - ln Γ(α)]`,
    where `N = Σ_k N_k`.
    """
    n_classes = n_classes or counts.shape[-1]
    alpha = concentration
    gained = (torch.digamma(counts + alpha.unsqueeze(-1)) - torch.digamma(alpha).unsqueeze(-1)).sum(-1)
    spent = n_classes * (torch.digamma(counts.sum(-1) + n_classes * alpha) - torch.digamma(n_classes * alpha))
    return (alpha * gained / spent).clamp(SMALLEST, LARGEST)


def dirichlet_divergence(
    counts: Float[Tensor, "task class"], concentration: Float[Tensor, "task"], n_classes: int | None = None
) -> Float[Tensor, "task"]:
    """`KL( Dir(N + α) ‖ Dir(α) )` in nats."""
    n_classes, prior = n_classes or counts.shape[-1], concentration
    posterior = counts + prior.unsqueeze(-1)
    total = counts.sum(-1) + n_classes * prior
    expected_log = torch.digamma(posterior) - torch.digamma(total).unsqueeze(-1)
    of_posterior = torch.lgamma(total) - torch.lgamma(posterior).sum(-1)
    # Classes that are left out have the same α before and after, so their terms cancel and neither sum has them.
    of_prior = torch.lgamma(n_classes * prior) - counts.shape[-1] * torch.lgamma(prior)
    return of_posterior - of_prior + (counts * expected_log).sum(-1)
