"""The loss of TIM and α-TIM: its gradient against autograd and finite differences, masks, blocks."""

import pytest
import torch

from handful import fewshot
from handful.fewshot import TaskBatch
from handful.fewshot.solvers.frame import Frame
from handful.fewshot.solvers.mutual_information import InformationProblem, Loss, evaluate, gradient, probabilities
from tests.tasks_at_hand import ragged_tasks, random_task

LOSSES = [
    Loss(0.7, 1.0, 0.3, 1.0),
    Loss(0.7, 1.3, 1.0, 0.8, marginal_order=7.0, conditional_order=5.0),
    Loss(0.7, 1.0, 1.0, 1.0, marginal_order=0.5, conditional_order=1.0),
    Loss(0.7, 1.0, 1.0, 1.0, marginal_order=1.0, conditional_order=2.0),
]


def written_out(task: TaskBatch, prototypes: torch.Tensor, loss: Loss) -> torch.Tensor:
    """The loss of each task, one point and one class at a time, in the task's own coordinates."""

    def tsallis(p: torch.Tensor, order: float) -> torch.Tensor:
        return -(p * p.log()).sum(-1) if order == 1 else (1 - (p**order).sum(-1)) / (order - 1)

    losses = []
    for t in range(task.n_tasks):
        own = task.select(slice(t, t + 1))
        s = own.support[0] if own.support_mask is None else own.support[0][own.support_mask[0]]
        y = own.support_labels[0] if own.support_mask is None else own.support_labels[0][own.support_mask[0]]
        q = own.query[0] if own.query_mask is None else own.query[0][own.query_mask[0]]
        logits = [-0.5 * loss.temperature * (x[:, None] - prototypes[t]).square().sum(-1) for x in (s, q)]
        fit = torch.nn.functional.cross_entropy(logits[0], y)
        p = logits[1].softmax(-1)
        marginal = tsallis(p.mean(0), loss.marginal_order)
        conditional = tsallis(p, loss.conditional_order).mean()
        losses.append(
            loss.support_weight * fit - loss.marginal_weight * marginal + loss.conditional_weight * conditional
        )
    return torch.stack(losses)


def posed(task: TaskBatch, loss: Loss, seed: int = 0):
    frame = Frame(task)
    generator = torch.Generator().manual_seed(seed)
    means = frame.support.mean().expand(task.n_tasks, -1, -1)
    w = means + 0.5 * torch.randn(means.shape, dtype=means.dtype, generator=generator)
    return frame, InformationProblem.of(frame, loss), w


TASKS = {
    "plain": lambda: random_task(3, spread=1.5),
    "ragged": lambda: TaskBatch.pad(ragged_tasks(4)),
    "shared": lambda: TaskBatch(random_task(5).support[:1], random_task(5).support_labels[:1], random_task(5).query, 6),
}


@pytest.mark.parametrize("kind", TASKS)
@pytest.mark.parametrize("loss", LOSSES, ids=str)
def test_the_gradient_equals_autograd(loss, kind):
    task = TASKS[kind]()
    frame, problem, w = posed(task, loss)
    free = (w + frame.origin.unsqueeze(-2)).requires_grad_()
    written_out(task, free, loss).sum().backward()
    ours = gradient(problem, w, loss)
    torch.testing.assert_close(ours, free.grad)
    assert ours.abs().amax((1, 2)).min() > 1e-3


@pytest.mark.parametrize("kind", TASKS)
@pytest.mark.parametrize("loss", LOSSES, ids=str)
def test_the_objective_is_the_loss_written_out(loss, kind):
    task = TASKS[kind]()
    frame, _, w = posed(task, loss)
    ours = evaluate(frame, w, loss)
    torch.testing.assert_close(ours.data + ours.partition, written_out(task, w + frame.origin.unsqueeze(-2), loss))


def test_no_probability_is_denormal():
    """Classes 1e4 nats apart: the exponential of most logits would lie below the normal range, or be zero."""
    task = random_task(7, spread=0.1, dtype=torch.float32)
    for factor in (3.0, 10.0, 100.0):
        scaled = task.with_features(factor * task.support, factor * task.query)
        loss = Loss(1.0, 1.0, 1.0, 1.0)
        frame = Frame(scaled)
        p, log_p = probabilities(InformationProblem.of(frame, loss), frame.support.mean(), 1.0)
        assert p.min() > torch.finfo(torch.float32).tiny
        assert log_p.isfinite().all()


@pytest.mark.parametrize("method", ["tim", "tim_adm", "alpha_tim"])
def test_blocks_change_nothing(method, monkeypatch):
    task = random_task(9, n_tasks=5)
    whole = fewshot.solve(method, task, max_iter=5, temperature=0.5)
    monkeypatch.setattr("handful.fewshot.task.BLOCK_NUMBERS", 1)
    cut = fewshot.solve(method, task, max_iter=5, temperature=0.5)
    torch.testing.assert_close(whole.log_assignments, cut.log_assignments)
    torch.testing.assert_close(whole.objective, cut.objective)
