"""Lookup: points named by their rows in a table, read when they are needed and only as many as are needed.

A task drawn from a bank is a list of row numbers. Copying its points out before anyone has asked for them costs more
than most of what is then done with them: the sum of a class needs every point once and none of them twice.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from handful.numerics.magnitude import magnitudes
from handful.numerics.moments import Moments, labelled_moments
from handful.shapes import Bool, Float, Int


@dataclass(frozen=True, eq=False)
class Lookup:
    """`points[task, n] = table[rows[task, n]]`."""

    table: Float[Tensor, "row dim"]
    rows: Int[Tensor, "task point"]

    @property
    def shape(self) -> torch.Size:
        """Shape of the points: (task, point, dim)."""
        return torch.Size((*self.rows.shape, self.table.shape[-1]))

    @property
    def dtype(self) -> torch.dtype:
        """Type of the numbers."""
        return self.table.dtype

    @property
    def device(self) -> torch.device:
        """Where the table lies."""
        return self.table.device

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, tasks: Tensor | slice) -> Lookup:
        """Return the points of some tasks, still unread."""
        return Lookup(self.table, self.rows[tasks])

    def read(self) -> Float[Tensor, "task point dim"]:
        """Copy the points out of the table."""
        return self.table.index_select(0, self.rows.reshape(-1)).reshape(self.shape)

    def each(self, function: Callable[[Tensor], Tensor]) -> Lookup:
        """Apply a function of single points: once to each row that is named, in however many tasks."""
        named, places = torch.unique(self.rows, return_inverse=True)
        return Lookup(function(self.table.index_select(0, named)), places)

    def magnitudes(self) -> Float[Tensor, "task point"]:
        """How long each point is, from the whole table where that is the smaller."""
        if self.rows.numel() < len(self.table):
            return magnitudes(self.read())
        return magnitudes(self.table)[self.rows]

    def __reduce__(self) -> tuple[Any, ...]:
        """Travel with the rows that are named, not with the whole table."""
        points = self.read().reshape(-1, self.shape[-1])
        return Lookup, (points, torch.arange(len(points)).reshape(self.rows.shape))


def read(points: Tensor | Lookup) -> Float[Tensor, "task point dim"]:
    """Return points as a tensor, whichever way they are given."""
    return points if isinstance(points, Tensor) else points.read()


def rows_of(
    points: Float[Tensor, "task point dim"] | Lookup, positions: Int[Tensor, "task chosen"]
) -> Float[Tensor, "task chosen dim"]:
    """`points[t, positions[t, i]]`, as one copy of whole rows: many times faster than `gather` along that axis."""
    if isinstance(points, Lookup):
        return Lookup(points.table, points.rows.gather(-1, positions)).read()
    n, n_rows, dim = points.shape
    first = n_rows * torch.arange(n, device=positions.device).unsqueeze(-1)
    return Lookup(points.reshape(-1, dim), positions + first).read()


def moments_of(
    points: Tensor | Lookup,
    labels: Int[Tensor, "task point"],
    mask: Bool[Tensor, "task point"] | None,
    n_classes: int,
) -> Moments:
    """`labelled_moments`; points in a table are summed as they are read where they come class by class."""
    if not isinstance(points, Lookup) or mask is not None or not _class_by_class(labels):
        if mask is not None:
            points = read(points).where(mask.unsqueeze(-1), 0)
        return labelled_moments(read(points), labels, mask, n_classes)
    shared = labels[:1] if labels.stride(0) == 0 else labels
    counts = torch.zeros(len(shared), n_classes, dtype=torch.int64, device=labels.device)
    counts = counts.scatter_add_(1, shared, torch.ones_like(shared)).expand(len(points), -1)
    ends = counts.reshape(-1).cumsum(0)
    sums = torch.nn.functional.embedding_bag(
        points.rows.reshape(-1), points.table, ends - counts.reshape(-1), mode="sum"
    )
    return Moments(counts.to(points.dtype), sums.reshape(len(points), n_classes, -1))


def _class_by_class(labels: Int[Tensor, "task point"]) -> bool:
    """Whether the labels of every task increase."""
    shared = labels[:1] if labels.stride(0) == 0 else labels
    return bool((shared[:, 1:] >= shared[:, :-1]).all())
