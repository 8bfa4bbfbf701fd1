"""A catalogue as one file: tensors in the safetensors format, labels and settings as JSON in its header.

Nothing is pickled and nothing in the file is executed: an untrusted file can be wrong, but can do no harm.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor

from handful.catalogue.fitted import Catalogue
from handful.catalogue.labels import decode_labels, encode_labels, places_of
from handful.catalogue.parts import ClassMeans, Examples
from handful.errors import FileFormatError
from handful.machine.safetensors_format import read_tensors, write_tensors
from handful.machine.untrusted import parse_json
from handful.transforms import ROW_TRANSFORMS

FORMAT, FORMAT_VERSION = "handful catalogue", 1


def save_catalogue(catalogue: Catalogue, path: str | os.PathLike[str]) -> None:
    """Write the file, complete or not at all; an older one of that name is replaced.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> place = Path(tempfile.mkdtemp()) / "catalogue.safetensors"
    >>> save_catalogue(Catalogue.of(torch.eye(3), np.array(["ant", "bee", "cat"])), place)
    >>> load_catalogue(place).classes.tolist()
    ['ant', 'bee', 'cat']
    """
    tensors, about = parts_of(catalogue)
    about |= {"format": FORMAT, "format_version": FORMAT_VERSION}
    write_tensors(os.fspath(path), tensors, {"handful": json.dumps(about)})


def load_catalogue(path: str | os.PathLike[str]) -> Catalogue:
    """Read a file that `save_catalogue` wrote, refusing inconsistent content.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> place = Path(tempfile.mkdtemp()) / "catalogue.safetensors"
    >>> save_catalogue(Catalogue.of(torch.eye(3), np.array([4, 5, 6])), place)
    >>> print(load_catalogue(place).report())
    3 classes, 3 examples.
    3 classes have one example: 4, 5, 6.
    """
    tensors, metadata = read_tensors(os.fspath(path))
    try:
        about = parse_json(metadata["handful"])
        if (about["format"], about["format_version"]) != (FORMAT, FORMAT_VERSION):
            raise ValueError(f"it says {about['format']!r}, version {about['format_version']!r}")
        return catalogue_of(tensors, about)
    except (KeyError, TypeError, ValueError, AttributeError, RuntimeError, OverflowError) as error:
        raise FileFormatError(
            f"{path} is not a catalogue that this handful can read ({error}); save it again with this version"
        ) from error


def parts_of(catalogue: Catalogue) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """Return the tensors of a catalogue, and everything else as values of JSON."""
    examples = catalogue.examples
    tensors = {
        "means": catalogue.means,
        "shots": catalogue.shots,
        "origin": catalogue.origin,
        "points": examples.points,
        "codes": torch.from_numpy(places_of(examples.labels, catalogue.classes)),
        "positions": torch.from_numpy(examples.positions),
    }
    about = {
        "classes": encode_labels(catalogue.classes),
        "transform": catalogue.transform,
        "squared_scale": catalogue.squared_scale,
        "n_examples": catalogue.n_examples,
    }
    return tensors, about


def catalogue_of(tensors: Mapping[str, Tensor], about: Mapping[str, Any]) -> Catalogue:
    """Undo `parts_of`; a ValueError says what does not fit together."""
    classes = decode_labels(about["classes"])
    means, shots, origin = tensors["means"], tensors["shots"], tensors["origin"]
    points, codes, positions = tensors["points"], tensors["codes"].numpy(), tensors["positions"].numpy()
    if means.ndim != 2 or codes.dtype != np.int64 or positions.dtype != np.int64:
        raise ValueError("means are not a table, or codes and positions are not whole numbers")
    n_classes, dim = means.shape
    shapes = {
        "classes": (len(classes), n_classes),
        "shots": (tuple(shots.shape), (n_classes,)),
        "origin": (tuple(origin.shape), (dim,)),
        "points": (tuple(points.shape), (len(codes), dim)),
        "positions": (positions.shape, codes.shape),
    }
    wrong = [name for name, (found, expected) in shapes.items() if found != expected]
    if wrong or n_classes == 0:
        raise ValueError(f"{', '.join(wrong) or 'means'} do not fit {n_classes} classes of {dim} features")
    if len({tensor.dtype for tensor in (means, shots, origin, points)} | {torch.float32}) > 2 or any(
        tensor.dtype not in (torch.float32, torch.float64) or not bool(tensor.isfinite().all())
        for tensor in (means, shots, origin, points)
    ):
        raise ValueError("means, shots, origin and points must be finite numbers of float32 or float64")
    if not bool((shots >= 1).all()) or (codes < 0).any() or (codes >= n_classes).any():
        raise ValueError("every class needs an example, and every example a class")
    ordered, places = np.unique(classes, return_index=True)
    if len(ordered) != n_classes or (places != np.arange(n_classes)).any():
        raise ValueError("the classes are not distinct and in increasing order")
    if about["transform"] not in ROW_TRANSFORMS:
        raise ValueError(f"transform {about['transform']!r}")
    scale = None if about["squared_scale"] is None else float(about["squared_scale"])
    if scale is not None and not (scale > 0 and math.isfinite(scale)):
        raise ValueError(f"squared_scale {scale}")
    return Catalogue(
        parts=(ClassMeans(classes, shots, means),),
        origin=origin,
        transform=about["transform"],
        squared_scale=scale,
        examples=Examples(classes[codes], points, positions),
        n_examples=int(about["n_examples"]),
    )
