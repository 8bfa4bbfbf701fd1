"""Changes of the classes of a catalogue: each is an event that is appended, and can be taken back.

A class has its name by what people said, so another name is said once, and holds for all of its items.
"""

from __future__ import annotations

from collections.abc import Sequence

from handful.arguments import did_you_mean
from handful.catalogue.events import EventItem
from handful.catalogue.file import CatalogueFile
from handful.errors import LabelError, OptionError
from handful.reading.class_names import new_name, plain_label


def rename(file: CatalogueFile, label: str, new: str, *, person: str = "") -> None:
    """Give a class another name, which no class has.

    Examples
    --------
    >>> import numpy as np
    >>> from handful.items import import_labelled
    >>> file = CatalogueFile.open()
    >>> _ = import_labelled(file, (np.eye(3), ["tit", "Tit", "owl"]), "monday")
    >>> merge(file, ["Tit", "tit"], "great tit")
    >>> rename(file, "owl", "barn owl")
    >>> remove(file, items=[1])
    >>> {item: one.label for item, one in file.said.answers.items()}
    {1: None, 2: 'great tit', 3: 'barn owl'}
    """
    old = known_class(file, label)
    name = _new(file, new)
    if name in file.said.classes:
        raise LabelError(f"{name!r} is a class already; merge the two, or choose another name")
    file.append("renamed", {"label": old, "into": name}, person=person)


def merge(file: CatalogueFile, labels: Sequence[str], into: str, *, person: str = "") -> None:
    """Make one class of several; `into` is one of them, or another class, or new."""
    old = [known_class(file, label) for label in labels]
    name = _new(file, into)
    with_name = [label for label in dict.fromkeys(old) if label != name]
    if not with_name:
        raise LabelError(f"{name!r} is one class already; name those that it is to have")
    for label in with_name:
        file.append("renamed", {"label": label, "into": name}, person=person)


def remove(file: CatalogueFile, labels: Sequence[str] = (), items: Sequence[int] = (), *, person: str = "") -> None:
    """Give classes up, whose items then have no class; and leave single items open."""
    old = [known_class(file, label) for label in labels]
    answered = file.said.all_answers
    for item in items:
        if item not in answered:
            raise OptionError(f"nobody has said anything about an item {item}; check its number")
    for label in dict.fromkeys(old):
        file.append("removed", {"label": label}, person=person)
    if items:
        file.append("open", {}, [EventItem(item) for item in dict.fromkeys(items)], person=person)


def known_class(file: CatalogueFile, label: str) -> str:
    """Return a class of a catalogue by its name."""
    name = str(plain_label(label))
    if name not in file.said.classes:
        raise LabelError(
            f"class {label!r} is not in the catalogue{did_you_mean(name, file.said.classes)}; check its name"
        )
    return name


def _new(file: CatalogueFile, name: str) -> str:
    return str(new_name(name, file.said.classes))
