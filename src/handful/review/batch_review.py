"""A batch under review: a session, and what the page shows beside its answer.

The session labels the batch with an answer before it is kept, and keeps it before it is acknowledged. So every state of
the catalogue can be labelled, and what the page shows is a function of its events.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple, TypeAlias, get_args

import numpy as np

from handful.arguments import counted
from handful.catalogue.said import ItemAnswer
from handful.classification.labelled import about_of, class_names
from handful.classification.page_data import items_on_page
from handful.errors import BehindError, OptionError
from handful.estimators import Answer
from handful.reading.class_names import new_name, plain_label
from handful.reading.contents import Contents
from handful.session import Session
from handful.session.requests import SHEET_SIZE
from handful.shapes import Int

# Sentences on a sheet: two columns of nine, all of which are on the screen.
TEXTS_ON_SHEET = 18
# What an item is called on the page, one and several: words, or numbers that nothing shows, or something to see.
SENTENCES = ("sentence", "sentences")
ROWS = ("row", "rows")
PHOTOGRAPHS = ("photograph", "photographs")
# More revisions than a catalogue ever has. [revisions; limit]
GENERATION = 10**9
# Characters of the name of a class.
MOST_LETTERS = 200
# What the page calls an answer: what is shown is right; a class; a class that no example has; none of the classes; an
# item that is unfit to be labelled; seen and left open.
ReviewKind: TypeAlias = Literal["accept", "class", "new", "none", "bad", "skip"]
KINDS = frozenset(get_args(ReviewKind))


class ReviewDecision(NamedTuple):
    """What a person said about an item: its kind, the class if one was named, and what the model said then."""

    kind: ReviewKind
    label: str | None
    was: str | None


class BatchReview:
    """A batch under review.

    Parameters
    ----------
    session : Session
        What asks, labels and says when a person may stop; its answers are about files, with the names of classes.
    notes : sequence of str
        What a person should be told: sentences.

    Attributes
    ----------
    first : Answer
        The labels before anything was said.
    batch : Batch
        The items.
    """

    def __init__(self, session: Session, notes: Sequence[str] = ()) -> None:
        self.session = session
        self.notes = list(notes)
        self.lock = threading.RLock()
        self.first = session.first
        self.batch = about_of(self.first).batch
        # How often the page was opened with other items.
        self.generation = 0
        self.on_page: Int[np.ndarray, "some"] = items_on_page(self.first)

    @property
    def _known(self) -> frozenset[str]:
        return frozenset(map(str, self.session.classes.tolist()))

    @property
    def words(self) -> tuple[str, str]:
        """What an item is called, one and several."""
        contents = self.batch.contents
        return ROWS if contents is None else SENTENCES if isinstance(contents, tuple) else PHOTOGRAPHS

    @property
    def answer(self) -> Answer:
        """The labels now."""
        return self.session.result

    @property
    def number(self) -> int:
        """The revision of the catalogue that is shown, and how often items came: a page with another one is behind."""
        return self.session.revision + GENERATION * self.generation

    def refresh(self) -> None:
        """Take what was said since by others who have the same catalogue open."""
        with self.lock:
            self.session.refresh()

    @property
    def n_steps(self) -> int:
        """Decisions that count."""
        return self.session.n_decisions

    # -- what a person does --------------------------------------------------------------------------------------------

    def decide(
        self, number: int, items: Sequence[int], kind: str, label: str | None = None, wrong: Sequence[int] = ()
    ) -> tuple[int, ...]:
        """Keep one decision, label the batch again, and return its items; refuse it if the page was behind.

        `wrong` are other items of the sheet, whose label is wrong.
        """
        with self.lock:
            self.refuse_behind(number)
            if kind not in KINDS:
                raise OptionError(f"there is no answer {kind!r}")
            if kind == "accept":
                self.session.accept(list(items), wrong=list(wrong))
            elif kind in ("class", "new"):
                self.session.answer(list(items), self._name(label), new=kind == "new", wrong=list(wrong))
            elif kind == "none":
                self.session.answer(list(items), None, wrong=list(wrong))
            elif kind == "bad":
                self.session.discard(list(items))
            else:
                self.session.skip(list(items))
            return tuple(items)

    def merge(self, number: int, label: str, into: str) -> tuple[int, ...]:
        """Say that two names are one class; a second name that nobody has said renames the first. About no item."""
        with self.lock:
            self.refuse_behind(number)
            self.session.merge(plain_label(label), self._name(into), new=True)
            return ()

    def remove(self, number: int, label: str) -> tuple[int, ...]:
        """Say that a class is none: its items have no answer any more. About no item."""
        with self.lock:
            self.refuse_behind(number)
            self.session.remove(plain_label(label))
            return ()

    def undo(self, number: int) -> tuple[int, ...]:
        """Take the last decision back, and return its items."""
        with self.lock:
            self.refuse_behind(number)
            events = self.session.events
            self.session.undo()
            return tuple(self.session.positions(events[-1].answered))

    def take_back(self, number: int, event: str) -> tuple[int, ...]:
        """Take one decision back, whichever it is, and return its items; what was said after it stays."""
        with self.lock:
            self.refuse_behind(number)
            items = [item for one in self.session.events if one.event == event for item in one.answered]
            self.session.take_back(event)
            return tuple(self.session.positions(items))

    def refuse_behind(self, number: int) -> None:
        """Refuse a page that shows another state."""
        self.session.refresh()
        if number != self.number:
            raise BehindError("another window has answered since; look at the newest state first")

    def _name(self, label: str | None) -> str:
        """Return the name of a class as it is kept."""
        name = "" if label is None else str(new_name(label, (*sorted(self._known), *self.new_classes)))
        if not name or len(name) > MOST_LETTERS:
            raise OptionError(f"a class must have a name of up to {MOST_LETTERS} characters")
        return name

    # -- what follows --------------------------------------------------------------------------------------------------

    @property
    def new_classes(self) -> list[str]:
        """Classes that a person named in this batch, and that no example has."""
        return [name for name in map(str, self.session.said.named) if name not in self._known]

    @property
    def decisions(self) -> dict[int, ReviewDecision]:
        """What was said last about each item, in the order of the items; the names are those that stand now."""
        said = self.session.file.said
        shown = self._shown()
        found = {}
        for position, item in enumerate(self.session.items.tolist()):
            one = said.answers.get(item)
            if one is not None:
                found[position] = ReviewDecision(self._kind(one), one.label, shown.get((one.event, item)))
        return found

    def _kind(self, answer: ItemAnswer) -> ReviewKind:
        if answer.kind == "named":
            return "class" if answer.label in self._known else "new"
        return "none" if answer.kind == "none" else "bad" if answer.kind == "bad" else "skip"

    def _shown(self) -> Mapping[tuple[str, int], str | None]:
        """Return what the model said about each item when a person answered."""
        return {(event.event, one.item): one.offered for event in self.session.events for one in event.items}

    def said_by_model(self) -> list[str | None]:
        """Return the model's label of each item now; None for none of the classes."""
        return _labels_of(self.answer)

    def progress(self) -> dict[str, Any]:
        """Say how far the review is, in numbers and in a sentence."""
        session = self.session
        n_items = len(self.batch.rows)
        n_labels = n_items - len(session.said.discarded)
        n_seen = int(session.seen.sum())
        right = session.expected_right
        value, low, high = (round(share * n_labels) for share in right)
        n_not_named = int(session.not_named.sum())
        word, words = self.words
        said = f"{n_seen:,} of {counted(n_items, word)} seen"
        said += f" with {counted(self.n_steps, 'answer')}." if self.n_steps else "."
        if n_not_named < n_labels:
            said += f" About {value:,} of {counted(n_labels, 'label')} are expected to be right"
            said += f" ({low:,} to {high:,})." if low < high else "."
        if n_not_named:
            said += f" {counted(n_not_named, word)} {'is' if n_not_named == 1 else 'are'} not named yet."
        n_left = n_items - n_seen
        if session.may_stop and n_left:
            n_sheets = -(-n_left // session.options.sheet_size)
            said += f" The {session.n_odd:,} {words} least like what you had seen held nothing new;"
            said += f" {n_left:,} {'is' if n_left == 1 else 'are'} left, about {counted(n_sheets, 'more page')}."
        return {
            "said": said,
            "right": [round(share, 4) for share in right],
            "answers_left": session.answers_left,
            "may_stop": session.may_stop,
            "seen": n_seen,
            "n_items": n_items,
            "decisions": self.n_steps,
            "done": session.is_done,
        }

    def changed_since(
        self, before: Answer, apart: Sequence[int], renamed: Mapping[str, str] | None = None
    ) -> list[int]:
        """Return the items whose label differs from an earlier one, other than these; a new name alone is no change."""
        now = _labels_of(self.answer)
        then = [label if label is None else (renamed or {}).get(label, label) for label in _labels_of(before)]
        return [item for item, label in enumerate(now) if label != then[item] and item not in set(apart)]


def _labels_of(answer: Answer) -> list[str | None]:
    """Return the model's label of each item; None for none of the classes."""
    names = class_names(answer)
    pairs = zip(answer.codes[:, 0].tolist(), answer.rejected.tolist(), strict=True)
    return [None if rejected else names[code] for code, rejected in pairs]


def sheet_size_of(contents: Contents | None) -> int:
    """Return how many items a sheet shows: fewer texts than pictures can be taken in at a glance."""
    return TEXTS_ON_SHEET if isinstance(contents, tuple) else SHEET_SIZE
