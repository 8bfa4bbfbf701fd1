"""Both spaces do the same geometry, each checked against explicit vectors."""

import torch
from hypothesis import given
from hypothesis import strategies as st

from handful_fewshot.numerics.geometry import FeatureSpace, GramSpace, Moments, labelled_moments, soft_moments


def both_spaces(seed: int, shared: bool = False):
    generator = torch.Generator().manual_seed(seed)
    query = torch.randn(3, 7, 5, generator=generator, dtype=torch.float64)
    n = 1 if shared else 3
    mass = torch.randint(1, 4, (n, 4), generator=generator).double()
    support = Moments(mass, torch.randn(n, 4, 5, generator=generator, dtype=torch.float64))
    weights = [torch.randn(3, 7, 4, generator=generator, dtype=torch.float64).softmax(-1) for _ in range(2)]
    return FeatureSpace(query, None, support), GramSpace.of(query, None, support), weights


@given(seed=st.integers(0, 1000), shared=st.booleans())
def test_scores_and_shifts_agree(seed, shared):
    feature, gram, weights = both_spaces(seed, shared)
    placed = {s: [(s.support + s.moments(u)).mean() for u in weights] for s in (feature, gram)}
    for a, b in zip(placed[feature], placed[gram], strict=True):
        torch.testing.assert_close(feature.scores(a), gram.scores(b))
    torch.testing.assert_close(feature.moves(*placed[feature]), gram.moves(*placed[gram]))
    start_f, start_g = feature.support.mean(), gram.support.mean()
    torch.testing.assert_close(feature.scores(start_f), gram.scores(start_g))
    torch.testing.assert_close(feature.moves(placed[feature][0], start_f), gram.moves(placed[gram][0], start_g))


def test_a_tiny_move_is_measured_in_single_precision():
    """The difference of two norms would drown a move of 1e-5 in rounding; the difference of weights does not."""
    generator = torch.Generator().manual_seed(2)
    query = 10 * torch.randn(1, 20, 64, generator=generator)
    support = Moments(torch.full((1, 4), 5.0), 50 * torch.randn(1, 4, 64, generator=generator))
    logits = torch.randn(1, 20, 4, generator=generator)
    u, nudged = logits.softmax(-1), (logits + 1e-6 * torch.randn(1, 20, 4, generator=generator)).softmax(-1)
    gram = GramSpace.of(query, None, support)
    exact = FeatureSpace(query.double(), None, Moments(support.mass.double(), support.sums.double()))
    measured = gram.moves(*[(gram.support + gram.moments(x)).mean() for x in (nudged, u)])
    expected = exact.moves(*[(exact.support + exact.moments(x.double())).mean() for x in (nudged, u)])
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
