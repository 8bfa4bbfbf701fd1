"""The found factor: it has the largest likelihood, tells the variance, and is softer where few classes occur."""

import math

import pytest
import torch

from handful_fewshot import TaskBatch
from handful_fewshot.numerics.geometry import labelled_moments
from handful_fewshot.numerics.scale import (
    USUAL_DIRECTIONS,
    WEIGHT_OF_GUESS,
    calibrated,
    directions,
    found_factor,
    left_out,
)
from tests.tasks_at_hand import random_task


def factor(task: TaskBatch) -> torch.Tensor:
    moments = labelled_moments(task.support, task.support_labels, None, task.n_classes)
    return found_factor(task.support, task.support_labels, None, moments, task.query, None)


def problem(task: TaskBatch, guess: float):
    moments = labelled_moments(task.support, task.support_labels, None, task.n_classes)
    guesses = torch.full((task.n_tasks,), guess, dtype=task.dtype)
    return left_out(task.support, task.support_labels, None, moments, guesses)


def test_distances_of_examples_are_those_of_new_points():
    """In many dimensions the excess of a mean without the point would be more than the evidence of a point."""
    n_classes, dim = 40, 200
    generator = torch.Generator().manual_seed(0)
    centres = torch.randn(n_classes, 1, dim, generator=generator, dtype=torch.float64)

    def drawn(n: int) -> torch.Tensor:
        return (centres + torch.randn(n_classes, n, dim, generator=generator, dtype=torch.float64)).flatten(0, 1)

    for shots in (2, 5):
        labels = torch.arange(n_classes).repeat_interleave(shots)
        task = TaskBatch.single(drawn(shots), labels, drawn(shots), n_classes)
        new = (task.query[0] - task.support[0].unflatten(0, (n_classes, shots)).mean(1)[labels]).square().sum(-1) / 2
        assert problem(task, 1.0).own.mean().item() == pytest.approx(new.mean().item(), rel=0.02)


def test_a_point_of_one_example_is_not_counted():
    task = random_task(3, shots=1)
    assert not problem(task, 1.0).counts.any()


def test_no_other_factor_has_a_larger_likelihood():
    task = random_task(1, shots=4, spread=2.0)
    found = problem(task, 0.3)

    def likelihood(squares: torch.Tensor) -> torch.Tensor:
        log_p = torch.log_softmax(-squares[:, None, None] * found.distances, -1)
        of_labels = log_p.gather(-1, task.support_labels.unsqueeze(-1)).sum((-2, -1))
        return of_labels + WEIGHT_OF_GUESS * (squares.log() - squares / found.guess)

    squares = calibrated(found)
    for other in (0.9, 1.1):
        assert (likelihood(other * squares) < likelihood(squares)).all()


def test_many_points_tell_the_variance():
    task = random_task(2, n_tasks=2, n_classes=8, shots=100, spread=2.0)
    for guess in (0.1, 1.0):
        assert ((4 * calibrated(problem(task, guess))).log().abs() < math.log(1.25)).all()


def test_one_point_per_class_leaves_the_guess():
    task = random_task(3, shots=1)
    torch.testing.assert_close(calibrated(problem(task, 0.7)), torch.full((3,), 0.7, dtype=torch.float64))


@pytest.mark.parametrize("shots", [1, 4])
def test_distances_in_other_units_give_the_inverse_factor(shots):
    task = random_task(4, shots=shots)
    longer = task.with_features(3 * task.support, 3 * task.query)
    torch.testing.assert_close(factor(longer), factor(task) / 3)


def test_fewer_classes_in_the_batch_allow_a_softer_scale():
    """Two of twenty classes: EM may add up more evidence than if all of them occur."""
    few, many = (factor(random_task(5, n_tasks=20, n_classes=20, n_query=60, n_present=n, spread=1.5)) for n in (2, 20))
    assert few.mean() < 0.9 * many.mean()


def test_directions_are_counted_by_how_wide_they_are():
    generator = torch.Generator().manual_seed(0)
    noise = torch.randn(2, 400, 30, dtype=torch.float64, generator=generator)
    noise[1, :, 10:] *= 0.01
    means = torch.zeros(2, 2, 30, dtype=torch.float64)
    nearest, real = torch.arange(400).expand(2, -1) % 2, torch.ones(2, 400, dtype=torch.bool)
    found = directions(noise, means, nearest, real)
    torch.testing.assert_close(found, torch.tensor([30.0, 10.0], dtype=torch.float64), rtol=0.03, atol=0)
    alone = directions(noise, means, torch.zeros_like(nearest), real)
    assert (alone == USUAL_DIRECTIONS).all()
