"""ClassRows: the rows of each class, found once and then addressed by (class, offset)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from handful.shapes import Int


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
