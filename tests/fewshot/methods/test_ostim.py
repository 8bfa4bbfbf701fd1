"""OSTIM and EOL: the same loops with autograd and the Adam of torch."""

import math
from collections.abc import Callable

import torch

import handful_fewshot as fewshot
from handful_fewshot.methods.ostim import EolOptions, OpenProblem, OstimOptions, eol_gradient
from tests.tasks_at_hand import random_task


def open_probabilities(points: torch.Tensor, w: torch.Tensor, temperature: float) -> torch.Tensor:
    logits = temperature * torch.nn.functional.cosine_similarity(points[:, None], w[None], dim=-1)
    return torch.cat([logits, -logits.mean(1, keepdim=True)], 1).softmax(1)


def ostim_loss(support, labels, query, o: OstimOptions, w) -> torch.Tensor:
    """The formula, for one task."""
    p_support = open_probabilities(support, w, o.temperature)
    p = open_probabilities(query, w, o.temperature)
    fit = -p_support[torch.arange(len(labels)), labels].log().mean()
    marginal = p.mean(0)
    return (
        o.support_weight * fit
        + o.marginal_weight * (marginal * marginal.log()).sum()
        - o.conditional_weight * (p * p.log()).sum(1).mean()
    )


def inlier_and_label(points, w, eta, delta, o: EolOptions) -> tuple[torch.Tensor, torch.Tensor]:
    """`ι_n` as a sigmoid, and `softmax_k(l_nk)`: the formula as published, not the softmax over K + 1 logits."""
    cosines = torch.nn.functional.cosine_similarity(points[:, None], w[None], dim=-1)
    logits = o.temperature * (eta.exp() * cosines + delta)
    return (logits.logsumexp(1) - math.log(len(w)) + math.log(o.unknown_share)).sigmoid(), logits.softmax(1)


def eol_loss(support, labels, query, o: EolOptions, w, eta, delta) -> torch.Tensor:
    """The formula, for one task."""
    n_classes, b = len(w), o.unknown_share
    inlier, label = inlier_and_label(support, w, eta, delta, o)
    fit = -(inlier * label[torch.arange(len(labels)), labels]).log().mean()
    inlier, label = inlier_and_label(query, w, eta, delta, o)
    p = inlier[:, None] * label
    conditional = -(p * p.log()).sum(1).mean() / n_classes
    a = p.mean(0) * (len(labels) / n_classes) / (1 - b)
    a_0 = (1 - inlier).mean() / b
    marginal = (a * a.log()).mean() + a_0 * a_0.log()
    return o.support_weight * fit + o.conditional_weight * conditional + o.marginal_weight * marginal


def descended(
    loss: Callable, task: fewshot.TaskBatch, t: int, options: OstimOptions, n_more: int
) -> list[torch.Tensor]:
    """Prototypes, and that many vectors of one number per class, after the steps of Adam on one task."""
    support, labels, query = task.support[t], task.support_labels[t], task.query[t]
    parts = [torch.stack([support[labels == k].mean(0) for k in range(6)]).requires_grad_()]
    parts += [torch.zeros(6, dtype=torch.float64, requires_grad=True) for _ in range(n_more)]
    adam = torch.optim.Adam(parts, lr=options.learning_rate)
    for _ in range(options.max_iter):
        adam.zero_grad()
        loss(support, labels, query, options, *parts).backward()
        adam.step()
    return [part.detach() for part in parts]


def close(solution: fewshot.Solution, t: int, unknown: torch.Tensor, closed: torch.Tensor, w: torch.Tensor) -> None:
    found = solution.unknown[t], solution.log_assignments[t].exp(), solution.prototypes[t]
    for ours, expected in zip(found, (unknown, closed, w), strict=True):
        torch.testing.assert_close(ours, expected, atol=1e-7, rtol=1e-6)


def test_ostim_is_the_same_loop_with_autograd():
    task, options = random_task(1, n_tasks=2, spread=2.0), OstimOptions(learning_rate=0.02, max_iter=25)
    solution = fewshot.solve("ostim", task, learning_rate=0.02, max_iter=25)
    for t in range(2):
        (w,) = descended(ostim_loss, task, t, options, 0)
        p = open_probabilities(task.query[t], w, options.temperature)
        close(solution, t, p[:, -1], p[:, :-1] / p[:, :-1].sum(1, keepdim=True), w)


def test_eol_pushes_the_classes_that_occur_down_and_labels_by_the_others():
    """Its third term wants every class in the query; without it, few among many are no harder than all."""
    task = random_task(4, n_classes=40, n_present=3, dim=30, spread=0.3)
    task = task.with_features(task.support + 2, task.query + 2)  # so that cosines differ by less
    truth = fewshot.solve("nearest_prototype", task).predictions
    occurs = torch.zeros(3, 1, 40, dtype=torch.bool).scatter_(-1, truth.unsqueeze(1), value=True)
    problem = OpenProblem.of(task)
    zeros = torch.zeros_like(problem.means[..., :1]).mT
    only = EolOptions(support_weight=0.0, conditional_weight=0.0)
    _, _, of_delta = eol_gradient(problem, only, problem.means, zeros, zeros)
    assert (of_delta[occurs] > 0).all()
    assert (of_delta[~occurs] < 0).all()
    with_it, without = (fewshot.solve("eol", task, marginal_weight=b).predictions == truth for b in (1.0, 0.0))
    assert with_it.double().mean() < 0.3
    assert without.all()


def test_eol_is_the_same_loop_with_autograd():
    task, options = random_task(1, n_tasks=2, spread=2.0), EolOptions(max_iter=25)
    solution = fewshot.solve("eol", task, max_iter=25)
    for t in range(2):
        w, eta, delta = descended(eol_loss, task, t, options, 2)
        points = torch.cat([task.support[t], task.query[t]])
        inlier, label = inlier_and_label(points, w, eta, delta, options)
        p = inlier[:, None] * label
        refined = (p[:, :, None] * points[:, None]).sum(0) / p.sum(0)[:, None]
        _, closed = inlier_and_label(task.query[t], refined, eta, delta, options)
        close(solution, t, 1 - inlier[task.support_slots :], closed, refined)
