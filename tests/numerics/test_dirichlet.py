"""Dirichlet concentration and divergence, against quadrature-free definitions."""

import torch
from hypothesis import given
from hypothesis import strategies as st

from handful.numerics.dirichlet import concentration_step, dirichlet_divergence


def log_likelihood(counts: torch.Tensor, alpha: torch.Tensor) -> torch.Tensor:
    """Likelihood of counts under a Dirichlet prior of proportions."""
    k = counts.shape[-1]
    total = torch.lgamma(k * alpha) - torch.lgamma(counts.sum(-1) + k * alpha)
    return total + (torch.lgamma(counts + alpha[:, None]) - torch.lgamma(alpha)[:, None]).sum(-1)


@given(seed=st.integers(0, 1000), start=st.sampled_from([0.01, 1.0, 30.0]))
def test_a_step_never_lowers_the_likelihood(seed, start):
    generator = torch.Generator().manual_seed(seed)
    counts = 10 * torch.rand(4, 6, generator=generator, dtype=torch.float64) ** 4
    alpha = torch.full((4,), start, dtype=torch.float64)
    assert (log_likelihood(counts, concentration_step(counts, alpha)) >= log_likelihood(counts, alpha) - 1e-9).all()


def test_few_classes_call_for_a_small_concentration_and_all_for_a_large_one():
    counts = torch.tensor([[30.0, 40.0, *[0.0] * 18], [5.0] * 20], dtype=torch.float64)
    alpha = torch.ones(2, dtype=torch.float64)
    for _ in range(200):
        alpha = concentration_step(counts, alpha)
    assert alpha[0] < 0.1
    assert alpha[1] > 50


def test_the_divergence_is_torchs():
    counts = torch.tensor([[3.0, 0.5, 0.0, 7.0]], dtype=torch.float64)
    alpha = torch.tensor([0.3], dtype=torch.float64)
    prior = torch.distributions.Dirichlet(torch.full((1, 4), 0.3, dtype=torch.float64))
    posterior = torch.distributions.Dirichlet(counts + 0.3)
    expected = torch.distributions.kl_divergence(posterior, prior)
    torch.testing.assert_close(dirichlet_divergence(counts, alpha), expected)
