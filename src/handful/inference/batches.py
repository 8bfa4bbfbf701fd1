"""What batches are compared with: one set of class means for all, or each batch its own support."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from handful.inference.calibration import NATS_OF_SPREAD, spread_of, squared_scale
from handful.inference.frame import Frame
from handful.inference.joint import typical_shots
from handful.numerics.fixed_point import concatenated, take
from handful.numerics.geometry import FeatureSpace, GramSpace, Space
from handful.numerics.moments import Moments
from handful.shapes import Bool, Float, Int

# Scores computed by one product, so that the means are read from memory once for many items.
PRODUCT_SCORES = 4_000_000


@dataclass(frozen=True, eq=False)
class AgainstOne:
    """All batches against one set of class means, which were calibrated before.

    Attributes
    ----------
    points : Float[Tensor, "task query dim"]
        Items, about the same origin as the means.
    mask : Bool[Tensor, "task query"] or None
        False where a row is padding.
    means, class_shots : Float[Tensor, "class dim"], Float[Tensor, "class"]
        Class means, and how many examples each is the mean of.
    squared_scale : Float[Tensor, "task"]
        c². Where it is not finite, the spread of the batch is used instead of that of the examples.
    """

    points: Float[Tensor, "task query dim"]
    mask: Bool[Tensor, "task query"] | None
    means: Float[Tensor, "class dim"]
    class_shots: Float[Tensor, "class"]
    squared_scale: Float[Tensor, "task"]

    @property
    def n_classes(self) -> int:
        """K."""
        return len(self.means)

    @property
    def n_query(self) -> Float[Tensor, "task"]:
        """|Q| of each batch."""
        if self.mask is None:
            return torch.full_like(self.squared_scale, self.points.shape[1])
        return self.mask.sum(-1, dtype=torch.float64)

    @property
    def shots(self) -> Float[Tensor, "task"]:
        """Typical number of examples of a class."""
        return typical_shots(self.class_shots.double()).expand(len(self.points))

    def scored(self) -> tuple[Float[Tensor, "task query class"], Iterator[slice]]:
        """Return room for the scores, and an iterator that fills it block by block."""
        n_tasks, slots, _ = self.points.shape
        room = self.points.new_empty(n_tasks, slots, self.n_classes)
        return room, self._fill(room)

    def _fill(self, room: Float[Tensor, "task query class"]) -> Iterator[slice]:
        n_tasks, slots, n_classes = room.shape
        size = max(1, PRODUCT_SCORES // (slots * n_classes))
        calibrated = bool(self.squared_scale.isfinite().all())
        offsets = torch.linalg.vector_norm(self.means, dim=-1).square_().mul_(-0.5)
        for start in range(0, n_tasks, size):
            rows = slice(start, start + size)
            torch.addmm(offsets, self.points[rows].flatten(0, 1), self.means.mT, out=room[rows].view(-1, n_classes))
            if not calibrated:
                self.squared_scale[rows] = self._scale_of_spread(rows, room[rows].amax(-1), -2 * offsets.mean())
            yield rows

    def _scale_of_spread(self, rows: slice, highest: Float[Tensor, "block query"], between: Tensor) -> Tensor:
        """c² when no class has two examples, from the distances of the items to their nearest means."""
        nearest = 0.5 * self.points[rows].square().sum(-1) - highest
        mask = None if self.mask is None else self.mask[rows]
        return NATS_OF_SPREAD / spread_of(nearest, mask, self.class_shots.unsqueeze(0), between.unsqueeze(0)).double()

    def nearest(self) -> tuple[Float[Tensor, "task query"], Int[Tensor, "task query"]]:
        """Return the score and the index of the class whose mean is nearest to each item."""
        scores, blocks = self.scored()
        for _ in blocks:
            pass
        best = scores.max(-1)
        return best.values, best.indices

    def select(self, rows: Int[Tensor, "some"]) -> AgainstOne:
        """Return some of the batches."""
        mask = None if self.mask is None else self.mask[rows]
        return replace(self, points=self.points[rows], mask=mask, squared_scale=self.squared_scale[rows])

    def space(self, classes: Int[Tensor, "task column"] | None) -> Space[Any]:
        """Return the space in which prototypes of some classes, or all, move."""
        means, shots = self.means.unsqueeze(0), self.class_shots.unsqueeze(0)
        if classes is not None:
            means, shots = self.means[classes], self.class_shots[classes]
        return FeatureSpace(self.points, self.mask, Moments(shots, means * shots.unsqueeze(-1)), self.n_classes)


class EachItsOwn:
    """Every batch against its own support, which is read and calibrated block by block while batches are scored."""

    def __init__(self, frame: Frame) -> None:
        self._frame, self._space = frame, None
        self.n_classes, self.mask = frame.task.n_classes, frame.query_mask
        self.n_query = frame.task.n_query.double()
        self.squared_scale, self.shots = torch.empty_like(self.n_query), torch.empty_like(self.n_query)

    _space: GramSpace | None

    def scored(self) -> tuple[Float[Tensor, "task query class"], Iterator[slice]]:
        """Return room for the scores, and an iterator that fills it block by block."""
        task = self._frame.task
        room = torch.empty(task.n_tasks, task.query_slots, task.n_classes, dtype=task.dtype, device=task.device)
        return room, self._fill(room)

    def _fill(self, room: Float[Tensor, "task query class"]) -> Iterator[slice]:
        if self._space is not None:
            room.copy_(self._space.scores(self._space.support.mean()))
            yield slice(0, len(room))
            return
        start, spaces = 0, []
        for block in self._frame.blocks():
            rows = slice(start, start + block.task.n_tasks)
            start = rows.stop
            spaces.append(GramSpace.of(block.query, block.query_mask, block.support))
            room[rows] = spaces[-1].scores(spaces[-1].support.mean())
            self.squared_scale[rows] = squared_scale(block).double()
            self.shots[rows] = typical_shots(block.support.mass.double())
            yield rows
        self._space = concatenated(spaces)

    def select(self, rows: Int[Tensor, "some"]) -> EachItsOwn:
        """Return some of the batches, which were scored before."""
        part = object.__new__(EachItsOwn)
        part._frame, part._space = self._frame.select(rows), take(self._space, rows, len(self.n_query))
        part.n_classes, part.mask = self.n_classes, None if self.mask is None else self.mask[rows]
        part.n_query, part.squared_scale, part.shots = self.n_query[rows], self.squared_scale[rows], self.shots[rows]
        return part

    def space(self, classes: Int[Tensor, "task column"] | None) -> Space[Any]:
        """Return the space in which prototypes of some classes, or all, move."""
        assert self._space is not None
        return self._space if classes is None else self._space.restrict(self._space.support.mean(), classes)[0]
