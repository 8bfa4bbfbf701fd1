"""Entropies, with 0 ln 0 = 0."""

import math

import pytest
import torch

from handful.fewshot.numerics.entropy import entropy, tsallis_entropy, tsallis_slope


def test_known_values():
    p = torch.tensor([[0.5, 0.5], [1.0, 0.0]], dtype=torch.float64)
    torch.testing.assert_close(entropy(p), torch.tensor([math.log(2), 0.0], dtype=torch.float64))


@pytest.mark.parametrize("order", [0.5, 1.0, 1.0 + 1e-9, 2.0, 5.0])
def test_tsallis_is_its_definition_and_shannons_at_one(order):
    p = torch.tensor([[0.2, 0.5, 0.3], [1.0, 0.0, 0.0]], dtype=torch.float64)
    expected = entropy(p) if abs(order - 1) < 1e-6 else (1 - (p**order).sum(-1)) / (order - 1)
    torch.testing.assert_close(tsallis_entropy(p, order), expected, atol=1e-6, rtol=1e-6)


@pytest.mark.parametrize("order", [0.5, 1.0, 1.0 + 1e-9, 2.0, 5.0])
def test_tsallis_slope_is_the_derivative_along_the_simplex(order):
    p = torch.tensor([0.2, 0.5, 0.3], dtype=torch.float64)
    slope = tsallis_slope(p.log(), order)
    along, h = torch.tensor([1.0, -3.0, 2.0], dtype=torch.float64), 1e-5
    limit = 1.0 if abs(order - 1) < 1e-6 else order
    change = (tsallis_entropy(p + h * along, limit) - tsallis_entropy(p - h * along, limit)) / (2 * h)
    torch.testing.assert_close((slope * along).sum(), change, atol=1e-7, rtol=1e-7)
