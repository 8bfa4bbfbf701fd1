"""Feature transforms, each under its own name: pure functions from a TaskBatch to a TaskBatch.

No method transforms features by itself. What a published result applied is named in `METHODS[...].transform`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

import torch
from torch import Tensor

from handful.errors import UnknownNameError
from handful.shapes import Float
from handful.task import TaskBatch


def raw(task: TaskBatch) -> TaskBatch:
    """Leave features as they are."""
    return task


def l2(task: TaskBatch) -> TaskBatch:
    """`z ← z / ‖z‖`; a zero vector stays zero."""
    return task.with_features(_unit(task.support), _unit(task.query))


def range_scale(task: TaskBatch) -> TaskBatch:
    """`z_j ← (z_j - min_Q z_j) / (max_Q z_j - min_Q z_j)`: each dimension by its range over the task's query."""
    low, width = _query_range(task)
    return task.with_features((task.support - low) / width, (task.query - low) / width)


def range_scale_public_code(task: TaskBatch) -> TaskBatch:
    """`z_j ← z_j / (max_Q z_j - min_Q z_j) - min_Q z_j`: the scaling in PADDLE's public code, slip included.

    The minimum is subtracted unscaled, so the result is `range_scale` moved by a constant vector per task. Methods
    that see only differences of features answer the same; reported prototypes differ by that vector.
    """
    low, width = _query_range(task)
    return task.with_features(task.support / width - low, task.query / width - low)


TRANSFORMS: Mapping[str, Callable[[TaskBatch], TaskBatch]] = MappingProxyType(
    {
        "raw": raw,
        "l2": l2,
        "range_scale": range_scale,
        "range_scale_public_code": range_scale_public_code,
    }
)


def transform(name: str, task: TaskBatch) -> TaskBatch:
    """Apply the transform of that name.

    Examples
    --------
    >>> task = TaskBatch.single([[3.0, 4.0]], [0], [[0.0, 2.0]], n_classes=1)
    >>> transform("l2", task).support.tolist()
    [[[0.6000000238418579, 0.800000011920929]]]
    """
    if name not in TRANSFORMS:
        raise UnknownNameError(f"no transform is called {name!r}; there are {', '.join(TRANSFORMS)}")
    return TRANSFORMS[name](task)


def _unit(features: Tensor) -> Tensor:
    return torch.nn.functional.normalize(features, dim=-1, eps=torch.finfo(features.dtype).tiny)


def _query_range(task: TaskBatch) -> tuple[Float[Tensor, "task 1 dim"], Float[Tensor, "task 1 dim"]]:
    """Minimum and width per task and dimension; a width of zero becomes one."""
    query = task.query
    if task.query_mask is None:
        low, high = query.amin(1, keepdim=True), query.amax(1, keepdim=True)
    else:
        real = task.query_mask.unsqueeze(-1)
        low = query.where(real, torch.inf).amin(1, keepdim=True)
        high = query.where(real, -torch.inf).amax(1, keepdim=True)
    width = high - low
    return low, width.where(width > 0, 1)
