"""TaskBatch: many few-shot problems at once. It has no query labels, so no method can see them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, SupportsIndex, TypeAlias

import numpy.typing as npt
import torch
from torch import Tensor

from handful.arguments import whole
from handful.errors import TaskError
from handful.shapes import Bool, Float, Int

Array: TypeAlias = Tensor | npt.NDArray[Any]
NARROW_INTEGERS = (torch.int8, torch.int16, torch.int32, torch.uint8)
# Axes of each array, its types, and what a wrong type should be.
FLOATS = (torch.float32, torch.float64), "float32 or float64", "convert it, for instance with .float()"
MASK = (torch.bool,), "boolean, True where a row is real", "compare it with 0"
ENCODE = "encode them first, for instance with numpy.unique(labels, return_inverse=True)"
ARRAYS = {
    "query": (("task", "query", "dim"), *FLOATS),
    "support": (("task", "support", "dim"), *FLOATS),
    "support_labels": (("task", "support"), (torch.int64,), "integers 0 … n_classes-1", ENCODE),
    "support_mask": (("task", "support"), *MASK),
    "query_mask": (("task", "query"), *MASK),
    "names": (("task", "class", "dim"), *FLOATS),
}
# Arrays that tasks may share, with a task axis of length one.
SHARED = ("support", "support_labels", "support_mask", "names")
# Numbers of the tasks that are solved together: what a block reads again at every step should stay in the cache.
BLOCK_NUMBERS = 2_000_000


@dataclass(frozen=True, eq=False, init=False)
class TaskBatch:
    """Labelled support and unlabelled query of independent tasks, stacked along a leading task axis.

    NumPy arrays are accepted and become tensors that share their memory. Tasks of unequal size are padded and masked,
    see `TaskBatch.pad`. A support that all tasks share has a task axis of length one.

    Attributes
    ----------
    support : Float[Tensor, "#task support dim"]
        Features of the labelled examples.
    support_labels : Int[Tensor, "#task support"]
        Their classes, 0 … n_classes-1; every class must occur in every task.
    query : Float[Tensor, "task query dim"]
        Features of the batch to label.
    n_classes : int
        K, the same for all tasks.
    support_mask, query_mask : Bool[Tensor, "#task support"], Bool[Tensor, "task query"], optional
        False where a row is padding; None if there is no padding.
    names : Float[Tensor, "#task class dim"], optional
        Vectors of the names of the classes, in the space of the features; for a network of images and texts, those of
        its texts. A method without use for them ignores them. A transform maps them like the features.
    check : bool
        Whether to check values (finite, labels in range, no empty class) as well as shapes. This reads all values
        once; turn it off only if they have been checked already.

    Examples
    --------
    >>> task = TaskBatch.single([[0.0, 0.0], [4.0, 4.0]], [0, 1], [[1.0, 0.0], [3.0, 4.0]], n_classes=2)
    >>> task.n_tasks, task.n_query.tolist(), task.dim
    (1, [2], 2)
    """

    support: Float[Tensor, "#task support dim"]
    support_labels: Int[Tensor, "#task support"]
    query: Float[Tensor, "task query dim"]
    n_classes: int
    support_mask: Bool[Tensor, "#task support"] | None
    query_mask: Bool[Tensor, "task query"] | None
    names: Float[Tensor, "#task class dim"] | None

    def __init__(
        self,
        support: Array,
        support_labels: Array,
        query: Array,
        n_classes: SupportsIndex,
        support_mask: Array | None = None,
        query_mask: Array | None = None,
        names: Array | None = None,
        *,
        check: bool = True,
    ) -> None:
        labels = _tensor("support_labels", support_labels)
        fields = {
            "support": _tensor("support", support),
            "support_labels": labels.long() if labels.dtype in NARROW_INTEGERS else labels,
            "query": _tensor("query", query),
            "n_classes": whole("n_classes", n_classes, least=1, error=TaskError),
            "support_mask": None if support_mask is None else _tensor("support_mask", support_mask),
            "query_mask": None if query_mask is None else _tensor("query_mask", query_mask),
            "names": None if names is None else _tensor("names", names),
        }
        for name, value in fields.items():
            object.__setattr__(self, name, value)
        _check_shapes(self)
        if check:
            _check_values(self)

    @classmethod
    def single(
        cls, support: Any, support_labels: Any, query: Any, n_classes: SupportsIndex, names: Any = None
    ) -> TaskBatch:
        """Build one task: support [support, dim], labels [support], query [query, dim]; arrays, lists or tensors.

        Names, if there are any, are [class, dim].
        """
        labels = _tensor("support_labels", support_labels)
        of_classes = None if names is None else _tensor("names", names)[None]
        return cls(
            _tensor("support", support)[None],
            labels[None],
            _tensor("query", query)[None],
            n_classes,
            names=of_classes,
        )

    @classmethod
    def pad(cls, tasks: Sequence[TaskBatch]) -> TaskBatch:
        """Stack tasks of unequal size; the shorter ones are padded with zeros and masked."""
        if not tasks:
            raise TaskError("there is no task to stack; give at least one")
        if len({(t.n_classes, t.dim) for t in tasks}) != 1:
            raise TaskError(
                "tasks in one batch must agree in n_classes and dim, got "
                f"n_classes {sorted({t.n_classes for t in tasks})} and dim {sorted({t.dim for t in tasks})}; "
                "solve them in separate batches"
            )
        named = [t.names for t in tasks if t.names is not None]
        if 0 < len(named) < len(tasks):
            raise TaskError(
                f"{len(named)} of {len(tasks)} tasks have names of their classes; give names to all of them or to none"
            )
        n_support = max(t.support_slots for t in tasks)
        n_query = max(t.query_slots for t in tasks)

        def stacked(length: int, arrays: list[Tensor]) -> Tensor:
            """Add rows of zeros, and copy a support that tasks share."""
            rows = [torch.cat([a, a.new_zeros(len(a), length - a.shape[1], *a.shape[2:])], 1) for a in arrays]
            return torch.cat([a.expand(t.n_tasks, *a.shape[1:]) for a, t in zip(rows, tasks, strict=True)])

        return cls(
            stacked(n_support, [t.support for t in tasks]),
            stacked(n_support, [t.support_labels for t in tasks]),
            stacked(n_query, [t.query for t in tasks]),
            tasks[0].n_classes,
            stacked(n_support, [t.present("support") for t in tasks]),
            stacked(n_query, [t.present("query") for t in tasks]),
            stacked(tasks[0].n_classes, named) if named else None,
            check=False,
        )

    @property
    def n_tasks(self) -> int:
        """Number of tasks in the batch."""
        return len(self.query)

    @property
    def dim(self) -> int:
        """Length of a feature vector."""
        return self.query.shape[-1]

    @property
    def dtype(self) -> torch.dtype:
        """Type of the features."""
        return self.query.dtype

    @property
    def device(self) -> torch.device:
        """Device of the features."""
        return self.query.device

    @property
    def support_slots(self) -> int:
        """Number of rows of the support, including padding."""
        return self.support.shape[1]

    @property
    def query_slots(self) -> int:
        """Number of rows of the query, including padding."""
        return self.query.shape[1]

    @property
    def n_query(self) -> Int[Tensor, "task"]:
        """|Q| of each task, without padding."""
        return self.present("query").sum(-1)

    @cached_property
    def magnitude(self) -> Float[Tensor, "task"]:
        """Length of the longest vector of each task, of support and query; its largest number if squares underflow."""

        def longest(name: str) -> Float[Tensor, "#task"]:
            lengths = torch.linalg.vector_norm(getattr(self, name), dim=-1).where(self.present(name), 0).amax(-1)
            return lengths if bool((lengths > 0).all()) else self.zeroed(name).abs().amax((-2, -1))

        return torch.maximum(longest("support"), longest("query"))

    def present(self, name: str) -> Bool[Tensor, "#task row"]:
        """Return True where a row of `support` or `query` is real, and not padding."""
        mask: Tensor | None = getattr(self, f"{name}_mask")
        shape = getattr(self, name).shape[:2]
        return torch.ones(shape, dtype=torch.bool, device=self.device) if mask is None else mask

    def zeroed(self, name: str) -> Float[Tensor, "#task row dim"]:
        """`support` or `query`, with zeros instead of padding."""
        points: Tensor = getattr(self, name)
        mask: Tensor | None = getattr(self, f"{name}_mask")
        return points if mask is None else points.where(mask.unsqueeze(-1), 0)

    @property
    def targets(self) -> Float[Tensor, "#task support class"]:
        """`y_nk`: one where row n of the support belongs to class k, and zero elsewhere and for padding."""
        real = self.present("support")
        one_hot = torch.nn.functional.one_hot(self.support_labels.where(real, 0), self.n_classes)
        return one_hot.to(self.dtype) * real.unsqueeze(-1)

    def blocks(self, numbers: int, most: int | None = None) -> Iterator[TaskBatch]:
        """Cut the batch into blocks that fit the cache: at most `most` numbers, at `numbers` each task."""
        size = max(1, (most or BLOCK_NUMBERS) // numbers)
        return (self.select(slice(first, first + size)) for first in range(0, self.n_tasks, size))

    def select(self, rows: Tensor | slice) -> TaskBatch:
        """Return the chosen tasks; arrays that all tasks share stay shared."""

        def part(value: Tensor | None) -> Any:
            return value if value is None or (len(value) == 1 and self.n_tasks > 1) else value[rows]

        return TaskBatch(
            part(self.support),
            part(self.support_labels),
            self.query[rows],
            self.n_classes,
            part(self.support_mask),
            part(self.query_mask),
            part(self.names),
            check=False,
        )

    def to(self, device: torch.device | str) -> TaskBatch:
        """Return the tasks on a device."""
        arrays = {name: getattr(self, name) for name in ARRAYS}
        moved: dict[str, Any] = {name: None if value is None else value.to(device) for name, value in arrays.items()}
        return TaskBatch(n_classes=self.n_classes, check=False, **moved)

    def with_features(self, support: Tensor, query: Tensor, names: Tensor | None = None) -> TaskBatch:
        """Return the same tasks with other features, and with these names or none; used by transforms."""
        return TaskBatch(
            support, self.support_labels, query, self.n_classes, self.support_mask, self.query_mask, names, check=False
        )

    def mapped(self, function: Callable[[Tensor], Tensor]) -> TaskBatch:
        """Return the same tasks with a function applied to support, query and names."""
        names = None if self.names is None else function(self.names)
        return self.with_features(function(self.support), function(self.query), names)


def _tensor(name: str, value: Any) -> Tensor:
    try:
        return torch.as_tensor(value)
    except (TypeError, ValueError, RuntimeError) as error:
        raise TaskError(
            f"{name} must be a tensor or a NumPy array of numbers, got {type(value).__name__} ({error}); "
            "convert it with numpy.asarray(..., dtype='float32') first"
        ) from error


def _check_shapes(task: TaskBatch) -> None:
    """Refuse wrong axes and dtypes; this check is cheap and never skipped."""
    sizes: dict[str, tuple[int, str]] = {"class": (task.n_classes, "n_classes")}
    for name, (axes, dtypes, expected, advice) in ARRAYS.items():
        value: Tensor | None = getattr(task, name)
        if value is None:
            continue
        if value.ndim != len(axes):
            raise TaskError(
                f"{name} must have the axes ({', '.join(axes)}), got shape {tuple(value.shape)}; "
                "for a single task use TaskBatch.single(...), without the first axis"
            )
        if value.dtype not in dtypes:
            raise TaskError(f"{name} must be {expected}, got {value.dtype}; {advice}")
        for axis, size in zip(axes, value.shape, strict=True):
            if size == 0:
                raise TaskError(
                    f"axis '{axis}' of {name} is empty (shape {tuple(value.shape)}); give at least one entry"
                )
            if axis == "task" and size == 1 and name in SHARED:
                continue  # shared by all tasks
            other, owner = sizes.setdefault(axis, (size, name))
            if size != other:
                hint = "; a support or names that all tasks share have length 1" if axis == "task" else ""
                raise TaskError(
                    f"axis '{axis}' has length {other} in {owner} but {size} in {name}: make them equal{hint}"
                )
    for name in ("support", "names"):
        value = getattr(task, name)
        if value is not None and value.dtype != task.query.dtype:
            raise TaskError(
                f"{name} is {value.dtype} but query is {task.query.dtype}; convert one to the other's dtype"
            )


def _check_values(task: TaskBatch) -> None:
    """Refuse values that no method can use: not finite, labels out of range, a class or a query without rows."""
    for name in ("support", "query"):
        _check_finite(name, getattr(task, name), task.present(name))
    if task.names is not None:
        _check_finite("names", task.names, torch.ones_like(task.names[..., 0], dtype=torch.bool))
    real = task.present("support")
    labels = task.support_labels
    wrong = real & ((labels < 0) | (labels >= task.n_classes))
    if bool(wrong.any()):
        t, row = wrong.nonzero()[0].tolist()
        raise TaskError(
            f"support_labels must lie in 0 … {task.n_classes - 1} (n_classes={task.n_classes}), got "
            f"{int(labels[t, row])} at task {t}, row {row}; renumber the labels or raise n_classes"
        )
    counts = torch.zeros(len(labels), task.n_classes, dtype=torch.int64, device=labels.device)
    counts.scatter_add_(1, labels.where(real, 0), real.long().expand_as(labels))
    if bool((counts == 0).any()):
        t, k = (counts == 0).nonzero()[0].tolist()
        raise TaskError(
            f"every class needs at least one support example, but class {k} has none in task {t}; "
            "add an example, or drop the class and renumber the others"
        )
    if task.query_mask is not None and not bool(task.query_mask.any(-1).all()):
        t = int((~task.query_mask.any(-1)).nonzero()[0])
        raise TaskError(f"query_mask leaves task {t} without any query; drop that task")


def _check_finite(name: str, values: Tensor, real: Tensor) -> None:
    # A sum is finite only if its terms are. This one cheap pass covers the common case; the search runs only if needed.
    if bool(values.sum().isfinite()):
        return
    bad = real & ~values.isfinite().all(-1)
    if bool(bad.any()):
        t, row = bad.nonzero()[0].tolist()
        raise TaskError(
            f"{name} has {int(bad.sum())} row(s) with NaN or infinity, the first at task {t}, row {row}; "
            "drop or impute these rows"
        )
