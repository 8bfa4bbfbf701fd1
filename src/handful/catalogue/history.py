"""History: events in their order, which of them count, and which of them the author of another had seen.

Within one file every event comes after the one before. Two copies of a file go on separately; once joined, events of
one had not been seen by those who made the others. Events are ordered by revision and then by their names, so every
copy has the same order.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from handful.catalogue.events import Event
from handful.errors import FileFormatError

# Where an event is: its branch, and its place there. A branch is a chain of events, each right after the one before.
Place = tuple[int, int]


class History:
    """Events of a catalogue.

    Parameters
    ----------
    events
        In any order in which an event comes after those that it names.
    """

    def __init__(self, events: Iterable[Event] = ()) -> None:
        self.events: list[Event] = []
        self._places: dict[str, Place] = {}
        self._revisions: dict[str, int] = {}
        # How far each branch had seen the others when it began.
        self._seen_by: list[Mapping[int, int]] = []
        self._tips: list[str] = []
        for event in sorted(events, key=lambda one: (one.revision, one.event)):
            self.add(event)

    @property
    def revision(self) -> int:
        """Number of the last revision; 0 if nothing has happened yet."""
        return self.events[-1].revision if self.events else 0

    @property
    def head(self) -> tuple[str, ...]:
        """The last event, which the next one comes after; none if nothing has happened yet."""
        return (self.events[-1].event,) if self.events else ()

    def __contains__(self, event: str) -> bool:
        return event in self._places

    def add(self, event: Event) -> None:
        """Add the next event."""
        needed = [*event.after, event.about["event"]] if event.kind == "taken_back" else event.after
        before = max((self._revisions.get(one, event.revision) for one in event.after), default=0)
        is_next = event.revision == before + 1 and event.event not in self._places
        if not is_next or any(one not in self._places for one in needed):
            raise FileFormatError(f"event {event.event} of the catalogue is out of place; restore the file from a copy")
        parents = [self._places[before] for before in event.after]
        if len(parents) == 1 and self._tips[parents[0][0]] == event.after[0]:
            branch, depth = parents[0]
            self._places[event.event] = branch, depth + 1
            self._tips[branch] = event.event
        else:
            seen: dict[int, int] = {}
            for branch, depth in parents:
                for other, far in {**self._seen_by[branch], branch: depth}.items():
                    seen[other] = max(far, seen.get(other, -1))
            self._places[event.event] = len(self._tips), 0
            self._seen_by.append(seen)
            self._tips.append(event.event)
        self.events.append(event)
        self._revisions[event.event] = event.revision

    def had_seen(self, event: str, earlier: str) -> bool:
        """Whether the author of `event` had seen `earlier`.

        Examples
        --------
        >>> def made(name, revision, *after):
        ...     return Event(name, revision, after, "", "", "open")
        >>> history = History([made("a", 1), made("b", 2, "a"), made("c", 2, "a"), made("d", 3, "b", "c")])
        >>> history.had_seen("b", "a"), history.had_seen("c", "b"), history.had_seen("d", "b")
        (True, False, True)
        """
        branch, depth = self._places[event]
        other, far = self._places[earlier]
        if branch == other:
            return far < depth
        return far <= self._seen_by[branch].get(other, -1)

    def counted(self) -> list[Event]:
        """Events that count: those that nobody took back, or whose taking back was taken back."""
        back: set[str] = set()
        for event in reversed(self.events):
            if event.kind == "taken_back" and event.event not in back:
                back.add(event.about["event"])
        return [event for event in self.events if event.event not in back]
