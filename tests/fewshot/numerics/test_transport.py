"""Sinkhorn against POT, its marginals, and its independence of neighbours and of the start."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from handful_fewshot.numerics.transport import sinkhorn


def posed(seed: int, n_tasks: int = 3, n_points: int = 12, n_classes: int = 4, scale: float = 5.0):
    generator = torch.Generator().manual_seed(seed)
    cost = scale * torch.rand(n_tasks, n_points, n_classes, dtype=torch.float64, generator=generator)
    rows = 0.5 + torch.rand(n_tasks, n_points, dtype=torch.float64, generator=generator)
    columns = 0.5 + torch.rand(n_tasks, n_classes, dtype=torch.float64, generator=generator)
    return cost, rows, columns * (rows.sum(-1) / columns.sum(-1)).unsqueeze(-1)


@given(seed=st.integers(0, 1000))
def test_it_is_pots_plan(seed):
    ot = pytest.importorskip("ot")
    cost, rows, columns = posed(seed)
    found = sinkhorn(cost, rows, columns, tol=1e-13, max_iter=5000)
    assert (found.row_error <= 1e-13).all()
    for t in range(3):
        theirs = ot.sinkhorn(rows[t], columns[t], cost[t], reg=1.0, method="sinkhorn_log", stopThr=1e-14)
        torch.testing.assert_close(found.log_plan[t].exp(), theirs, atol=1e-10, rtol=1e-8)


def test_each_problem_stops_on_its_own():
    easy, hard = posed(2, n_tasks=1, scale=0.1), posed(3, n_tasks=1, scale=30.0)
    together = sinkhorn(*(torch.cat(pair) for pair in zip(easy, hard, strict=True)))
    for t, problem in enumerate((easy, hard)):
        alone = sinkhorn(*problem)
        torch.testing.assert_close(alone.row_error[0], together.row_error[t])
        torch.testing.assert_close(alone.log_plan[0], together.log_plan[t])


def test_a_row_of_zero_mass_takes_no_part():
    cost, rows, columns = posed(4)
    padded_cost = torch.cat([cost, torch.zeros_like(cost[:, :2])], 1)
    padded_rows = torch.cat([rows, torch.zeros_like(rows[:, :2])], 1)
    padded = sinkhorn(padded_cost, padded_rows, columns)
    torch.testing.assert_close(padded.log_plan[:, :-2], sinkhorn(cost, rows, columns).log_plan)
    assert padded.log_plan[:, -2:].isneginf().all()
