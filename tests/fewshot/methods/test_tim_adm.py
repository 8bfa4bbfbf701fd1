"""TIM by alternating directions: each update against the formula it solves."""

import pytest
import torch

from handful import fewshot
from handful.fewshot.solvers.mutual_information import Loss
from tests.tasks_at_hand import random_task


def written_out(task: fewshot.TaskBatch, loss: Loss, n_iter: int) -> torch.Tensor:
    """Prototypes after `n_iter` iterations of the paper's two updates, with one-hot labels and no rearrangement."""
    a, b, c = loss.support_weight, loss.marginal_weight, loss.conditional_weight
    y = torch.nn.functional.one_hot(task.support_labels, task.n_classes).double()
    s, q = task.support, task.query
    w = y.mT @ s / y.sum(1).unsqueeze(-1)
    for _ in range(n_iter):
        of_support, of_query = ((-0.5 * loss.temperature * torch.cdist(x, w).square()).softmax(-1) for x in (s, q))
        powers = of_query ** (1 + c)
        soft = powers / powers.sum(1, keepdim=True) ** (b / (1 + b))
        soft = soft / soft.sum(-1, keepdim=True)
        ratio, share = a / (1 + c), s.shape[1] / q.shape[1]
        numerator = ratio * ((y - of_support).mT @ s + of_support.sum(1).unsqueeze(-1) * w)
        numerator += share * ((soft - of_query).mT @ q + of_query.sum(1).unsqueeze(-1) * w)
        w = numerator / (ratio * y.sum(1) + share * soft.sum(1)).unsqueeze(-1)
    return w


@pytest.mark.parametrize("n_iter", [1, 2, 25])
def test_it_is_the_papers_iteration(n_iter):
    task, loss = random_task(1), Loss(0.5, 0.3, 1.0, 0.2)
    options = {"temperature": 0.5, "support_weight": 0.3, "marginal_weight": 1.0, "conditional_weight": 0.2}
    ours = fewshot.solve("tim_adm", task, max_iter=n_iter, **options)
    torch.testing.assert_close(ours.prototypes, written_out(task, loss, n_iter))
