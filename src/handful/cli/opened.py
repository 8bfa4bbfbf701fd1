"""A catalogue that a command names: it is opened, or a sentence says what the file is instead."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from handful.cli.terminal import data

if TYPE_CHECKING:
    from handful.catalogue.file import CatalogueFile


def opened(path: Path) -> CatalogueFile:
    """Open a catalogue; one of version 0.5 is taken over, and examples are refused."""
    from handful.catalogue.file import CatalogueFile, is_catalogue_file
    from handful.errors import FileFormatError, StorageError
    from handful.fitted.files import is_model_path
    from handful.items.earlier import is_earlier, take_over_file
    from handful.machine.untrusted import absent

    if not path.exists():
        raise absent(path, StorageError)
    if path.suffix.lower() == ".handful" and is_earlier(path):
        data(take_over_file(path))
    elif not is_catalogue_file(path):
        what = "is a model, which is never changed" if is_model_path(path) else "is no catalogue"
        raise FileFormatError(
            f"{path} {what}; make a catalogue of it: handful catalogue build {path} --out {path.stem}.handful"
        )
    return CatalogueFile.open(path, create=False)
