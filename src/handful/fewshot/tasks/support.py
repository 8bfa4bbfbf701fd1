"""Support rules: which labelled rows a task has."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple, SupportsInt, TypeAlias

import numpy as np

from handful.arguments import whole
from handful.errors import TaskError
from handful.fewshot.tasks.randomness import Stream, distinct, uniforms
from handful.shapes import Bool, Int


@dataclass(frozen=True, eq=False)
class ClassRows:
    """Row numbers ordered by class: those of class k are `order[starts[k] : starts[k] + sizes[k]]`, increasing."""

    order: Int[np.ndarray, "row"]
    starts: Int[np.ndarray, "class"]
    sizes: Int[np.ndarray, "class"]

    @classmethod
    def of(
        cls, labels: Int[np.ndarray, "row"], n_classes: int, rows: Int[np.ndarray, "row"] | None = None
    ) -> ClassRows:
        """Order rows by their labels; `rows` gives the row numbers if they are not 0, 1, 2 and so on."""
        # NumPy sorts 16-bit integers in linear time, which matters for ten million rows.
        keys = labels.astype(np.uint16) if n_classes <= 2**16 else labels
        order = np.argsort(keys, kind="stable")
        sizes = np.bincount(labels, minlength=n_classes)
        return cls(order if rows is None else rows[order], np.cumsum(sizes) - sizes, sizes)

    def rows_at(self, classes: Int[np.ndarray, "*set"], offsets: Int[np.ndarray, "*set"]) -> Int[np.ndarray, "*set"]:
        """Row number of the offset-th row of each class."""
        rows: np.ndarray = self.order[self.starts[classes] + offsets]
        return rows


class Support(NamedTuple):
    """The support of some tasks, class by class.

    `offsets` are the positions of the support within the rows of its classes, which the query must skip; None if these
    rows were removed in advance. `labels` number the task's own classes, 0 … K-1.
    """

    rows: Int[np.ndarray, "#task support"]
    labels: Int[np.ndarray, "#task support"]
    mask: Bool[np.ndarray, "#task support"] | None
    offsets: Int[np.ndarray, "task class shots"] | None


@dataclass(frozen=True)
class ShotsPerClass:
    """The same number of rows for every class, drawn without replacement."""

    shots: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "shots", whole("shots", self.shots, least=1, error=TaskError))

    def draw(
        self, pool: ClassRows, classes: Int[np.ndarray, "#task class"], seed: int, indices: Int[np.ndarray, "task"]
    ) -> Support:
        """Draw the support of these tasks."""
        scarce = np.flatnonzero(pool.sizes < self.shots)
        if len(scarce):
            raise TaskError(
                f"class {scarce[0]} has {pool.sizes[scarce[0]]} rows, fewer than the {self.shots} shots asked for "
                f"({len(scarce)} such classes); ask for fewer shots, or leave these classes out with bank.classes(...)"
            )
        n_tasks, n_classes = len(indices), classes.shape[1]
        uniform = uniforms(seed, indices, Stream.SUPPORT, n_classes * self.shots)
        sizes = np.broadcast_to(pool.sizes[classes], (n_tasks, n_classes))
        offsets = distinct(uniform.reshape(n_tasks, n_classes, self.shots), sizes, self.shots)
        rows = pool.order[pool.starts[classes][..., None] + offsets]
        labels = np.repeat(np.arange(n_classes), self.shots)[None]
        return Support(rows.reshape(n_tasks, -1), labels, None, offsets)


@dataclass(frozen=True, init=False)
class FixedSupport:
    """The same rows for every task; classes may have different numbers of rows.

    Attributes
    ----------
    rows : tuple of int
        Row numbers. Without `labels` they refer to the bank that queries come from, and these rows are never queries.
        With `labels` they refer to another bank.
    labels : tuple of int, optional
        Classes of these rows in another bank, which must number its classes like the bank of the query. None means
        that the rows belong to the bank of the query.
    """

    rows: tuple[int, ...]
    labels: tuple[int, ...] | None = None

    def __init__(self, rows: Iterable[SupportsInt], labels: Iterable[SupportsInt] | None = None) -> None:
        object.__setattr__(self, "rows", tuple(int(r) for r in rows))
        object.__setattr__(self, "labels", None if labels is None else tuple(int(k) for k in labels))
        if not self.rows or len(set(self.rows)) != len(self.rows) or min(self.rows) < 0:
            raise TaskError("rows of a fixed support must be distinct row numbers, at least one")
        if self.labels is not None and (len(self.labels) != len(self.rows) or min(self.labels) < 0):
            raise TaskError(
                f"labels of a fixed support must be one class number for each of its {len(self.rows)} rows, "
                f"got {len(self.labels)}"
            )

    @classmethod
    def whole(cls, labels: Iterable[SupportsInt]) -> FixedSupport:
        """Use all rows of another bank, given its labels."""
        numbers = [int(k) for k in labels]
        return cls(range(len(numbers)), numbers)

    @property
    def elsewhere(self) -> bool:
        """Whether the rows belong to another bank."""
        return self.labels is not None

    def draw(self, library: ClassRows, classes: Int[np.ndarray, "#task class"], *, every_class: bool) -> Support:
        """Pick the rows of each task's classes from `library`, the fixed rows ordered by class."""
        empty = np.flatnonzero(library.sizes == 0)
        if len(empty):
            raise TaskError(
                f"the fixed support has no row of class {empty[0]} ({len(empty)} such classes); every class needs one: "
                "add rows, or leave these classes out of both banks with bank.classes(...)"
            )
        if every_class:
            labels = np.repeat(np.arange(len(library.sizes)), library.sizes)
            return Support(library.order[None], labels[None], None, None)
        sizes = library.sizes[classes]
        width = int(sizes.sum(-1).max())
        rows = np.zeros((len(classes), width), np.int64)
        labels, mask = np.zeros_like(rows), np.zeros(rows.shape, bool)
        for t, (chosen, counts) in enumerate(zip(classes, sizes, strict=True)):
            n = int(counts.sum())
            within = np.arange(n) - np.repeat(np.cumsum(counts) - counts, counts)
            rows[t, :n] = library.rows_at(np.repeat(chosen, counts), within)
            labels[t, :n] = np.repeat(np.arange(len(chosen)), counts)
            mask[t, :n] = True
        return Support(rows, labels, mask, None)


SupportRule: TypeAlias = ShotsPerClass | FixedSupport
