"""A space in few coordinates does the same geometry as one of all dimensions, which is checked by hand."""

import torch
from hypothesis import given
from hypothesis import strategies as st

from handful_fewshot.numerics.geometry import Moments, Space, labelled_moments, soft_moments


def a_space(seed: int, dim: int, shared: bool = False):
    generator = torch.Generator().manual_seed(seed)
    query = torch.randn(3, 7, dim, generator=generator, dtype=torch.float64)
    n = 1 if shared else 3
    mass = torch.randint(1, 4, (n, 4), generator=generator).double()
    support = Moments(mass, torch.randn(n, 4, dim, generator=generator, dtype=torch.float64))
    weights = [torch.randn(3, 7, 4, generator=generator, dtype=torch.float64).softmax(-1) for _ in range(2)]
    return Space(query, None, support), weights


def placed(space: Space, weights):
    return [(space.support + space.moments(u)).mean() for u in weights]


@given(seed=st.integers(0, 1000), shared=st.booleans(), repeated=st.booleans())
def test_few_coordinates_give_the_same_scores_and_moves(seed, shared, repeated):
    full, weights = a_space(seed, 40, shared)
    if repeated:  # queries that do not span as many dimensions as there are of them
        full.query[:, 1:4] = full.query[:, :1]
        full.query[:, 4] = 0
    few = full.in_few_coordinates()
    assert few.query.shape[-1] == few.support.sums.shape[-1] == 8
    for a, b in zip(placed(full, weights), placed(few, weights), strict=True):
        torch.testing.assert_close(few.scores(b), full.scores(a))
    torch.testing.assert_close(few.moves(*placed(few, weights)), full.moves(*placed(full, weights)))
    start, start_in_few = full.support.mean(), few.support.mean()
    torch.testing.assert_close(few.scores(start_in_few), full.scores(start))
    torch.testing.assert_close(
        few.moves(placed(few, weights)[0], start_in_few), full.moves(placed(full, weights)[0], start)
    )


def test_scores_and_moves_are_those_of_the_formulas():
    space, weights = a_space(0, 5)
    new, old = placed(space, weights)
    inner = torch.einsum("tnd,tkd->tnk", space.query, new)
    torch.testing.assert_close(space.scores(new), inner - 0.5 * (new**2).sum(-1)[:, None])
    torch.testing.assert_close(space.moves(new, old), torch.linalg.vector_norm(new - old, dim=-1))


def test_few_dimensions_stay_as_they_are():
    space, _ = a_space(0, 8)
    assert space.in_few_coordinates() is space


def test_a_tiny_move_is_measured_in_single_precision():
    """The difference of two norms would drown a move of 1e-5 in rounding; that of coordinates does not."""
    generator = torch.Generator().manual_seed(2)
    query = 10 * torch.randn(1, 20, 64, generator=generator)
    support = Moments(torch.full((1, 4), 5.0), 50 * torch.randn(1, 4, 64, generator=generator))
    logits = torch.randn(1, 20, 4, generator=generator)
    u, nudged = logits.softmax(-1), (logits + 1e-6 * torch.randn(1, 20, 4, generator=generator)).softmax(-1)
    few = Space(query, None, support).in_few_coordinates()
    exact = Space(query.double(), None, Moments(support.mass.double(), support.sums.double()))
    measured = few.moves(*placed(few, (nudged, u)))
    expected = exact.moves(*placed(exact, (nudged.double(), u.double())))
    assert ((expected > 0) & (expected < 1e-4)).all()
    torch.testing.assert_close(measured.double(), expected, rtol=0.5, atol=0)


def points_and_labels(seed: int):
    generator = torch.Generator().manual_seed(seed)
    points = torch.randn(3, 10, 4, generator=generator, dtype=torch.float64)
    return points, torch.randint(0, 5, (3, 10), generator=generator), torch.rand(3, 10, generator=generator) < 0.7


@given(seed=st.integers(0, 1000))
def test_labelled_moments_are_soft_moments_of_one_hot_labels(seed):
    points, labels, mask = points_and_labels(seed)
    one_hot = torch.nn.functional.one_hot(labels, 5).double()
    for weights, given_mask in ((one_hot, None), (one_hot * mask[..., None], mask)):
        ours, expected = labelled_moments(points, labels, given_mask, 5), soft_moments(points, weights)
        torch.testing.assert_close(ours.mass, expected.mass)
        torch.testing.assert_close(ours.sums, expected.sums)
