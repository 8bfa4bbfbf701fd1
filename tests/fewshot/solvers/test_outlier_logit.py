import torch

from handful.fewshot import TaskBatch
from handful.fewshot.solvers import outlier_logit
from handful.fewshot.solvers.outlier_logit import OpenProblem, blocks, open_softmax, prototype_slopes
from tests.tasks_at_hand import ragged_tasks, random_task


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


def test_shares_sum_to_one_without_padding():
    problem = OpenProblem.of(TaskBatch.pad(ragged_tasks(0)))
    ones = torch.ones(4, 1, dtype=torch.float64)
    torch.testing.assert_close(problem.support_shares.sum(1), ones)
    torch.testing.assert_close(problem.query_shares.sum(1), ones)
    assert (problem.targets[..., -1] == 0).all()


def test_the_outlier_comes_last():
    log_p = open_softmax(torch.zeros(1, 2, 3), torch.full((1, 1, 1), 1.0))
    torch.testing.assert_close(log_p.exp().sum(-1), torch.ones(1, 2))
    assert (log_p.argmax(-1) == 3).all()


def test_blocks_are_all_tasks_in_order(monkeypatch):
    task = random_task(0, n_tasks=5)
    monkeypatch.setattr(outlier_logit, "BLOCK_NUMBERS", 2 * 33 * 8)
    parts = list(blocks(task))
    assert [part.n_tasks for part in parts] == [2, 2, 1]
    assert torch.equal(torch.cat([part.query for part in parts]), task.query)
