import math

import pytest
import torch

from handful.fewshot.rows import unit
from handful.fewshot.solvers.named_gaussians import NamedProblem, log_densities
from tests.tasks_at_hand import random_task


def test_the_names_answer_is_the_softmax_of_their_cosines():
    task = random_task(1, shots=1)
    problem = NamedProblem.of(task, temperature=7.0, n_neighbours=3)
    order = task.support_labels.argsort(-1).unsqueeze(-1).expand_as(task.support)
    names = unit(task.support.gather(1, order))
    expected = (7 * unit(task.query) @ names.mT).log_softmax(-1)
    torch.testing.assert_close(problem.log_prior, expected)
    torch.testing.assert_close(problem.names + problem.origin, names)


@pytest.mark.parametrize("shared", [True, False])
def test_log_densities_are_those_of_a_normal_distribution(shared):
    generator = torch.Generator().manual_seed(0)
    points, means = (torch.randn(2, n, 3, generator=generator, dtype=torch.float64) for n in (5, 4))
    variances = torch.rand(2, 1 if shared else 4, 3, generator=generator, dtype=torch.float64) + 0.1
    normal = torch.distributions.Normal(means.unsqueeze(1), variances.sqrt().unsqueeze(1))
    expected = normal.log_prob(points.unsqueeze(2)).sum(-1) + 1.5 * math.log(2 * math.pi)
    torch.testing.assert_close(log_densities(points, means, variances), expected)
