"""The state of a review as a function of its journal: what a person said, step by step, and what was undone.

A step decides about one item or several. Undoing is an event of its own, which takes back the last step that is in
force; so every state is reached again, however often the review was stopped, and no line of the journal is ever
changed. Everything that a page shows depends on the steps in force alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, NamedTuple, get_args

from handful.errors import FileFormatError

# A class; a class that the catalogue does not have; none of the classes; an item that is unfit to be labelled; no
# answer; and an answer that is taken back.
Kind = Literal["class", "new", "none", "bad", "skip", "clear"]
# A question of the page; an item that the person chose; a question with a hidden label; several items at once.
How = Literal["asked", "chosen", "audit", "group"]
KINDS, HOWS = frozenset(get_args(Kind)), frozenset(get_args(How))


class Decision(NamedTuple):
    """What a person said about an item.

    Attributes
    ----------
    kind : str
        One of `Kind` but "clear".
    label : str or None
        The class; None if the person named none.
    was : str or None
        What the model said then; None for none of the classes.
    how : str
        One of `How`.
    """

    kind: Kind
    label: str | None
    was: str | None
    how: How

    @property
    def says_class(self) -> bool:
        """Whether the item has a class."""
        return self.kind in ("class", "new")

    @property
    def teaches(self) -> bool:
        """Whether the batch is labelled with it: audited items are held out."""
        return self.how != "audit" and self.kind != "skip"


class Step(NamedTuple):
    """One decision of a person, about one item or several; it is undone as one."""

    items: tuple[int, ...]
    kind: Kind
    labels: tuple[str | None, ...]
    was: tuple[str | None, ...]
    how: How

    @classmethod
    def of(cls, event: Mapping[str, Any]) -> Step:
        """Read an event of the journal."""
        step = cls(
            tuple(item for item, _, _ in event["items"]),
            event["kind"],
            tuple(event["labels"]),
            tuple(event["was"]),
            event["how"],
        )
        if step.kind not in KINDS or step.how not in HOWS or not len(step.items) == len(step.labels) == len(step.was):
            raise ValueError(f"no step of a review: {step.kind}, {step.how}")
        return step


@dataclass(frozen=True)
class State:
    """What a person has said so far.

    Attributes
    ----------
    number : int
        Events of the journal, undone ones and undoing included: a page that shows another number is behind.
    steps : tuple of Step
        The steps in force.

    Examples
    --------
    >>> answer = {"step": "answer", "items": [[3, "a.jpg", "5d41"]], "kind": "class", "how": "asked"}
    >>> state = replayed([{**answer, "labels": ["fox"], "was": ["dog"]}, {**answer, "labels": ["cat"], "was": ["fox"]}])
    >>> state.given()
    {3: 'cat'}
    >>> replayed([{**answer, "labels": ["fox"], "was": ["dog"]}, {"step": "undo"}]).given()
    {}
    """

    number: int = 0
    steps: tuple[Step, ...] = ()

    def after(self, event: Mapping[str, Any]) -> State:
        """Return the state after one more event."""
        if event["step"] == "undo":
            return State(self.number + 1, self.steps[:-1])
        return State(self.number + 1, (*self.steps, Step.of(event)))

    @cached_property
    def decisions(self) -> dict[int, Decision]:
        """What was said last about each item, in the order of the items."""
        found = dict[int, Decision]()
        for step in self.steps:
            for item, label, was in zip(step.items, step.labels, step.was, strict=True):
                before = found.pop(item, None)
                if step.kind == "clear":
                    continue
                # An audited item stays one, whatever is said about it later: otherwise audits would not be random.
                audited = before is not None and before.how == "audit"
                found[item] = Decision(step.kind, label, was, "audit" if audited else step.how)
        return dict(sorted(found.items()))

    def given(self, *, audited: bool = False) -> dict[int, str | None]:
        """Return labels to label the batch with, None for none of the classes; `audited` says whether all count."""
        return {
            item: one.label if one.says_class else None
            for item, one in self.decisions.items()
            if one.teaches or (audited and one.kind != "skip")
        }

    def of_kind(self, *kinds: Kind) -> Iterator[tuple[int, Decision]]:
        """Yield the items with such a decision."""
        return ((item, one) for item, one in self.decisions.items() if one.kind in kinds)

    @property
    def n_audits(self) -> int:
        """Steps that were audits."""
        return sum(step.how == "audit" for step in self.steps)


def replayed(events: Iterable[Mapping[str, Any]]) -> State:
    """Return the state after all events of a journal."""
    state = State()
    for number, event in enumerate(events):
        try:
            state = state.after(event)
        except (KeyError, TypeError, ValueError) as error:
            raise FileFormatError(
                f"event {number + 1} of the journal is none of a review ({type(error).__name__}: {error}); it was "
                "written by another version of handful"
            ) from error
    return state


def corrections_file(
    decisions: Mapping[int, Decision], items: Mapping[int, Sequence[Any]], known: Iterable[str]
) -> dict[str, Any]:
    """Return what a person said as `handful.classification.corrections` reads it.

    Parameters
    ----------
    decisions
        By positions of items.
    items
        Row, name and hash of the content of each.
    known
        Classes of the catalogue; all others are new.
    """
    classes, file = set(known), dict[str, Any](handful_corrections=3, corrections=[], confirmed=[], none_of_these=[])
    new = dict[str, list[dict[str, Any]]]()
    for item, one in decisions.items():
        row, name, content = items[item]
        where: dict[str, Any] = {"row": row, "item": name, "content": content}
        if one.says_class and one.label not in classes:
            new.setdefault(str(one.label), []).append(where)
        elif one.says_class:
            file["confirmed" if one.label == one.was else "corrections"].append({**where, "label": one.label})
        elif one.kind in ("none", "bad"):
            file["none_of_these"].append({**where, "bad": True} if one.kind == "bad" else where)
    file["new_classes"] = [{"label": label, "items": of_label} for label, of_label in new.items()]
    return file
