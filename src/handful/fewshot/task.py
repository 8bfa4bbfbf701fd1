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
from handful.fewshot.numerics.lookup import Lookup
from handful.fewshot.rows import magnitudes
from handful.shapes import Bool, Float, Int

Array: TypeAlias = Tensor | npt.NDArray[Any]
NARROW_INTEGERS = (torch.int8, torch.int16, torch.int32, torch.uint8)
# Numbers of the tasks that are solved together: what a block reads again at every step should stay in the cache.
BLOCK_NUMBERS = 2_000_000


@dataclass(frozen=True, eq=False, init=False)
class TaskBatch:
    """Labelled support and unlabelled query of independent tasks, stacked along a leading task axis.

    NumPy arrays are accepted and become tensors that share their memory. Points given as rows of a table (`Lookup`, as
    `gather` returns them) are copied when `support` or `query` is first used. Tasks of unequal size are padded and
    masked, see `TaskBatch.pad`. A support that all tasks share has a task axis of length one.

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

    def __init__(
        self,
        support: Array | Lookup,
        support_labels: Array,
        query: Array | Lookup,
        n_classes: SupportsIndex,
        support_mask: Array | None = None,
        query_mask: Array | None = None,
        *,
        check: bool = True,
    ) -> None:
        labels = _tensor("support_labels", support_labels)
        fields = {
            _unread("support") if isinstance(support, Lookup) else "support": _points("support", support),
            "support_labels": labels.long() if labels.dtype in NARROW_INTEGERS else labels,
            _unread("query") if isinstance(query, Lookup) else "query": _points("query", query),
            "n_classes": whole("n_classes", n_classes, least=1, error=TaskError),
            "support_mask": None if support_mask is None else _tensor("support_mask", support_mask),
            "query_mask": None if query_mask is None else _tensor("query_mask", query_mask),
        }
        for name, value in fields.items():
            object.__setattr__(self, name, value)
        _check_shapes(self)
        if check:
            _check_values(self)

    @classmethod
    def single(cls, support: Any, support_labels: Any, query: Any, n_classes: SupportsIndex) -> TaskBatch:
        """Build one task: support [support, dim], labels [support], query [query, dim]; arrays, lists or tensors."""
        arrays = [
            _tensor(*pair) for pair in (("support", support), ("support_labels", support_labels), ("query", query))
        ]
        for array, name, axes in zip(arrays, ("support", "support_labels", "query"), (2, 1, 2), strict=True):
            if array.ndim != axes:
                raise TaskError(
                    f"{name} of a single task must have {axes} axes, got shape {tuple(array.shape)}; "
                    "for several tasks at once call TaskBatch itself"
                )
        return cls(arrays[0][None], arrays[1][None], arrays[2][None], n_classes)

    @classmethod
    def pad(cls, tasks: Sequence[TaskBatch]) -> TaskBatch:
        """Stack tasks of unequal size; the shorter ones are padded with zeros and masked."""
        if not tasks:
            raise TaskError("there is no task to stack; give at least one")
        if len({t.n_classes for t in tasks}) != 1 or len({t.dim for t in tasks}) != 1:
            raise TaskError(
                "tasks in one batch must agree in n_classes and dim, got "
                f"n_classes {sorted({t.n_classes for t in tasks})} and dim {sorted({t.dim for t in tasks})}; "
                "solve them in separate batches"
            )
        n_support, n_query = (max(t.support.shape[1] for t in tasks), max(t.query.shape[1] for t in tasks))
        wide = [t._widened(n_support, n_query) for t in tasks]
        return cls(
            torch.cat([t.support for t in wide]),
            torch.cat([t.support_labels for t in wide]),
            torch.cat([t.query for t in wide]),
            tasks[0].n_classes,
            torch.cat([t.present("support") for t in wide]),
            torch.cat([t.present("query") for t in wide]),
            check=False,
        )

    def __getattr__(self, name: str) -> Tensor:
        """Read the support or the query on first use; Python calls this only for attributes that are not set."""
        unread = self.__dict__.get(_unread(name))
        if unread is None:
            raise AttributeError(f"{type(self).__name__} has no attribute {name!r}")
        points: Tensor = unread.read()
        self.__dict__[name] = points
        return points

    def source(self, name: str) -> Tensor | Lookup:
        """`support` or `query`; an unread `Lookup` is returned as it is."""
        points: Tensor | Lookup | None = self.__dict__.get(name)
        return self.__dict__[_unread(name)] if points is None else points

    def unread(self) -> TaskBatch:
        """Return the same tasks without the copies of points that were read out of a table."""
        return self.with_features(
            *(self.__dict__.get(_unread(name), self.source(name)) for name in ("support", "query"))
        )

    @property
    def n_tasks(self) -> int:
        """Number of tasks in the batch."""
        return len(self.source("query"))

    @property
    def dim(self) -> int:
        """Length of a feature vector."""
        return self.source("query").shape[-1]

    @property
    def dtype(self) -> torch.dtype:
        """Type of the features."""
        return self.source("query").dtype

    @property
    def device(self) -> torch.device:
        """Device of the features."""
        return self.source("query").device

    @property
    def support_slots(self) -> int:
        """Number of rows of the support, including padding."""
        return self.support_labels.shape[1]

    @property
    def query_slots(self) -> int:
        """Number of rows of the query, including padding."""
        return self.source("query").shape[1]

    @property
    def n_query(self) -> Int[Tensor, "task"]:
        """|Q| of each task, without padding."""
        if self.query_mask is None:
            return torch.full((self.n_tasks,), self.query_slots, device=self.device)
        return self.query_mask.sum(-1)

    @cached_property
    def magnitude(self) -> Float[Tensor, "task"]:
        """Length of the longest vector of each task, over support and query, without padding.

        If squares do not fit the dtype, it is the largest absolute value in the vector, so it is never infinite.
        """
        of_sets = []
        for name, mask in (("support", self.support_mask), ("query", self.query_mask)):
            points = self.source(name)
            of_points = points.magnitudes() if isinstance(points, Lookup) else magnitudes(points)
            of_sets.append((of_points if mask is None else of_points.where(mask, 0)).amax(-1))
        return torch.maximum(*of_sets)

    def present(self, name: str) -> Bool[Tensor, "#task row"]:
        """Return True where a row of `support` or `query` is real, and not padding."""
        mask: Tensor | None = getattr(self, f"{name}_mask")
        return torch.ones(self.source(name).shape[:2], dtype=torch.bool, device=self.device) if mask is None else mask

    def zeroed(self, name: str) -> Float[Tensor, "#task row dim"]:
        """`support` or `query`, with zeros instead of padding."""
        points: Tensor = getattr(self, name)
        mask: Tensor | None = getattr(self, f"{name}_mask")
        return points if mask is None else points.where(mask.unsqueeze(-1), 0)

    def blocks(self, numbers: int, most: int | None = None) -> Iterator[TaskBatch]:
        """Cut the batch into blocks that fit the cache: at most `most` numbers, at `numbers` each task."""
        size = max(1, (most or BLOCK_NUMBERS) // numbers)
        return (self.select(slice(first, first + size)) for first in range(0, self.n_tasks, size))

    def select(self, rows: Tensor | slice) -> TaskBatch:
        """Return the chosen tasks; arrays that all tasks share stay shared."""

        def part(value: Tensor | Lookup | None) -> Any:
            return value if value is None or (len(value) == 1 and self.n_tasks > 1) else value[rows]

        return TaskBatch(
            part(self.source("support")),
            part(self.support_labels),
            self.source("query")[rows],
            self.n_classes,
            part(self.support_mask),
            part(self.query_mask),
            check=False,
        )

    def each_point(self, function: Callable[[Tensor], Tensor]) -> TaskBatch:
        """Return the same tasks after applying a function of single points; a `Lookup` stays a `Lookup`."""
        support, query = (
            points.each(function) if isinstance(points, Lookup) else function(points)
            for points in (self.source("support"), self.source("query"))
        )
        return self.with_features(support, query)

    def with_features(self, support: Tensor | Lookup, query: Tensor | Lookup) -> TaskBatch:
        """Return the same tasks with other features; used by transforms."""
        return TaskBatch(
            support, self.support_labels, query, self.n_classes, self.support_mask, self.query_mask, check=False
        )

    def _widened(self, n_support: int, n_query: int) -> TaskBatch:
        """Pad every task to the given sizes, and give each its own support."""
        n, extra_s, extra_q = self.n_tasks, n_support - self.support.shape[1], n_query - self.query.shape[1]
        pad = torch.nn.functional.pad
        return TaskBatch(
            pad(self.support, (0, 0, 0, extra_s)).expand(n, -1, -1),
            pad(self.support_labels, (0, extra_s)).expand(n, -1),
            pad(self.query, (0, 0, 0, extra_q)),
            self.n_classes,
            pad(self.present("support"), (0, extra_s)).expand(n, -1),
            pad(self.present("query"), (0, extra_q)),
            check=False,
        )


def _tensor(name: str, value: Any) -> Tensor:
    try:
        return torch.as_tensor(value)
    except (TypeError, ValueError, RuntimeError) as error:
        raise TaskError(
            f"{name} must be a tensor or a NumPy array of numbers, got {type(value).__name__} ({error}); "
            "convert it with numpy.asarray(..., dtype='float32') first"
        ) from error


def _points(name: str, value: Any) -> Tensor | Lookup:
    return value if isinstance(value, Lookup) else _tensor(name, value)


def _unread(name: str) -> str:
    """Name of the attribute that holds points that have not been read yet."""
    return f"_unread_{name}"


def _check_shapes(task: TaskBatch) -> None:
    """Refuse wrong axes and dtypes; this check is cheap and never skipped."""
    expected = {
        "support": ("task", "support", "dim"),
        "support_labels": ("task", "support"),
        "query": ("task", "query", "dim"),
        "support_mask": ("task", "support"),
        "query_mask": ("task", "query"),
    }
    points = ("support", "query")
    arrays = {name: task.source(name) if name in points else getattr(task, name) for name in expected}
    present = {name: axes for name, axes in expected.items() if arrays[name] is not None}
    for name, axes in present.items():
        shape = tuple(arrays[name].shape)
        if len(shape) != len(axes):
            raise TaskError(
                f"{name} must have the axes ({', '.join(axes)}), got shape {shape}; "
                "for a single task use TaskBatch.single(...)"
            )
    sizes: dict[str, tuple[int, str]] = {}
    n_tasks = task.n_tasks
    for name, axes in present.items():
        value = arrays[name]
        for axis, size in zip(axes, value.shape, strict=True):
            if axis == "task" and size == 1 and not name.startswith("query"):
                continue  # shared by all tasks
            if axis == "task" and size != n_tasks:
                raise TaskError(
                    f"axis 'task' of {name} has length {size} but query has {n_tasks} tasks; "
                    "give one entry per task, or a task axis of length 1 to share the support"
                )
            other, owner = sizes.setdefault(axis, (size, name))
            if size != other:
                raise TaskError(
                    f"axis '{axis}' has length {other} in {owner} but {size} in {name}; they must agree "
                    f"({owner} {tuple(arrays[owner].shape)}, {name} {tuple(value.shape)})"
                )
    for name in points:
        dtype = arrays[name].dtype
        if dtype not in (torch.float32, torch.float64):
            raise TaskError(f"{name} must be float32 or float64, got {dtype}; convert it, for instance with .float()")
    if arrays["support"].dtype != arrays["query"].dtype:
        raise TaskError(
            f"support is {arrays['support'].dtype} but query is {arrays['query'].dtype}; "
            "convert one to the other's dtype"
        )
    if task.support_labels.dtype != torch.int64:
        raise TaskError(
            f"support_labels must be integers 0 … n_classes-1, got {task.support_labels.dtype}; "
            "encode them first, for instance with numpy.unique(labels, return_inverse=True)"
        )
    for name in ("support_mask", "query_mask"):
        if name in present and getattr(task, name).dtype != torch.bool:
            raise TaskError(f"{name} must be boolean, True where a row is real, got {getattr(task, name).dtype}")
    for axis in ("task", "support", "query", "dim"):
        if sizes[axis][0] == 0:
            shape = tuple(arrays[sizes[axis][1]].shape)
            raise TaskError(f"axis '{axis}' of {sizes[axis][1]} is empty (shape {shape}); it needs at least one entry")


def _check_values(task: TaskBatch) -> None:
    """Refuse values that no method can use: not finite, labels out of range, a class or a query without rows."""
    for name in ("support", "query"):
        source = task.source(name)
        if isinstance(source, Tensor):  # the rows of a table are checked by its owner
            _check_finite(name, source, getattr(task, f"{name}_mask"))
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


def _check_finite(name: str, values: Tensor, mask: Tensor | None) -> None:
    # A sum is finite only if its terms are. This one cheap pass covers the common case; the search runs only if needed.
    if bool(values.sum().isfinite()):
        return
    bad = ~values.isfinite().all(-1)
    if mask is not None:
        bad = bad & mask
    if bool(bad.any()):
        t, row = bad.nonzero()[0].tolist()
        raise TaskError(
            f"{name} has {int(bad.sum())} row(s) with NaN or infinity, the first at task {t}, row {row}; "
            "drop or impute these rows"
        )
