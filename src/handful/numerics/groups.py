"""Groups: tasks that need about the same number of columns are put together, across blocks.

A block of tasks fits the cache while arrays have one column per class. Once few columns are left, one block is too
little work for a call into the array library. The tasks of all blocks then continue in groups of equal width.
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

# Allowed numbers of columns, apart from all of them; a short list lets tasks of several blocks share a group.
WIDTHS = (8, 16, 32, 64)


@dataclass(frozen=True)
class Part(Generic[AnyProblem, AnyState]):
    """Tasks of one block or of one group."""

    problem: AnyProblem
    state: AnyState
    needs: Int[Tensor, "task"]  # columns that each task needs at least


def width_for(need: int, n_columns: int) -> int:
    """Return the smallest of `WIDTHS` that is enough, or all columns."""
    return next((width for width in WIDTHS if need <= width < n_columns), n_columns)


def joined(
    blocks: list[Part[AnyProblem, AnyState]],
    restrict: Callable[[AnyProblem, AnyState, int], tuple[AnyProblem, AnyState]],
) -> list[tuple[Int[Tensor, "task"], AnyProblem, AnyState]]:
    """Put tasks of equal width together, with their positions in the sequence of all blocks.

    `restrict(problem, state, width)` keeps the `width` columns that matter most, or all columns if there are fewer.
    A block has at least as many columns as `width_for` gives for each of its tasks.
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
