"""Projected gradient: gradients against autograd and finite differences, feasibility, where it goes."""

import torch

import handful_fewshot as fewshot
from handful_fewshot.frame import Frame
from handful_fewshot.methods import paddle_gd
from tests.tasks_at_hand import random_task

FLOOR = 1e-12


def loss(problem: paddle_gd.GradientProblem, task, u: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    """The objective, written out with one-hot labels; w about the frame's origin."""
    origin = Frame(task).origin.unsqueeze(-2)
    support, query = task.support - origin, task.query - origin
    one_hot = torch.nn.functional.one_hot(task.support_labels, task.n_classes).double()
    fit = 0.5 * (torch.cdist(query, w).square() * u).sum() + 0.5 * (torch.cdist(support, w).square() * one_hot).sum()
    p = u.mean(-2)
    return fit + (problem.tilt * problem.n_query * -(p * torch.log(p + FLOOR)).sum(-1)).sum()


def posed():
    task = random_task(31)
    frame = Frame(task)
    tilt = torch.tensor([1.0, 0.5, 2.0], dtype=torch.float64)
    problem = paddle_gd.problem_of(frame, tilt)
    generator = torch.Generator().manual_seed(0)
    u = torch.rand(3, 15, 6, dtype=torch.float64, generator=generator).softmax(-1)
    w = torch.randn(3, 6, 8, dtype=torch.float64, generator=generator)
    return task, problem, u, w


def test_gradients_equal_autograd():
    task, problem, u, w = posed()
    of_u, of_w = paddle_gd.gradients(problem, u, w, FLOOR)
    loss(problem, task, u.requires_grad_(), w.requires_grad_()).backward()
    torch.testing.assert_close(of_u, u.grad)
    torch.testing.assert_close(of_w, w.grad)


def test_assignments_keep_moving():
    """In the public code U is frozen after one step."""
    task = random_task(32, spread=2.0)
    task = task.with_features(0.3 * task.support, 0.3 * task.query)
    a, b = (fewshot.solve("paddle_gd", task, max_iter=n, tol=0.0) for n in (5, 100))
    assert (a.log_assignments.exp() - b.log_assignments.exp()).abs().max() > 1e-3


def test_it_descends_at_first():
    """At first only: Adam rescales every coordinate, so that after projection its steps need not point downhill."""
    solution = fewshot.solve("paddle_gd", random_task(34, spread=0.8), max_iter=20, tol=0.0, record=True)
    assert (solution.trace.observed.diff(dim=-1) < 0).all()
    torch.testing.assert_close(solution.trace.observed[:, -1], solution.objective)
