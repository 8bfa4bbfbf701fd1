"""Event: something that a person said or did, or that happened to the items; it is appended, and never changed."""

from __future__ import annotations

import datetime
import math
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple, Self, TypeAlias, get_args

# Answers about items: their class, each has the label that was shown, none of the classes, unfit to be labelled, seen
# and left open. Then: a class gets another name, or that of another class; it is given up; items come and go;
# what is known about a batch; an earlier event does not count; two copies of the catalogue became one.
AnswerKind: TypeAlias = Literal["named", "accepted", "none", "bad", "open"]
EventKind: TypeAlias = Literal[AnswerKind, "renamed", "removed", "arrived", "gone", "known", "taken_back", "joined"]
ANSWERS: frozenset[str] = frozenset(get_args(AnswerKind))
KINDS: frozenset[str] = frozenset(get_args(EventKind))
# Answers that say what items are.
LABELLING: frozenset[str] = frozenset({"named", "accepted", "none"})
# What an event of a kind is about at least, and of which type; other kinds need nothing.
NEEDED: Mapping[str, Mapping[str, type]] = {
    "named": {"label": str},
    "renamed": {"label": str, "into": str},
    "removed": {"label": str},
    "arrived": {"batch": str},
    "gone": {"batch": str},
    "known": {"batch": str, "options": dict},
    "taken_back": {"event": str},
}
# How deep what an event is about may be nested. [levels; limit]
DEEPEST = 20


class EventItem(NamedTuple):
    """One item of an event, and what was shown about it.

    Attributes
    ----------
    item : int
        Its number in the catalogue.
    place : str or None
        Where it arrived: a path below the folder of the batch, or a row.
    answered : bool
        Whether the event is about it; otherwise it was on the same sheet, and its label is wrong.
    offered : str or None
        The label that was shown, and that an event `accepted` gives it; None for none of the classes.
    risk, wrong : float or None
        The chance that this label is wrong, as shown and by what answers had taught; None if the item had no label.
    support : float or None
        As how many answers its label had been found right before.
    """

    item: int
    place: str | None = None
    answered: bool = True
    offered: str | None = None
    risk: float | None = None
    wrong: float | None = None
    support: float | None = None


@dataclass(frozen=True)
class Event:
    """What was said or happened, by whom, and after which events.

    Attributes
    ----------
    event : str
        A unique name, 32 hexadecimal digits.
    revision : int
        One more than that of the events that it comes after.
    after : tuple of str
        The event before it; two where copies were joined; none for the first.
    time, person : str
        When (UTC, ISO 8601) and who.
    kind : str
        What it is, see `EventKind`.
    about : mapping
        `label` of an answer, or of a class that is renamed or removed; `into`, the other name; `batch`; `options`,
        what is known; `event` that is taken back; `oddest`, true if the items were shown because they were least like
        what had been seen.
    items : tuple of EventItem
        The items.
    """

    event: str
    revision: int
    after: tuple[str, ...]
    time: str
    person: str
    kind: EventKind
    about: Mapping[str, Any] = field(default_factory=dict)
    items: Sequence[EventItem] = ()

    @classmethod
    def made(
        cls,
        kind: EventKind,
        about: Mapping[str, Any],
        items: Sequence[EventItem],
        *,
        revision: int,
        after: Sequence[str],
        person: str,
    ) -> Self:
        """Make an event that happens now."""
        when = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
        ordered = tuple(sorted(items, key=lambda one: one.item))  # as they are read again
        return cls(uuid.uuid4().hex, revision, tuple(after), when, person, kind, dict(about), ordered)

    @property
    def answered(self) -> list[int]:
        """Numbers of the items that the event is about."""
        return [one.item for one in self.items if one.answered]

    def label_of(self, one: EventItem) -> str | None:
        """Return the class that an answer gives to an item, as it was called then; None if it gives none."""
        if self.kind == "accepted":
            return one.offered
        label: str | None = self.about.get("label") if self.kind == "named" else None
        return label


def fault_of(kind: str, about: Mapping[str, Any]) -> str | None:
    """Say what an event lacks, or has that no file can keep; None if nothing is wrong with it.

    Examples
    --------
    >>> fault_of("renamed", {"label": "foks"})
    "a 'renamed' needs 'into', a str"
    >>> fault_of("named", {"label": "fox"})
    """
    if kind not in KINDS:
        return f"there is no event {kind!r}; it must be one of {', '.join(sorted(KINDS))}"
    for name, needed in NEEDED.get(kind, {}).items():
        if not isinstance(about.get(name), needed):
            return f"a {kind!r} needs {name!r}, a {needed.__name__}"
    if not _is_kept(about, DEEPEST):
        return f"a {kind!r} has a value that JSON does not keep: not finite, half a character, or nested too deep"
    return None


def _is_kept(value: object, deepest: int) -> bool:
    """Whether a value is the same after it was written as JSON in UTF-8, and read."""
    if isinstance(value, str):
        return not any("\ud800" <= character <= "\udfff" for character in value)
    if isinstance(value, float):
        return math.isfinite(value)
    if isinstance(value, Mapping):
        return deepest > 0 and all(
            isinstance(name, str) and _is_kept(name, 1) and _is_kept(one, deepest - 1) for name, one in value.items()
        )
    if isinstance(value, (list, tuple)):
        return deepest > 0 and all(_is_kept(one, deepest - 1) for one in value)
    return value is None or isinstance(value, (bool, int))
