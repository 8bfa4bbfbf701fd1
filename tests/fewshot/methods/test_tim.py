"""TIM, α-TIM and TIM-ADM: where they start, their steps written out, limits, no denormal numbers, blocks."""

import pytest
import torch

import handful_fewshot as fewshot
from handful_fewshot.frame import Frame
from handful_fewshot.methods.tim import InformationProblem, TimAdmOptions, TimOptions, probabilities, tsallis_slope
from handful_fewshot.numerics.vectors import entropy
from tests.tasks_at_hand import random_task


@pytest.mark.parametrize("method", ["tim", "tim_adm", "alpha_tim"])
def test_without_iterations_it_is_the_nearest_prototype(method):
    task = random_task(1, spread=3.0)
    solution = fewshot.solve(method, task, max_iter=0)
    assert torch.equal(solution.predictions, fewshot.solve("nearest_prototype", task).predictions)
    assert solution.n_iter.tolist() == [0, 0, 0]


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


def written_out(task: fewshot.TaskBatch, options: TimAdmOptions, n_iter: int) -> torch.Tensor:
    """Prototypes after `n_iter` iterations of the paper's two updates, with one-hot labels and no rearrangement."""
    a, b, c = options.support_weight, options.marginal_weight, options.conditional_weight
    y = torch.nn.functional.one_hot(task.support_labels, task.n_classes).double()
    s, q = task.support, task.query
    w = y.mT @ s / y.sum(1).unsqueeze(-1)
    for _ in range(n_iter):
        of_support, of_query = ((-0.5 * options.temperature * torch.cdist(x, w).square()).softmax(-1) for x in (s, q))
        powers = of_query ** (1 + c)
        soft = powers / powers.sum(1, keepdim=True) ** (b / (1 + b))
        soft = soft / soft.sum(-1, keepdim=True)
        ratio, share = a / (1 + c), s.shape[1] / q.shape[1]
        numerator = ratio * ((y - of_support).mT @ s + of_support.sum(1).unsqueeze(-1) * w)
        numerator += share * ((soft - of_query).mT @ q + of_query.sum(1).unsqueeze(-1) * w)
        w = numerator / (ratio * y.sum(1) + share * soft.sum(1)).unsqueeze(-1)
    return w


@pytest.mark.parametrize("n_iter", [1, 2, 25])
def test_tim_adm_is_the_papers_iteration(n_iter):
    task, options = random_task(1), {"temperature": 0.5, "support_weight": 0.3, "conditional_weight": 0.2}
    ours = fewshot.solve("tim_adm", task, max_iter=n_iter, **options)
    torch.testing.assert_close(ours.prototypes, written_out(task, TimAdmOptions(**options), n_iter))


def test_a_higher_order_of_the_marginal_tolerates_imbalance():
    task = random_task(3, spread=2.0)
    options = {"temperature": 0.3, "learning_rate": 1e-2, "max_iter": 200, "tsallis_alpha_conditional": 1.0}
    low, high = (fewshot.solve("alpha_tim", task, tsallis_alpha_marginal=b, **options) for b in (1.0, 7.0))
    assert (high.proportions.amax(-1) > low.proportions.amax(-1)).all()


def test_no_probability_is_denormal():
    """Classes 1e4 nats apart: the exponential of most logits would lie below the normal range, or be zero."""
    task = random_task(7, spread=0.1, dtype=torch.float32)
    for factor in (3.0, 10.0, 100.0):
        scaled = task.with_features(factor * task.support, factor * task.query)
        frame = Frame(scaled)
        p, log_p = probabilities(InformationProblem.of(frame, TimOptions(1.0)), frame.support.mean(), 1.0)
        assert p.min() > torch.finfo(torch.float32).tiny
        assert log_p.isfinite().all()


@pytest.mark.parametrize("method", ["tim", "tim_adm", "alpha_tim"])
def test_blocks_change_nothing(method, monkeypatch):
    task = random_task(9, n_tasks=5)
    whole = fewshot.solve(method, task, max_iter=5, temperature=0.5)
    monkeypatch.setattr("handful_fewshot.task.BLOCK_NUMBERS", 1)
    cut = fewshot.solve(method, task, max_iter=5, temperature=0.5)
    torch.testing.assert_close(whole.log_assignments, cut.log_assignments)
    torch.testing.assert_close(whole.prototypes, cut.prototypes)


@pytest.mark.parametrize("order", [0.5, 1.0, 1.0 + 1e-9, 2.0, 5.0])
def test_tsallis_slope_is_the_derivative_along_the_simplex(order):
    p = torch.tensor([0.2, 0.5, 0.3], dtype=torch.float64)
    slope = tsallis_slope(p.log(), order)
    along, h = torch.tensor([1.0, -3.0, 2.0], dtype=torch.float64), 1e-5

    def tsallis(p: torch.Tensor) -> torch.Tensor:
        return entropy(p) if abs(order - 1) < 1e-6 else (1 - (p**order).sum(-1)) / (order - 1)

    change = (tsallis(p + h * along) - tsallis(p - h * along)) / (2 * h)
    torch.testing.assert_close((slope * along).sum(), change, atol=1e-7, rtol=1e-7)
