"""States: nested dictionaries of tensors and plain values, as a training saves, without pickle.

Tensors go into a safetensors file by number; the structure around them goes into its metadata as JSON, where a
dictionary is a list of pairs (its keys may be numbers) and a tensor is its number.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from handful.errors import CheckpointError, FileFormatError
from handful.machine.safetensors_format import read_tensors, write_tensors
from handful.machine.untrusted import parse_json

# Where a killed training left off, in the folder of the run.
STATE = "resume.safetensors"
SKELETON = "skeleton"


def write_state(path: Path, state: Mapping[str, Any]) -> None:
    """Write a state; the file appears complete or not at all."""
    tensors: dict[str, Tensor] = {}
    skeleton = _encoded(state, tensors, "state")
    write_tensors(path, tensors, {SKELETON: json.dumps(skeleton)})


def read_state(path: Path) -> dict[str, Any]:
    """Read what `write_state` wrote."""
    try:
        arrays, metadata = read_tensors(path)
        tensors = {name: torch.from_numpy(array) for name, array in arrays.items()}
        state: dict[str, Any] = _decoded(parse_json(metadata[SKELETON]), tensors)
    except (FileFormatError, KeyError, TypeError, ValueError, RecursionError) as error:
        raise CheckpointError(
            f"{path} is not the state of a training ({error}); remove it to start the training again"
        ) from error
    return state


def _encoded(value: Any, tensors: dict[str, Tensor], where: str) -> Any:
    if isinstance(value, Tensor):
        name = str(len(tensors))
        tensors[name] = value
        return {"tensor": name}
    if isinstance(value, Mapping):
        return {"pairs": [[_key(k, where), _encoded(v, tensors, f"{where}[{k!r}]")] for k, v in value.items()]}
    if isinstance(value, (list, tuple)):
        kind = "tuple" if isinstance(value, tuple) else "list"
        return {kind: [_encoded(v, tensors, f"{where}[{k}]") for k, v in enumerate(value)]}
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    raise CheckpointError(f"{where} is a {type(value).__name__}, which cannot be kept without pickle")


def _key(key: Any, where: str) -> str | int:
    if isinstance(key, (str, int)):
        return key
    raise CheckpointError(f"{where} has a key of type {type(key).__name__}; expected text or numbers")


def _decoded(value: Any, tensors: Mapping[str, torch.Tensor]) -> Any:
    if not isinstance(value, dict):
        return value
    ((kind, content),) = value.items()
    if kind == "tensor":
        return tensors[content]
    if kind == "pairs":
        return {k: _decoded(v, tensors) for k, v in content}
    return (tuple if kind == "tuple" else list)(_decoded(v, tensors) for v in content)
