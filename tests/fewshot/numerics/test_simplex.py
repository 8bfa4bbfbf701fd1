"""Softmax in logarithms without denormals; projection onto the simplex."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from handful.fewshot.numerics.simplex import lowest_log, project_to_simplex, softmax


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
