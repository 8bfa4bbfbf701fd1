"""draw: task i as a function of (labels, spec, seed, i). It takes labels and returns row numbers, never features.

Unknown classes, classes, support and query are drawn in this order, each from its own random stream per task. The query
is drawn from the rows that are not in the support, so the two are disjoint by construction.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from handful.arguments import whole
from handful.errors import TaskError
from handful.shapes import Bool, Int
from handful_fewshot.tasks.rules import (
    UNKNOWN,
    Balanced,
    ClassRows,
    CorrelatedStream,
    FixedSupport,
    QueryRule,
    Stream,
    SupportRule,
    UnknownClasses,
    distinct,
    uniforms,
)


@dataclass(frozen=True)
class TaskSpec:
    """Description of the tasks to draw.

    Attributes
    ----------
    support : ShotsPerClass or FixedSupport
        Which labelled rows a task has.
    query : UniformOverPool, Balanced, Dirichlet or CorrelatedStream
        How the rows to label are spread over the classes that occur.
    n_query : int
        |Q|, number of rows to label.
    n_classes : int, optional
        K, number of classes of a task, drawn separately for each task; None means all classes.
    unknown : UnknownClasses, optional
        Classes that the query has and the support lacks, in addition to the K classes; None means that there are none.

    Examples
    --------
    The paper's protocol, all classes in the support and five in the query:

    >>> from handful_fewshot import ShotsPerClass, UniformOverPool
    >>> TaskSpec(ShotsPerClass(5), UniformOverPool(k_eff=5), n_query=75)
    TaskSpec(support=ShotsPerClass(shots=5), query=UniformOverPool(k_eff=5), n_query=75, n_classes=None, unknown=None)
    """

    support: SupportRule
    query: QueryRule
    n_query: int = 75
    n_classes: int | None = None
    unknown: UnknownClasses | None = None

    def __post_init__(self) -> None:
        for name in ("n_query", "n_classes"):
            if (value := getattr(self, name)) is not None or name == "n_query":
                object.__setattr__(self, name, whole(name, value, least=1, error=TaskError))
        if self.n_classes is not None and self.query.possible[-1] > self.n_classes:
            raise TaskError(
                f"k_eff={self.query.k_eff_text} classes of the query must be among the n_classes={self.n_classes} of "
                "the support; lower k_eff or raise n_classes"
            )
        if isinstance(self.query, Balanced) and any(self.n_known % k for k in self.query.possible):
            k = math.lcm(*self.query.possible)
            each = self.n_known // k
            queries = "n_query" if self.unknown is None else "known items of the query"
            raise TaskError(
                f"{queries}={self.n_known} cannot be shared equally by k_eff={self.query.k_eff_text} classes; ask for "
                f"{max(each, 1) * k} or {(each + 1) * k} queries"
            )
        if isinstance(self.query, CorrelatedStream) and self.unknown is not None:
            raise TaskError("a stream has no unknown classes: their rows could come twice; leave unknown out")

    @property
    def n_known(self) -> int:
        """Number of queries whose class is in the support; the query rule spreads these over its classes."""
        return self.n_query - (0 if self.unknown is None else self.unknown.n_items(self.n_query))


@dataclass(frozen=True, eq=False)
class Draw:
    """Rows of some tasks.

    Attributes
    ----------
    indices : Int[ndarray, "task"]
        Task numbers.
    classes : Int[ndarray, "#task class"]
        The bank's classes in each task, increasing; label k of a task means `classes[task, k]`.
    support, support_labels : Int[ndarray, "#task support"]
        Rows of the support and their labels, class by class; the task axis has length one when all tasks share them.
    query, query_labels : Int[ndarray, "task query"]
        Rows of the query and their labels; -1 where the class of a row is not in the support.
    support_mask : Bool[ndarray, "#task support"] or None
        False where a row is padding; None if there is no padding.
    support_elsewhere : bool
        Whether the rows of the support belong to another bank.
    """

    indices: Int[np.ndarray, "task"]
    classes: Int[np.ndarray, "#task class"]
    support: Int[np.ndarray, "#task support"]
    support_labels: Int[np.ndarray, "#task support"]
    query: Int[np.ndarray, "task query"]
    query_labels: Int[np.ndarray, "task query"]
    support_mask: Bool[np.ndarray, "#task support"] | None = None
    support_elsewhere: bool = False

    @property
    def n_tasks(self) -> int:
        """Number of tasks."""
        return len(self.indices)

    @property
    def n_classes(self) -> int:
        """K, classes of each task."""
        return int(self.classes.shape[1])


def draw(labels: Any, spec: TaskSpec, seed: int, indices: Iterable[int]) -> Draw:
    """Draw the tasks numbered `indices`.

    Task i is the same whether it is drawn alone, in a range or in another order. Tasks of one stream have its number as
    the address of their classes and support, other tasks their own.

    Parameters
    ----------
    labels : Int["row"]
        Class of each row of the bank, 0 … K-1.
    spec : TaskSpec
        Rules and sizes.
    seed : int
        Seed of the whole sequence of tasks.
    indices : iterable of int
        Numbers of the tasks to draw, for instance `range(100)`.

    Returns
    -------
    Draw
        Rows of the support and of the query of each task.

    Examples
    --------
    >>> from handful_fewshot import ShotsPerClass, UniformOverPool
    >>> spec = TaskSpec(ShotsPerClass(1), UniformOverPool(k_eff=2), n_query=4)
    >>> tasks = draw([0, 0, 0, 1, 1, 1, 2, 2, 2], spec, seed=0, indices=range(100))
    >>> tasks.support.shape, tasks.query.shape
    ((100, 3), (100, 4))
    >>> alone = draw([0, 0, 0, 1, 1, 1, 2, 2, 2], spec, seed=0, indices=[42])
    >>> bool((alone.query[0] == tasks.query[42]).all())
    True
    """
    tasks = _checked_indices(seed, indices)
    classes_of_rows = _checked_labels(labels)
    pool, library = _rows_by_class(classes_of_rows, spec)
    catalogues = spec.query.catalogue_of(tasks)
    unknown, left = _draw_unknown(len(pool.sizes), spec.unknown, seed, catalogues)
    classes = _draw_classes(left, spec.n_classes, seed, catalogues)
    if isinstance(spec.support, FixedSupport):
        support = spec.support.draw(library, classes, every_class=classes.shape[1] == len(pool.sizes))
    else:
        support = spec.support.draw(pool, classes, seed, catalogues)

    each = np.arange(len(tasks))[:, None]
    n_classes = np.full(len(tasks), classes.shape[1])
    uniform = uniforms(seed, catalogues, Stream.QUERY_CLASSES, spec.query.possible[-1])
    occurring = distinct(uniform, n_classes, spec.query.class_counts(seed, catalogues))  # then -1
    of_bank = classes[each if len(classes) > 1 else 0, occurring]
    shots = 0 if support.offsets is None else support.offsets.shape[-1]
    free = (pool.sizes[of_bank] - shots) * (occurring >= 0)
    picks = spec.query.pick(free, spec.n_known, seed, tasks)
    offsets = picks.offsets
    if support.offsets is not None:
        offsets = _step_over(offsets, np.sort(support.offsets[each, occurring], -1)[each, picks.present])
    query = pool.rows_at(of_bank[each, picks.present], offsets)
    query_labels = occurring[each, picks.present]
    if spec.unknown is not None:
        others = spec.unknown.pick(pool.sizes[unknown], spec.n_query, seed, tasks)
        rows = pool.rows_at(unknown[each, others.present], others.offsets)
        query = np.concatenate([query, rows], -1)
        query_labels = np.concatenate([query_labels, np.full_like(rows, UNKNOWN)], -1)
    elsewhere = isinstance(spec.support, FixedSupport) and spec.support.elsewhere
    return Draw(tasks, classes, support.rows, support.labels, query, query_labels, support.mask, elsewhere)


def _rows_by_class(labels: Int[np.ndarray, "row"], spec: TaskSpec) -> tuple[ClassRows, ClassRows]:
    """Return rows by class: those of the bank, without a fixed support, and those of the fixed support."""
    rule = spec.support
    rows = np.arange(len(labels))
    n_classes = int(labels.max()) + 1
    fixed = fixed_labels = np.empty(0, np.int64)
    if isinstance(rule, FixedSupport):
        fixed = np.array(rule.rows)
        if rule.labels is not None:
            fixed_labels = np.array(rule.labels)
            n_classes = max(n_classes, int(fixed_labels.max()) + 1)
        elif fixed.max() >= len(labels):
            raise TaskError(
                f"the fixed support contains row {fixed.max()}, but there are {len(labels)} rows; "
                "use rows of the bank that queries come from, or give labels to use another bank"
            )
        else:
            fixed_labels = labels[fixed]
            rows = np.setdiff1d(rows, fixed, assume_unique=True)
    n_unknown = 0 if spec.unknown is None else spec.unknown.count
    wanted = max(spec.n_classes or 0, spec.query.possible[-1]) + n_unknown
    if wanted > n_classes:
        of_them = f", {n_unknown} of them unknown," if n_unknown else ""
        raise TaskError(
            f"the spec asks for {wanted} classes{of_them} but the labels have {n_classes}; lower n_classes or k_eff"
        )
    return ClassRows.of(labels[rows], n_classes, rows), ClassRows.of(fixed_labels, n_classes, fixed)


def _draw_unknown(
    n_classes: int, rule: UnknownClasses | None, seed: int, tasks: Int[np.ndarray, "task"]
) -> tuple[Int[np.ndarray, "#task unknown"], Int[np.ndarray, "#task left"]]:
    """Draw the unknown classes of each task; return them and the classes that are left, both increasing."""
    if rule is None:
        return np.empty((1, 0), np.int64), np.arange(n_classes)[None]
    uniform = uniforms(seed, tasks, Stream.UNKNOWN_CLASSES, rule.count)
    unknown = np.sort(distinct(uniform, np.full(len(tasks), n_classes), rule.count), axis=-1)
    known = np.ones((len(tasks), n_classes), bool)
    np.put_along_axis(known, unknown, False, axis=-1)
    return unknown, np.nonzero(known)[1].reshape(len(tasks), n_classes - rule.count)


def _draw_classes(
    left: Int[np.ndarray, "#task left"], count: int | None, seed: int, tasks: Int[np.ndarray, "task"]
) -> Int[np.ndarray, "#task class"]:
    """Draw the classes of each task, increasing; None means all that are left."""
    n_left = left.shape[1]
    if count in (None, n_left):
        return left
    uniform = uniforms(seed, tasks, Stream.CLASSES, count)
    chosen = np.sort(distinct(uniform, np.full(len(tasks), n_left), count), axis=-1)
    return np.take_along_axis(np.broadcast_to(left, (len(tasks), n_left)), chosen, axis=-1)


def _step_over(
    free_offsets: Int[np.ndarray, "task query"], taken: Int[np.ndarray, "task query shots"]
) -> Int[np.ndarray, "task query"]:
    """Offset among all rows of the r-th row that is not taken: r + #{j : taken_j - j ≤ r}, with `taken` increasing."""
    offsets: np.ndarray = free_offsets + (taken - np.arange(taken.shape[-1]) <= free_offsets[..., None]).sum(-1)
    return offsets


def _checked_labels(labels: Any) -> Int[np.ndarray, "row"]:
    array = np.asarray(labels)
    if array.ndim != 1 or array.dtype.kind not in "iu" or len(array) == 0 or array.min() < 0:
        raise TaskError(
            f"labels must be class numbers 0, 1, … with one axis (row), got {array.dtype} of shape {array.shape}; "
            "pass bank.labels"
        )
    return array.astype(np.int64) if array.dtype.kind == "u" else array


def _checked_indices(seed: int, indices: Iterable[int]) -> Int[np.ndarray, "task"]:
    numbers = np.asarray(indices if isinstance(indices, np.ndarray) else list(indices))
    if numbers.ndim != 1 or len(numbers) == 0 or numbers.dtype.kind not in "iu" or numbers.min() < 0:
        raise TaskError(f"indices must be one or more task numbers, each at least 0, got {numbers.tolist()[:5]}")
    if not 0 <= seed < 2**64:
        raise TaskError(f"seed must lie in 0 … 2^64-1, got {seed}")
    return numbers.astype(np.int64)
