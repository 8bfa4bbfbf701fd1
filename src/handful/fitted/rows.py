"""Transforms that work on each row alone: `x/‖x‖` (`l2`), or nothing (`raw`)."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from types import MappingProxyType

import numpy as np

from handful.errors import TaskError
from handful.shapes import Float

# Maximum number of rows that are summed before the sum is squared. [rows; work]
MOST_SUMMED = 16_384


def unit(rows: Float[np.ndarray, "row dim"]) -> Float[np.ndarray, "row dim"]:
    """`x/‖x‖`; zero for zero. Rows of any size: a power of two brings those near one whose squares do not fit.

    Examples
    --------
    >>> unit(np.array([[3.0, 4.0], [0.0, 0.0], [3e-300, 4e-300]])).round(9).tolist()
    [[0.6, 0.8], [0.0, 0.0], [0.6, 0.8]]
    """
    with np.errstate(over="ignore", under="ignore"):
        lengths = np.sqrt(np.einsum("nd,nd->n", rows, rows))
    least, most = _squares_fit(rows.dtype)
    odd = np.flatnonzero(~((lengths > least) & (lengths < most)))
    if len(odd):
        rows = rows.copy()
        _, exponents = np.frexp(np.abs(rows[odd]).max(1))
        # In two steps, each a power of two that the type holds.
        half = exponents // 2
        rows[odd] = np.ldexp(np.ldexp(rows[odd], -half[:, None]), (half - exponents)[:, None])
        lengths[odd] = np.sqrt(np.einsum("nd,nd->n", rows[odd], rows[odd]))
    return np.asarray(rows / np.where(lengths > 0, lengths, 1)[:, None])


ROW_TRANSFORMS: Mapping[str, Callable[[Float[np.ndarray, "row dim"]], Float[np.ndarray, "row dim"]]] = MappingProxyType(
    {"raw": lambda rows: rows, "l2": unit}
)


def transform_rows(name: str, rows: Float[np.ndarray, "row dim"], first: int = 0) -> Float[np.ndarray, "row dim"]:
    """Apply a transform of `ROW_TRANSFORMS`; refuse rows whose values or squares do not fit their type.

    `first` is the number of the first row, for the message.
    """
    sizes = np.maximum(rows.max(1, initial=0), -rows.min(1, initial=0))
    largest = float(sizes.max(initial=0))
    if not math.isfinite(largest):
        bad = first + int(np.flatnonzero(~np.isfinite(sizes))[0])
        raise TaskError(f"row {bad} has a feature that is not finite; drop or impute such rows")
    least, most = size_limits(name, rows.dtype)
    if 0 < largest < least or largest > most:
        raise TaskError(
            f"the largest number in the rows {first} … {first + len(sizes) - 1} is {largest:.2g}: {rows.dtype} "
            "cannot represent its square, or has lost digits of it; use transform='l2', or multiply all features by a "
            "number that brings them near one"
        )
    return ROW_TRANSFORMS[name](rows)


def size_limits(name: str, dtype: np.dtype[np.floating]) -> tuple[float, float]:
    """Return between which sizes the largest number of a row must be, for a transform; zero is fit for both."""
    if name != "raw":
        return float(np.finfo(dtype).tiny), float(np.finfo(dtype).max)
    least, most = _squares_fit(dtype)
    return least, most / MOST_SUMMED  # sums over rows are squared as well


def largest_feature(name: str, dtype: np.dtype[np.floating]) -> float:
    """Return the largest number that a row can have after a transform."""
    return 1.0 if name == "l2" else size_limits(name, dtype)[1]


def _squares_fit(dtype: np.dtype[np.floating]) -> tuple[float, float]:
    """Bounds between which the square of a number keeps all its digits and does not overflow."""
    limits = np.finfo(dtype)
    return math.sqrt(float(limits.tiny) / float(limits.eps)), math.sqrt(float(limits.max))
