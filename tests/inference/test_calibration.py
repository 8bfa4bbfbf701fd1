"""The scale: definition by brute force, invariances, degenerate supports."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from handful import TaskBatch
from handful.inference.calibration import (
    LEAST_NATS,
    MOST_NATS,
    left_out,
    left_out_margins,
    logistic_slope,
    squared_scale,
)
from handful.inference.frame import Frame
from handful.numerics.distances import half_squared_distances
from tests.tasks_at_hand import ragged_tasks, random_task

seeds = st.integers(0, 10_000)


def margins_of(task: TaskBatch):
    frame = Frame(task)
    squares = frame.support.mean().square().sum(-1)
    by_length = squares.argsort(-1)
    return left_out_margins(frame, squares, by_length, *left_out(task, frame.support.mass, by_length), slice(None))


def brute_force_margins(task: TaskBatch) -> np.ndarray:
    """Every point against every other class, its own mean formed again without it; one task, few classes."""
    points, labels = task.support[0].numpy(), task.support_labels[0].numpy()
    margins = []
    for i, (z, y) in enumerate(zip(points, labels, strict=True)):
        rest = np.delete(points, i, 0), np.delete(labels, i)
        if not (rest[1] == y).any():
            continue
        own, shots = rest[0][rest[1] == y].mean(0), (labels == y).sum()
        for k in range(task.n_classes):
            if k != y:
                other = points[labels == k].mean(0)
                margins.append(0.5 * ((z - other) ** 2).sum() - 0.5 * (1 - shots**-2.0) * ((z - own) ** 2).sum())
    return np.sort(margins)


@given(seed=seeds)
def test_margins_are_those_of_left_out_points(seed):
    for task in (random_task(seed, n_tasks=1), ragged_tasks(seed)[0]):
        margins, counts = margins_of(task)
        np.testing.assert_allclose(np.sort(margins[counts].numpy()), brute_force_margins(task), atol=1e-9)


@given(seed=seeds, spread=st.sampled_from([2.0, 4.0, 8.0]))
def test_the_slope_is_the_minimum_of_the_logistic_loss(seed, spread):
    task = random_task(seed, n_tasks=1, shots=5, spread=spread)
    margins, counts = margins_of(task)
    best = logistic_slope(margins, counts).item()
    nats = best * margins[counts].abs().mean().item()
    if not LEAST_NATS * 1.01 < nats < MOST_NATS * 0.99:
        return  # a support that cannot tell: the slope stays at its border
    loss = [torch.nn.functional.softplus(-b * margins[counts]).sum().item() for b in (best, 0.98 * best, 1.02 * best)]
    assert loss[0] <= min(loss[1:]) + 1e-9


@given(seed=seeds, exponent=st.integers(-3, 3))
def test_the_scale_undoes_a_scaling_of_the_features(seed, exponent):
    task, factor = random_task(seed, shots=2), 10.0**exponent
    scaled = task.with_features(factor * task.support, factor * task.query)
    torch.testing.assert_close(squared_scale(Frame(scaled)) * factor**2, squared_scale(Frame(task)))


def test_where_the_model_is_right_the_scale_is_known():
    """Unit Gaussians: with many shots prototypes are exact, and half squared distances are nats as they are."""
    task = random_task(0, n_tasks=4, n_classes=12, shots=200, dim=4, spread=1.0)
    torch.testing.assert_close(squared_scale(Frame(task)), torch.ones(4).double(), atol=0.15, rtol=0)


@pytest.mark.parametrize("shots", [2, 3, 20])
def test_few_shots_are_not_mistaken_for_a_wide_spread(shots):
    """What a left-out point meets, its class's mean without it, is worse than what a query meets: that is made up for.

    Pairs of queries and classes, with their labels, are the regression the support stands in for.
    """
    generator = torch.Generator().manual_seed(0)
    centres = 0.4 * torch.randn(40, 16, 32, generator=generator)
    support, query = (
        (centres.unsqueeze(2) + torch.randn(40, 16, n, 32, generator=generator)).flatten(1, 2) for n in (shots, 25)
    )
    labels, truth = (torch.arange(16).repeat_interleave(n).expand(40, -1) for n in (shots, 25))
    frame = Frame(TaskBatch(support, labels, query, 16))
    distances = half_squared_distances(frame.query, frame.support.mean())
    margins = distances - distances.gather(-1, truth.unsqueeze(-1))
    counts = torch.ones_like(margins, dtype=torch.bool).scatter(-1, truth.unsqueeze(-1), False)
    quotient = squared_scale(frame) / logistic_slope(margins * counts, counts)
    assert 0.85 < quotient.mean() < 1.1


def test_many_classes_are_sampled_without_regard_to_names():
    task = random_task(1, n_tasks=2, n_classes=150, shots=4)
    renamed = torch.randperm(150, generator=torch.Generator().manual_seed(0))
    other = TaskBatch(task.support, renamed[task.support_labels], task.query, 150)
    torch.testing.assert_close(squared_scale(Frame(task)), squared_scale(Frame(other)))


@pytest.mark.parametrize("shots", [[1, 1, 1], [1, 1, 4], [9, 1, 1]])
def test_one_shot_and_mixed_supports_have_a_scale(shots):
    labels = np.repeat(np.arange(3), shots)
    rng = np.random.default_rng(0)
    centres = 3 * rng.standard_normal((3, 5))
    task = TaskBatch.single(
        centres[labels] + rng.standard_normal((len(labels), 5)), labels, centres + rng.standard_normal((3, 5)), 3
    )
    scale = squared_scale(Frame(task))
    assert scale.isfinite().all()
    assert (scale > 0).all()


def test_a_support_without_mistakes_does_not_run_to_infinity():
    task = random_task(2, spread=1e-9)
    assert squared_scale(Frame(task)).isfinite().all()
