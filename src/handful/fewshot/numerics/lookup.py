"""Lookup: points given as rows of a table, read only when they are needed.

A task drawn from a bank is a list of row numbers. Copying all its points in advance costs more than most of what is
done with them: the sum of a class reads every point only once.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from handful.fewshot.numerics.moments import Moments, labelled_moments
from handful.fewshot.rows import magnitudes
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
        """Device of the table."""
        return self.table.device

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, tasks: Tensor | slice) -> Lookup:
        """Return the points of some tasks, without reading them."""
        return Lookup(self.table, self.rows[tasks])

    def read(self) -> Float[Tensor, "task point dim"]:
        """Copy the points out of the table."""
        return self.table.index_select(0, self.rows.reshape(-1)).reshape(self.shape)

    def each(self, function: Callable[[Tensor], Tensor]) -> Lookup:
        """Apply a function of single points, once per row used, even if several tasks use the row."""
        named, places = torch.unique(self.rows, return_inverse=True)
        return Lookup(function(self.table.index_select(0, named)), places)

    def magnitudes(self) -> Float[Tensor, "task point"]:
        """Magnitude of each point; computed on the whole table if that has fewer rows than there are points."""
        if self.rows.numel() < len(self.table):
            return magnitudes(self.read())
        return magnitudes(self.table)[self.rows]

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle only the rows that are used, not the whole table."""
        points = self.read().reshape(-1, self.shape[-1])
        return Lookup, (points, torch.arange(len(points)).reshape(self.rows.shape))


def read(points: Tensor | Lookup) -> Float[Tensor, "task point dim"]:
    """Return points as a tensor, reading them if they are a `Lookup`."""
    return points if isinstance(points, Tensor) else points.read()


def moments_of(
    points: Tensor | Lookup, labels: Int[Tensor, "task point"], mask: Bool[Tensor, "task point"] | None, n_classes: int
) -> Moments:
    """`labelled_moments`; points of a table that are sorted by class are summed while they are read."""
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
    """Whether the labels of every task are sorted."""
    shared = labels[:1] if labels.stride(0) == 0 else labels
    return bool((shared[:, 1:] >= shared[:, :-1]).all())
