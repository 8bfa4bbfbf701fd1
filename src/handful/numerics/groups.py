"""Groups: tasks that need about equally many columns are put together, whichever block they come from.

A block of tasks fits the cache while arrays have a column a class. Once few columns are left, a call into the array
library has too little to do for one block; the tasks of all blocks go on together, each beside others of its width.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

import torch
from torch import Tensor

from handful.numerics.fixed_point import concatenated, take
from handful.shapes import Int

AnyProblem = TypeVar("AnyProblem")
AnyState = TypeVar("AnyState")

# Columns are kept in one of these numbers, or all: so tasks of several blocks fit together.
WIDTHS = (8, 16, 32, 64)


@dataclass(frozen=True)
class Part(Generic[AnyProblem, AnyState]):
    """Tasks of one block or of one group."""

    problem: AnyProblem
    state: AnyState
    needs: Int[Tensor, "task"]  # columns that each task cannot do without


def width_for(need: int, n_columns: int) -> int:
    """Return the smallest of the widths that is enough, or all columns."""
    return next((width for width in WIDTHS if need <= width < n_columns), n_columns)


def joined(
    blocks: list[Part[AnyProblem, AnyState]],
    restrict: Callable[[AnyProblem, AnyState, int], tuple[AnyProblem, AnyState]],
) -> list[tuple[Int[Tensor, "task"], AnyProblem, AnyState]]:
    """Put tasks of equal width together, with their positions in the row of all blocks.

    `restrict(problem, state, width)` keeps that many columns, those that matter most; it keeps all where these are
    fewer. A block has as many columns as one of its tasks needs, by `width_for`, or more.
    """
    groups: dict[int, list[tuple[Tensor, AnyProblem, AnyState]]] = {}
    first = 0
    for block in blocks:
        n_tasks = len(block.needs)
        ranks = torch.bucketize(block.needs, torch.tensor(WIDTHS, device=block.needs.device))
        for rank in sorted(set(ranks.tolist())):
            members = (ranks == rank).nonzero().squeeze(-1)
            problem, state = block.problem, block.state
            if len(members) < n_tasks:
                problem, state = take(problem, members, n_tasks), take(state, members, n_tasks)
            if rank < len(WIDTHS):
                problem, state = restrict(problem, state, WIDTHS[rank])
            groups.setdefault(rank, []).append((first + members, problem, state))
        first += n_tasks
    return [
        (torch.cat(rows), concatenated(problems), concatenated(states))
        for rows, problems, states in (map(list, zip(*parts, strict=True)) for parts in groups.values())
    ]
