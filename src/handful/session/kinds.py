"""Kinds: the list of classes of a batch, and of which of them a person saw an item."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

from handful.arguments import counted


class Kind(NamedTuple):
    """A class of a batch.

    Attributes
    ----------
    label : label
        The class.
    n_items : int
        Items that are labelled so.
    n_seen : int
        How many of them a person saw. Without one, the class is probable, and its items may be of others.
    seen_by : tuple of str
        Who saw them.
    """

    label: Any
    n_items: int
    n_seen: int
    seen_by: tuple[str, ...] = ()

    def __str__(self) -> str:
        """Return it as a line."""
        if not self.n_seen:
            return f"{self.label}: {counted(self.n_items, 'item')}, probable, none seen"
        by = " and ".join(filter(None, self.seen_by))
        return f"{self.label}: {counted(self.n_items, 'item')}, {self.n_seen:,} seen{f' by {by}' if by else ''}"


def kinds_of(items: Iterable[tuple[Any, bool, str | None]]) -> list[Kind]:
    """Return the kinds, those that were seen first, the largest first.

    Parameters
    ----------
    items
        For each item its label, None for no class; whether a person gave it; and who.

    Examples
    --------
    >>> items = [("fox", True, "Ada"), ("fox", False, None), ("owl", False, None), (None, False, None)]
    >>> for kind in kinds_of(items):
    ...     print(kind)
    fox: 2 items, 1 seen by Ada
    owl: 1 item, probable, none seen
    """
    counts: dict[Any, list[tuple[bool, str | None]]] = {}
    for label, is_seen, by in items:
        if label is not None:
            counts.setdefault(label, []).append((is_seen, by))
    found = [
        Kind(
            label,
            len(mine),
            sum(is_seen for is_seen, _ in mine),
            tuple(dict.fromkeys(by for is_seen, by in mine if is_seen and by)),
        )
        for label, mine in counts.items()
    ]
    return sorted(found, key=lambda kind: (kind.n_seen == 0, -kind.n_items, str(kind.label)))
