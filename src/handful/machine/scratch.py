"""Local disk space for one run, which a process that continues the run finds again."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from handful.errors import StorageError


def scratch_folder(run: str, under: str | os.PathLike[str] | None = None) -> Path:
    """Return the private folder of a run on this machine's disk, by default in the system's temporary folder.

    Examples
    --------
    >>> place = scratch_folder("monday", tempfile.mkdtemp())
    >>> place.name, place.is_dir()
    ('handful-monday', True)
    """
    place = Path(tempfile.gettempdir() if under is None else under) / f"handful-{run}"
    place.mkdir(mode=0o700, parents=True, exist_ok=True)
    # Others can write to a temporary folder too, and the name can be guessed.
    if place.is_symlink() or (hasattr(os, "getuid") and place.stat().st_uid != os.getuid()):
        raise StorageError(f"{place} belongs to another user; remove it, or choose another folder for scratch files")
    return place
