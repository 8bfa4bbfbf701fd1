"""A classifier as one file: its catalogue as tensors in the safetensors format, everything else as JSON in its header.

Nothing is pickled and nothing in the file is executed: an untrusted file can be wrong, but can do no harm. One that was
damaged does not fit its checksum and is refused.
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from handful.catalogue import Catalogue
from handful.catalogue.files import catalogue_of, parts_of
from handful.catalogue.labels import decode_labels, encode_labels
from handful.errors import FileFormatError
from handful.estimators.labelled_rows import LabelledRows
from handful.machine.safetensors_format import read_tensors, write_tensors
from handful.machine.untrusted import parse_json

FORMAT, FORMAT_VERSION = "handful classifier", 5


@dataclass(frozen=True)
class SavedClassifier:
    """Content of a file: the name of the class, its parameters, names of the features if any, what was fitted."""

    kind: str
    parameters: dict[str, Any]
    feature_names: list[str] | None
    catalogue: Catalogue | LabelledRows


def save(path: str | os.PathLike[str], saved: SavedClassifier) -> None:
    """Write the file, complete or not at all; an older one of that name is replaced."""
    rows = saved.catalogue
    if isinstance(rows, Catalogue):
        tensors, about = parts_of(rows)
    else:
        tensors, about = {"features": rows.features, "codes": rows.codes}, {"classes": encode_labels(rows.classes)}
    about |= {
        "format": FORMAT,
        "format_version": FORMAT_VERSION,
        "kind": saved.kind,
        "parameters": saved.parameters,
        "feature_names": saved.feature_names,
    }
    try:
        text = json.dumps(about)
    except TypeError as error:
        raise FileFormatError(
            f"the classifier's options cannot be written as JSON ({error}); use plain values"
        ) from error
    write_tensors(os.fspath(path), tensors, {"handful": text})


def load(path: str | os.PathLike[str]) -> SavedClassifier:
    """Read a file that `save` wrote, refusing inconsistent content."""
    tensors, metadata = read_tensors(os.fspath(path))
    try:
        about = parse_json(metadata["handful"])
        if (about["format"], about["format_version"]) != (FORMAT, FORMAT_VERSION):
            raise ValueError(f"it says {about['format']!r}, version {about['format_version']!r}")
        rows = catalogue_of(tensors, about) if "means" in tensors else _labelled_rows(tensors, about)
        names = about["feature_names"]
        if names is not None and (len(names) != rows.dim or not all(isinstance(name, str) for name in names)):
            raise ValueError(f"it has no name for each of the {rows.dim} features")
        parameters = {str(name): value for name, value in about["parameters"].items()}
        return SavedClassifier(str(about["kind"]), parameters, names, rows)
    except (KeyError, TypeError, ValueError, AttributeError, RuntimeError, OverflowError) as error:
        raise FileFormatError(
            f"{path} is not a classifier that this handful can read ({error}); fit and save it again with this version"
        ) from error


def _labelled_rows(tensors: dict[str, Tensor], about: dict[str, Any]) -> LabelledRows:
    classes = decode_labels(about["classes"])
    features, codes = tensors["features"], tensors["codes"]
    fits = features.ndim == 2 and codes.shape == features.shape[:1] and codes.dtype == torch.int64
    # Every class needs a row and every row a class. Counting comes last, because a huge code would take much memory.
    if not fits or torch.unique(codes).tolist() != list(range(len(classes))):
        raise ValueError(f"features {tuple(features.shape)}, codes and {len(classes)} classes do not fit together")
    if len(set(classes.tolist())) != len(classes):
        raise ValueError("two classes have the same label")
    if features.dtype not in (torch.float32, torch.float64) or not bool(features.isfinite().all()):
        raise ValueError("features must be finite numbers of float32 or float64")
    return LabelledRows(classes, codes, features)
