"""What a person looks at next: one item, or a sheet of items with one label, by what it is worth.

Everything is to be seen in as few decisions as possible. A sheet shows up to 24 items with one label and takes one
decision, and one more for every exception. A question about a single item takes one decision. It saves one for every
wrong label that it corrects, because each would be an exception on some sheet:

    worth_n = p_n + Σ_m p_m max(r_nm - max_{a answered} r_am, 0),

with p the chance that a label is wrong by its own risk (a label that is wrong as a whole takes no more decisions than a
right one: its sheet gets another label) and r the chance that two items have the same class
(`handful.model.questions`). So a question comes next while the best one is worth more than the decision that it takes,
and otherwise the sheet with the most items per decision, `|S| / (1 + Σ_S p)`.

Once at most 5% of the labels are expected to be wrong, sheets show the rest, whatever their labels, oddest first
(`handful.session.oddest`). An item whose label was said to be wrong on a sheet is asked about next.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from handful.estimators import Answer
from handful.estimators.answer import unnamed_groups
from handful.estimators.unnamed_groups import UnnamedGroups
from handful.model.questions import SameClass
from handful.shapes import Bool, Float, Int

# Items of a sheet: photographs that can be taken in at a glance. [items; convention]
SHEET_SIZE = 24
# A question about one item comes before sheets if it corrects at least this many wrong labels. [labels; tuned]
LEAST_CORRECTED = 1.5
# Items that are more likely wrong are left out of a sheet while there are others. [chance; convention]
MOST_DOUBT_ON_SHEET = 0.5
# Decisions that a wrong label, or an item apart from all groups, takes on average: answers correct others as well.
# [decisions; measured: 10 to 20 decisions where doubts add up to 20 to 50]
DECISIONS_PER_DOUBT = 0.3
# Items that are compared with one another, and how many of them at a time. [items; work]
MOST_COMPARED = 2_000
COMPARED_AT_A_TIME = 64
# Classes that a request offers. [classes; convention]
MOST_CHOICES = 9
# Classes that the text of a question names. [classes; convention]
MOST_NAMED = 3


@dataclass(frozen=True)
class Request:
    """What to look at next; `str` asks in one sentence.

    Attributes
    ----------
    items : tuple of int
        Positions: one item is a question, several are a sheet.
    labels : tuple of label
        What each of them is labelled now; None for none of the classes, or if it is not named yet.
    choices : tuple of label
        The likeliest classes, the best first.
    why : str
        Why these come next, in one sentence.
    asks_name : bool
        Whether they belong to a group that nobody has named yet.
    oddest : bool
        Whether they are those that are least like anything seen; then their labels may differ.
    waiting : tuple of int
        Other items whose label was said to be wrong, and which are asked about next.
    corrects : int
        About how many wrong labels an answer about one item corrects, its own among them.
    """

    items: tuple[int, ...]
    labels: tuple[Any, ...]
    choices: tuple[Any, ...]
    why: str
    asks_name: bool = False
    oddest: bool = False
    waiting: tuple[int, ...] = ()
    corrects: int = 0

    @property
    def is_sheet(self) -> bool:
        """Whether it shows several items."""
        return len(self.items) > 1

    @property
    def label(self) -> Any:
        """What all of them are labelled; None for none of the classes, if they are not named yet, or if they differ."""
        return self.labels[0] if len(set(self.labels)) == 1 else None

    def __str__(self) -> str:
        if self.asks_name and self.is_sheet:
            return f"What are these {len(self.items)} items? {', '.join(map(str, self.items))}"
        if self.asks_name:
            return f"What is item {self.items[0]}?"
        if not self.is_sheet:
            classes = ", ".join(map(str, self.choices[:MOST_NAMED])) or "no class"
            return f"What is item {self.items[0]}? {classes}, another class, or none of these?"
        if self.oddest:
            listed = ", ".join(f"{item} {label!s}" for item, label in zip(self.items, self.labels, strict=True))
            return f"Are these {len(self.items)} items labelled right? {listed}"
        what = "none of the classes" if self.label is None else repr(self.label)
        return f"Are all of these {len(self.items)} items {what}? {', '.join(map(str, self.items))}"


class Sheet(NamedTuple):
    """Items that are shown together, what they are labelled, and the decisions that are expected to settle them."""

    items: Int[np.ndarray, "some"]
    label: Any
    cost: float
    asks_name: bool = False

    @property
    def expected_decisions(self) -> float:
        """About how many decisions it will take: answers about other items correct most of its mistakes before."""
        return min(1.0, DECISIONS_PER_DOUBT * len(self.items)) + DECISIONS_PER_DOUBT * (self.cost - 1)

    @property
    def rate(self) -> float:
        """Items that are settled per decision."""
        return len(self.items) / self.cost

    def corrected(self, wrong: Float[np.ndarray, "item"]) -> float:
        """Return how many wrong labels are corrected per decision."""
        return float(wrong[self.items].sum()) / self.cost


def sheets_of(
    answer: Answer, unseen: Bool[np.ndarray, "item"], wrong: Float[np.ndarray, "item"], size: int
) -> list[Sheet]:
    """Cut the unseen items into sheets, those that settle most items per decision first.

    A sheet takes one decision and one more for each exception. Items that are more likely wrong than right come on
    sheets of their own, with those that have the same next class: the sheet asks between the two.
    """
    found = []
    for items, label in groups_of(answer, unseen):
        order = items[np.argsort(wrong[items], kind="stable")]
        doubtful = wrong[order] > MOST_DOUBT_ON_SHEET
        parts = [order[~doubtful], *same_next_class(answer, order[doubtful])]
        for some in (part[start : start + size] for part in parts for start in range(0, len(part), size)):
            exceptions = float(np.minimum(wrong[some], 1 - wrong[some]).sum()) if len(some) > 1 else 0.0
            found.append(Sheet(some, label, 1 + exceptions))
    unnamed = unnamed_groups(answer)
    if unnamed is not None:
        found += sheets_without_name(unnamed, unseen, size)
        # Most labels are wrong at first: what corrects most of them per decision comes before what shows most items.
        return sorted(found, key=lambda sheet: (-sheet.corrected(wrong), -sheet.rate, int(sheet.items[0])))
    return sorted(found, key=lambda sheet: (-sheet.rate, int(sheet.items[0])))


def same_next_class(answer: Answer, items: Int[np.ndarray, "some"]) -> Iterator[Int[np.ndarray, "part"]]:
    """Yield the items by their next most probable class."""
    after = answer.codes[items, 1]
    for code in dict.fromkeys(after.tolist()):
        yield items[after == code]


def sheets_without_name(unnamed: UnnamedGroups, unseen: Bool[np.ndarray, "item"], size: int) -> Iterator[Sheet]:
    """Cut the unseen items of every group without a name into sheets, each with the most items per decision."""
    other = 1 - unnamed.chance_of_group
    for group in range(unnamed.n_groups):
        items = np.flatnonzero((unnamed.group == group) & unseen)
        items = items[np.argsort(other[items], kind="stable")]
        while len(items):
            n = np.arange(1, min(size, len(items)) + 1)
            cost = 1 + np.where(n > 1, np.cumsum(other[items[: len(n)]]), 0.0)
            best = int((n / cost).argmax())
            yield Sheet(items[: best + 1], None, float(cost[best]), asks_name=True)
            items = items[best + 1 :]


def groups_of(answer: Answer, unseen: Bool[np.ndarray, "item"]) -> Iterator[tuple[Int[np.ndarray, "some"], Any]]:
    """Yield the unseen items of every label, and of every group of items that are none of the classes."""
    codes = answer.codes[:, 0]
    known = unseen & ~answer.rejected
    labels = answer.classes.tolist()
    for code in np.unique(codes[known]).tolist():
        yield np.flatnonzero(known & (codes == code)), labels[code]
    left = unseen & answer.rejected
    unnamed = unnamed_groups(answer)
    if unnamed is not None:
        left &= ~unnamed.not_named
    for proposal in answer.proposals if answer.groups is None else ():
        items = np.asarray(proposal.items)
        items = items[left[items]]
        left[items] = False
        if len(items):
            yield items, None
    if left.any():
        yield np.flatnonzero(left), None


def next_request(
    answer: Answer, worth: Float[np.ndarray, "item"], sheets: Sequence[Sheet], least: float = LEAST_CORRECTED
) -> Request | None:
    """Return what to look at next; None if everything has been seen.

    Parameters
    ----------
    answer
        The labels now.
    worth
        How many wrong labels an answer about each item corrects; -1 for items that were seen.
    sheets
        All items that nobody has seen, `sheets_of`.
    least
        A question comes before sheets if it corrects at least this many.
    """
    if not sheets:
        return None
    item = int(worth.argmax())
    if worth[item] >= least:
        unnamed = unnamed_groups(answer)
        if unnamed is not None and unnamed.not_named[item]:
            sheet = next(sheet for sheet in sheets if item in sheet.items)
            if len(sheet.items) > 1:
                return _sheet(answer, sheet)
        return _question(answer, item, float(worth[item]))
    best = sheets[0]
    if len(best.items) == 1:
        return _question(answer, int(best.items[0]), float(worth[best.items[0]]))
    return _sheet(answer, best)


def exception_request(answer: Answer, wrong: Mapping[int, str | None]) -> Request:
    """Return the question about the first of these items, whose labels were said to be wrong; the others wait."""
    item, *waiting = wrong
    asked = _question(answer, item, 1.0)
    choices = tuple(choice for choice in asked.choices if str(choice) != wrong[item])
    label = asked.labels[0]
    if str(label) == wrong[item]:
        label = choices[0] if choices else None
    asks_name = asked.asks_name or (unnamed_groups(answer) is not None and not choices)
    why = "You said that its label is wrong."
    return Request((item,), (label,), choices, why, asks_name, waiting=tuple(waiting))


def mixed_request(
    answer: Answer, items: Int[np.ndarray, "some"], labels: Sequence[Any], worth: Float[np.ndarray, "item"]
) -> Request | None:
    """Return the items that are least like anything seen, those with one label together; None if there are none."""
    if not len(items):
        return None
    if len(items) == 1:
        return replace(_question(answer, int(items[0]), float(worth[items[0]])), oddest=True)
    shown = [labels[item] for item in items.tolist()]
    # Labels come in the order of their oddest item, and those of none of the classes first.
    first = {label: place for place, label in reversed(list(enumerate(shown)))} | {None: -1}
    order = sorted(range(len(items)), key=lambda place: (first[shown[place]], place))
    why = "These are least like what you have seen; accept their labels at once, and mark those that are wrong."
    return Request(
        tuple(items[order].tolist()),
        tuple(shown[place] for place in order),
        _choices(answer, items.tolist()),
        why,
        oddest=True,
    )


def most_doubtful(wrong: Float[np.ndarray, "item"], answered: Sequence[int]) -> Int[np.ndarray, "some"]:
    """Return the items that are compared with one another: those most likely wrong, and the last answered ones."""
    doubtful = np.argsort(-wrong, kind="stable")[:MOST_COMPARED]
    return np.union1d(doubtful, np.array(answered[-MOST_COMPARED:], np.int64))


def question_worth(
    wrong: Float[np.ndarray, "item"], same: SameClass, answered: Bool[np.ndarray, "item"]
) -> Float[np.ndarray, "item"]:
    """Return how many wrong labels an answer about each item corrects, as far as earlier answers do not.

    Parameters
    ----------
    wrong
        The chance that each label is wrong; 0 if it was answered.
    same
        r, the chance that two items have the same class.
    answered
        Items with an answer.
    """
    covered = np.zeros(len(wrong), same.cosines.dtype)
    for some in _blocks(np.flatnonzero(answered)):
        covered = np.maximum(covered, same.of_items(some).max(0))
    worth = np.empty(len(wrong))
    each = wrong.astype(covered.dtype)
    for some in _blocks(np.arange(len(wrong))):
        gains = same.of_items(some)
        gains -= covered
        np.maximum(gains, 0, out=gains)
        gains[np.arange(len(some)), some] = 1
        worth[some] = gains @ each
    return worth


def _blocks(items: Int[np.ndarray, "item"]) -> list[Int[np.ndarray, "some"]]:
    """Return the items in blocks that a cache holds, compared with all others."""
    return [items[first : first + COMPARED_AT_A_TIME] for first in range(0, len(items), COMPARED_AT_A_TIME)]


def _choices(answer: Answer, items: Sequence[int]) -> tuple[Any, ...]:
    """Return the classes that the items have most probably, the best first."""
    mean = answer.probabilities[list(items)].mean(0)
    order = np.argsort(-mean, kind="stable")[:MOST_CHOICES]
    return tuple(answer.classes[order].tolist())


def _question(answer: Answer, item: int, worth: float) -> Request:
    label = None if answer.rejected[item] else answer.classes.tolist()[answer.codes[item, 0]]
    unnamed = unnamed_groups(answer)
    asks_name = unnamed is not None and bool(unnamed.not_named[item])
    others = round(float(worth))
    why = (
        f"About {others} wrong labels would be corrected by this answer."
        if others > 1
        else "This label is doubtful, and few others are like it."
    )
    if asks_name:
        why = f"About {others} items like it have no name yet." if others > 1 else "It looks like nothing with a name."
    return Request((item,), (label,), _choices(answer, [item]), why, asks_name, corrects=others)


def _sheet(answer: Answer, sheet: Sheet) -> Request:
    items = tuple(sheet.items.tolist())
    choices = _choices(answer, items)
    if sheet.asks_name:
        why = "These look alike, and have no name yet; give all of them one, and mark those that do not belong."
        return Request(items, (None,) * len(items), choices, why, asks_name=True)
    if sheet.label is None:
        why = "These look like none of the classes; accept them at once, and mark those that are not."
        return Request(items, (None,) * len(items), choices, why)
    # The label comes first, though the mean of all items may prefer another class.
    choices = (sheet.label, *(choice for choice in choices if choice != sheet.label))[:MOST_CHOICES]
    why = f"These are labelled {sheet.label!s}; accept them at once, and mark those that are not."
    return Request(items, (sheet.label,) * len(items), choices, why)
