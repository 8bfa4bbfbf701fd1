import torch

from handful.fewshot.solvers.outlier_logit import OpenProblem, prototype_slopes
from tests.tasks_at_hand import random_task


def test_slopes_of_prototypes_are_those_of_autograd():
    problem = OpenProblem.of(random_task(0))
    generator = torch.Generator().manual_seed(0)
    w = torch.randn(3, 6, 8, dtype=torch.float64, generator=generator).requires_grad_()
    slopes = torch.randn(3, 18 + 15, 6, dtype=torch.float64, generator=generator)
    directions = w / w.norm(dim=-1, keepdim=True)
    (slopes * (problem.points @ directions.mT)).sum().backward()
    torch.testing.assert_close(prototype_slopes(problem, w.detach(), slopes), w.grad)


def test_a_prototype_without_direction_stays():
    problem = OpenProblem.of(random_task(0))
    slopes = prototype_slopes(problem, torch.zeros_like(problem.means), torch.ones(3, 33, 6, dtype=torch.float64))
    assert (slopes == 0).all()
