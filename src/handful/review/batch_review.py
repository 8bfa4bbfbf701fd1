"""A batch under review: its journal, the labels that follow from it, and what the page shows.

The session labels the batch with a decision first. Only if that can be done is the decision journaled, and only then is
it acknowledged; so every state of the journal can be labelled. The session is a function of the steps, so undoing one,
or replaying the journal, gives the same bytes.
"""

from __future__ import annotations

import datetime
import hashlib
import json
import threading
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any, cast

import numpy as np

from handful.arguments import counted
from handful.classification.labelled import about_of, class_names
from handful.classification.page_data import items_on_page
from handful.errors import HandfulError, OptionError
from handful.estimators import Answer
from handful.reading.class_names import new_name, plain_label
from handful.reading.contents import Contents
from handful.review.depends import calibration_of, noted
from handful.review.journal import Event, ReviewJournal
from handful.review.steps import KINDS, ReviewDecision, ReviewKind, ReviewStep, corrections_file, replayed
from handful.session import Calibration, Said, Session
from handful.session.labelling import Labeller
from handful.session.requests import SHEET_SIZE
from handful.session.stopping import SURE_TO_STOP
from handful.shapes import Int

# Labellings that are kept beside those of the session, so that undoing is immediate.
MOST_KEPT = 8
# Sentences on a sheet: two columns of nine, all of which are on the screen.
TEXTS_ON_SHEET = 18
# Characters of the name of a class.
MOST_LETTERS = 200


class BehindError(HandfulError):
    """The page shows an older state than the journal has."""


class BatchReview:
    """A batch under review: a session, its journal, and what the page shows beside its answer.

    Parameters
    ----------
    journal : ReviewJournal
        Where decisions are kept.
    label : Labeller
        What labels the batch; classes are known by their names.
    depends : mapping, optional
        What the labels depend on beside the answers, see `handful.review.depends`.
    person : str
        Who decides.
    sure, sheet_size, calibration
        As in `Session`; a journal that was begun with another calibration keeps that.
    from_nothing, candidates
        Whether there is no catalogue, and names that are offered then, as in `Session`.

    Attributes
    ----------
    session : Session
        What asks, labels and says when a person may stop.
    state : ReviewState
        What was said, as the journal has it.
    first : Answer
        The labels before anything was said.
    notes : list of str
        What a person should be told: sentences.
    """

    def __init__(
        self,
        journal: ReviewJournal,
        label: Labeller,
        *,
        depends: Event | None = None,
        person: str = "",
        sure: float = SURE_TO_STOP,
        sheet_size: int = SHEET_SIZE,
        calibration: Calibration | None = None,
        from_nothing: bool = False,
        candidates: Sequence[str] | None = None,
    ) -> None:
        self.journal = journal
        self.person = person
        self.lock = threading.RLock()
        self.notes = list[str]()
        self._label = label
        self._kept = list[tuple[Said, Answer]]()
        if journal.n_lost:
            self.notes.append(
                f"The journal of this review has lost its last {counted(journal.n_lost, 'line')} ({journal.path}): "
                "restore it from a copy, or give these answers again."
            )
        self.first = self.labelled(Said())
        self.batch = about_of(self.first).batch
        self.on_page: Int[np.ndarray, "some"] = items_on_page(self.first)
        self.state = replayed(journal.events, len(self.batch.rows))
        if depends is not None:
            self.notes += noted(journal, depends, calibration or Calibration())
            calibration = calibration_of(journal)
        self.session = Session.of(
            self.labelled,
            from_nothing=from_nothing,
            candidates=candidates,
            sure=sure,
            sheet_size=sheet_size,
            calibration=calibration,
        )
        self._replay()

    def _replay(self) -> None:
        """Tell the session what the journal says; steps that labelling refuses are dropped, and that is said.

        Such steps were written by version 0.4.0, which journaled answers before it labelled; or the catalogue has
        changed since.
        """
        at = 0
        for step in self.state.steps:
            try:
                self._take(step)
            except HandfulError as reason:
                self._drop(at, reason)
            else:
                at += 1

    def labelled(self, said: Said) -> Answer:
        """Label the batch with what was said, or take an earlier labelling with the same."""
        said = replace(said, skipped=frozenset())  # items that were left open change no label
        place = next((at for at, (before, _) in enumerate(self._kept) if before == said), None)
        found = (said, self._label(said)) if place is None else self._kept.pop(place)
        self._kept = [*self._kept, found][-MOST_KEPT:]
        return found[1]

    @property
    def answer(self) -> Answer:
        """The labels now."""
        return self.labelled(self.session.said)

    # -- what a person does --------------------------------------------------------------------------------------------

    def decide(self, number: int, items: Sequence[int], kind: str, label: str | None = None) -> None:
        """Keep one decision about one item or several, and label the batch again; refuse it if the page was behind."""
        with self.lock:
            self.refuse_behind(number)
            kind, label = self._checked(items, kind, label)
            self._keep(items, [kind] * len(items), [label] * len(items))

    def merge(self, number: int, label: str, into: str) -> None:
        """Say that two names are one class; a second name that nobody has said renames the first."""
        with self.lock:
            self.refuse_behind(number)
            into = self._name(into)
            label = self._said_name(label)
            if label == into:
                raise OptionError(f"{label!r} is one class already; give two names")
            self._keep_step({"step": "merge", "names": [label, into], "at": _now(), "by": self.person})

    def split(self, number: int, label: str) -> None:
        """Say that one class is two: items of the smaller part lose their name."""
        with self.lock:
            self.refuse_behind(number)
            label = self._said_name(label)
            # The session finds the part; the journal has it, so that a replay does not depend on how it is found.
            items = list(self.session.split(label).steps[-1].items)
            self.session.undo()
            event = {"step": "split", "names": [label], "items": items, "at": _now(), "by": self.person}
            self._keep_step(event)

    def take_over(self, said: Mapping[int, tuple[ReviewKind, str | None]]) -> None:
        """Take over the answers of an earlier review: all of them as one step, or none.

        They replace what was said about the same items in this review, which is said. The same answers are taken over
        once, also if they were undone since.
        """
        with self.lock:
            source = hashlib.sha256(json.dumps(sorted(said.items())).encode()).hexdigest()
            if not said or any(event.get("source") == source for event in self.journal.events):
                return
            kinds = [kind for kind, _ in said.values()]
            labels = [label for _, label in said.values()]
            decided = self.state.decisions
            replaced = [item for item, one in said.items() if item in decided and decided[item][:2] != one]
            self._keep(list(said), kinds, labels, source)
            if replaced:
                self.notes.append(
                    f"{counted(len(said), 'answer')} were taken over. Of these, {len(replaced):,} replace what was "
                    f"said in this review, for instance about {self.batch.names[replaced[0]]}; undo takes them back."
                )

    def undo(self, number: int) -> tuple[int, ...]:
        """Take the last step back, and return its items."""
        with self.lock:
            self.refuse_behind(number)
            if not self.state.steps:
                raise OptionError("there is nothing to undo")
            last = self.state.steps[-1]
            self._append({"step": "undo"})
            self._take_back(last)
            return last.items

    def finished(self, **wrote: str) -> bool:
        """Note in the journal that results were written, and what; return whether that is so for the first time."""
        first = not any(event["step"] == "finished" for event in self.journal.events)
        if first or wrote:
            self._append({"step": "finished", "at": _now(), **wrote})
        return first

    def _keep(
        self, items: Sequence[int], kinds: Sequence[ReviewKind], labels: Sequence[str | None], source: str | None = None
    ) -> None:
        """Label the batch with one more step, and journal it if that can be done."""
        was = self.said_by_model()
        event: Event = {
            "step": "answer",
            "items": [[item, self.batch.names[item], self.batch.content(item)] for item in items],
            "kinds": list(kinds),
            "labels": [label if kind in ("class", "new") else None for kind, label in zip(kinds, labels, strict=True)],
            "was": [was[item] for item in items],
            "at": _now(),
            "by": self.person,
        }
        if source is not None:
            event["source"] = source
        self._keep_step(event)

    def _keep_step(self, event: Event) -> None:
        """Tell the session a step, and journal it if that can be done."""
        step = ReviewStep.of(event)
        self._take(step)
        try:
            self._append(event)
        except HandfulError:
            self._take_back(step)
            raise

    def _take(self, step: ReviewStep) -> None:
        """Tell the session a step, whole or not at all."""
        taken = 0
        try:
            for one in step.for_session():
                self.session.take(one)
                taken += 1
        except HandfulError:
            for _ in range(taken):
                self.session.undo()
            raise

    def _take_back(self, step: ReviewStep) -> None:
        for _ in step.for_session():
            self.session.undo()

    def _drop(self, at: int, reason: HandfulError) -> None:
        step = self.state.steps[at]
        self._append({"step": "drop", "at": at, "why": str(reason)})
        if step.names:
            self.notes.append(f"What you said about {' and '.join(map(repr, step.names))} was taken back: {reason}.")
            return
        said = step.labels[0] or step.kinds[0]
        more = f" and {counted(len(step.items) - 1, 'more item')}" if len(step.items) > 1 else ""
        self.notes.append(f"The answer {said!r} for {self.batch.names[step.items[0]]}{more} was taken back: {reason}.")

    def _append(self, event: Event) -> None:
        self.journal.append(event)
        self.state = self.state.after(event)

    def refuse_behind(self, number: int) -> None:
        """Refuse a page that shows another state."""
        if number != self.state.number:
            raise BehindError("another window has answered since; look at the newest state first")

    def _checked(self, items: Sequence[int], kind: str, label: str | None) -> tuple[ReviewKind, str | None]:
        """Return a decision as it is kept; a class that is there already is not new."""
        if kind not in KINDS:
            raise OptionError(f"there is no answer {kind!r}")
        if not items or len(set(items)) != len(items) or not all(0 <= item < len(self.batch.rows) for item in items):
            raise OptionError("the answer must be about items of the batch, each once")
        if kind not in ("class", "new"):
            return cast(ReviewKind, kind), None
        name = self._name(label)
        if name in class_names(self.first):
            return "class", name
        if kind == "class" and name not in self.new_classes:
            raise OptionError(f"there is no class {name!r}; if it is new, say so")
        return cast(ReviewKind, kind), name

    def _name(self, label: str | None) -> str:
        """Return the name of a class as it is kept."""
        name = "" if label is None else str(new_name(label, (*class_names(self.first), *self.new_classes)))
        if not name or len(name) > MOST_LETTERS:
            raise OptionError(f"a class must have a name of up to {MOST_LETTERS} characters")
        return name

    def _said_name(self, label: str) -> str:
        """Return a name that was said in this review."""
        label = str(plain_label(label))
        if not self.session.from_nothing:
            raise OptionError("classes of a catalogue are merged and split in the catalogue: handful catalogue --help")
        if label not in self.new_classes:
            raise OptionError(f"no item has the name {label!r}")
        return label

    # -- what follows --------------------------------------------------------------------------------------------------

    @property
    def new_classes(self) -> list[str]:
        """Classes that the person named."""
        return list(dict.fromkeys(one.label for _, one in self.state.of_kind("new") if one.label is not None))

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
        said = f"{n_seen:,} of {counted(n_items, 'item')} seen"
        said += f" in {counted(len(self.state.steps), 'decision')}." if self.state.steps else "."
        if n_not_named < n_labels:
            said += f" About {value:,} of {counted(n_labels, 'label')} are expected to be right"
            said += f" ({low:,} to {high:,})." if low < high else "."
        if n_not_named:
            said += f" {counted(n_not_named, 'item')} {'is' if n_not_named == 1 else 'are'} not named yet."
        if session.may_stop and not session.is_done:
            # The rule is about labels: a class of so few items may hide among those that nobody has looked at.
            missed = "have no name" if session.from_nothing else "be missed, in your catalogue or not"
            said += f" A class with one or two items may still {missed}."
        return {
            "said": said,
            "right": [round(share, 4) for share in right],
            "answers_left": session.answers_left,
            "may_stop": session.may_stop,
            "seen": n_seen,
            "n_items": n_items,
            "decisions": len(self.state.steps),
            "done": session.is_done,
        }

    def changed_since(self, before: Answer, apart: Sequence[int]) -> list[int]:
        """Return the items whose label differs from an earlier one, other than these."""
        now = _labels_of(self.answer)
        then = _labels_of(before)
        return [item for item, label in enumerate(now) if label != then[item] and item not in set(apart)]

    def corrections(self, without: Collection[str] = ()) -> dict[str, Any]:
        """Return what the person said, as a file of corrections; items of the classes in `without` are left out."""
        batch = self.batch
        decisions = {item: one for item, one in self.state.decisions.items() if one.label not in without}
        items = {item: (batch.rows[item], batch.names[item], batch.content(item)) for item in decisions}
        return corrections_file(decisions, items, class_names(self.first))

    def confirmed(self) -> dict[int, ReviewDecision]:
        """Return the items whose class a person said or confirmed."""
        return dict(self.state.of_kind("class", "new"))


def _labels_of(answer: Answer) -> list[str | None]:
    """Return the model's label of each item; None for none of the classes."""
    names = class_names(answer)
    pairs = zip(answer.codes[:, 0].tolist(), answer.rejected.tolist(), strict=True)
    return [None if rejected else names[code] for code, rejected in pairs]


def sheet_size_of(contents: Contents | None) -> int:
    """Return how many items a sheet shows: fewer texts than pictures can be taken in at a glance."""
    return TEXTS_ON_SHEET if isinstance(contents, tuple) else SHEET_SIZE


def _now() -> str:
    return datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
