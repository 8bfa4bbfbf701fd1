"""A session after some steps: what was said, the labels that follow, and what the answers were evidence of.

A state never changes. `State.after` is the next one, so undoing a step is going back to the state before, and the same
steps always lead to the same labels.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from handful.errors import OptionError
from handful.estimators import Answer
from handful.estimators.answer import compared_items, groups_of_items, proposal_numbers, unnamed_groups
from handful.estimators.items import CatalogueItems
from handful.estimators.unnamed_groups import UnnamedGroups
from handful.model.questions import SameClass
from handful.session.clusters import same_by_cosine, two_parts
from handful.session.labelling import Labeller
from handful.session.requests import Request, Sheet, most_doubtful, next_request, question_worth, sheets_of
from handful.session.steps import Said, Step
from handful.session.stopping import (
    MOST_OF_A_SHEET,
    Calibration,
    Look,
    Mistakes,
    Posterior,
    Unseen,
    chance_of_slip,
    n_overlooked,
)
from handful.shapes import Bool, Float


class SessionOptions(NamedTuple):
    """What is the same in all states of a session, see `handful.Session`."""

    sheet_size: int
    sure: float
    first_calibration: Calibration


@dataclass(frozen=True, eq=False)
class State:
    """A session after some steps: what was said, the labels that follow, and what the answers were evidence of."""

    labeller: Labeller
    options: SessionOptions
    steps: tuple[Step, ...]
    said: Said
    answer: Answer
    looks: tuple[Look, ...]
    exceptions: frozenset[int] = frozenset()  # left out of a sheet that was accepted: counted as wrong already
    n_exceptions: int = 0  # all that were left out so far
    found_right: Mapping[Any, float] = field(default_factory=dict)  # by label, as how many answers that count
    slips: Mapping[int, float] = field(default_factory=dict)  # chances that answers against labels are mistaken

    @property
    def unnamed(self) -> UnnamedGroups | None:
        """Groups that nobody has named; None if there is a catalogue."""
        return unnamed_groups(self.answer)

    @cached_property
    def risk(self) -> Float[np.ndarray, "item"]:
        """The chance that each label is wrong, by what is shown."""
        answer = self.answer
        risk = np.where(answer.rejected, 1 - np.nan_to_num(answer.unknown, nan=1.0), 1 - answer.certainty)
        risk[sorted(self.exceptions)] = 1.0
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
        return Posterior(self.options.first_calibration, self.looks)

    @cached_property
    def worth(self) -> Float[np.ndarray, "item"]:
        """How many wrong labels an answer about each item would correct; -1 for items that were seen."""
        items = compared_items(self.answer)
        wrong = self.wrong_on_sheet
        worth = wrong.copy()
        if isinstance(items, CatalogueItems) and not items.catalogue.only_names:
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
        by_label = [self.found_right.get(label, 0.0) for label in (*self.answer.classes.tolist(), None)]
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
        known[sorted(self.exceptions)] = True
        return known

    @property
    def mistakes(self) -> Mistakes:
        """Labels that are known to be wrong, and what a person may have got wrong."""
        return Mistakes(int(self.known_wrong.sum()), sum(self.slips.values()) + n_overlooked(self.n_exceptions))

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

    def after(self, step: Step) -> State:
        """Label the batch again with one more step; an error leaves everything as it was."""
        if step.kind == "split" and not step.items:
            step = step._replace(items=self.smaller_part(step.label))
        said = self.said.after(step)
        # Items that are left open say nothing about labels.
        is_same = replace(said, skipped=self.said.skipped) == self.said
        answer = self.answer if is_same else self.labeller(said)
        looks, left_out = self._looks(step) if step.kind == "answer" else ({}, frozenset[int]())
        found_right = dict(self.found_right)
        for label, look in looks.items():
            found_right[label] = found_right.get(label, 0.0) + look.n_right
        slips = {item: chance for item, chance in self.slips.items() if item not in step.items}
        if step.kind == "answer" and len(step.items) == 1 and self.labelled(step.items[0]) != step.label:
            slips[step.items[0]] = chance_of_slip(float(self.wrong[step.items[0]]))
        return State(
            self.labeller,
            self.options,
            (*self.steps, step),
            said,
            answer,
            (*self.looks, *looks.values()),
            (self.exceptions | left_out) - frozenset(step.items),
            self.n_exceptions + len(left_out),
            found_right,
            slips,
        )

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

    def _looks(self, step: Step) -> tuple[dict[Any, Look], frozenset[int]]:
        """Compare an answer with the labels before it, by label; return also the items that it left out of a sheet.

        Who accepts most of a sheet says that the others are wrong, whatever they are called later.
        """
        left_out = frozenset[int]()
        # One item is never most of a sheet: what was asked need not be known, and steps are replayed faster.
        asked = self.request if len(step.items) > 1 else None
        if asked is not None and asked.is_sheet and set(step.items) < set(asked.items) and self._accepts(step, asked):
            left_out = frozenset(asked.items) - frozenset(step.items)
        # An item without a name had no label that could be right.
        compared = self.open & ~self.not_named
        fresh = [item for item in (*step.items, *sorted(left_out)) if compared[item] and item not in self.exceptions]
        by_label: dict[Any, list[int]] = {}
        for item in fresh:
            by_label.setdefault(self.labelled(item), []).append(item)
        found = {}
        for label, items in by_label.items():
            wrong = tuple(item in left_out or label != step.label for item in items)
            risks = tuple(float(self.risk[item]) for item in items)
            found[label] = Look(risks, wrong, float(self.unseen.found_right[items[0]]), rejected=label is None)
        return found, left_out

    def _accepts(self, step: Step, asked: Request) -> bool:
        """Whether an answer is about the sheet as a whole, and not about an exception."""
        return 2 * len(step.items) > len(asked.items) and (asked.asks_name or bool(step.label == asked.label))
