"""A model as one file: tensors in the safetensors format, labels and settings as JSON in its header.

Nothing is pickled and nothing in the file is executed: an untrusted file can be wrong, but can do no harm. One that was
damaged does not fit its checksum and is refused.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from handful.errors import FileFormatError
from handful.fitted.fitted import FittedModel
from handful.fitted.labels import decode_labels, encode_labels, places_of
from handful.fitted.parts import ClassMeans, ClassNames, Examples
from handful.fitted.record import record_of, record_parts
from handful.fitted.rows import ROW_TRANSFORMS, largest_feature
from handful.machine.outputs import linked_file
from handful.machine.safetensors_format import read_tensors, write_tensors
from handful.machine.untrusted import parse_json
from handful.model.head import LinearHead
from handful.model.left_out import LeftOutExamples
from handful.model.unknown_of_catalogue import UnknownModel
from handful.reading.class_names import plain_labels

FORMAT = "handful model"
# Version of the file. [version; convention]
FORMAT_VERSION = 1
# Endings by which a model is told from a table.
ENDINGS = (".model", ".safetensors")
HEAD_TENSORS = ("weights", "offsets", "means", "mass")
# Figures without a unit of a genuine model lie well between these. [ratio; convention]
LEAST_FIGURE = 1e-9
LARGEST_FIGURE = 1e9
# A genuine model has fewer examples. [examples; convention]
MOST_EXAMPLES = 2**50
# Differences of two rows are at most twice as long as the rows. [ratio; convention: the triangle inequality]
LONGEST_DIFFERENCE = 2.0
# How far rounding takes a mean of chances above 1. [chance; convention]
ROUNDING = 1e-6
HEAD_NUMBERS = ("spread", "temperature", "wrong_share", "confidence")


def save_model(model: FittedModel, path: str | os.PathLike[str]) -> None:
    """Write the file, complete or not at all; an older one of that name is replaced, and a link to one stays a link.

    Parameters
    ----------
    model : FittedModel
        The model; its head is fitted if that was not done before.
    path : path
        The file.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> place = Path(tempfile.mkdtemp()) / "model.safetensors"
    >>> save_model(FittedModel.of(np.eye(3), np.array(["ant", "bee", "cat"])), place)
    >>> load_model(place).classes.tolist()
    ['ant', 'bee', 'cat']
    """
    tensors, about = parts_of(model)
    about |= {"format": FORMAT, "format_version": FORMAT_VERSION}
    write_tensors(linked_file(Path(path)), tensors, {"handful": json.dumps(about)})


def load_model(path: str | os.PathLike[str]) -> FittedModel:
    """Read a file that `save_model` wrote, refusing inconsistent content.

    Parameters
    ----------
    path : path
        The file.

    Returns
    -------
    FittedModel
        The model, with its head.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> place = Path(tempfile.mkdtemp()) / "model.safetensors"
    >>> save_model(FittedModel.of(np.eye(3), np.array([4, 5, 6])), place)
    >>> print(load_model(place).report())
    3 classes, 3 examples.
    3 classes have one example: 4, 5, 6.
    """
    try:
        tensors, metadata = read_tensors(os.fspath(path))
    except FileFormatError as error:
        # Without an ending it may be a damaged model, and the error says what is wrong with it.
        may_be_one = is_model_path(path) or (os.path.isfile(path) and not os.path.splitext(path)[1])
        if may_be_one or not os.path.exists(path):
            raise
        raise FileFormatError(
            f"{path} is not a file of a model ({', '.join(ENDINGS)}), nor a catalogue; make one of labelled examples: "
            f"handful catalogue build {path} --out {Path(path).stem}.handful"
        ) from error
    try:
        about = parse_json(metadata["handful"])
        if (about["format"], about["format_version"]) != (FORMAT, FORMAT_VERSION):
            raise ValueError(f"it says {about['format']!r}, version {about['format_version']!r}, not {FORMAT_VERSION}")
        return model_from(tensors, about)
    except (KeyError, TypeError, ValueError, AttributeError, RuntimeError, OverflowError) as error:
        raise FileFormatError(
            f"{path} is not a model that this handful can read ({error}); update handful if a later version wrote "
            "it, or else fit and save it again with this version"
        ) from error


def is_model_path(path: Any) -> bool:
    """Whether something is the path of a file of a model, by its ending."""
    return isinstance(path, (str, os.PathLike)) and os.fspath(path).lower().endswith(ENDINGS)


def parts_of(model: FittedModel) -> tuple[dict[str, npt.NDArray[Any]], dict[str, Any]]:
    """Return the tensors of a model, and everything else as values of JSON."""
    examples = model.examples
    head = model.head
    tensors = {
        "means": model.means,
        "shots": model.shots,
        "origin": model.origin,
        "points": examples.points,
        "codes": places_of(examples.labels, model.classes),
        "positions": examples.positions,
        **{f"head.{name}": getattr(head, name) for name in HEAD_TENSORS},
        **{f"left_out.{name}": column for name, column in head.left_out._asdict().items()},
    }
    if model.names is not None:
        tensors["names.points"] = model.names.points
        tensors["names.codes"] = places_of(model.names.classes, model.classes)
    about = {
        "classes": encode_labels(model.classes),
        "transform": model.transform,
        "n_examples": model.n_examples,
        "head": {name: getattr(head, name) for name in HEAD_NUMBERS} | {"n_fitted": head.n_fitted},
        "unknown_model": None if model.unknown_model is None else model.unknown_model._asdict(),
    }
    of_record, about["record"] = record_parts(model.record, examples.positions.tolist())
    return tensors | {f"record.{name}": tensor for name, tensor in of_record.items()}, about


def model_from(tensors: Mapping[str, npt.NDArray[Any]], about: Mapping[str, Any]) -> FittedModel:
    """Undo `parts_of`; a ValueError says what does not fit together."""
    classes = decode_labels(about["classes"])
    if "" in plain_labels(classes).tolist():
        raise ValueError("a class without a name")
    means = tensors["means"]
    shots = tensors["shots"]
    origin = tensors["origin"]
    points = tensors["points"]
    codes = tensors["codes"]
    positions = tensors["positions"]
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
    if len({tensor.dtype for tensor in (means, shots, origin, points)} | {np.dtype(np.float32)}) > 2 or any(
        tensor.dtype not in (np.float32, np.float64) or not bool(np.isfinite(tensor).all())
        for tensor in (means, shots, origin, points)
    ):
        raise ValueError("means, shots, origin and points must be finite numbers of float32 or float64")
    names = _names_of(tensors, classes, means)
    without = shots if names is None else shots[np.setdiff1d(np.arange(n_classes), tensors["names.codes"])]
    if (
        not bool((without >= 1).all())
        or not bool((shots >= 0).all())
        or (codes < 0).any()
        or (codes >= n_classes).any()
        or (np.bincount(codes, minlength=n_classes) > shots).any()
    ):
        raise ValueError("every class needs an example or a name, and every example a class that counts it")
    ordered, places = np.unique(classes, return_index=True)
    if len(ordered) != n_classes or (places != np.arange(n_classes)).any():
        raise ValueError("the classes are not distinct and in increasing order")
    if about["transform"] not in ROW_TRANSFORMS:
        raise ValueError(f"transform {about['transform']!r}")
    head = _head_of(tensors, about["head"], means, len(codes))
    unknown_model = _unknown_model_of(about["unknown_model"], head)
    _check_sizes(tensors, head, unknown_model, about["transform"])
    return FittedModel(
        class_means=ClassMeans(classes, shots, means),
        origin=origin,
        transform=about["transform"],
        examples=Examples(classes[codes], points, positions),
        n_examples=int(about["n_examples"]),
        names=names,
        record=record_of(_below("record.", tensors), about["record"], positions.tolist(), dim),
    ).with_fitted(head, unknown_model)


def _check_sizes(
    tensors: Mapping[str, npt.NDArray[Any]], head: LinearHead, unknown_model: UnknownModel | None, transform: str
) -> None:
    """Refuse numbers with which no item could be labelled, because a square or a sum of them is infinite."""
    dim = head.means.shape[1]
    rows = ("means", "origin", "points", "names.points", "head.means")
    longest = max(float(np.abs(tensors[name]).max(initial=0)) for name in rows if name in tensors)
    if longest > LONGEST_DIFFERENCE * largest_feature(transform, head.means.dtype):
        raise ValueError(f"a feature of {longest:.3g}")
    if max(tensors["shots"].sum(dtype=np.float64), head.mass.sum(dtype=np.float64)) > MOST_EXAMPLES:
        raise ValueError(f"more than {MOST_EXAMPLES:,} examples")
    with np.errstate(over="ignore", invalid="ignore"):
        scores = np.abs(head.weights).sum(1, dtype=np.float64) * LONGEST_DIFFERENCE * longest + np.abs(head.offsets)
        scores *= max(head.temperature, 1.0)  # new examples are fitted without it
    if not scores.max() < math.sqrt(np.finfo(head.weights.dtype).max):
        raise ValueError("weights and offsets of the head give scores whose squares are infinite")
    farthest = dim * (LONGEST_DIFFERENCE * longest) ** 2  # the square of a distance
    if (head.spread or 0) > farthest:
        raise ValueError(f"spread {head.spread:.3g} of the head")
    if unknown_model is not None:
        _check_figures(unknown_model, farthest)


def _check_figures(model: UnknownModel, farthest: float) -> None:
    """Refuse figures about items of no class that no model can have; `farthest` is the largest squared distance.

    Levels are ratios of squared distances, and variances are squares of such.
    """
    if (
        max(*model.distance, model.quarter) > farthest
        or min(*model.distance, model.quarter) < (LEAST_FIGURE**2) ** 2 * farthest
    ):
        raise ValueError("distances of items of no class that no model can have")
    ratio = LARGEST_FIGURE * farthest / model.distance[0]
    if (
        max(map(abs, (*model.pair_odds, *model.score, model.gain, model.scale))) > LARGEST_FIGURE
        or min(model.pair_odds[1], model.score[1], model.scale, model.unknown[0]) < LEAST_FIGURE
        or max(map(abs, (*model.level, model.farther))) > ratio
        or max(model.unknown) > ratio**2
    ):
        raise ValueError("figures about items of no class that no model can have")


def _below(prefix: str, tensors: Mapping[str, npt.NDArray[Any]]) -> dict[str, npt.NDArray[Any]]:
    """Return the tensors whose names start so, by the rest of their names."""
    return {name.removeprefix(prefix): tensor for name, tensor in tensors.items() if name.startswith(prefix)}


def _names_of(tensors: Mapping[str, npt.NDArray[Any]], classes: Any, means: npt.NDArray[Any]) -> ClassNames | None:
    """Read the names of classes, if there are any; a ValueError says what does not fit."""
    if "names.points" not in tensors:
        return None
    points = tensors["names.points"]
    codes = tensors["names.codes"]
    if codes.dtype != np.int64 or codes.ndim != 1 or points.shape != (len(codes), means.shape[1]) or len(codes) == 0:
        raise ValueError("vectors and classes of names do not fit together")
    increasing = np.array_equal(codes, np.unique(codes))
    if not increasing or int(codes[0]) < 0 or int(codes[-1]) >= len(classes):
        raise ValueError("names must be of distinct classes, in increasing order")
    if points.dtype != means.dtype or not bool(np.isfinite(points).all()):
        raise ValueError("vectors of names must be finite numbers of the type of the means")
    return ClassNames(classes[codes], points)


def _head_of(
    tensors: Mapping[str, npt.NDArray[Any]], numbers: Mapping[str, Any], means: npt.NDArray[Any], n_examples: int
) -> LinearHead:
    """Read the head of classes with these means; a ValueError says what does not fit."""
    n_classes = len(means)
    parts = {name: tensors[f"head.{name}"] for name in HEAD_TENSORS}
    for name, tensor in parts.items():
        shape = means.shape if name in ("weights", "means") else means.shape[:1]
        if tensor.shape != shape or tensor.dtype != means.dtype or not bool(np.isfinite(tensor).all()):
            raise ValueError(f"{name} of the head are not finite numbers of the shape and type of the means")
    found = LeftOutExamples(*(tensors[f"left_out.{name}"] for name in LeftOutExamples._fields))
    rows = found.rows
    rival = found.rival
    if any(column.shape != rows.shape for column in found) or rows.ndim != 1:
        raise ValueError("the columns about held-out examples have different lengths")
    if rows.dtype != np.int64 or rival.dtype != np.int64:
        raise ValueError("rows and rivals of held-out examples are not whole numbers")
    if len(rows) and not (rows.min() >= 0 and rows.max() < n_examples and rival.min() >= 0 and rival.max() < n_classes):
        raise ValueError("held-out examples or their rivals do not exist")
    chances = (found.right, found.own, found.lead)
    if any(column.dtype != np.float64 or bool(np.isnan(column).any()) for column in chances):
        raise ValueError("probabilities of held-out examples are not numbers of float64")
    if any(column.dtype != np.float64 or bool(np.isinf(column).any()) for column in (found.score, found.rival_score)):
        raise ValueError("scores of held-out examples are not numbers of float64")
    values = {name: None if numbers[name] is None else float(numbers[name]) for name in HEAD_NUMBERS}
    if not all(value is None or (value >= 0 and math.isfinite(value)) for value in values.values()):
        raise ValueError(f"numbers of the head: {values}")
    spread, temperature, wrong, confidence = values.values()
    if not temperature or wrong is None or not bool((parts["mass"] > 0).all()):
        raise ValueError("temperature, wrong_share and mass of the head must be positive numbers")
    if not LEAST_FIGURE <= temperature <= LARGEST_FIGURE:
        raise ValueError(f"temperature {temperature:.3g} of the head")
    if wrong > 1 or not (confidence is None or LEAST_FIGURE <= confidence <= 1 + ROUNDING):
        raise ValueError(f"wrong_share {wrong:.3g} and confidence {confidence} of the head, which are probabilities")
    n_fitted = int(numbers["n_fitted"])
    if not 0 <= n_fitted <= n_examples:
        raise ValueError(f"a head that was fitted to {n_fitted} of {n_examples} examples")
    return LinearHead(
        **parts,
        spread=spread,
        temperature=temperature,
        wrong_share=wrong,
        confidence=confidence,
        left_out=found,
        n_fitted=n_fitted,
    )


def _unknown_model_of(numbers: Mapping[str, Any] | None, head: LinearHead) -> UnknownModel | None:
    """Read what is known about items of no class; a ValueError says what does not fit."""
    if numbers is None:
        return None
    pairs = [tuple(map(float, numbers[name])) for name in ("pair_odds", "distance", "score", "level", "unknown")]
    scale, quarter, gain, farther = (float(numbers[name]) for name in ("scale", "quarter", "gain", "farther"))
    if set(numbers) != set(UnknownModel._fields) or not all(
        len(pair) == 2 and all(map(math.isfinite, pair)) for pair in [*pairs, (scale, quarter), (gain, farther)]
    ):
        raise ValueError(f"numbers about items of no class: {dict(numbers)}")
    pair_odds, distance, score, level, unknown = ((first, second) for first, second in pairs)
    found = UnknownModel(pair_odds, distance, score, scale, level, unknown, quarter, gain, farther)
    if (
        min(quarter, scale, pair_odds[1], distance[1], score[1], unknown[0]) <= 0
        or min(unknown[1], farther) < 0
        or head.spread is None
    ):
        raise ValueError("deviations and slopes of items of no class must be positive numbers")
    return found
