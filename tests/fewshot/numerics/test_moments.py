"""Moments: definition, addition, padding, a moved origin."""

import torch
from hypothesis import given
from hypothesis import strategies as st

from handful.fewshot.numerics.moments import labelled_moments, soft_moments


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
