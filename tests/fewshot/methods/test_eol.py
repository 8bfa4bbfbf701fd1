import math

import torch

from handful import fewshot
from handful.fewshot.methods.eol import EolOptions
from tests.tasks_at_hand import random_task


def inlier_and_label(points, w, eta, delta, o: EolOptions) -> tuple[torch.Tensor, torch.Tensor]:
    """`ι_n` as a sigmoid, and `softmax_k(l_nk)`: the formula as published, not the softmax over K + 1 logits."""
    cosines = torch.nn.functional.cosine_similarity(points[:, None], w[None], dim=-1)
    logits = o.temperature * (eta.exp() * cosines + delta)
    return (logits.logsumexp(1) - math.log(len(w)) + math.log(o.unknown_share)).sigmoid(), logits.softmax(1)


def loss(support, labels, query, w, eta, delta, o: EolOptions) -> torch.Tensor:
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


def test_it_is_the_same_loop_with_autograd_and_the_adam_of_torch():
    task = random_task(1, n_tasks=2, spread=2.0)
    options = EolOptions(max_iter=25)
    solution = fewshot.solve("eol", task, max_iter=25)
    for t in range(2):
        support, labels, query = task.support[t], task.support_labels[t], task.query[t]
        w = torch.stack([support[labels == k].mean(0) for k in range(6)]).requires_grad_()
        eta, delta = (torch.zeros(6, dtype=torch.float64, requires_grad=True) for _ in range(2))
        adam = torch.optim.Adam([w, eta, delta], lr=options.learning_rate)
        for _ in range(25):
            adam.zero_grad()
            loss(support, labels, query, w, eta, delta, options).backward()
            adam.step()
        points = torch.cat([support, query])
        with torch.no_grad():
            inlier, label = inlier_and_label(points, w, eta, delta, options)
            p = inlier[:, None] * label
            refined = (p[:, :, None] * points[:, None]).sum(0) / p.sum(0)[:, None]
            _, closed = inlier_and_label(query, refined, eta, delta, options)
        torch.testing.assert_close(solution.unknown[t], 1 - inlier[len(labels) :], atol=1e-7, rtol=1e-6)
        torch.testing.assert_close(solution.log_assignments[t].exp(), closed, atol=1e-7, rtol=1e-6)
        torch.testing.assert_close(solution.prototypes[t], refined, atol=1e-7, rtol=1e-6)
