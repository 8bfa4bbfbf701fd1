"""Vectors: distances, cosines, neighbours; softmax without denormals, projection onto the simplex, entropies."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from sklearn.neighbors import NearestNeighbors

from handful_fewshot.numerics.vectors import (
    cosines,
    half_squared_distances,
    lowest_log,
    neighbour_affinities,
    project_to_simplex,
    softmax,
    unit,
)


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
