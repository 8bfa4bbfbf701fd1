"""A session at one moment: what was said, the labels that follow, and what the answers were evidence of.

All of it follows from the events of the catalogue, so the same events always lead to the same state.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple, Protocol

import numpy as np

from handful.catalogue.events import EventItem
from handful.errors import OptionError
from handful.estimators import Answer
from handful.estimators.answer import compared_items, groups_of_items, proposal_numbers, unnamed_groups
from handful.estimators.items import ModelItems
from handful.estimators.unnamed_groups import UnnamedGroups
from handful.model.questions import SameClass
from handful.session.clusters import same_by_cosine, two_parts
from handful.session.evidence import Evidence
from handful.session.requests import Request, Sheet, most_doubtful, next_request, question_worth, sheets_of
from handful.session.said import BatchSaid
from handful.session.stopping import MOST_OF_A_SHEET, Calibration, Mistakes, Posterior, Unseen, n_overlooked
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
    said, answer, evidence
        What was said, the labels that follow, and what the answers were evidence of.
    """

    options: SessionOptions
    items: Int[np.ndarray, "item"]
    said: BatchSaid
    answer: Answer
    evidence: Evidence

    @cached_property
    def exceptions(self) -> list[int]:
        """Positions of items that were left out of a sheet that was accepted, and not answered since."""
        return np.flatnonzero(np.isin(self.items, sorted(self.evidence.exceptions))).tolist()

    @property
    def unnamed(self) -> UnnamedGroups | None:
        """Groups that nobody has named; None if there is a catalogue."""
        return unnamed_groups(self.answer)

    @cached_property
    def risk(self) -> Float[np.ndarray, "item"]:
        """The chance that each label is wrong, by what is shown."""
        answer = self.answer
        risk = np.where(answer.rejected, 1 - np.nan_to_num(answer.unknown, nan=1.0), 1 - answer.certainty)
        risk[self.exceptions] = 1.0
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
        known[self.exceptions] = True
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
        if self.unnamed is not None and self.sheets:
            return next_request(self.answer, self.worth, self.sheets, self.sheets[0].corrected(self.wrong))
        return next_request(self.answer, self.worth, self.sheets)

    @cached_property
    def sheets(self) -> list[Sheet]:
        """All items that nobody has seen, in the order in which sheets of them would be shown."""
        unseen = np.ones(len(self.risk), dtype=bool)
        unseen[sorted(self.said.seen)] = False
        return sheets_of(self.answer, unseen, self.wrong, self.options.sheet_size)

    def may_stop(self, is_open: Bool[np.ndarray, "item"]) -> bool:
        """Whether few enough labels are wrong, if no person gives those of these items."""
        n_wrong = int((is_open & self.known_wrong).sum())
        some = self.unseen.of(is_open & ~self.known_wrong)
        return self.posterior.may_stop(some, self.n_labels, self.options.sure, self.mistakes._replace(n_wrong=n_wrong))

    def labelled(self, item: int) -> Any:
        """Return the label of an item; None for none of the classes."""
        if self.answer.rejected[item]:
            return None
        return self.answer.classes.tolist()[self.answer.codes[item, 0]]

    def shown(self, items: Sequence[int], label: Any = None, *, names: bool = False) -> list[EventItem]:
        """Return items, by their positions, with what is shown about each.

        An answer that `names` what most of a sheet is says that the others are wrong, whatever they are called later;
        they come after it.
        """
        left_out: list[int] = []
        # One item is never most of a sheet, so what was asked need not be known.
        asked = self.request if names and len(items) > 1 else None
        if (
            asked is not None
            and asked.is_sheet
            and set(items) < set(asked.items)
            and self._accepts(items, label, asked)
        ):
            left_out = sorted(set(asked.items) - set(items))
        found = []
        for position in (*items, *left_out):
            offered = self.labelled(position)
            # An item that has an answer, is known to be wrong or has no name had no label that could be right.
            is_evidence = self.open[position] and not self.known_wrong[position]
            found.append(
                EventItem(
                    int(self.items[position]),
                    answered=position not in left_out,
                    offered=None if offered is None else str(offered),
                    risk=float(self.risk[position]),
                    wrong=float(self.wrong[position]),
                    support=float(self.unseen.found_right[position]) if is_evidence else None,
                )
            )
        return found

    def smaller_part(self, label: Any) -> tuple[int, ...]:
        """Put the items of a class into two groups by how they look; return that with fewer answers, or fewer items."""
        items = np.array([item for item in range(len(self.risk)) if self.labelled(item) == label], np.int64)
        if len(items) < 2:
            raise OptionError(f"the class {label!r} has {len(items)} items; only a class of two or more can be two")
        assert self.unnamed is not None
        second = two_parts(self.unnamed.directions[items])
        answered = np.isin(items, sorted(self.said.given))
        sizes = [(int(answered[part].sum()), int(part.sum())) for part in (~second, second)]
        return tuple(items[second if sizes[1] <= sizes[0] else ~second].tolist())

    def _accepts(self, items: Sequence[int], label: Any, asked: Request) -> bool:
        """Whether an answer is about the sheet as a whole, and not about an exception."""
        return 2 * len(items) > len(asked.items) and (asked.asks_name or bool(label == asked.label))
