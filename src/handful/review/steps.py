"""The steps of a review as its journal has them: what a person said, step by step, and what was undone.

A step decides about one item or several. Undoing is an event of its own, which takes back the last step that is in
force; so every state is reached again, however often the review was stopped, and no line of the journal is ever
changed. What follows from the steps is up to `handful.Session`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, NamedTuple, get_args

from handful.errors import FileFormatError
from handful.reading.class_names import plain_label
from handful.session import Step
from handful.session.steps import StepKind

# A class; a class that the catalogue does not have; none of the classes; an item that is unfit to be labelled; seen and
# left open; and an answer that is taken back.
ReviewKind = Literal["class", "new", "none", "bad", "skip", "clear"]
KINDS = frozenset(get_args(ReviewKind))
TEXT = (str, type(None))
# What each kind is to a session.
SESSION_KINDS: dict[ReviewKind, StepKind] = {
    "class": "answer",
    "new": "answer",
    "none": "answer",
    "bad": "discard",
    "skip": "skip",
    "clear": "skip",
}


# Steps about names, and how many names each has: two are one class, or one is two.
ABOUT_NAMES = {"merge": 2, "split": 1}


class ReviewDecision(NamedTuple):
    """What a person said about an item.

    Attributes
    ----------
    kind : str
        One of `ReviewKind` but "clear".
    label : str or None
        The class; None if the person named none.
    was : str or None
        What the model said then; None for none of the classes.
    """

    kind: ReviewKind
    label: str | None
    was: str | None

    @property
    def says_class(self) -> bool:
        """Whether the item has a class."""
        return self.kind in ("class", "new")


class ReviewStep(NamedTuple):
    """One step of a person, about one item or several; it is undone as one.

    Attributes
    ----------
    items, kinds, labels, was : tuple
        Positions of items, and for each what was said, the class, and what the model said then. A split has the items
        that it takes out of a class, and nothing about each.
    names : tuple of str
        Two names: the first is the class that the second is. One: it is two classes.
    """

    items: tuple[int, ...]
    kinds: tuple[ReviewKind, ...] = ()
    labels: tuple[str | None, ...] = ()
    was: tuple[str | None, ...] = ()
    names: tuple[str, ...] = ()

    @classmethod
    def of(cls, event: Mapping[str, Any]) -> ReviewStep:
        """Read an event of the journal."""
        return cls._about_names(event) if event["step"] in ABOUT_NAMES else cls._about_items(event)

    @classmethod
    def _about_names(cls, event: Mapping[str, Any]) -> ReviewStep:
        step = cls(tuple(event.get("items", ())), names=plain_label(tuple(event["names"])))
        if len(step.names) != ABOUT_NAMES[event["step"]] or not all(type(name) is str for name in step.names):
            raise ValueError(f"a {event['step']} needs {ABOUT_NAMES[event['step']]} names, got {step.names}")
        _check_positions(step.items)
        return step

    @classmethod
    def _about_items(cls, event: Mapping[str, Any]) -> ReviewStep:
        """Read what was said: one `kind` for all items, as older versions wrote it, or one for each."""
        items = tuple(item for item, _, _ in event["items"])
        kinds = tuple(event["kinds"]) if "kinds" in event else (event["kind"],) * len(items)
        step = cls(items, kinds, *(plain_label(tuple(event[labels])) for labels in ("labels", "was")))
        if not set(step.kinds) <= KINDS:
            raise ValueError(f"no step of a review: {step.kinds}")
        if not len(step.items) == len(step.kinds) == len(step.labels) == len(step.was):
            raise ValueError("a step has as many kinds, labels and earlier labels as items")
        _check_positions(step.items)
        if any(type(label) not in TEXT for label in (*step.labels, *step.was)):
            raise ValueError(f"labels are texts or null, got {step.labels}")
        return step

    def said(self) -> Iterator[tuple[int, ReviewKind, str | None, str | None]]:
        """Yield each item with what was said about it, the class, and what the model said then."""
        return zip(self.items, self.kinds, self.labels, self.was, strict=bool(not self.names))

    def for_session(self) -> list[Step]:
        """Return the step as a session takes it: one for each answer, which may be about several items."""
        if len(self.names) == ABOUT_NAMES["merge"]:
            return [Step("merge", (), self.names, new=True)]
        if self.names:
            return [Step("split", self.items, self.names[0])]
        said = dict[tuple[ReviewKind, str | None], list[int]]()
        for item, kind, label in zip(self.items, self.kinds, self.labels, strict=True):
            said.setdefault((kind, label), []).append(item)
        return [Step(SESSION_KINDS[kind], tuple(items), label, kind == "new") for (kind, label), items in said.items()]


@dataclass(frozen=True)
class ReviewState:
    """What a person has said so far.

    Attributes
    ----------
    number : int
        Events of the journal that changed the steps, undone ones and undoing included: a page that shows another number
        is behind.
    steps : tuple of ReviewStep
        The steps in force.

    Examples
    --------
    >>> answer = {"step": "answer", "items": [[3, "a.jpg", "5d41"]], "kind": "class"}
    >>> state = replayed([{**answer, "labels": ["fox"], "was": ["dog"]}, {**answer, "labels": ["cat"], "was": ["fox"]}])
    >>> state.decisions
    {3: ReviewDecision(kind='class', label='cat', was='fox')}
    >>> replayed([{**answer, "labels": ["fox"], "was": ["dog"]}, {"step": "undo"}]).decisions
    {}
    """

    number: int = 0
    steps: tuple[ReviewStep, ...] = ()

    def after(self, event: Mapping[str, Any]) -> ReviewState:
        """Return the state after one more event.

        "answer", "merge" and "split" add a step, "undo" takes the last one back, "drop" the one at a place: labelling
        refused it. "depends" says on what the labels depend from here on, and "finished" that results were written;
        they change nothing.
        """
        what = event["step"]
        if what == "finished":
            return self
        if what == "depends":
            if not all(isinstance(event[part], dict) for part in ("catalogue", "options")):
                raise ValueError("what labels depend on are a catalogue and options")
            return self
        if what == "answer" or what in ABOUT_NAMES:
            return ReviewState(self.number + 1, (*self.steps, ReviewStep.of(event)))
        if what == "undo":
            return ReviewState(self.number + 1, self.steps[:-1])
        if what == "drop" and type(event["at"]) is int and 0 <= event["at"] < len(self.steps):
            at = event["at"]
            return ReviewState(self.number + 1, (*self.steps[:at], *self.steps[at + 1 :]))
        raise ValueError(f"there is no event {what!r}")

    @cached_property
    def decisions(self) -> dict[int, ReviewDecision]:
        """What was said last about each item, in the order of the items; the names are those that stand now."""
        found = dict[int, ReviewDecision]()
        for step in self.steps:
            if len(step.names) == ABOUT_NAMES["merge"]:
                before, into = step.names
                found = {item: one._replace(label=into) if one.label == before else one for item, one in found.items()}
            elif step.names:
                found = {item: one for item, one in found.items() if item not in step.items}
            for item, kind, label, was in step.said():
                found.pop(item, None)
                if kind != "clear":
                    found[item] = ReviewDecision(kind, label, was)
        return dict(sorted(found.items()))

    def of_kind(self, *kinds: ReviewKind) -> Iterator[tuple[int, ReviewDecision]]:
        """Yield the items with such a decision."""
        return ((item, one) for item, one in self.decisions.items() if one.kind in kinds)


def _check_positions(items: Sequence[Any]) -> None:
    if any(type(item) is not int or item < 0 for item in items):
        raise ValueError(f"items are positions in the batch, got {items}")


def replayed(events: Iterable[Mapping[str, Any]], n_items: int | None = None) -> ReviewState:
    """Return the state after all events of a journal; `n_items` is the number of items that it may be about."""
    state = ReviewState()
    for number, event in enumerate(events):
        try:
            state = state.after(event)
            beyond = [item for item in (state.steps[-1].items if state.steps else ()) if n_items and item >= n_items]
            if beyond:
                raise ValueError(f"item {beyond[0]}, and the batch has {n_items}")
        except (KeyError, TypeError, ValueError) as error:
            raise FileFormatError(
                f"event {number + 1} of the journal is none of a review ({type(error).__name__}: {error}); it was "
                "written by another version of handful"
            ) from error
    return state


def corrections_file(
    decisions: Mapping[int, ReviewDecision], items: Mapping[int, Sequence[Any]], known: Iterable[str]
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
    classes = set(known)
    file = dict[str, Any](handful_corrections=3, corrections=[], confirmed=[], none_of_these=[])
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
