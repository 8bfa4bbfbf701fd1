"""A classifier as one file: examples as tensors in the safetensors format, all else as JSON in its header.

Nothing is pickled and nothing in the file is executed: a file from a stranger can be wrong, but not do harm.
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from handful.errors import FileFormatError, LabelError
from handful.estimators.catalogue import Catalogue
from handful.safetensors_format import read_tensors, write_tensors
from handful.untrusted import parse_json

FORMAT, FORMAT_VERSION = "handful classifier", 1
# A type of text can ask for any width, and each label takes all of it.
MOST_LABEL_BYTES = 2**28


@dataclass(frozen=True)
class SavedClassifier:
    """What a file holds: the name of the class, its parameters, names of the features if any, the catalogue."""

    kind: str
    parameters: dict[str, Any]
    feature_names: list[str] | None
    catalogue: Catalogue


def save(path: str | os.PathLike[str], saved: SavedClassifier) -> None:
    """Write the file, whole or not at all; an older one of that name is replaced."""
    about = {
        "format": FORMAT,
        "format_version": FORMAT_VERSION,
        "kind": saved.kind,
        "parameters": saved.parameters,
        "feature_names": saved.feature_names,
        "classes": encode_labels(saved.catalogue.classes),
    }
    try:
        text = json.dumps(about)
    except TypeError as error:
        raise FileFormatError(
            f"the classifier's options cannot be written as JSON ({error}); use plain values"
        ) from error
    tensors = {"features": saved.catalogue.features, "codes": saved.catalogue.codes}
    write_tensors(os.fspath(path), tensors, {"handful": text})


def load(path: str | os.PathLike[str]) -> SavedClassifier:
    """Read a file that `save` wrote, refusing what does not hold together."""
    tensors, metadata = read_tensors(os.fspath(path))
    try:
        about = parse_json(metadata["handful"])
        if (about["format"], about["format_version"]) != (FORMAT, FORMAT_VERSION):
            raise ValueError(f"it says {about['format']!r}, version {about['format_version']!r}")
        classes = decode_labels(about["classes"])
        features, codes = tensors["features"], tensors["codes"]
        fits = features.ndim == 2 and codes.shape == features.shape[:1] and codes.dtype == torch.int64
        # Each class has a row, and each row a class; counting comes after that, for it takes room up to the largest.
        if not fits or np.unique(codes.numpy()).tolist() != list(range(len(classes))):
            raise ValueError(f"features {tuple(features.shape)}, codes and {len(classes)} classes do not fit together")
        if len(set(classes.tolist())) != len(classes):
            raise ValueError("two classes have the same label")
        if features.dtype not in (torch.float32, torch.float64) or not bool(features.isfinite().all()):
            raise ValueError("features must be finite numbers of float32 or float64")
        names = about["feature_names"]
        if names is not None and (len(names) != features.shape[1] or not all(isinstance(n, str) for n in names)):
            raise ValueError(f"it has no name for each of the {features.shape[1]} features")
        return SavedClassifier(
            str(about["kind"]),
            {str(name): value for name, value in about["parameters"].items()},
            names,
            Catalogue(classes, codes, features),
        )
    except (KeyError, TypeError, ValueError, AttributeError, RuntimeError, OverflowError) as error:
        raise FileFormatError(
            f"{path} is not a classifier that this handful can read ({error}); save it again with this version"
        ) from error


def encode_labels(classes: npt.NDArray[Any]) -> dict[str, Any]:
    """Return labels as values of JSON: their dtype and a list; dates as the integers they are stored as."""
    if classes.dtype.kind in "mM":
        return {"dtype": classes.dtype.str, "values": classes.astype(np.int64).tolist()}
    if classes.dtype.kind == "O":
        return {"dtype": "object", "values": [_encoded(label) for label in classes.tolist()]}
    if classes.dtype.kind in "biufU":
        return {"dtype": classes.dtype.str, "values": classes.tolist()}
    raise LabelError(f"labels of dtype {classes.dtype} cannot be saved; use text, numbers, booleans or dates")


def decode_labels(stored: dict[str, Any]) -> npt.NDArray[Any]:
    """Return what `encode_labels` was given."""
    if stored["dtype"] == "object":
        labels = np.empty(len(stored["values"]), dtype=object)
        labels[:] = [_decoded(value) for value in stored["values"]]
        return labels
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
    """Turn a tuple into a list, for JSON has no tuples and labels are never lists."""
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
