"""Tensors in a file that runs no code when it is read: safetensors, written completely or not at all."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

from handful.errors import FileFormatError
from handful.machine.untrusted import refuse_irregular
from handful.machine.whole_file import written_whole


def write_tensors(path: str | Path, tensors: Mapping[str, Tensor], metadata: Mapping[str, str] | None = None) -> None:
    """Write named tensors; the file appears complete or not at all."""
    with written_whole(Path(path)) as place:
        save_tensors(place, tensors, metadata)


def save_tensors(place: Path, tensors: Mapping[str, Tensor], metadata: Mapping[str, str] | None = None) -> None:
    """Write named tensors to a file that no process reads yet."""
    # Copies, because the package accepts no tensors that share memory or are not contiguous.
    held = {
        name: tensor.detach().cpu().clone(memory_format=torch.contiguous_format) for name, tensor in tensors.items()
    }
    try:
        save_file(held, place, dict(metadata) if metadata else None)
    except (SafetensorError, KeyError, TypeError, ValueError, RuntimeError) as error:
        kinds = ", ".join(sorted({str(tensor.dtype) for tensor in held.values()}))
        raise FileFormatError(f"tensors of {kinds} cannot be written as safetensors ({error})") from error


def read_tensors(path: str | Path) -> tuple[dict[str, Tensor], dict[str, str]]:
    """Tensors and metadata of a file; files that do not fit the format are refused."""
    with _opened(path) as file:
        # Copies: the package gives views of the mapped file, which others may replace.
        tensors = {name: file.get_tensor(name).clone() for name in file.keys()}  # noqa: SIM118
        return tensors, dict(file.metadata() or {})


def read_part(path: str | Path, rows: Callable[[str], slice | None]) -> dict[str, Tensor]:
    """Rows `rows(name)` of each tensor of a file, those for which it is None left out; nothing else is read."""
    with _opened(path) as file:
        wanted = {name: rows(name) for name in file.keys()}  # noqa: SIM118
        return {name: file.get_slice(name)[part].clone() for name, part in wanted.items() if part is not None}


@contextmanager
def _opened(path: str | Path) -> Iterator[Any]:
    refuse_irregular(path, FileFormatError)
    try:
        with safe_open(path, framework="pt") as file:
            yield file
    except FileNotFoundError as error:
        raise FileFormatError(f"{path} does not exist; check the path") from error
    except (SafetensorError, OSError, KeyError, TypeError, ValueError, RuntimeError) as error:
        raise FileFormatError(
            f"{path} is not a safetensors file, or it is damaged ({error}); copy or make it again"
        ) from error
