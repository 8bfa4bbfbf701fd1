"""Catalogues of version 0.5: a file of a fitted catalogue, which has the name of the new file, is taken over.

This module goes in version 0.8.
"""

from __future__ import annotations

import filecmp
import shutil
from glob import escape
from pathlib import Path

from handful.catalogue.file import CatalogueFile, is_catalogue_file
from handful.errors import OptionError
from handful.items.imports import import_labelled
from handful.machine.lock import only_changer
from handful.machine.outputs import UNFINISHED, linked_file, written_whole
from handful.progress import Listener

# What the name of a file gets that was taken over.
OLD = ".old"


def is_earlier(path: Path) -> bool:
    """Whether a file is there, and is of another kind than a catalogue."""
    return path.is_file() and path.stat().st_size > 0 and not is_catalogue_file(path)


def old_file(path: Path) -> Path:
    """Return where the older file of a catalogue is kept.

    Examples
    --------
    >>> print(old_file(Path("birds.handful")))
    birds.old.handful
    """
    file = linked_file(path)
    return file.with_name(f"{file.stem}{OLD}{file.suffix}")


def take_over_file(path: Path, *, on_progress: Listener | None = None) -> str:
    """Make a catalogue of the examples of an older file, which stays beside it; return what was done, as a sentence.

    At every moment the path leads to the old file or to all of the new one. So what was killed begins again.
    """
    file = linked_file(path)
    old = old_file(path)
    with only_changer(file, OptionError):
        if not is_earlier(file):
            return ""  # another process was first
        if old.exists() and not filecmp.cmp(file, old, shallow=False):
            raise OptionError(f"{path} is of an earlier version, and {old} is in the way; move one of them")
        # What a killed process left: SQLite's journal, and a part of the copy.
        for left in (f".{escape(file.name)}.*{UNFINISHED}-journal", f".{escape(old.name)}.*{UNFINISHED}"):
            for one in file.parent.glob(left):
                one.unlink()
        with written_whole(old) as copy:
            shutil.copy(file, copy)
        try:
            with written_whole(file) as whole, CatalogueFile.open(whole) as catalogue:
                import_labelled(catalogue, old, file.stem, on_progress=on_progress)
        except BaseException:
            if is_earlier(file):
                old.unlink()
            raise
    return (
        f"{path} was of an earlier version: it is {old} now, and its examples are in the new {path}. What earlier "
        "reviews taught about certainties is learnt again."
    )
