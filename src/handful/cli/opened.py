"""A catalogue that a command names: it is opened, or a sentence says what the file is instead."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from handful.catalogue.file import CatalogueFile


def opened(path: Path) -> CatalogueFile:
    """Open a catalogue; refuse anything else."""
    from handful.catalogue.file import CatalogueFile, is_catalogue_file
    from handful.errors import FileFormatError, StorageError
    from handful.fitted.files import is_model_path
    from handful.machine.untrusted import absent

    if not path.exists():
        raise absent(path, StorageError)
    if not is_catalogue_file(path):
        raise FileFormatError(
            f"{path} is a model, which is never changed; give the catalogue that it was exported from"
            if is_model_path(path)
            else f"{path} is not a catalogue; make one of it: handful catalogue build {path} --out {path.stem}.handful"
        )
    return CatalogueFile.open(path, create=False)
