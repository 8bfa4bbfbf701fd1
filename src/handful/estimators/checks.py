"""Checks of what estimators are given, by scikit-learn, with errors of handful."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.utils import assert_all_finite, check_consistent_length, column_or_1d
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import validate_data

from handful.errors import HandfulError, LabelError, TaskError
from handful.estimators.containers import family_of, labels_of, values_of, vectors_of
from handful.fitted.labels import distinct
from handful.reading.class_names import is_missing, plain_label, plain_labels
from handful.shapes import Float


def checked_features(estimator: Any, X: Any, *, reset: bool, copy: bool = False) -> Float[np.ndarray, "row dim"]:
    """Return the features in single or double precision; `reset` notes their number and names."""
    vectors = vectors_of(X)
    _refuse_texts(X)
    if getattr(vectors, "dtype", None) == np.float16:
        vectors = vectors.astype(np.float32)
    with _sentences(TaskError):
        found: Float[np.ndarray, "row dim"] = validate_data(
            estimator,
            vectors,
            reset=reset,
            dtype=[np.float64, np.float32],
            copy=copy,
            order="C",
            ensure_all_finite=False,
        )
    with np.errstate(over="ignore", invalid="ignore"):
        suspect = not np.isfinite(found.sum(dtype=np.float64))  # faster than a look at every number
    if suspect and len(rows := np.flatnonzero(~np.isfinite(found).all(1))):
        others = f" and {len(rows) - 1:,} more" if len(rows) > 1 else ""
        what = "NaN" if np.isnan(found[rows[0]]).any() else "infinity (inf)"
        raise TaskError(
            f"X contains {what} in row {rows[0]}{others}; drop these rows, or find out why the model "
            "gave no features for them"
        )
    return found


def _refuse_texts(X: Any) -> None:
    """Refuse texts and paths in the place of vectors."""
    first = X[0] if isinstance(X, (list, tuple)) and X else X
    if family_of(X) == "pandas" and len(X) and X.size == len(X):
        first = X.iloc[0] if X.ndim == 1 else X.iloc[0, 0]
    elif isinstance(first, np.ndarray) and first.ndim == 1 and first.dtype.kind in "OU" and len(first):
        first = first[0]
    if isinstance(first, (str, bytes)):
        text = first.decode(errors="replace") if isinstance(first, bytes) else str(first)
        raise TaskError(
            f"X must have vectors, one per row, got text such as {text!r:.60}; handful.label takes frames of "
            "texts and of paths of images, handful.classify files of them"
        )


def checked_labels(estimator: Any, y: Any, unlabelled: Any = None) -> npt.NDArray[Any]:
    """Return the labels as an array, text without blanks at either end; one that is missing is refused.

    `unlabelled` is the mark of rows that have none.
    """
    if y is None:
        raise LabelError(f"{type(estimator).__name__} requires y to be passed, but the target y is None")
    with _sentences(LabelError):
        labels: npt.NDArray[Any] = plain_labels(column_or_1d(values_of(y), warn=True))
        if labels.dtype.kind in "OUf":
            _refuse_missing(labels.tolist(), plain_label(unlabelled))
        assert_all_finite(labels, input_name="y")
        if labels.dtype.kind == "f":
            check_classification_targets(labels)
    return labels


def checked_rows(
    estimator: Any, X: Any, labels: npt.NDArray[Any], *, reset: bool
) -> tuple[Float[np.ndarray, "row dim"], npt.NDArray[Any]]:
    """Return a copy of the features, and as many labels."""
    features = checked_features(estimator, X, reset=reset, copy=True)
    with _sentences(LabelError):
        check_consistent_length(features, labels)
    return features, labels


def checked_examples(
    estimator: Any, X: Any, y: Any
) -> tuple[Float[np.ndarray, "row dim"], npt.NDArray[Any], npt.NDArray[np.int64]]:
    """Return a copy of the features, the distinct labels in increasing order, and which of them each row has."""
    features, labels = checked_rows(estimator, X, checked_labels(estimator, y), reset=True)
    return features, *distinct(labels)


def _refuse_missing(labels: list[Any], mark: Any) -> None:
    rows = [
        row for row, label in enumerate(labels) if is_missing(label) and not (isinstance(mark, str) and label == mark)
    ]
    if rows:
        others = f" and {len(rows) - 1:,} more" if len(rows) > 1 else ""
        raise LabelError(
            f"y has no label in row {rows[0]}{others}: it is missing, NaN or blank; drop these rows, or mark them and "
            "name the mark with `unlabelled` of fit"
        )


@contextmanager
def _sentences(kind: type[HandfulError]) -> Iterator[None]:
    """Raise what scikit-learn says about its input as an error of handful."""
    try:
        yield
    except HandfulError:
        raise
    except ValueError as error:
        raise kind(str(error)) from error


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
    rows = []
    counts = []
    for label, given in names.items():
        if is_missing(label):
            raise LabelError(f"names has a vector for {label!r}, which says that a label is missing; give it a class")
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
