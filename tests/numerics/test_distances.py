"""Half squared distances against the definition, and far from the origin."""

import torch

from handful.numerics.distances import half_squared_distances


def test_definition():
    generator = torch.Generator().manual_seed(0)
    x, w = (torch.randn(2, n, 5, generator=generator, dtype=torch.float64) for n in (4, 3))
    expected = 0.5 * (x[:, :, None] - w[:, None]).square().sum(-1)
    torch.testing.assert_close(half_squared_distances(x, w), expected)
    torch.testing.assert_close(half_squared_distances(x, w[:1])[1], 0.5 * torch.cdist(x[1], w[0]).square())


def test_a_common_offset_costs_no_digits():
    generator = torch.Generator().manual_seed(1)
    x, w = (torch.randn(1, n, 5, generator=generator) + 4096 for n in (4, 3))
    expected = 0.5 * (x[:, :, None].double() - w[:, None].double()).square().sum(-1)
    torch.testing.assert_close(half_squared_distances(x, w).double(), expected, atol=1e-4, rtol=1e-4)


def test_never_negative():
    x = torch.full((1, 3, 4), 0.1)
    assert (half_squared_distances(x, x) >= 0).all()
