"""Names of classes: what is one, how it is kept, and which look alike.

Blanks at either end do not count, nor does what cannot be seen. Every door that takes a name keeps it as `plain_label`
returns it, and every door at which a person types a new one refuses what `new_name` refuses.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from handful.errors import LabelError
from handful.machine.untrusted import writable
from handful.shapes import Int

# White space of Unicode, and what is as invisible: blanks of no width and the byte order mark.
BLANKS = (
    "\t\n\x0b\x0c\r\x1c\x1d\x1e\x1f \x85\xa0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a"
    "\u2028\u2029\u202f\u205f\u3000\u200b\u2060\ufeff"
)
# Control characters, soft hyphens, marks of direction and blanks of no width. Joiners belong to words of some scripts.
UNSEEN = re.compile(
    "[\x00-\x08\x0e-\x1b\x7f-\x84\x86-\x9f\xad\u061c\u180e\u200b\u200e\u200f\u202a-\u202e\u2060-\u2064\u2066-\u206f\ufeff]"
)
# What people put between the words of a name: blanks, underscores and dashes, between two letters or digits.
BETWEEN_WORDS = re.compile(rf"(?<=[^\W_])[{BLANKS}_\-\u2010-\u2015]+(?=[^\W_])")
# Text that stands for a missing label: nothing, and what Python and pandas write for a missing value as text.
NO_LABEL = ("", "nan", "NaN", "<NA>")
# What a review says about items without a class.
NO_CLASS = ("none of these", "bad item", "passed")
# Types of pandas for a missing value.
MISSING_TYPES = ("NAType", "NaTType")
# Names whose plain form is remembered.
MOST_KEPT = 1024
# Groups of similar names that a sentence lists.
MOST_LISTED = 5


class SimilarNames(NamedTuple):
    """Names of classes that differ only by case, blanks, dashes, underscores or the form of their characters."""

    names: tuple[str, ...]
    counts: tuple[int, ...]  # examples of each class

    def __str__(self) -> str:
        """Return the names with their numbers of examples."""
        return " and ".join(f"{name!r} ({n:,})" for name, n in zip(self.names, self.counts, strict=True))


def plain_label(label: Any) -> Any:
    r"""Return a label as it is kept: text without blanks at either end or unseen characters, composed (NFC).

    Labels that are not text stay as they are; parts of a tuple are labels too.

    Examples
    --------
    >>> plain_label(" Ka\u0308\u200bse\xa0") == plain_label("Käse"), plain_label(7), plain_label(("a ", 1))
    (True, 7, ('a', 1))
    """
    if isinstance(label, str):
        return _plain(label)
    return tuple(map(plain_label, label)) if isinstance(label, tuple) else label


@lru_cache(MOST_KEPT)
def _plain(label: str) -> str:
    """Return a name as it is kept; the same one comes again and again, and can be long."""
    seen = label if label.isprintable() else writable(UNSEEN.sub("", label))
    return unicodedata.normalize("NFC", seen.strip(BLANKS))


def plain_labels(labels: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return the labels as `plain_label` returns each; the same array if nothing changes."""
    if labels.dtype.kind not in "OU":
        return labels
    before = labels.ravel().tolist()
    after = [plain_label(label) for label in before]
    if all(a is b or (isinstance(b, str) and a == b) for a, b in zip(after, before, strict=True)):
        return labels
    changed = np.empty(len(after), dtype=object)
    changed[:] = after
    return (changed if labels.dtype.kind == "O" else changed.astype(str)).reshape(labels.shape)


def is_missing(label: Any, none: Collection[str] = NO_LABEL) -> bool:
    """Whether a label is none: None, not a number, `NA` of pandas, blank, or text that stands for none of them.

    Examples
    --------
    >>> [is_missing(label) for label in (None, float("nan"), "", "  ", "nan", "NA", "Unknown", 0)]
    [True, True, True, True, True, False, False, False]
    """
    if isinstance(label, bytes):
        label = label.decode(errors="replace")
    if isinstance(label, str):
        plain = plain_label(label)
        return not plain or plain in none
    if isinstance(label, (float, np.floating, np.datetime64, np.timedelta64)):
        return bool(np.isnan(label))
    return label is None or type(label).__name__ in MISSING_TYPES


def new_name(label: Any, known: Collection[Any] = ()) -> Any:
    """Return a name that a person gives to a class, as it is kept; refuse what says that there is no class.

    A class that is known is one, whatever it is called.

    Examples
    --------
    >>> new_name(" fox"), new_name("passed", ["passed"])
    ('fox', 'passed')
    >>> new_name("nan")
    Traceback (most recent call last):
        ...
    handful.errors.LabelError: 'nan' is not a class: it says that a label is missing; give another name
    """
    name = plain_label(label.item() if isinstance(label, np.generic) else label)
    if name not in known and is_missing(name):
        raise LabelError(f"{label!r} is not a class: it says that a label is missing; give another name")
    if name not in known and name in NO_CLASS:
        raise LabelError(f"{name!r} cannot be the name of a class: it says that an item has none; give another name")
    return name


def merged_names(
    codes: Int[np.ndarray, "row"], names: Sequence[str]
) -> tuple[Int[np.ndarray, "row"], tuple[str, ...], Int[np.ndarray, "class"]]:
    """Return the class of each row and the names, where names that differ by blanks or Unicode form are one class.

    Also the new place of each old class. Names that were equal before stay separate classes.

    Examples
    --------
    >>> codes, names, _ = merged_names(np.array([0, 1, 2, 1]), ["ant", "bee", "ant "])
    >>> codes.tolist(), names
    ([0, 1, 0, 1], ('ant', 'bee'))
    """
    first: dict[tuple[str, int], int] = {}
    seen: dict[str, int] = {}
    places = []
    for name in names:
        seen[name] = seen.get(name, -1) + 1
        places.append(first.setdefault((plain_label(name), seen[name]), len(first)))
    moved = np.array(places, dtype=np.int64)
    return moved[codes], tuple(name for name, _ in first), moved


def similar_names(names: Sequence[Any], counts: Sequence[float]) -> list[SimilarNames]:
    """Return the groups of names that look alike, in the order of the names; they are not merged.

    Examples
    --------
    >>> similar_names(["Red fox", "red_fox", "wolf", "-1", "1"], [4, 1, 3, 2, 2])
    [SimilarNames(names=('Red fox', 'red_fox'), counts=(4, 1))]
    """
    alike: dict[str, list[int]] = {}
    for place, name in enumerate(names):
        if isinstance(name, str):
            shape = BETWEEN_WORDS.sub(" ", unicodedata.normalize("NFKC", name)).casefold()
            alike.setdefault(unicodedata.normalize("NFKC", shape), []).append(place)
    return [
        SimilarNames(tuple(names[k] for k in places), tuple(int(counts[k]) for k in places))
        for places in alike.values()
        if len(places) > 1
    ]


def similar_summary(similar: Sequence[SimilarNames]) -> str:
    """Say in a sentence which names look alike, with numbers of examples; empty if none do.

    Examples
    --------
    >>> similar_summary(similar_names(["Fox", "fox"], [4, 1]))
    "Some classes have names that look alike: 'Fox' (4) and 'fox' (1). If they are the same class, give it one name."
    """
    if not similar:
        return ""
    more = f"; and {len(similar) - MOST_LISTED:,} more" if len(similar) > MOST_LISTED else ""
    listed = "; ".join(map(str, similar[:MOST_LISTED])) + more
    return f"Some classes have names that look alike: {listed}. If they are the same class, give it one name."
