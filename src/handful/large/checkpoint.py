"""The checkpoint of a run: tensors in one safetensors file, everything else as JSON in its metadata.

One file, replaced in one step: after a kill there is the state of this iteration or of the one before, never a mixture.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from torch import Tensor

from handful.errors import OptionError
from handful.safetensors_format import read_tensors, write_tensors
from handful.whole_file import written_whole

STATE_FILE, ABOUT_FILE = "state.safetensors", "run.json"


def save_state(folder: Path, tensors: Mapping[str, Tensor], notes: Mapping[str, Any]) -> None:
    """Replace the checkpoint."""
    write_tensors(folder / STATE_FILE, tensors, {"notes": json.dumps(dict(notes))})


def load_state(folder: Path) -> tuple[dict[str, Tensor], dict[str, Any]] | None:
    """Return tensors and notes of the last checkpoint, or None where there is none yet."""
    if not (folder / STATE_FILE).exists():
        return None
    tensors, metadata = read_tensors(folder / STATE_FILE)
    notes: dict[str, Any] = json.loads(metadata["notes"])
    return tensors, notes


def claim(folder: Path, about: Mapping[str, Any]) -> None:
    """Begin a run in a folder, or find that the one in it is the same and can be resumed."""
    folder.mkdir(parents=True, exist_ok=True)
    text = json.dumps(dict(about), indent=1, sort_keys=True)
    file = folder / ABOUT_FILE
    if not file.exists():
        with written_whole(file) as place:
            place.write_text(text, encoding="utf-8")
        return
    there = json.loads(file.read_text(encoding="utf-8"))
    different = sorted(name for name in {*there, *about} if there.get(name) != json.loads(text).get(name))
    if different:
        raise OptionError(
            f"{folder} holds a run that differs in {', '.join(different)}; give it what it was begun with to resume "
            "it, or choose another folder"
        )
