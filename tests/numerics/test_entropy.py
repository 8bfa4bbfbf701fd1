"""Entropy, with 0 ln 0 = 0."""

import math

import torch

from handful.numerics.entropy import entropy


def test_known_values():
    p = torch.tensor([[0.5, 0.5], [1.0, 0.0]], dtype=torch.float64)
    torch.testing.assert_close(entropy(p), torch.tensor([math.log(2), 0.0], dtype=torch.float64))
