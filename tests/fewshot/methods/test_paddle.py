"""PADDLE: the theorem, the closed form, the geometries, the loop."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import handful_fewshot as fewshot
from handful_fewshot import TaskBatch
from handful_fewshot.frame import Frame
from handful_fewshot.methods import paddle
from handful_fewshot.numerics.geometry import Space
from tests.fewshot.oracles.em import em
from tests.tasks_at_hand import random_task

seeds = st.integers(0, 10_000)


@pytest.mark.parametrize("factor", [1.0, 0.5, 1.5, 0.0])
def test_sixty_iterations_of_independent_em(factor):
    task = random_task(11, n_query=25, n_classes=8)
    trajectories = [
        list(em(task.support[t].numpy(), task.support_labels[t].numpy(), task.query[t].numpy(), 8, 60, factor))
        for t in range(3)
    ]
    for n in (1, 2, 3, 10, 30, 60):
        solution = fewshot.solve("paddle", task, complexity_weight=factor * 25, max_iter=n, tol=0.0)
        for t, trajectory in enumerate(trajectories):
            responsibilities, proportions, means = trajectory[n - 1]
            np.testing.assert_allclose(solution.log_assignments[t].exp(), responsibilities, atol=1e-10, rtol=0)
            np.testing.assert_allclose(solution.proportions[t], proportions, atol=1e-10, rtol=0)
            np.testing.assert_allclose(solution.prototypes[t], means, atol=1e-10, rtol=0)


@given(seed=seeds, weight=st.sampled_from([None, 0.0, 4.0, 40.0]), floor=st.sampled_from([0.0, 1e-6]))
def test_the_objective_never_rises(seed, weight, floor):
    solution = fewshot.solve(
        "paddle", random_task(seed), complexity_weight=weight, proportion_floor=floor, max_iter=40, tol=0.0, record=True
    )
    steps = solution.trace.observed.diff(dim=-1)
    assert steps.max() <= 1e-9
    assert solution.trace.observed.shape == (3, 40)
    torch.testing.assert_close(solution.trace.observed[:, -1], solution.objective)


def objective_after_each_iteration(task: TaskBatch, t: int, *, previous: bool) -> list[float]:
    """F by the formulas of Algorithm 1, with W from the previous U as in its listing, or from the new one."""
    z, s = task.query[t], task.support[t]
    y = torch.nn.functional.one_hot(task.support_labels[t], task.n_classes).to(z.dtype)
    w = (y.T @ s) / y.sum(0).unsqueeze(-1)
    v = torch.zeros(task.n_classes, dtype=z.dtype)
    before = None
    found = []
    for _ in range(10):
        u = torch.softmax(-0.5 * torch.cdist(z, w).square() + v, -1)
        v = 1 + u.mean(0).log()
        used = before if previous else u
        if used is not None:  # the listing does not say what the first U is
            w = (y.T @ s + used.T @ z) / (y.sum(0) + used.sum(0)).unsqueeze(-1)
        before = u
        fit = (u * 0.5 * torch.cdist(z, w).square()).sum() + (y * 0.5 * torch.cdist(s, w).square()).sum()
        dual = len(z) * (torch.exp(v - 1).sum() - (v * u.mean(0)).sum())
        found.append(float(fit + torch.xlogy(u, u).sum() + dual))
    return found


def test_prototypes_from_the_previous_assignments_let_the_objective_rise():
    """The printed listing is not block coordinate descent; with the new assignments it is, and equals the method."""
    task = random_task(1, spread=2.0)
    printed = np.diff(objective_after_each_iteration(task, 0, previous=True))
    assert printed.max() > 1.0
    used = objective_after_each_iteration(task, 0, previous=False)
    assert np.diff(used).max() <= 1e-9
    traced = fewshot.solve("paddle", task, max_iter=10, tol=0.0, record=True).trace.observed[0]
    np.testing.assert_allclose(traced, used, rtol=1e-6)


def test_the_first_labels_are_those_of_the_nearest_prototype():
    task = random_task(6, spread=2.0)
    first = fewshot.solve("paddle", task, max_iter=1, tol=0.0)
    distances = 0.5 * torch.cdist(task.query, fewshot.solve("nearest_prototype", task).prototypes).square()
    torch.testing.assert_close(first.log_assignments, torch.log_softmax(-distances, -1), atol=1e-9, rtol=0)


def test_halves_of_the_description_length():
    task = random_task(4, n_tasks=1)
    solution = fewshot.solve("paddle", task, max_iter=5, tol=0.0)
    u, w = solution.log_assignments[0].exp(), solution.prototypes[0]
    of_query = (u * 0.5 * torch.cdist(task.query[0], w).square()).sum()
    of_support = 0.5 * (task.support[0] - w[task.support_labels[0]]).square().sum()
    barrier = torch.xlogy(u, u).sum()
    p = u.mean(0)
    torch.testing.assert_close(solution.description_length.data[0], of_query + of_support + barrier)
    torch.testing.assert_close(solution.description_length.partition[0], -15 * torch.xlogy(p, p).sum())


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_a_class_without_mass_stays_out(dtype):
    support = torch.tensor([[0.0], [4000.0]], dtype=dtype)
    query = torch.tensor([[0.0], [1.0], [-1.0]], dtype=dtype)
    task = TaskBatch.single(support, [0, 1], query, n_classes=2)
    solution = fewshot.solve("paddle", task, max_iter=10, tol=0.0)
    assert solution.proportions[0].tolist() == [1.0, 0.0]
    assert solution.log_assignments[0, :, 1].isneginf().all()
    assert solution.objective.isfinite().all()
    assert solution.prototypes[0, 1, 0] == 4000.0


def test_a_large_common_offset_costs_no_digits():
    task = random_task(12, dtype=torch.float32)
    moved = task.with_features(task.support + 1000.0, task.query + 1000.0)
    exact = TaskBatch(moved.support.double(), task.support_labels, moved.query.double(), task.n_classes)
    a = fewshot.solve("paddle", moved, max_iter=5, tol=0.0)
    b = fewshot.solve("paddle", exact, max_iter=5, tol=0.0)
    torch.testing.assert_close(a.log_assignments.exp().double(), b.log_assignments.exp(), atol=2e-3, rtol=0)


def test_a_class_that_lost_everything_comes_back():
    """Class 1 loses nearly all at first, then class 0 walks away and leaves it the three queries near by."""
    query = torch.cat([torch.full((20, 1), -20.0), torch.full((3, 1), 3.0)]).double()
    task = TaskBatch.single(torch.tensor([[0.0], [10.0]]).double(), [0, 1], query, n_classes=2)
    ordinary = random_task(3, n_tasks=1, n_classes=2, n_query=23, dim=1, n_present=1)
    for posed, row in ((task, 0), (TaskBatch.pad([ordinary, task, ordinary]), 1)):
        solution = fewshot.solve("paddle", posed)
        assert solution.predictions[row, :23].tolist() == [0] * 20 + [1] * 3


def trajectory(task: TaskBatch, floor: float, n_iter: int):
    """Yield ln U, V and W of every iteration, at λ = |Q|; W in the task's own coordinates."""
    frame = Frame(task)
    space = Space(frame.query, None, frame.support)
    problem = paddle.Problem(space, frame.n_query, torch.ones_like(frame.n_query))
    state = paddle.init(problem)
    for _ in range(n_iter):
        state, u = paddle.step(problem, state, floor)
        yield u.log(), state.dual, frame.placed(state.prototypes)


def residuals(task: TaskBatch, log_u: torch.Tensor, v: torch.Tensor, w: torch.Tensor, floor: float) -> torch.Tensor:
    """How far each task is from the conditions of optimality of (10), in its own terms: the largest of all.

    With μ_n the multiplier of `Σ_k u_nk = 1`, a critical point has `½‖z_n - w_k‖² - (λ/|Q|) v_k + ln u_nk + 1 = μ_n`
    for every class, `e^(v_k - 1) = û_k + ε` and `Σ_{S∪Q} u_nk (w_k - z_n) = 0`. A class with v = -∞ has left (10), and
    only its prototype has a condition. All u of the others are above zero, so no multiplier of `u ≥ 0` is left.
    """
    u = log_u.exp()
    y = torch.nn.functional.one_hot(task.support_labels, task.n_classes).to(u.dtype)
    inside = (v > -torch.inf).unsqueeze(-2)
    halves = 0.5 * torch.cdist(task.query, w, compute_mode="donot_use_mm_for_euclid_dist").square()
    slopes = (halves - v.unsqueeze(-2) + log_u + 1).where(inside, 0)
    of_u = (slopes - (u * slopes).sum(-1, keepdim=True)).where(inside, 0).abs().amax((-2, -1))
    of_v = ((v - 1).exp() - u.mean(-2) - floor).abs().amax(-1)
    of_w = u.mT @ task.query + y.mT @ task.support - (u.sum(-2) + y.sum(-2)).unsqueeze(-1) * w
    of_rows = (u.sum(-1) - 1).abs().amax(-1)
    return torch.stack([of_u, of_v, of_w.abs().amax((-2, -1)), of_rows]).amax(0)


# Rounding of sums of a few hundred in double precision.
ROUNDING = 1e-11


@pytest.mark.parametrize("floor", [1e-6, 0.0])
def test_proposition_1_iterates_are_bounded_and_end_at_critical_points(floor):
    """With the ε > 0 of its proof; at ε = 0, as in Algorithm 1, U and W are, and V of classes that are not lost."""
    task = random_task(2022, n_tasks=200, spread=2.0)
    points = torch.cat([task.support, task.query], 1)
    low, high = points.amin(1, keepdim=True) - ROUNDING, points.amax(1, keepdim=True) + ROUNDING
    found = []
    for log_u, v, w in trajectory(task, floor, 400):
        assert (log_u.exp().sum(-1) - 1).abs().max() < ROUNDING
        assert v.max() <= 1 + np.log1p(floor) + ROUNDING
        if floor > 0:
            assert v.min() >= 1 + np.log(floor)
        assert ((w >= low) & (w <= high)).all()
        found.append((log_u, v, w))
    first, last = (residuals(task, *found[n], floor) for n in (0, -1))
    assert first.min() > 1
    assert last.max() < ROUNDING
    assert bool((v == -torch.inf).any()) == (floor == 0)
