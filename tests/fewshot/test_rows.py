"""Magnitudes at the ends of what floats hold."""

import pytest
import torch

from handful.fewshot.rows import magnitudes, to_near_one

DTYPES = [torch.float32, torch.float64]


@pytest.mark.parametrize("dtype", DTYPES)
def test_magnitudes_are_finite_where_lengths_are_not(dtype):
    limits = torch.finfo(dtype)
    vectors = torch.tensor([[3.0, 4.0], [limits.max, -limits.max], [limits.tiny, 0.0], [0.0, 0.0]], dtype=dtype)
    assert magnitudes(vectors).tolist() == [5.0, limits.max, limits.tiny, 0.0]
    assert magnitudes(vectors[0]).tolist() == 5.0
    assert magnitudes(vectors[1]).tolist() == limits.max


@pytest.mark.parametrize("dtype", DTYPES)
def test_a_power_of_two_brings_any_number_near_one_without_losing_a_digit(dtype):
    limits = torch.finfo(dtype)
    sizes = torch.tensor([limits.max, 1e20, 3.0, 1.0, 1e-20, limits.tiny], dtype=dtype)
    factors = to_near_one(sizes)
    assert ((sizes * factors >= 2) & (sizes * factors < 4)).all()
    assert torch.equal(sizes * factors / factors, sizes)
    assert (torch.frexp(factors).mantissa == 0.5).all()
