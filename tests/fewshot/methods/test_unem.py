"""UNEM: its layers are what the formula says, and with the constants of EM it is PADDLE."""

import torch

import handful_fewshot as fewshot
from handful_fewshot.methods.unem import STORED_PAIR, UnemOptions
from tests.tasks_at_hand import random_task

OF_EM = {"partition_weight": 1.0, "temperature": 1.0, "proportion_floor": 1e-6}


def by_the_formula(task, options: UnemOptions, t: int) -> torch.Tensor:
    """One task, term by term."""
    one_hot = torch.nn.functional.one_hot(task.support_labels[t], task.n_classes).double()
    support, query = task.support[t] * options.scale, task.query[t] * options.scale
    w, v = (one_hot.T @ support) / one_hot.sum(0)[:, None], torch.ones(task.n_classes, dtype=torch.float64)
    for _ in range(options.max_iter):
        distances = 0.5 * torch.cdist(query, w).square()
        u = torch.softmax((options.partition_weight * v - distances) / options.temperature, -1)
        v = 1 + (u.mean(0) + options.proportion_floor).log()
        w = (one_hot.T @ support + u.T @ query) / (one_hot.sum(0) + u.sum(0))[:, None]
    return u


def test_layers_are_those_of_the_formula():
    task, options = random_task(0), UnemOptions(scale=0.6, partition_weight=2.0, temperature=1.5)
    found = fewshot.solve("unem", task, scale=0.6, partition_weight=2.0, temperature=1.5).log_assignments.exp()
    for t in range(3):
        torch.testing.assert_close(found[t], by_the_formula(task, options, t))


def test_with_the_constants_of_em_it_is_paddle():
    task = random_task(1)
    ours = fewshot.solve("unem", task, max_iter=20, **OF_EM)
    theirs = fewshot.solve("paddle", task, max_iter=20, tol=0, proportion_floor=1e-6)
    torch.testing.assert_close(ours.log_assignments.exp(), theirs.log_assignments.exp())
    torch.testing.assert_close(ours.prototypes, theirs.prototypes)


def test_the_first_layer_does_not_look_at_shares():
    task = random_task(2)
    one, other = (fewshot.solve("unem", task, max_iter=1, scale=1.0, partition_weight=w) for w in (0.5, 9.0))
    torch.testing.assert_close(one.log_assignments, other.log_assignments)


def test_its_objective_falls_from_layer_to_layer():
    task, gamma, tau = random_task(3), 3.17, 1.5
    one_hot = torch.nn.functional.one_hot(task.support_labels, task.n_classes).double()
    points, objectives = torch.cat([task.support, task.query], 1), []
    for n in (2, 4, 8, 16):
        found = fewshot.solve("unem", task, max_iter=n, partition_weight=gamma, temperature=tau)
        u = found.log_assignments.exp()
        halves = 0.5 * torch.cdist(points, found.prototypes).square()
        of_shares = -torch.xlogy(u.mean(1), u.mean(1)).sum(-1)
        fit = (torch.cat([one_hot, u], 1) * halves).sum((1, 2))
        objectives.append(gamma * fit + gamma * 15 * of_shares + tau * torch.xlogy(u, u).sum((1, 2)))
    assert (torch.stack(objectives).diff(dim=0) <= 1e-8).all()


def test_the_defaults_are_the_stored_pair_of_the_authors():
    """Of their stored raw values of mini-ImageNet and ResNet-18 at 5 shots, 3.128 and -1.218."""
    softplus = torch.nn.functional.softplus(torch.tensor([3.128, -1.218], dtype=torch.float64))
    assert abs(STORED_PAIR.partition_weight - float(softplus[0])) < 5e-3
    assert abs(STORED_PAIR.temperature - float(1 + softplus[1])) < 5e-3
    assert (UnemOptions().partition_weight, UnemOptions().temperature) == STORED_PAIR
