"""A folder per class, with copies of the images of a catalogue or links to them; whole, or not at all."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterable, Sequence
from pathlib import Path

from handful.catalogue.file import CatalogueFile
from handful.errors import OptionError, StorageError
from handful.items.looking_up import pictures_of
from handful.machine.outputs import UNFINISHED, explain_refusal
from handful.reading.contents import FolderFiles, Unreadable
from handful.review.item_rows import SaidRow, label_of
from handful.review.item_tables import write_kinds

# What a name of a file cannot have on some system, and names that one system keeps for itself.
REFUSED = re.compile(r'[<>:"/\\|?*\x00-\x1f\x7f]')
RESERVED = re.compile(r"(con|prn|aux|nul|com[0-9]|lpt[0-9])(\..*)?", re.IGNORECASE)
# Bytes of a name; systems allow 255, and a number may be added. [bytes; limit]
LONGEST = 200
# The error of Windows for a link that this person may not make.
NO_PRIVILEGE = 1314
# The name of the folder of items that have no class, and of the table of kinds.
NO_CLASS = "no class"
KINDS = "kinds.csv"


def write_class_folders(file: CatalogueFile, rows: Sequence[SaidRow], out: Path, *, links: bool = False) -> list[str]:
    """Write the images of items into a folder for each label, and the table of kinds; return what could not be read.

    Parameters
    ----------
    file, rows
        The catalogue, and its items with what was said about them.
    out
        The folder; it must not be there, or be empty.
    links
        Whether it has links instead of copies.
    """
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise OptionError(f"{out} is there already; name a new folder")
    labels = {row.item: label_of(row) for row in rows}
    items = [row.item for row in file.rows(list(labels)) if row.kind == "image"]
    pictures = pictures_of(file, items) if items else None
    if pictures is None:
        raise OptionError("a folder per class needs images, and there are none; name a table instead, such as out.csv")
    if links and not isinstance(pictures, FolderFiles):
        raise OptionError("images in archives, or of several batches of them, cannot be linked; leave --links out")
    folders = distinct_names({label or NO_CLASS for label in labels.values()})
    places = {item: place for batch in file.said.places.values() for item, place in batch.items()}
    of_label: dict[str, list[int]] = {}
    for item in items:
        of_label.setdefault(labels[item] or NO_CLASS, []).append(item)
    names: dict[int, str] = {}
    for some in of_label.values():
        names |= dict(zip(some, _each([Path(places[item]).name for item in some]), strict=True))
    lost = []
    whole = Path(os.path.abspath(out))
    unfinished = whole.with_name(f".{whole.name}.{os.getpid()}{UNFINISHED}")
    with explain_refusal(whole, unfinished):
        unfinished.mkdir(parents=True)
        try:
            for at, (item, content) in enumerate(zip(items, pictures, strict=True)):
                if not isinstance(content, bytes) or not content:
                    why = f" ({content.reason})" if isinstance(content, Unreadable) else ""
                    lost.append(f"{places[item]}{why}")
                    continue
                place = unfinished / folders[labels[item] or NO_CLASS] / names[item]
                place.parent.mkdir(exist_ok=True)
                if links and isinstance(pictures, FolderFiles):
                    _link(place, Path(os.path.abspath(pictures.root / pictures.names[at])))
                else:
                    place.write_bytes(content)
            if len(lost) == len(items):
                raise StorageError(f"none of the {len(items):,} images can be read, the first is {lost[0]}")
            write_kinds(rows, unfinished / KINDS)
            if whole.exists():
                whole.rmdir()
            os.replace(unfinished, whole)
        finally:
            shutil.rmtree(unfinished, ignore_errors=True)
    return lost


def _link(place: Path, image: Path) -> None:
    """Make a link to an image; Windows allows it to developers and administrators."""
    try:
        place.symlink_to(image)
    except OSError as error:
        if getattr(error, "winerror", None) == NO_PRIVILEGE:
            raise OptionError(
                "this system does not let you make links; leave --links out, and copies are made"
            ) from error
        raise


def distinct_names(labels: Iterable[str]) -> dict[str, str]:
    """Return a name for the folder of each label; two that a system would take for one stay apart.

    Examples
    --------
    >>> distinct_names(["a/b", "a:b", "Fox", "fox", "con"])
    {'Fox': 'Fox', 'a/b': 'a_b', 'a:b': 'a_b (2)', 'con': 'con_', 'fox': 'fox (2)'}
    """
    ordered = sorted(labels)
    return dict(zip(ordered, _each(ordered, {KINDS}), strict=True))


def safe_name(name: str) -> str:
    """Return a name that every system allows.

    Examples
    --------
    >>> safe_name("what? a fox."), safe_name(".."), safe_name("NUL.txt")
    ('what_ a fox', '_', '_NUL.txt')
    """
    plain = REFUSED.sub("_", name).rstrip(". ") or "_"
    if RESERVED.fullmatch(plain):
        plain = f"_{plain}" if "." in plain else f"{plain}_"
    stem, dot, ending = plain.rpartition(".")
    if len(plain.encode("utf-8", "replace")) <= LONGEST:
        return plain
    short = (stem or plain).encode("utf-8", "replace")[: LONGEST - len(ending.encode("utf-8", "replace")) - 1]
    return short.decode("utf-8", "ignore").rstrip(". ") + (dot + ending if stem else "")


def _each(names: Iterable[str], reserved: Iterable[str] = ()) -> list[str]:
    """Return safe names, of which each occurs once, however its letters are written, and none that is reserved."""
    safe = [safe_name(name) for name in names]
    taken = set(reserved)
    found = []
    for name in safe:
        stem, dot, ending = name.rpartition(".")
        number = 1
        one = name
        while one.casefold() in taken:
            number += 1
            one = f"{stem} ({number}){dot}{ending}" if stem else f"{name} ({number})"
        taken.add(one.casefold())
        found.append(one)
    return found
