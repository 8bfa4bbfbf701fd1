"""What people said: a function of the events of a catalogue, and of nothing else.

An answer about an item replaces the answers that its author had seen. So the last word counts; where two people worked
on two copies, both answers stay until somebody has seen both. A class that gets another name gives it to all answers
whose authors had not seen that.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cached_property
from typing import Any, NamedTuple

from handful.catalogue.events import ANSWERS, Event
from handful.catalogue.history import History


class ItemAnswer(NamedTuple):
    """An answer about one item: its kind, the class if it names one, and the event."""

    kind: str  # one of `ANSWERS`
    label: str | None
    event: str


class GivenLabel(NamedTuple):
    """An event about an item, and the class that it gave, as it was called then."""

    by: Event
    label: str | None


class Said:
    """What people said, after some events.

    Parameters
    ----------
    history : History
        The events.

    Attributes
    ----------
    places : dict of str to dict of int to str
        For each batch, its items that are there now, and where.
    known : dict of str to mapping
        What is known about a batch.
    sources : dict of str to mapping
        For each batch, what its last arrival said about where it came from.

    Examples
    --------
    >>> from handful.catalogue.events import EventItem
    >>> def made(number, kind, *items, **about):
    ...     after = (str(number - 1),) if number > 1 else ()
    ...     return Event(str(number), number, after, "", "", kind, about, [EventItem(item) for item in items])
    >>> events = [made(1, "named", 7, 8, label="foks"), made(2, "none", 8)]
    >>> events += [made(3, "renamed", label="foks", into="fox")]
    >>> {item: one.label for item, one in Said(History(events)).answers.items()}
    {7: 'fox', 8: None}
    >>> {item: one.label for item, one in Said(History([*events, made(4, "taken_back", event="2")])).answers.items()}
    {7: 'fox', 8: 'fox'}
    """

    def __init__(self, history: History) -> None:
        self._history = history
        self.places: dict[str, dict[int, str]] = {}
        self.known: dict[str, Mapping[str, Any]] = {}
        self.sources: dict[str, Mapping[str, Any]] = {}
        self._raw: dict[int, tuple[GivenLabel, ...]] = {}
        self._renamed: list[Event] = []
        for event in history.counted():
            self._take(event)

    def with_event(self, event: Event) -> Said:
        """Return what was said with one more event, which the history has already; this object is not used again."""
        if event.kind in ("taken_back", "joined"):
            return Said(self._history)
        self._take(event)
        for name in ("all_answers", "answers", "disputed", "classes"):
            self.__dict__.pop(name, None)
        return self

    def _take(self, event: Event) -> None:
        if event.kind in ANSWERS:
            for one in event.items:
                if one.answered:
                    before = self._raw.get(one.item, ())
                    kept = (given for given in before if not self._history.had_seen(event.event, given.by.event))
                    self._raw[one.item] = (*kept, GivenLabel(event, event.label_of(one)))
        elif event.kind in ("renamed", "removed"):
            self._renamed.append(event)
        elif event.kind == "arrived":
            here = self.places.setdefault(event.about["batch"], {})
            here.update({one.item: one.place or "" for one in event.items})
            self.sources[event.about["batch"]] = {k: said for k, said in event.about.items() if k != "batch"}
        elif event.kind == "gone":
            here = self.places.setdefault(event.about["batch"], {})
            for one in event.items:
                here.pop(one.item, None)
        elif event.kind == "known":
            self.known[event.about["batch"]] = event.about["options"]

    @property
    def renames(self) -> tuple[str, ...]:
        """Events by which classes got other names, or were given up."""
        return tuple(event.event for event in self._renamed)

    @cached_property
    def all_answers(self) -> dict[int, tuple[ItemAnswer, ...]]:
        """The answers about each item that no later one replaces."""
        found = {}
        for item, given in self._raw.items():
            answers = []
            for event, said in given:
                label = None if said is None else self.name_now(event, said)
                was_given_up = said is not None and label is None
                if was_given_up:
                    continue
                kind = event.kind if event.kind in ("bad", "open") else "none" if label is None else "named"
                answers.append(ItemAnswer(kind, label, event.event))
            if answers:
                found[item] = tuple(answers)
        return dict(sorted(found.items()))

    def name_now(self, event: Event, label: str) -> str | None:
        """Return how a class is called now that an answer gave to items; None if it was given up."""
        name: str | None = label
        for change in self._renamed:
            if name == change.about["label"] and not self._history.had_seen(event.event, change.event):
                name = change.about["into"] if change.kind == "renamed" else None
        return name

    @cached_property
    def disputed(self) -> dict[int, tuple[ItemAnswer, ...]]:
        """Items about which people said different things without having seen that."""
        return {
            item: answers
            for item, answers in self.all_answers.items()
            if len({(one.kind, one.label) for one in answers}) > 1
        }

    @cached_property
    def answers(self) -> dict[int, ItemAnswer]:
        """The answer about each item that has one; what is disputed has none."""
        return {item: answers[-1] for item, answers in self.all_answers.items() if item not in self.disputed}

    @cached_property
    def classes(self) -> tuple[str, ...]:
        """Classes that an item has, in the order in which they were named first; of one answer, by name."""
        first: dict[str, int] = {}
        order = {event.event: number for number, event in enumerate(self._history.events)}
        for answers in self.all_answers.values():
            for one in answers:
                if one.label is not None:
                    first[one.label] = min(order[one.event], first.get(one.label, len(order)))
        return tuple(sorted(first, key=lambda name: (first[name], name)))


def examples_of(said: Said, items: Iterable[int]) -> dict[int, str]:
    """Return the class of each of these items that has one by an answer."""
    answers = said.answers
    return {item: answers[item].label for item in items if item in answers and answers[item].label is not None}  # type: ignore[misc]
