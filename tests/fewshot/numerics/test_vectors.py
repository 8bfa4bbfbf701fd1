"""Vectors: magnitudes at the ends of what floats hold, distances, neighbours."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from sklearn.neighbors import NearestNeighbors

from handful.fewshot.numerics.vectors import (
    cosines,
    half_squared_distances,
    magnitudes,
    neighbour_affinities,
    to_near_one,
    unit,
)

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


def test_cosines_are_torchs_and_zero_for_a_zero_vector():
    generator = torch.Generator().manual_seed(2)
    x, w = (torch.randn(2, n, 5, generator=generator, dtype=torch.float64) for n in (4, 3))
    expected = torch.nn.functional.cosine_similarity(x[:, :, None], w[:, None], dim=-1)
    torch.testing.assert_close(cosines(1e-20 * x, w), expected)
    assert (cosines(0 * x, w) == 0).all()
    torch.testing.assert_close(unit(x).norm(dim=-1), torch.ones(2, 4, dtype=torch.float64))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_unit_vectors_have_unit_length_whatever_the_magnitude(dtype):
    generator = torch.Generator().manual_seed(0)
    vectors = torch.randn(5, 7, dtype=dtype, generator=generator)
    limits = torch.finfo(dtype)
    for factor in (limits.max / 8, limits.max**0.6, 1.0, limits.tiny**0.6, limits.tiny * 8):
        found = unit(vectors * factor)
        torch.testing.assert_close(found, unit(vectors), rtol=8 * limits.eps, atol=limits.eps)
    mixed = torch.cat([vectors * (limits.max / 8), vectors, 0 * vectors])
    assert torch.equal(unit(mixed)[10:], 0 * vectors)
    torch.testing.assert_close(unit(mixed)[:5], unit(mixed)[5:10])


@given(seed=st.integers(0, 1000), n_neighbours=st.integers(1, 6))
def test_it_is_scikit_learns_graph(seed, n_neighbours):
    points = torch.randn(3, 12, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))
    ours = neighbour_affinities(points, None, n_neighbours)
    for t in range(3):
        theirs = NearestNeighbors(n_neighbors=n_neighbours).fit(points[t].numpy()).kneighbors_graph().toarray()
        assert torch.equal(ours[t], torch.from_numpy(theirs))


def test_padding_is_nobodys_neighbour_and_few_points_have_few():
    points = torch.tensor([[[0.0], [0.1], [5.0]]])
    mask = torch.tensor([[True, False, True]])
    assert neighbour_affinities(points, mask, 2)[0].tolist() == [[0, 0, 1], [0, 0, 0], [1, 0, 0]]
