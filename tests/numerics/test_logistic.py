"""Logistic regression: the minimum that scikit-learn finds, weights, the span of the examples, near classes."""

import numpy as np
import pytest
import torch
from sklearn.linear_model import LogisticRegression

from handful.numerics import logistic as module
from handful.numerics.logistic import Linear, logistic, logistic_near, nearest_classes


def examples(n_classes=6, shots=5, dim=12, seed=0, dtype=torch.float64):
    generator = torch.Generator().manual_seed(seed)
    codes = torch.arange(n_classes).repeat_interleave(shots)
    centres = torch.randn(n_classes, dim, generator=generator, dtype=dtype)
    points = centres[codes] + torch.randn(len(codes), dim, generator=generator, dtype=dtype)
    return torch.nn.functional.normalize(points, dim=1), codes


def loss(head, points, codes, ridge, weights=None):
    errors = torch.nn.functional.cross_entropy(points @ head.weights.T + head.offsets, codes, reduction="none")
    weights = torch.ones_like(errors) if weights is None else weights
    return float((weights * errors).sum() + head.weights.square().sum() / (2 * ridge))


def reference(points, codes, ridge, weights=None):
    model = LogisticRegression(C=ridge, tol=1e-8, max_iter=10_000)
    model.fit(points.numpy(), codes.numpy(), None if weights is None else weights.numpy())
    return Linear(torch.from_numpy(model.coef_), torch.from_numpy(model.intercept_))


@pytest.mark.parametrize("dim", [4, 12, 100])
@pytest.mark.parametrize("weighted", [False, True])
def test_the_minimum_is_that_of_scikit_learn(dim, weighted):
    points, codes = examples(dim=dim)
    generator = torch.Generator().manual_seed(1)
    weights = torch.rand(len(codes), generator=generator, dtype=torch.float64) if weighted else None
    ours, theirs = logistic(points, codes, 6, 30.0, example_weights=weights), reference(points, codes, 30.0, weights)
    assert loss(ours, points, codes, 30.0, weights) == pytest.approx(
        loss(theirs, points, codes, 30.0, weights), rel=1e-4
    )
    others = examples(dim=dim, shots=40)[0]
    ours, theirs = (others @ head.weights.T + head.offsets for head in (ours, theirs))
    assert (ours.argmax(1) == theirs.argmax(1)).double().mean() > 0.99
    tight = logistic(points, codes, 6, 30.0, example_weights=weights, tolerance=1e-9)
    torch.testing.assert_close(tight.weights, reference(points, codes, 30.0, weights).weights, atol=1e-3, rtol=1e-3)


def test_single_precision_agrees_with_double():
    points, codes = examples()
    single, double = logistic(points.float(), codes, 6, 30.0), logistic(points, codes, 6, 30.0)
    assert single.weights.dtype == torch.float32
    torch.testing.assert_close(single.weights.double(), double.weights, atol=1e-2, rtol=1e-2)


def test_a_moved_origin_does_not_change_the_answer():
    points, codes = examples(dim=60)
    here, there = (logistic(rows, codes, 6, 30.0, tolerance=1e-8) for rows in (points, points - points.mean(0)))
    torch.testing.assert_close(here.weights, there.weights, atol=1e-4, rtol=1e-4)


def test_blocks_do_not_change_the_answer(monkeypatch):
    points, codes = examples()
    near, start = nearest_classes(points[::5], 4), Linear(20 * points[::5], torch.zeros(6).double())
    whole = logistic(points, codes, 6, 30.0), logistic_near(points, codes, near, start, 30.0, 30.0)
    monkeypatch.setattr(module, "BLOCK_NUMBERS", 70)
    monkeypatch.setattr(module, "MOST_TOGETHER", 2)
    parts = logistic(points, codes, 6, 30.0), logistic_near(points, codes, near, start, 30.0, 30.0)
    for one, other in zip(whole, parts, strict=True):
        torch.testing.assert_close(one.weights, other.weights)


def test_with_all_classes_near_the_minimum_is_that_of_autograd():
    generator = torch.Generator().manual_seed(2)
    points, codes = examples(dim=10)
    codes = torch.cat([codes, torch.tensor([0, 0, 3])])  # unequal numbers, and two labels that are wrong
    points = torch.cat([points, points[[0, 7, 15]]])
    weights = torch.rand(len(codes), generator=generator, dtype=torch.float64)
    near = nearest_classes(torch.stack([points[codes == k].mean(0) for k in range(6)]), 6)
    start = Linear(torch.randn(6, 10, generator=generator).double(), torch.randn(6, generator=generator).double())
    ours = logistic_near(points, codes, near, start, 30.0, 5.0, example_weights=weights, tolerance=1e-8)
    variables = [tensor.clone().requires_grad_() for tensor in ours]
    errors = torch.nn.functional.cross_entropy(points @ variables[0].T + variables[1], codes, reduction="none")
    total = (weights * errors).sum() + (variables[0] - start.weights).square().sum() / 60
    total = total + (variables[1] - start.offsets).square().sum() / 10
    for gradient in torch.autograd.grad(total, variables):
        assert gradient.abs().max() < 1e-5


def test_only_near_classes_are_compared():
    points, codes = examples(n_classes=4)
    near = torch.tensor([[0, 1], [1, 0], [2, 3], [3, 2]])
    start = Linear(torch.zeros(4, 12).double(), torch.zeros(4).double())
    together = logistic_near(points, codes, near, start, 30.0, 30.0, tolerance=1e-8)
    first = codes < 2
    apart = logistic_near(
        points[first], codes[first], near[:2], Linear(*(t[:2] for t in start)), 30.0, 30.0, tolerance=1e-8
    )
    torch.testing.assert_close(together.weights[:2], apart.weights, atol=1e-4, rtol=1e-4)


def test_the_span_of_few_examples_is_enough():
    points, codes = examples(dim=100)
    near = nearest_classes(points[::5], 4)
    start = Linear(20 * points[::5], torch.zeros(6).double())
    narrow = logistic_near(points, codes, near, start, 30.0, 30.0, tolerance=1e-9)
    padded = torch.cat([points, torch.zeros(100, 100).double()])  # 130 rows: no rotation; rows of weight zero
    weights = torch.cat([torch.ones(30), torch.zeros(100)]).double()
    wide = logistic_near(
        padded, torch.cat([codes, torch.zeros(100).long()]), near, start, 30.0, 30.0, example_weights=weights,
        tolerance=1e-9,
    )  # fmt: skip
    torch.testing.assert_close(narrow.weights, wide.weights, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_odd_inputs_have_finite_answers(dtype):
    one, two = torch.ones(1, 3, dtype=dtype), torch.ones(8, 3, dtype=dtype)
    for points, codes, n_classes in (
        (one, torch.tensor([0]), 1),
        (two, torch.zeros(8).long(), 1),
        (two, torch.arange(8) % 2, 2),
        (torch.zeros(8, 3, dtype=dtype), torch.arange(8) % 3, 3),
        (torch.eye(8, dtype=dtype), torch.arange(8), 8),
        (1e4 * torch.eye(8, dtype=dtype), torch.arange(8), 8),
    ):
        head = logistic(points, codes, n_classes, 30.0)
        assert all(bool(tensor.isfinite().all()) for tensor in head)
        near = nearest_classes(points[:n_classes], 4)
        start = Linear(points[:n_classes], points.new_zeros(n_classes))
        assert all(bool(t.isfinite().all()) for t in logistic_near(points, codes, near, start, 30.0, 30.0))


def test_nearest_classes_start_with_the_class_itself():
    means = torch.from_numpy(np.random.default_rng(0).normal(size=(40, 5)))
    near = nearest_classes(means, 7)
    assert near[:, 0].tolist() == list(range(40))
    expected = torch.cdist(means, means).argsort(1)[:, :7]
    assert all(set(row) == set(other) for row, other in zip(near.tolist(), expected.tolist(), strict=True))
    doubles = nearest_classes(torch.ones(3, 2), 9)
    assert doubles[:, 0].tolist() == [0, 1, 2]
    assert doubles.shape == (3, 3)
