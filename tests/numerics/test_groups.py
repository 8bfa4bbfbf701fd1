"""Groups: every task once, beside others of its width, with the columns it needs."""

from dataclasses import dataclass

import pytest
import torch
from torch import Tensor

from handful.numerics.groups import WIDTHS, Part, joined, width_for


@dataclass(frozen=True)
class Columns:
    """One number per task and column."""

    values: Tensor


def restrict(problem: Columns, state: Columns, width: int) -> tuple[Columns, Columns]:
    kept = state.values.topk(min(width, state.values.shape[-1])).indices.sort().values
    return Columns(problem.values.gather(-1, kept)), Columns(state.values.gather(-1, kept))


def block(needs: list[int], n_columns: int, first: float) -> Part[Columns, Columns]:
    """Tasks whose first columns matter; the problem's numbers say which task it is."""
    state = torch.stack([(torch.arange(n_columns) < need) * (n_columns - torch.arange(n_columns)) for need in needs])
    names = (first + torch.arange(len(needs))).unsqueeze(-1).expand(-1, n_columns)
    return Part(Columns(names), Columns(state.float()), torch.tensor(needs))


def test_tasks_of_several_blocks_meet_by_width():
    groups = joined([block([3, 90, 12], 160, 0), block([5, 9], 32, 3)], restrict)
    found = {state.values.shape[-1]: (rows.tolist(), problem.values[:, 0].tolist()) for rows, problem, state in groups}
    assert found == {8: ([0, 3], [0.0, 3.0]), 16: ([2, 4], [2.0, 4.0]), 160: ([1], [1.0])}


def test_nothing_that_matters_is_cut_off():
    needs = [1, 8, 9, 16, 17, 64, 65, 100]
    for rows, _, state in joined([block(needs, 100, 0)], restrict):
        assert ((state.values > 0).sum(-1) == torch.tensor(needs)[rows]).all()


@pytest.mark.parametrize(
    ("need", "n_columns", "width"), [(1, 100, 8), (8, 100, 8), (9, 100, 16), (65, 100, 100), (5, 6, 6)]
)
def test_the_smallest_width_that_is_enough(need, n_columns, width):
    assert width_for(need, n_columns) == width
    assert sorted(WIDTHS) == list(WIDTHS)
