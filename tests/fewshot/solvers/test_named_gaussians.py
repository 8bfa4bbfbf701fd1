import math

import pytest
import torch

from handful import fewshot
from handful.fewshot.rows import unit
from handful.fewshot.solvers.named_gaussians import NamedProblem, log_densities
from tests.tasks_at_hand import ragged_tasks, random_task


def test_the_names_answer_is_the_softmax_of_their_cosines():
    task = random_task(1, shots=1)
    problem = NamedProblem.of(task, temperature=7.0, n_neighbours=3)
    order = task.support_labels.argsort(-1).unsqueeze(-1).expand_as(task.support)
    names = unit(task.support.gather(1, order))
    expected = (7 * unit(task.query) @ names.mT).log_softmax(-1)
    torch.testing.assert_close(problem.log_prior, expected)
    torch.testing.assert_close(problem.names + problem.origin, names)


def test_a_pull_joins_neighbours_in_either_direction():
    angles = torch.tensor([0.0, 0.1, 0.3, 0.9, 3.0], dtype=torch.float64)
    query = torch.stack([angles.cos(), angles.sin()], -1)
    task = fewshot.TaskBatch.single([[1.0, 0.0], [0.0, 1.0]], [0, 1], [[0.0, 0.0]], n_classes=2)
    task = fewshot.TaskBatch(task.support.double(), task.support_labels, query[None], 2)
    pulls = NamedProblem.of(task, temperature=1.0, n_neighbours=1).pulls[0]
    # 0 and 1 choose each other, 2 chooses 1, 3 chooses 2, and 4 chooses 3, at an obtuse angle.
    expected = torch.zeros(5, 5, dtype=torch.float64)
    for n, m, weight in ((0, 1, 2 * math.cos(0.1)), (1, 2, math.cos(0.2)), (2, 3, math.cos(0.6))):
        expected[n, m] = expected[m, n] = weight / 2
    torch.testing.assert_close(pulls, expected)


@pytest.mark.parametrize("shared", [True, False])
def test_log_densities_are_those_of_a_normal_distribution(shared):
    generator = torch.Generator().manual_seed(0)
    points, means = (torch.randn(2, n, 3, generator=generator, dtype=torch.float64) for n in (5, 4))
    variances = torch.rand(2, 1 if shared else 4, 3, generator=generator, dtype=torch.float64) + 0.1
    normal = torch.distributions.Normal(means.unsqueeze(1), variances.sqrt().unsqueeze(1))
    expected = normal.log_prob(points.unsqueeze(2)).sum(-1) + 1.5 * math.log(2 * math.pi)
    torch.testing.assert_close(log_densities(points, means, variances), expected)


def test_scatter_is_the_weighted_sum_of_squares_and_ignores_padding():
    task = fewshot.TaskBatch.pad(ragged_tasks(2))
    problem = NamedProblem.of(task, 5.0, 2)
    z = torch.rand(task.n_tasks, task.query_slots, task.n_classes, dtype=torch.float64)
    scatter, mass = problem.scatter(z, problem.names)
    real = task.query_mask[..., None, None]
    squares = (problem.points.unsqueeze(2) - problem.names.unsqueeze(1)).square() * z.unsqueeze(-1)
    torch.testing.assert_close(scatter, squares.where(real, 0).sum(1))
    torch.testing.assert_close(mass, z.where(task.query_mask.unsqueeze(-1), 0).sum(1))


def test_directions_have_unit_length_and_a_class_without_mass_keeps_what_it_had():
    problem = NamedProblem.of(random_task(4), 5.0, 2)
    z = torch.rand(3, 15, 6, dtype=torch.float64)
    z[..., 2] = 0
    found = problem.directions(problem.moments(z), problem.names)
    torch.testing.assert_close((found + problem.origin).norm(dim=-1), torch.ones(3, 6, dtype=torch.float64))
    assert torch.equal(found[:, 2], problem.names[:, 2])
    assert not torch.isclose(found[:, 1], problem.names[:, 1]).any()
