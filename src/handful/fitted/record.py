"""Record: what is known about the examples of a catalogue beside their vectors and labels.

An example is known by its position: how many examples the catalogue had been given before it. Positions stay the same
when other examples are added or removed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt


@dataclass(frozen=True, eq=False)
class Record:
    """What is known about the examples of a catalogue beside their vectors and labels.

    Attributes
    ----------
    encoder : str
        What made the vectors, with the hash of its weights; empty if that is not known.
    feature_names : tuple of str or None
        Names of the features.
    columns : mapping of str to mapping
        Other columns of the examples, by name and position: the genus of a species, the precursor of a spectrum.
    """

    encoder: str = ""
    feature_names: tuple[str, ...] | None = None
    columns: Mapping[str, Mapping[int, Any]] = field(default_factory=dict)


# -- as tensors and JSON --------------------------------------------------------------------------------------------


def record_parts(record: Record, positions: Sequence[int]) -> tuple[dict[str, npt.NDArray[Any]], dict[str, Any]]:
    """Return the tensors of a record about the examples at these positions, and everything else as JSON.

    A column is the list of its distinct values, and a tensor with the place of each example's value, -1 for none.
    """
    tensors = dict[str, npt.NDArray[Any]]()
    columns = dict[str, list[Any]]()
    for name, of_examples in record.columns.items():
        values = [of_examples.get(at) for at in positions]
        columns[name] = list(dict.fromkeys(value for value in values if value not in (None, "")))
        places = {value: place for place, value in enumerate(columns[name])}
        tensors[f"columns.{name}"] = np.array([places.get(value, -1) for value in values], np.int64)
    names = None if record.feature_names is None else list(record.feature_names)
    return tensors, {"encoder": record.encoder, "feature_names": names, "columns": columns}


def record_of(
    tensors: Mapping[str, npt.NDArray[Any]], about: Mapping[str, Any], positions: Sequence[int], dim: int
) -> Record:
    """Undo `record_parts`; a ValueError says what does not fit together."""
    encoder = about["encoder"]
    names = about["feature_names"]
    if not isinstance(encoder, str):
        raise ValueError(f"vectors made by {encoder!r}")
    if names is not None and (len(names) != dim or not all(isinstance(name, str) for name in names)):
        raise ValueError(f"it has no name for each of the {dim} features")
    columns = dict[str, dict[int, Any]]()
    for name, values in about["columns"].items():
        found = _decoded(tensors[f"columns.{name}"], values, len(positions))
        columns[name] = {at: value for at, value in zip(positions, found, strict=True) if value is not None}
    return Record(encoder, None if names is None else tuple(names), columns)


def _decoded(places: npt.NDArray[Any], values: Any, n_examples: int) -> list[Any]:
    if not isinstance(values, list) or not all(isinstance(value, (str, int, float)) for value in values):
        raise ValueError("values of a column that are neither text nor numbers")
    if places.shape != (n_examples,) or places.dtype != np.int64 or not bool((places < len(values)).all()):
        raise ValueError("a column does not fit the examples")
    return [None if place < 0 else values[place] for place in places.tolist()]
