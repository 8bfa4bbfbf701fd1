"""Skipped: an item that was left out, and why; the same value for rows, images, labels and items of other tools."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from handful.errors import SkippedRowsWarning
from handful.machine.untrusted import printable

Why: TypeAlias = Literal["unreadable", "unsupported", "blank", "without label", "failed"]
# What each kind is called after a number.
WORDS: dict[Why, str] = {
    "unreadable": "unreadable",
    "unsupported": "of an unsupported kind",
    "blank": "blank",
    "without label": "without a label",
    "failed": "failed in the other tool",
}
# Items that a sentence lists.
MOST_LISTED = 5


@dataclass(frozen=True, slots=True)
class Skipped:
    """An item that was left out.

    Attributes
    ----------
    row : int
        Its position among the items.
    name : str
        Its name there, or its line in the file; a name may contain any character.
    reason : str
        Why it was left out, in words.
    kind : str
        `unreadable`; `unsupported`, a kind of file that is not read, such as HEIC; `blank`; `without label`; or
        `failed`, in the tool that wrote the file.

    Examples
    --------
    >>> str(Skipped(3, "line 5", "it has 2 values, the header has 3"))
    'line 5: it has 2 values, the header has 3'
    """

    row: int
    name: str
    reason: str
    kind: Why = "unreadable"

    def __str__(self) -> str:
        """`name: reason` on one line."""
        return printable(f"{self.name}: {self.reason}")


def skipped_counts(skipped: Sequence[Skipped]) -> dict[Why, int]:
    """Return how many items of each kind were left out.

    Examples
    --------
    >>> skipped_counts([Skipped(0, "a.heic", "HEIC is not read", "unsupported"), Skipped(4, "b.jpg", "cut short")])
    {'unreadable': 1, 'unsupported': 1}
    """
    counts = Counter(one.kind for one in skipped)
    return {kind: counts[kind] for kind in WORDS if kind in counts}


def skipped_summary(skipped: Sequence[Skipped], n_items: int) -> str:
    """Say how many of all items were left out, and why.

    Examples
    --------
    >>> skipped_summary([Skipped(0, "a.heic", "HEIC is not read", "unsupported"), Skipped(4, "b.jpg", "cut short")], 12)
    '2 of 12 items are left out: 1 unreadable, 1 of an unsupported kind'
    """
    kinds = ", ".join(f"{n:,} {WORDS[kind]}" for kind, n in skipped_counts(skipped).items())
    return f"{len(skipped):,} of {n_items:,} items {'is' if len(skipped) == 1 else 'are'} left out: {kinds}"


def warn_of_skipped(where: str, skipped: Sequence[Skipped], n_items: int, *, stacklevel: int = 2) -> None:
    """Warn that items of a file were left out, if there are any, and list the first of them."""
    if skipped:
        message = f"{where}: {skipped_summary(skipped, n_items)}: {'; '.join(first_listed(skipped))}"
        warnings.warn(SkippedRowsWarning(message), stacklevel=stacklevel + 1)


def first_listed(skipped: Sequence[Skipped], most: int = MOST_LISTED) -> list[str]:
    """Return the first items with their reasons, and how many more there are."""
    more = len(skipped) - most
    return [*map(str, skipped[:most]), *([f"and {more:,} more"] if more > 0 else [])]
