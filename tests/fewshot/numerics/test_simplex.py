"""Softmax in logarithms without denormals; projection onto the simplex; entropies."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from handful.fewshot.numerics.simplex import (
    entropy,
    lowest_log,
    project_to_simplex,
    softmax,
    tsallis_slope,
)


@given(seed=st.integers(0, 1000), scale=st.sampled_from([0.1, 10.0, 1e4]))
def test_softmax_is_torchs(seed, scale):
    logits = scale * torch.randn(4, 7, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    soft = softmax(logits)
    torch.testing.assert_close(soft.log(), logits.log_softmax(-1))
    torch.testing.assert_close(soft.weights, logits.softmax(-1))


def test_minus_infinity_stays_and_arguments_too():
    logits = torch.tensor([[0.0, -math.inf, 1.0]])
    before = logits.clone()
    soft = softmax(logits)
    assert torch.equal(logits, before)
    assert soft.log()[0, 1] == -math.inf
    assert soft.weights[0, 1] == 0


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_no_weight_is_denormal(dtype):
    logits = torch.linspace(0, 3 * math.log(torch.finfo(dtype).tiny), 2000, dtype=dtype)
    weights, logs = softmax(logits).weights, logits.log_softmax(-1)
    assert (weights[weights > 0] > torch.finfo(dtype).tiny).all()
    kept = logits > lowest_log(dtype) + 0.01
    torch.testing.assert_close(weights[kept], logs[kept].exp())
    assert (weights[logits < lowest_log(dtype)] == 0).all()


@given(seed=st.integers(0, 1000), scale=st.sampled_from([0.01, 1.0, 100.0]))
def test_projection_is_the_nearest_point(seed, scale):
    generator = torch.Generator().manual_seed(seed)
    points = scale * torch.randn(5, 6, generator=generator, dtype=torch.float64)
    projected = project_to_simplex(points)
    torch.testing.assert_close(projected.sum(-1), torch.ones(5, dtype=torch.float64))
    assert (projected >= 0).all()
    # Variational characterisation: ⟨x - p, q - p⟩ ≤ 0 for every q of the simplex; its vertices suffice.
    for vertex in torch.eye(6, dtype=torch.float64):
        assert (((points - projected) * (vertex - projected)).sum(-1) <= 1e-9 * (1 + scale)).all()


@pytest.mark.parametrize("order", [0.5, 1.0, 1.0 + 1e-9, 2.0, 5.0])
def test_tsallis_slope_is_the_derivative_along_the_simplex(order):
    p = torch.tensor([0.2, 0.5, 0.3], dtype=torch.float64)
    slope = tsallis_slope(p.log(), order)
    along, h = torch.tensor([1.0, -3.0, 2.0], dtype=torch.float64), 1e-5

    def tsallis(p: torch.Tensor) -> torch.Tensor:
        return entropy(p) if abs(order - 1) < 1e-6 else (1 - (p**order).sum(-1)) / (order - 1)

    change = (tsallis(p + h * along) - tsallis(p - h * along)) / (2 * h)
    torch.testing.assert_close((slope * along).sum(), change, atol=1e-7, rtol=1e-7)
