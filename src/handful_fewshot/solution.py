"""Solution: the answer of a method for a batch of tasks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from functools import cached_property, partial
from typing import Any

import torch
from torch import Tensor

from handful.shapes import Bool, Float, Int
from handful_fewshot.errors import UndefinedError
from handful_fewshot.numerics.fixed_point import Trace, concatenated


@dataclass(frozen=True)
class DescriptionLength:
    """The objective in nats, as the sum of two parts: the cost of describing the data, and of the partition."""

    data: Float[Tensor, "task"]
    partition: Float[Tensor, "task"]


@dataclass(frozen=True, eq=False)
class Solution:
    """The joint answer for every query of every task.

    Prototypes and description length of PADDLE are computed on first use: they cost as much as several iterations, and
    most callers only need labels. For this a solution keeps a reference to its task, but no copy of its points. If a
    method has no prototypes or no objective, accessing them raises `UndefinedError`.

    Attributes
    ----------
    log_assignments : Float[Tensor, "task query class"]
        `ln u_nk`; each row sums to one after `exp`. Rows of padded queries are -inf.
    proportions : Float[Tensor, "task class"]
        Share of the query in each class; for a method that rejects, of the part of the query that it does not reject.
    n_iter, converged : Int[Tensor, "task"], Bool[Tensor, "task"]
        Number of iterations of each task, and whether it met the tolerance; always True for methods without one.
    query_mask : Bool[Tensor, "task query"] or None
        As in the task: False where a query is padding.
    trace : Trace or None
        Objective and criterion at each iteration, if the options ask to record them.
    find_prototypes, measure : Tensor or callable, or None
        Prototypes themselves, or functions of `u_nk` that compute prototypes and description length.
    unknown : Float[Tensor, "task query"] or None
        `o_n`, in 0 … 1: how sure the method is that the class of query n is none of the task's; 0 for padding. None for
        a method that cannot reject. `log_assignments` are then given that the query does have one of the classes.

    Examples
    --------
    >>> import handful_fewshot as fewshot
    >>> task = fewshot.TaskBatch.single([[0.0], [9.0]], [0, 1], [[1.0], [0.5], [8.0]], n_classes=2)
    >>> solution = fewshot.solve("paddle", task)
    >>> solution.predictions.tolist(), solution.converged.tolist()
    ([[0, 0, 1]], [True])
    >>> solution.log_assignments.shape, solution.prototypes.shape
    (torch.Size([1, 3, 2]), torch.Size([1, 2, 1]))
    """

    log_assignments: Float[Tensor, "task query class"]
    proportions: Float[Tensor, "task class"]
    n_iter: Int[Tensor, "task"]
    converged: Bool[Tensor, "task"]
    query_mask: Bool[Tensor, "task query"] | None = None
    trace: Trace | None = None
    find_prototypes: Tensor | Callable[[Tensor], Tensor] | None = None
    measure: Callable[[Tensor], DescriptionLength] | None = None
    unknown: Float[Tensor, "task query"] | None = None

    @cached_property
    def predictions(self) -> Int[Tensor, "task query"]:
        """Most probable class of each query; -1 for padding."""
        labels = self.log_assignments.argmax(-1)
        return labels if self.query_mask is None else labels.where(self.query_mask, -1)

    @cached_property
    def prototypes(self) -> Float[Tensor, "task class dim"]:
        """Final prototype of each class, in the coordinates of the task's features."""
        if self.find_prototypes is None:
            raise UndefinedError("the method behind this solution has no prototypes; use log_assignments")
        found = self.find_prototypes
        return found if isinstance(found, Tensor) else found(self.log_assignments.exp())

    @cached_property
    def description_length(self) -> DescriptionLength:
        """Objective at the answer, in two parts."""
        if self.measure is None:
            raise UndefinedError("the method behind this solution has no objective; use log_assignments")
        return self.measure(self.log_assignments.exp())

    @property
    def objective(self) -> Float[Tensor, "task"]:
        """Sum of the two parts of the description length."""
        return self.description_length.data + self.description_length.partition

    @staticmethod
    def join(parts: Sequence[Solution]) -> Solution:
        """Concatenate the solutions of consecutive chunks of tasks, all from the same method and without a trace."""
        if len(parts) == 1:
            return parts[0]
        joined: dict[str, Any] = {}
        sizes = [len(part.n_iter) for part in parts]
        for name in (field.name for field in fields(Solution)):
            values = [getattr(part, name) for part in parts]
            if callable(values[0]):
                joined[name] = partial(_chunk_by_chunk, values, sizes)
            elif values[0] is not None:
                joined[name] = torch.cat(values)
        return Solution(**joined)


def _chunk_by_chunk(functions: list[Callable[[Tensor], Any]], sizes: list[int], weights: Tensor) -> Any:
    return concatenated([function(part) for function, part in zip(functions, torch.split(weights, sizes), strict=True)])
