"""A batch under review: its journal, the labels that follow from it, and what the page shows.

The batch is labelled with a decision first. Only if that can be done is the decision journaled, and only then is it
acknowledged; so every state of the journal can be labelled. Labels depend on what is given alone, not on the order in
which it was said, so undoing a step, or replaying the journal, gives the same bytes.
"""

from __future__ import annotations

import datetime
import hashlib
import json
import threading
from collections import OrderedDict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any, Protocol, cast

import numpy as np

from handful.arguments import counted
from handful.classification.building import NO_CLASS
from handful.classification.labelled import Classified
from handful.classification.page_data import best_questions, items_on_page
from handful.engine.questions import Question
from handful.errors import HandfulError, OptionError
from handful.review.audit import MOST_WRONG, Audit, audit_is_due, audit_order
from handful.review.depends import noted
from handful.review.journal import Journal
from handful.review.session import HOWS, KINDS, Decision, Kind, Step, corrections_file, replayed
from handful.shapes import Int

# Questions that the page lists.
N_QUESTIONS = 10
# A question is worth asking if its answer is expected to correct at least this many labels.
LEAST_WORTH = 0.25
# Labellings that are kept, so that undoing is immediate.
MOST_KEPT = 8
# Characters of the name of a class.
MOST_LETTERS = 200


class Labeller(Protocol):
    """What labels the batch."""

    def __call__(self, given: Mapping[int, str | None]) -> Classified:
        """Label the batch; `given` has the items whose class is known, None for none of the classes."""


class BehindError(HandfulError):
    """The page shows an older state than the journal has."""


class BatchReview:
    """A batch under review.

    Parameters
    ----------
    journal : Journal
        Where decisions are kept.
    label : Labeller
        What labels the batch.
    depends : mapping, optional
        What the labels depend on beside the answers, see `handful.review.depends`.
    person : str
        Who decides.
    most_wrong : float
        The share of wrong labels at which a person may stop.
    audits : bool
        Whether some questions are audits.

    Attributes
    ----------
    classified : Classified
        The labels now.
    notes : list of str
        What a person should be told: sentences.
    """

    def __init__(
        self,
        journal: Journal,
        label: Labeller,
        *,
        depends: Mapping[str, Any] | None = None,
        person: str = "",
        most_wrong: float = MOST_WRONG,
        audits: bool = True,
    ) -> None:
        self.journal, self.person, self.most_wrong, self.audits = journal, person, most_wrong, audits
        self._label = label
        self._kept: OrderedDict[tuple[Any, ...], Classified] = OrderedDict()
        self._asked: tuple[tuple[Step, ...], list[Question]] | None = None
        self.first = self.labelled({})
        self.batch = self.first.batch
        self.on_page: Int[np.ndarray, "some"] = items_on_page(self.first)
        self.lock = threading.RLock()
        self.state = replayed(journal.events, len(self.batch.rows))
        self.notes = list[str]()
        if journal.n_lost:
            self.notes.append(
                f"The journal of this review has lost its last {counted(journal.n_lost, 'line')} ({journal.path}): "
                "restore it from a copy, or give these answers again."
            )
        if depends is not None:
            self.notes += noted(journal, dict(depends))
        self.classified = self.first
        self._label_or_drop()

    def labelled(self, given: Mapping[int, str | None]) -> Classified:
        """Label the batch with what is given, or take an earlier labelling with the same."""
        key = tuple(sorted(given.items(), key=lambda pair: pair[0]))
        if key not in self._kept:
            self._kept[key] = self._label(dict(key))
            if len(self._kept) > MOST_KEPT:
                self._kept.popitem(last=False)
        self._kept.move_to_end(key)
        return self._kept[key]

    @cached_property
    def _order(self) -> list[int]:
        return list(map(int, audit_order(self.batch.fingerprint, len(self.batch.rows))))

    # -- what a person does --------------------------------------------------------------------------------------------

    def decide(
        self, number: int, items: Sequence[int], kind: str, labels: Sequence[str | None], how: str = "chosen"
    ) -> None:
        """Keep a decision, and label the batch again; refuse it if the page was behind."""
        with self.lock:
            self.refuse_behind(number)
            if how == "group":  # never touches what a person said
                open_ = [at for at, item in enumerate(items) if item not in self.state.decisions]
                items, labels = [items[at] for at in open_], [labels[at] for at in open_]
            self._check(items, kind, labels, how)
            if how == "audit" and items[0] != self.audit_item:
                how = "chosen"
            self._keep(items, [cast(Kind, kind)] * len(items), labels, how)

    def take_over(self, said: Mapping[int, tuple[Kind, str | None]]) -> None:
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
            self._keep(list(said), kinds, labels, "given", source)
            if replaced:
                self.notes.append(
                    f"{counted(len(said), 'answer')} were taken over. Of these, {len(replaced):,} replace what was "
                    f"said in this review, for instance about {self.batch.names[replaced[0]]}; undo takes them back."
                )

    def _keep(
        self,
        items: Sequence[int],
        kinds: Sequence[Kind],
        labels: Sequence[str | None],
        how: str,
        source: str | None = None,
    ) -> None:
        """Label the batch with one more step, and journal it if that can be done."""
        event = {
            "step": "answer",
            "items": [[item, self.batch.names[item], self.batch.content(item)] for item in items],
            "kinds": list(kinds),
            "labels": [label if kind in ("class", "new") else None for kind, label in zip(kinds, labels, strict=True)],
            "was": [self.said_by_model(item) for item in items],
            "how": how,
            "at": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
            "by": self.person,
            **({} if source is None else {"source": source}),
        }
        found = self.labelled(self.state.after(event).given())
        self._append(event)
        self.classified = found

    def undo(self, number: int) -> tuple[int, ...]:
        """Take the last step back, and return its items."""
        with self.lock:
            self.refuse_behind(number)
            if not self.state.steps:
                raise OptionError("there is nothing to undo")
            items = self.state.steps[-1].items
            self._append({"step": "undo"})
            self._label_or_drop()
            return items

    def _label_or_drop(self) -> None:
        """Label the batch as the journal says; steps that labelling refuses are dropped, and that is said.

        Such steps were written by version 0.4.0, which journaled answers before it labelled; or the catalogue has
        changed since.
        """
        while True:
            try:
                self.classified = self.labelled(self.state.given())
            except HandfulError as reason:
                self._drop(*self._first_refused(reason))
            else:
                return

    def _first_refused(self, reason: HandfulError) -> tuple[int, HandfulError]:
        """Return the place of a step that labelling refuses after those before it, and what it says.

        `reason` is what it says about all steps.
        """
        steps = self.state.steps
        fine = 0
        refused = len(steps)
        while fine + 1 < refused:
            middle = (fine + refused) // 2
            try:
                self.labelled(replace(self.state, steps=steps[:middle]).given())
            except HandfulError as error:
                refused = middle
                reason = error
            else:
                fine = middle
        return refused - 1, reason

    def _drop(self, at: int, reason: HandfulError) -> None:
        step = self.state.steps[at]
        self._append({"step": "drop", "at": at, "why": str(reason)})
        said = step.labels[0] or step.kinds[0]
        more = f" and {counted(len(step.items) - 1, 'more item')}" if len(step.items) > 1 else ""
        self.notes.append(f"The answer {said!r} for {self.batch.names[step.items[0]]}{more} was taken back: {reason}.")

    def _append(self, event: dict[str, Any]) -> None:
        self.journal.append(event)
        self.state = self.state.after(event)

    def refuse_behind(self, number: int) -> None:
        """Refuse a page that shows another state."""
        if number != self.state.number:
            raise BehindError("another window has answered since; look at the newest state first")

    def _check(self, items: Sequence[int], kind: str, labels: Sequence[str | None], how: str) -> None:
        if kind not in KINDS or how not in HOWS:
            raise OptionError(f"there is no answer {kind!r}, {how!r}")
        if not items or len(set(items)) != len(items) or not all(0 <= item < len(self.batch.rows) for item in items):
            raise OptionError("the answer must be about items of the batch, each once; all of them may be answered")
        if kind not in ("class", "new"):
            return
        known = {*self.first.class_names, *self.new_classes}
        for label in labels:
            if label is None or not label.strip() or label != label.strip() or len(label) > MOST_LETTERS:
                raise OptionError(f"a class must have a name of up to {MOST_LETTERS} characters")
            if label in NO_CLASS and label not in known:
                raise OptionError(f"{label!r} cannot be the name of a class: it says that an item has none")
            if kind == "class" and label not in known:
                raise OptionError(f"there is no class {label!r}; if it is new, say so")

    # -- what follows --------------------------------------------------------------------------------------------------

    @property
    def new_classes(self) -> list[str]:
        """Classes that the person named."""
        return list(dict.fromkeys(one.label for _, one in self.state.of_kind("new") if one.label is not None))

    def said_by_model(self, item: int) -> str | None:
        """Return the model's label of an item now; None for none of the classes."""
        answer = self.classified.answer
        return None if answer.rejected[item] else str(answer.labels[item])

    def audit(self) -> Audit:
        """Say how many labels are still wrong, by the audited items."""
        audited = [
            (item, one)
            for item, one in self.state.decisions.items()
            if one.how == "audit" and one.kind not in ("skip", "bad")
        ]
        wrong = sum(self.said_by_model(item) != one.label for item, one in audited)
        n_items = len(self.batch.rows)
        n_left = n_items - sum(one.kind != "skip" for one in self.state.decisions.values())
        return Audit.of(len(audited), wrong, n_left, n_items, self.most_wrong)

    def questions(self) -> list[Question]:
        """Return the questions that are worth asking, the most useful first."""
        if self._asked is None or self._asked[0] != self.state.steps:
            decided = self.state.decisions
            held_out = sum(not one.teaches for one in decided.values())
            found = best_questions(self.classified, N_QUESTIONS + held_out)
            worth = [one for one in found if one.item not in decided and one.worth >= LEAST_WORTH]
            self._asked = self.state.steps, worth[:N_QUESTIONS]
        return self._asked[1]

    @property
    def audit_item(self) -> int | None:
        """The item that is audited next; None if another question comes first, or nothing is left."""
        if not self.audits:
            return None
        decided, n_audits = self.state.decisions, self.state.n_audits
        asks = self.questions()
        if asks and not audit_is_due(n_audits, len(self.state.steps) - n_audits):
            return None
        if not asks and self.audit().may_stop:
            return None
        return next((item for item in self._order if item not in decided), None)

    def expected_right(self) -> float:
        """Return the expected share of right labels; those of a person are right."""
        answer = self.classified.answer
        chance = np.where(answer.rejected, np.nan_to_num(answer.unknown, nan=1.0), answer.certainty)
        chance[[item for item, one in self.state.decisions.items() if one.kind != "skip"]] = 1
        return float(chance.mean())

    def progress_said(self, audit: Audit, asks: bool) -> str:
        """Say how far the review is, in a few sentences."""
        n_items = len(self.batch.rows)
        looked = sum(one.kind != "skip" for one in self.state.decisions.values())
        right = round(self.expected_right() * n_items)
        said = [f"{looked:,} of {counted(n_items, 'item')} looked at, about {right:,} expected to be right."]
        if audit.n_audited:
            said.append(
                f"By {counted(audit.n_audited, 'check')}, {audit.low:.0%} to {audit.high:.0%} of all labels are wrong "
                "(90% interval)."
            )
        if audit.may_stop:
            said.append(f"You may stop: hardly more than {self.most_wrong:.0%} are wrong.")
        elif not asks:
            said.append("No question is left that is worth asking; a few checks tell whether you may stop.")
        return " ".join(said)

    def changed_since(self, before: Classified, apart: Sequence[int]) -> list[int]:
        """Return the items whose label differs from an earlier one, other than these."""
        now = self.classified.answer
        labels = np.asarray(now.labels != before.answer.labels) | (now.rejected != before.answer.rejected)
        labels[list(apart)] = False
        return list(map(int, np.flatnonzero(labels)))

    def corrections(self, without: Collection[str] = ()) -> dict[str, Any]:
        """Return what the person said, as a file of corrections; items of the classes in `without` are left out."""
        batch = self.batch
        decisions = {item: one for item, one in self.state.decisions.items() if one.label not in without}
        items = {item: (batch.rows[item], batch.names[item], batch.content(item)) for item in decisions}
        return corrections_file(decisions, items, self.first.class_names)

    def confirmed(self) -> dict[int, Decision]:
        """Return the items whose class a person said or confirmed."""
        return dict(self.state.of_kind("class", "new"))
