"""TIM by gradient: where it starts, where it goes, and the authors' answers."""

import pytest
import torch

from handful import fewshot
from tests.tasks_at_hand import random_task


def nearest_prototype(task: fewshot.TaskBatch) -> torch.Tensor:
    one_hot = torch.nn.functional.one_hot(task.support_labels, task.n_classes).to(task.support.dtype)
    means = one_hot.mT @ task.support / one_hot.sum(1).unsqueeze(-1)
    return torch.cdist(task.query, means).argmin(-1)


@pytest.mark.parametrize("method", ["tim", "tim_adm", "alpha_tim"])
def test_without_iterations_it_is_the_nearest_prototype(method):
    task = random_task(1, spread=3.0)
    solution = fewshot.solve(method, task, max_iter=0)
    assert torch.equal(solution.predictions, nearest_prototype(task))
    assert solution.n_iter.tolist() == [0, 0, 0]
    assert solution.converged.all()  # there is no tolerance to miss


@pytest.mark.parametrize("method", ["tim", "alpha_tim"])
def test_it_is_adam_on_the_loss(method):
    """The same descent with autograd and torch's optimiser, on one task."""
    task = random_task(2, n_tasks=1, spread=1.5)
    options = {"temperature": 0.4, "learning_rate": 1e-2, "max_iter": 50}
    ours = fewshot.solve(method, task, **options)
    settings = fewshot.METHODS[method].make_options(**options)
    support, labels, query = task.support[0], task.support_labels[0], task.query[0]
    means = [support[labels == k].mean(0) for k in range(task.n_classes)]
    w = torch.stack(means).requires_grad_()
    optimiser = torch.optim.Adam([w], lr=settings.learning_rate)

    def entropy(p: torch.Tensor, order: float) -> torch.Tensor:
        return -(p * p.log()).sum(-1) if order == 1 else (1 - p.pow(order).sum(-1)) / (order - 1)

    for _ in range(settings.max_iter):
        logits = [-0.5 * settings.temperature * (x[:, None] - w).square().sum(-1) for x in (support, query)]
        p = logits[1].softmax(-1)
        fit = torch.nn.functional.cross_entropy(logits[0], labels)
        marginal = entropy(p.mean(0), getattr(settings, "tsallis_alpha_marginal", 1))
        conditional = entropy(p, getattr(settings, "tsallis_alpha_conditional", 1)).mean()
        loss = settings.support_weight * fit + settings.conditional_weight * conditional
        optimiser.zero_grad()
        (loss - settings.marginal_weight * marginal).backward()
        optimiser.step()
    torch.testing.assert_close(ours.prototypes[0], w.detach(), atol=1e-7, rtol=1e-7)
