"""Half squared distances against the definition, and far from the origin."""

import torch

from handful.numerics.distances import cosines, half_squared_distances, unit


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


def test_cosines_are_torchs_and_zero_for_a_zero_vector():
    generator = torch.Generator().manual_seed(2)
    x, w = (torch.randn(2, n, 5, generator=generator, dtype=torch.float64) for n in (4, 3))
    expected = torch.nn.functional.cosine_similarity(x[:, :, None], w[:, None], dim=-1)
    torch.testing.assert_close(cosines(1e-20 * x, w), expected)
    assert (cosines(0 * x, w) == 0).all()
    torch.testing.assert_close(unit(x).norm(dim=-1), torch.ones(2, 4, dtype=torch.float64))
