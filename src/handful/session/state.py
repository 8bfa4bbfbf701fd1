"""A session at one moment: what was said, the labels that follow, and what the answers were evidence of.

All of it follows from the events of the catalogue, so the same events always lead to the same state.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple, Protocol

import numpy as np

from handful.catalogue.events import EventItem
from handful.estimators import Answer
from handful.estimators.answer import compared_items, groups_of_items, proposal_numbers, unnamed_groups
from handful.estimators.items import ModelItems
from handful.estimators.unnamed_groups import UnnamedGroups
from handful.model.questions import SameClass
from handful.session.clusters import same_by_cosine
from handful.session.evidence import Evidence
from handful.session.oddest import OddLooks, Oddness, n_odd_needed
from handful.session.requests import (
    Request,
    Sheet,
    exception_request,
    mixed_request,
    most_doubtful,
    next_request,
    question_worth,
    sheets_of,
)
from handful.session.said import BatchSaid
from handful.session.stopping import (
    MOST_OF_A_SHEET,
    MOST_WRONG,
    Calibration,
    Estimate,
    Mistakes,
    Posterior,
    Unseen,
    n_overlooked,
)
from handful.shapes import Bool, Float, Int


class Labeller(Protocol):
    """What labels the batch: the whole of it, in the order of its rows."""

    def __call__(self, said: BatchSaid) -> Answer:
        """Label the batch with `said.given`; `said.named` are their classes, `said.discarded` is left out."""


class SessionOptions(NamedTuple):
    """What is the same in all states of a session, see `handful.Session`."""

    sheet_size: int
    sure: float
    first_calibration: Calibration


@dataclass(frozen=True, eq=False)
class State:
    """A session at one moment.

    Attributes
    ----------
    options : SessionOptions
        What is the same in all states.
    items : [position]
        The number of each item in the catalogue.
    said, answer, evidence, odd_looks
        What was said, the labels that follow, what the answers were evidence of, and what was looked at because it is
        odd.
    oddness : Oddness
        How unlike items are to those that were seen.
    """

    options: SessionOptions
    items: Int[np.ndarray, "item"]
    said: BatchSaid
    answer: Answer
    evidence: Evidence
    odd_looks: OddLooks
    oddness: Oddness

    @cached_property
    def exceptions(self) -> dict[int, str | None]:
        """Positions of items whose label was said to be wrong, and which were not answered since, with that label."""
        wrong = self.evidence.exceptions
        return {at: wrong[item] for at, item in enumerate(self.items.tolist()) if item in wrong}

    @property
    def unnamed(self) -> UnnamedGroups | None:
        """Groups that nobody has named; None if there is a catalogue."""
        return unnamed_groups(self.answer)

    @cached_property
    def risk(self) -> Float[np.ndarray, "item"]:
        """The chance that each label is wrong, by what is shown."""
        answer = self.answer
        risk = np.where(answer.rejected, 1 - np.nan_to_num(answer.unknown, nan=1.0), 1 - answer.certainty)
        risk[list(self.exceptions)] = 1.0
        risk[self.not_named] = 1.0
        return np.asarray(risk)

    @cached_property
    def not_named(self) -> Bool[np.ndarray, "item"]:
        """Items of groups that nobody has named."""
        if self.unnamed is None:
            return np.zeros(len(self.answer.codes), dtype=bool)
        given = np.zeros(len(self.answer.codes), dtype=bool)
        given[sorted({*self.said.given, *self.said.discarded})] = True
        return self.unnamed.not_named & ~given

    @cached_property
    def posterior(self) -> Posterior:
        """How far shown risks can be trusted."""
        return Posterior(self.options.first_calibration, self.evidence.looks)

    @cached_property
    def worth(self) -> Float[np.ndarray, "item"]:
        """How many wrong labels an answer about each item would correct; -1 for items that were seen."""
        items = compared_items(self.answer)
        wrong = self.wrong_on_sheet
        worth = wrong.copy()
        if isinstance(items, ModelItems) and not items.catalogue.only_names:
            kept = most_doubtful(wrong, sorted(self.said.given))
            if self.unnamed is not None:
                same = same_by_cosine(self.unnamed.directions[kept], self.unnamed.even)
            else:
                points = items.points[kept] - items.catalogue.reference.centre
                same = SameClass.of(points, self.answer.probabilities[kept])
            answered = np.isin(kept, sorted(self.said.given))
            worth[kept] = question_worth(wrong[kept], same, answered)
        worth[sorted(self.said.seen)] = -1
        return worth

    @cached_property
    def unseen(self) -> Unseen:
        """All labels, with their risks and what was found about them."""
        none = len(self.answer.classes)
        group = np.where(self.answer.rejected, none, self.answer.codes[:, 0])
        labels = (*map(str, self.answer.classes.tolist()), None)
        by_label = [self.evidence.found_right.get(label, 0.0) for label in labels]
        found_right = np.array(by_label)[group]
        if self.unnamed is not None:
            # Clusters that nobody has asked about are mixes by themselves, whatever label their items have.
            is_unasked = self.unnamed.unasked >= 0
            group = np.where(is_unasked, none + 1 + self.unnamed.unasked, group)
            found_right[is_unasked] = 0
        else:
            # Rejected items are of several groups: what was said about one says nothing about the others.
            rejected = self.answer.rejected
            proposal = proposal_numbers(self.answer)
            of_items = groups_of_items(self.answer)
            of_batch = 0 if of_items is None else of_items * (proposal.max() + 1)
            number = (proposal + of_batch)[rejected]
            given = np.isin(np.flatnonzero(rejected), sorted(self.said.given)) & (proposal[rejected] > 0)
            group[rejected] = none + number
            found_right[rejected] = np.minimum(np.bincount(number, given)[number], MOST_OF_A_SHEET)
        return Unseen(self.risk, group, found_right, self.answer.rejected)

    @cached_property
    def known_wrong(self) -> Bool[np.ndarray, "item"]:
        """Items without a name, and exceptions of a sheet that were not answered yet."""
        known = self.not_named.copy()
        known[list(self.exceptions)] = True
        return known

    @property
    def mistakes(self) -> Mistakes:
        """Labels that are known to be wrong, and what a person may have got wrong."""
        evidence = self.evidence
        n_slips = sum(evidence.slips.values()) + n_overlooked(evidence.n_exceptions)
        return Mistakes(int(self.known_wrong.sum()), n_slips)

    @cached_property
    def wrong(self) -> Float[np.ndarray, "item"]:
        """The chance that each label is wrong, by what answers taught about risks; 0 if a person gave it."""
        return self._settled(self.posterior.wrong(self.unseen))

    @cached_property
    def wrong_alone(self) -> Float[np.ndarray, "item"]:
        """The chance that each label is wrong while others of its kind are right: it would be an exception."""
        return self._settled(self.posterior.alone(self.unseen))

    @property
    def wrong_on_sheet(self) -> Float[np.ndarray, "item"]:
        """The chance that each label is wrong, as far as it makes a question worth more than a sheet.

        With a catalogue, a label that is wrong as a whole is seen at a glance on its first sheet. Without one, every
        sheet is of one label that was said, and clusters that nobody has asked about hide among them.
        """
        return self.wrong_alone if self.unnamed is None else self.wrong

    def _settled(self, chance: Float[np.ndarray, "item"]) -> Float[np.ndarray, "item"]:
        """Return chances that labels are wrong: 1 if that is known, 0 if a person gave the label."""
        chance[self.known_wrong] = 1
        chance[sorted({*self.said.given, *self.said.discarded})] = 0
        return chance

    @cached_property
    def open(self) -> Bool[np.ndarray, "item"]:
        """Items whose label no person gave."""
        is_open = np.ones(len(self.risk), dtype=bool)
        is_open[sorted({*self.said.given, *self.said.discarded})] = False
        return is_open

    @property
    def n_labels(self) -> int:
        """Items that are to have a label."""
        return len(self.risk) - len(self.said.discarded)

    @cached_property
    def request(self) -> Request | None:
        """What to look at next."""
        if self.exceptions:
            return exception_request(self.answer, self.exceptions)
        if self.shows_rest:
            return mixed_request(self.answer, self.rest(self.options.sheet_size), self.labels, self.worth)
        if self.unnamed is not None and self.sheets:
            return next_request(self.answer, self.worth, self.sheets, self.sheets[0].corrected(self.wrong))
        return next_request(self.answer, self.worth, self.sheets)

    @cached_property
    def sheets(self) -> list[Sheet]:
        """All items that nobody has seen, in the order in which sheets of them would be shown."""
        unseen = np.ones(len(self.risk), dtype=bool)
        unseen[sorted(self.said.seen)] = False
        return sheets_of(self.answer, unseen, self.wrong, self.options.sheet_size)

    @property
    def expected_right(self) -> Estimate:
        """Share of all labels that are right, with a 90% interval; slips of a person count, too."""
        some = self.unseen.of(self.open & ~self.known_wrong)
        return self.posterior.right(some, self.n_labels, self.mistakes)

    @cached_property
    def shows_rest(self) -> bool:
        """Whether so few labels are expected to be wrong that the rest is shown, oddest first."""
        return self.expected_right.value >= 1 - MOST_WRONG

    @cached_property
    def labels_are_good(self) -> bool:
        """Whether few enough labels are wrong."""
        return self.would_be_good(self.open)

    @property
    def n_unseen(self) -> int:
        """Items that nobody has seen."""
        return len(self.risk) - len(self.said.seen)

    @property
    def n_odd_left(self) -> int:
        """How many more odd items without a new kind are enough."""
        n_odd = self.odd_looks.n_odd
        return min(self.n_unseen, max(n_odd_needed(self.n_unseen + n_odd) - n_odd, 0))

    @property
    def may_stop(self) -> bool:
        """Whether labels are good, and enough odd items held no new kind."""
        return self.labels_are_good and self.n_odd_left == 0 and not self.exceptions

    def rest(self, most: int) -> Int[np.ndarray, "some"]:
        """Return up to `most` items that nobody has seen, the oddest first, and fill up with those to look at again."""
        unseen = self.oddness.first(most, self.said.seen)
        glanced = np.flatnonzero(np.isin(self.items, sorted(self.odd_looks.glanced))).tolist()
        n_again = most - len(unseen) if len(unseen) else max(0, most - self.odd_looks.n_again)
        return np.concatenate([unseen, self.oddness.least_fitting(n_again, glanced, self.said.given)])

    @property
    def answers_left(self) -> int:
        """About how many more decisions until a person may stop."""
        if self.may_stop:
            return 0
        n_odd = self.n_odd_left
        is_open = self.open.copy()
        cost = 0.0
        if not self.shows_rest:
            some = self._until_good(self.sheets)
            for sheet in some:
                is_open[sheet.items] = False
            cost = sum(sheet.expected_decisions for sheet in some)
            n_odd = n_odd_needed(self.n_unseen - sum(len(sheet.items) for sheet in some))
        size = self.options.sheet_size
        # Odd items are mostly those whose labels are in doubt.
        doubtful = np.flatnonzero(is_open)[np.argsort(-self.wrong[is_open], kind="stable")]
        rest = [doubtful[start : start + size] for start in range(0, len(doubtful), size)]
        enough = len(self._until_good([Sheet(items, None, 1.0) for items in rest])) if self.shows_rest else 0
        shown = rest[: max(enough, math.ceil(n_odd / size))]
        cost += sum(1 + float(self.wrong[items].sum()) for items in shown)
        return max(1, math.ceil(cost))

    def _until_good(self, sheets: Sequence[Sheet]) -> Sequence[Sheet]:
        """Return the first of these sheets, as many as make labels good; fewer labels are open after every one."""
        too_few = 0
        enough = len(sheets)
        while too_few + 1 < enough:
            middle = (too_few + enough) // 2
            is_open = self.open.copy()
            for sheet in sheets[:middle]:
                is_open[sheet.items] = False
            if self.would_be_good(is_open):
                enough = middle
            else:
                too_few = middle
        return sheets[:enough]

    def would_be_good(self, is_open: Bool[np.ndarray, "item"]) -> bool:
        """Whether few enough labels are wrong, if no person gives those of these items."""
        n_wrong = int((is_open & self.known_wrong).sum())
        some = self.unseen.of(is_open & ~self.known_wrong)
        return self.posterior.may_stop(some, self.n_labels, self.options.sure, self.mistakes._replace(n_wrong=n_wrong))

    @cached_property
    def labels(self) -> list[Any]:
        """The label of each item; None for none of the classes, or if it has no name yet."""
        classes = self.answer.classes.tolist()
        pairs = zip(self.answer.codes[:, 0].tolist(), self.answer.rejected.tolist(), strict=True)
        return [None if rejected else classes[code] for code, rejected in pairs]

    def shown(self, items: Sequence[int], wrong: Sequence[int] = ()) -> list[EventItem]:
        """Return items, by their positions, with what is shown about each; what is shown about those of `wrong` is."""
        found = []
        for position in (*items, *wrong):
            offered = self.labels[position]
            # An item that has an answer, is known to be wrong or has no name had no label that could be right.
            is_evidence = self.open[position] and not self.known_wrong[position]
            found.append(
                EventItem(
                    int(self.items[position]),
                    answered=position not in wrong,
                    offered=None if offered is None else str(offered),
                    risk=float(self.risk[position]),
                    wrong=float(self.wrong[position]),
                    support=float(self.unseen.found_right[position]) if is_evidence else None,
                )
            )
        return found
