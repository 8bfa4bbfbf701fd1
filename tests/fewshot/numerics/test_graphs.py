"""Neighbour graphs against scikit-learn and by hand."""

import torch
from hypothesis import given
from hypothesis import strategies as st
from sklearn.neighbors import NearestNeighbors

from handful.fewshot.numerics.graphs import neighbour_affinities


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
