"""Names of classes as a caller gives them: a mapping from labels to vectors, to rows and their labels."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from handful.errors import LabelError, TaskError
from handful.estimators.containers import labels_of, vectors_of
from handful.shapes import Float


def rows_of_names(names: Any, dim: int | None) -> tuple[Float[np.ndarray, "row dim"], npt.NDArray[Any]]:
    """Return one row per vector and the label of each.

    Parameters
    ----------
    names : mapping
        From a label to its vector, or to several, one per row: prompts, or sentences that describe the class.
    dim : int or None
        How many numbers a vector must have; None if any number will do.

    Examples
    --------
    >>> rows, labels = rows_of_names({"cat": [1.0, 0.0], "dog": [[0.0, 1.0], [0.2, 1.0]]}, 2)
    >>> rows.shape, labels.tolist()
    ((3, 2), ['cat', 'dog', 'dog'])
    """
    if not isinstance(names, Mapping):
        raise LabelError(f"names must map labels to vectors, as in {{'cat': vector}}, got {type(names).__name__}")
    if len(names) == 0:
        raise LabelError("names must have at least one class, got none")
    rows, counts = [], []
    for label, given in names.items():
        vectors = np.asarray(vectors_of(given))
        if vectors.dtype.kind not in "fiu" or vectors.ndim not in (1, 2) or vectors.size == 0:
            raise TaskError(
                f"the name of {label!r} must be a vector of numbers, or several as rows, got shape {vectors.shape} of "
                f"{vectors.dtype}; embed texts first"
            )
        vectors = np.atleast_2d(vectors).astype(np.float64 if vectors.dtype == np.float64 else np.float32)
        dim = vectors.shape[1] if dim is None else dim
        if vectors.shape[1] != dim:
            raise TaskError(
                f"the name of {label!r} has {vectors.shape[1]} numbers, and {dim} are expected; names and items must "
                "be vectors of one space"
            )
        if not np.isfinite(vectors).all() or not vectors.any(1).all():
            raise TaskError(f"the name of {label!r} has NaN, infinity or nothing but zeros; embed it again")
        rows.append(vectors)
        counts.append(len(vectors))
    labels = labels_of(list(names))
    return np.concatenate(rows), labels.repeat(counts)
