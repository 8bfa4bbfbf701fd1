"""Labels: sort, compare, and write them as JSON."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from handful.errors import LabelError

# A text dtype can have any width, and each label takes all of it. [bytes; work]
MOST_LABEL_BYTES = 2**28


def distinct(labels: npt.NDArray[Any]) -> tuple[npt.NDArray[Any], npt.NDArray[np.int64]]:
    """Return the distinct labels in increasing order, and the position of each label among them."""
    try:
        classes, codes = np.unique(labels, return_inverse=True)
    except TypeError as error:
        raise LabelError(
            f"labels must be of one kind, so that they can be sorted ({error}); "
            "turn them into strings, and drop rows whose label is missing"
        ) from error
    return classes, codes.astype(np.int64, copy=False)


def places_of(labels: npt.NDArray[Any], classes: npt.NDArray[Any]) -> npt.NDArray[np.int64]:
    """Return the position of each label in the sorted classes; -1 if it is not among them."""
    if len(classes) == 0:
        return np.full(len(labels), -1)
    places = np.minimum(np.searchsorted(classes, labels), len(classes) - 1)
    if classes.dtype.kind != "O" and labels.dtype.kind != "O":
        return np.where(classes[places] == labels, places, -1)
    # Objects one by one: a comparison of whole arrays would look inside tuples.
    same = np.array([a == b for a, b in zip(classes[places].tolist(), labels.tolist(), strict=True)], dtype=bool)
    return np.where(same, places, -1)


def objects(values: Sequence[Any]) -> npt.NDArray[Any]:
    """Return values as an array of objects: NumPy would look inside tuples, and make text of mixed values."""
    found = np.empty(len(values), dtype=object)
    found[:] = values
    return found


def same_kind(labels: npt.NDArray[Any], classes: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Refuse numbers where the classes are names, and so on: NumPy would silently turn both into text."""
    kinds = labels.dtype.kind, classes.dtype.kind
    if kinds[0] != kinds[1] and not set(kinds) <= set("iu") and "O" not in kinds:
        raise LabelError(
            f"labels must be of the catalogue's kind, {classes.dtype}, got {labels.dtype}; convert them first"
        )
    return labels


def with_label(labels: npt.NDArray[Any], where: npt.NDArray[np.bool_], label: Any) -> npt.NDArray[Any]:
    """Return the labels with another one in some places; it must be of their kind."""
    if labels.dtype.kind == "O":
        changed = labels.copy()
        for place in np.flatnonzero(where):  # one by one: a tuple is a label, not several
            changed[place] = label
        return changed
    value = np.asarray(label)
    if value.ndim > 0:
        raise LabelError(f"a label must be a single value, got {label!r}")
    same_kind(value.reshape(1), labels)
    return np.where(where, value, labels)


def encode_labels(labels: npt.NDArray[Any]) -> dict[str, Any]:
    """Return labels as values of JSON: their dtype and a list; dates as the integers they are stored as."""
    if labels.dtype.kind in "mM":
        return {"dtype": labels.dtype.str, "values": labels.astype(np.int64).tolist()}
    if labels.dtype.kind == "O":
        return {"dtype": "object", "values": [_encoded(label) for label in labels.tolist()]}
    if labels.dtype.kind in "biufU":
        return {"dtype": labels.dtype.str, "values": labels.tolist()}
    raise LabelError(f"labels of dtype {labels.dtype} cannot be saved; use text, numbers, booleans or dates")


def decode_labels(stored: dict[str, Any]) -> npt.NDArray[Any]:
    """Return what `encode_labels` was given."""
    if stored["dtype"] == "object":
        return objects([_decoded(value) for value in stored["values"]])
    dtype = np.dtype(stored["dtype"])
    if dtype.kind not in "mMbiufU":
        raise ValueError(f"labels of dtype {dtype}")
    if dtype.itemsize * len(stored["values"]) > MOST_LABEL_BYTES:
        raise ValueError(f"{len(stored['values'])} labels of dtype {dtype}, too large to be labels")
    if dtype.kind == "U" and not all(isinstance(value, str) for value in stored["values"]):
        raise ValueError("labels of text that are not text")
    if dtype.kind in "mM":
        return np.array(stored["values"], dtype=np.int64).astype(dtype)
    return np.array(stored["values"], dtype=dtype)


def _encoded(label: Any) -> Any:
    """Turn a tuple into a list, since JSON has no tuples and labels are never lists."""
    if isinstance(label, tuple):
        return [_encoded(part) for part in label]
    if isinstance(label, (str, bool, int, float)):
        return label
    raise LabelError(
        f"labels of type {type(label).__name__} cannot be saved; use text, numbers, booleans, or tuples of these"
    )


def _decoded(value: Any) -> Any:
    if isinstance(value, list):
        return tuple(_decoded(part) for part in value)
    if isinstance(value, (str, bool, int, float)):
        return value
    raise ValueError(f"labels of type {type(value).__name__}")
