"""Names that look alike: the same but for case, blanks, a plural or one letter."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable
from typing import Any

from handful.reading.class_names import BETWEEN_WORDS, plain_label

# Names with fewer letters differ by one letter without being alike: "cat" and "bat".
# [letters; convention]
FEWEST_LETTERS = 5


def similar_names(name: Any, names: Iterable[Any]) -> list[Any]:
    """Return those of other names that look like this one, and may be meant.

    Parameters
    ----------
    name : label
        A name that is about to be said.
    names : iterable of label
        Names that were said before.

    Returns
    -------
    list of label
        Those that differ by case, blanks, dashes, a plural, or one letter more, less, changed or exchanged; the name
        itself is not among them. Labels that are not text look like nothing else.

    Examples
    --------
    >>> similar_names("foxes", ["fox", "Foxes", "owl"]), similar_names("red-fox", ["Red fox", "red box"])
    (['fox', 'Foxes'], ['Red fox', 'red box'])
    >>> similar_names("class 1", ["class 2"]), similar_names("cat", ["bat", "Cat"])
    ([], ['Cat'])
    """
    said = plain_label(name)
    if not isinstance(said, str):
        return []
    shape = _shape(said)
    return [other for other in names if isinstance(other, str) and other != said and _alike(shape, _shape(other))]


def _shape(name: str) -> str:
    """Return a name without case, and with single blanks between words."""
    return BETWEEN_WORDS.sub(" ", unicodedata.normalize("NFKC", plain_label(name))).casefold()


def _alike(one: str, other: str) -> bool:
    if one == other or one in _plurals(other) or other in _plurals(one):
        return True
    if min(len(one), len(other)) < FEWEST_LETTERS or _digits(one) != _digits(other):
        return False
    return _one_letter_apart(one, other)


def _plurals(name: str) -> tuple[str, ...]:
    """Return how a name may look as a plural."""
    ending_in_y = (f"{name[:-1]}ies",) if name.endswith("y") else ()
    return (f"{name}s", f"{name}es", *ending_in_y)


def _digits(name: str) -> str:
    """Return the digits of a name: "class 1" and "class 2" are meant to differ."""
    return "".join(letter for letter in name if letter.isdigit())


def _one_letter_apart(one: str, other: str) -> bool:
    """Whether one letter was added, left out, changed, or exchanged with the next."""
    if len(one) > len(other):
        one, other = other, one
    if len(other) - len(one) > 1:
        return False
    at = next((place for place, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), len(one))
    if len(one) < len(other):
        return one[at:] == other[at + 1 :]
    exchanged = one[at : at + 2] == other[at : at + 2][::-1] and one[at + 2 :] == other[at + 2 :]
    return one[at + 1 :] == other[at + 1 :] or exchanged
