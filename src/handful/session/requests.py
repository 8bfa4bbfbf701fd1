"""What a person looks at next: one item, or a sheet of items with one label, by what it is worth.

Everything is to be seen in as few decisions as possible. A sheet shows up to 24 items with one label and takes one
decision, and one more for every exception. A question about a single item takes one decision. It saves one for every
wrong label that it corrects, because each would be an exception on some sheet:

    worth_n = p_n + Σ_m p_m max(r_nm - max_{a answered} r_am, 0),

with p the chance that a label is wrong and r the chance that two items have the same class
(`handful.engine.questions`). So a question comes next while the best one is worth more than the decision that it takes,
and otherwise the sheet with the most items per decision, `|S| / (1 + Σ_S p)`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from handful.engine.questions import same_class
from handful.estimators import Answer
from handful.session.steps import Said
from handful.shapes import Bool, Float, Int

# Items of a sheet: photographs that can be taken in at a glance.
SHEET_SIZE = 24
# A question about one item comes before sheets if it corrects at least so many wrong labels.
LEAST_CORRECTED = 1.0
# Items that are more likely wrong are left out of a sheet while there are others.
MOST_DOUBT_ON_SHEET = 0.5
# Classes that a request offers.
MOST_CHOICES = 9


@dataclass(frozen=True)
class Request:
    """What to look at next; `str` asks in one sentence.

    Attributes
    ----------
    items : tuple of int
        Positions: one item is a question, several are a sheet.
    label : label or None
        What all of them are labelled now; None for none of the classes.
    choices : tuple of label
        The likeliest classes, the best first.
    why : str
        Why these come next, in one sentence.
    """

    items: tuple[int, ...]
    label: Any
    choices: tuple[Any, ...]
    why: str

    @property
    def is_sheet(self) -> bool:
        """Whether it shows several items."""
        return len(self.items) > 1

    def __str__(self) -> str:
        if not self.is_sheet:
            classes = ", ".join(map(str, self.choices[:3])) or "no class"
            return f"What is item {self.items[0]}? {classes}, another class, or none of these?"
        what = "none of the classes" if self.label is None else repr(self.label)
        return f"Are all of these {len(self.items)} items {what}? {', '.join(map(str, self.items))}"


class Sheet(NamedTuple):
    """Items that are shown together, what they are labelled, and the decisions that are expected to settle them."""

    items: Int[np.ndarray, "some"]
    label: Any
    cost: float

    @property
    def rate(self) -> float:
        """Items that are settled per decision."""
        return len(self.items) / self.cost


def sheets_of(
    answer: Answer, unseen: Bool[np.ndarray, "item"], wrong: Float[np.ndarray, "item"], size: int
) -> list[Sheet]:
    """Cut the unseen items into sheets, those that settle most items per decision first.

    A sheet takes one decision and one more for each exception. Items that are more likely wrong than right are looked
    at one by one.
    """
    found = []
    for items, label in groups_of(answer, unseen):
        order = items[np.argsort(wrong[items], kind="stable")]
        n_sure = int((wrong[order] <= MOST_DOUBT_ON_SHEET).sum())
        starts = [*range(0, n_sure, size), *range(n_sure, len(order))]
        ends = [*starts[1:], len(order)]
        for start, end in zip(starts, ends, strict=True):
            some = order[start:end]
            exceptions = float(wrong[some].sum()) if len(some) > 1 else 0.0
            found.append(Sheet(some, label, 1 + exceptions))
    return sorted(found, key=lambda sheet: (-sheet.rate, int(sheet.items[0])))


def groups_of(answer: Answer, unseen: Bool[np.ndarray, "item"]) -> Iterator[tuple[Int[np.ndarray, "some"], Any]]:
    """Yield the unseen items of every label, and of every group of items that are none of the classes."""
    codes = answer.codes[:, 0]
    known = unseen & ~answer.rejected
    labels = answer.classes.tolist()
    for code in np.unique(codes[known]).tolist():
        yield np.flatnonzero(known & (codes == code)), labels[code]
    left = unseen & answer.rejected
    for proposal in answer.proposals if answer.groups is None else ():
        items = np.asarray(proposal.items)
        items = items[left[items]]
        left[items] = False
        if len(items):
            yield items, None
    if left.any():
        yield np.flatnonzero(left), None


def next_request(
    answer: Answer,
    said: Said,
    wrong: Float[np.ndarray, "item"],
    points: Float[np.ndarray, "item dim"] | None,
    sheets: Sequence[Sheet],
) -> Request | None:
    """Return what to look at next; None if everything has been seen.

    Parameters
    ----------
    answer
        The labels now.
    said
        What a person said so far.
    wrong
        The chance that each label is wrong.
    points
        The items as they are compared with one another; None if only their labels are known.
    sheets
        All items that nobody has seen, `sheets_of`.
    """
    if not sheets:
        return None
    worth = question_worth(answer, said, wrong, points)
    worth[sorted(said.seen)] = -1
    item = int(worth.argmax())
    if worth[item] >= LEAST_CORRECTED:
        return _question(answer, item, worth[item])
    best = sheets[0]
    if len(best.items) == 1:
        return _question(answer, int(best.items[0]), worth[best.items[0]])
    return _sheet(answer, best)


def question_worth(
    answer: Answer, said: Said, wrong: Float[np.ndarray, "item"], points: Float[np.ndarray, "item dim"] | None
) -> Float[np.ndarray, "item"]:
    """Return how many wrong labels an answer about each item corrects, as far as other answers do not."""
    if points is None:
        return wrong.copy()
    left = wrong.copy()
    answered = sorted(said.given)
    left[answered] = 0
    same = same_class(points, answer.probabilities)
    covered = same[answered].max(0, initial=0.0)
    gains = np.maximum(same - covered, 0)
    np.fill_diagonal(gains, 1.0)
    return np.asarray(gains @ left)


def _choices(answer: Answer, items: Sequence[int]) -> tuple[Any, ...]:
    """Return the classes that the items have most probably, the best first."""
    mean = answer.probabilities[list(items)].mean(0)
    order = np.argsort(-mean, kind="stable")[:MOST_CHOICES]
    return tuple(answer.classes[order].tolist())


def _question(answer: Answer, item: int, worth: float) -> Request:
    label = None if answer.rejected[item] else answer.classes[answer.codes[item, 0]].item()
    others = round(float(worth))
    why = (
        f"About {others} wrong labels would be corrected by this answer."
        if others > 1
        else "This label is in doubt, and few others are like it."
    )
    return Request((item,), label, _choices(answer, [item]), why)


def _sheet(answer: Answer, sheet: Sheet) -> Request:
    what = "none of the classes" if sheet.label is None else f"labelled {sheet.label!s}"
    why = f"These are {what}; accept them at once, and mark those that are not."
    items = tuple(sheet.items.tolist())
    return Request(items, sheet.label, _choices(answer, items), why)
