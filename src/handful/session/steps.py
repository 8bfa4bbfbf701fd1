"""What a person said, step by step; everything else about a session is a function of these steps."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Literal, NamedTuple, TypeAlias, get_args

# A class or none of the classes; seen and left open; unfit to be labelled; two names are one class; a class is two.
StepKind: TypeAlias = Literal["answer", "skip", "discard", "merge", "split"]
STEP_KINDS = frozenset(get_args(StepKind))


class Step(NamedTuple):
    """One decision of a person, about one item or several; it is undone as one.

    Attributes
    ----------
    kind : str
        "answer", "skip", "discard", "merge" or "split".
    items : tuple of int
        Positions of items; those that a split takes out of a class, none for a merge.
    label : label or None
        The class that an answer names, None for none of the classes; the class that is split; or, for a merge, the name
        that is given up and the one that its items get, as a pair.
    new : bool
        Whether the name is one that nobody said before and that the catalogue does not have.
    """

    kind: StepKind
    items: tuple[int, ...]
    label: Any = None
    new: bool = False


@dataclass(frozen=True)
class Said:
    """What was said last about each item.

    Attributes
    ----------
    given : dict of int to label
        Items with an answer; None for none of the classes.
    skipped, discarded : frozenset of int
        Items that were seen and left open, and items that are unfit to be labelled.
    new_classes : tuple of label
        Classes that were named and that the catalogue does not have, in the order in which they were named.
    split : tuple of tuple of int
        Items that were taken out of a class and have no name yet, as the groups in which that was done.

    Examples
    --------
    >>> said = Said().after(Step("answer", (3, 4), "fox")).after(Step("skip", (4,))).after(Step("discard", (0,)))
    >>> said.given, sorted(said.seen)
    ({3: 'fox'}, [0, 3, 4])
    >>> Said().after(Step("answer", (3,), "foks")).after(Step("merge", (), ("foks", "fox"))).given
    {3: 'fox'}
    """

    given: dict[int, Any] = field(default_factory=dict)
    skipped: frozenset[int] = frozenset()
    discarded: frozenset[int] = frozenset()
    new_classes: tuple[Any, ...] = ()
    split: tuple[tuple[int, ...], ...] = ()

    def after(self, step: Step) -> Said:
        """Return what was said with one more step; the last word about an item counts."""
        if step.kind == "merge":
            return self._merged(step)
        items = frozenset(step.items)
        given = {item: label for item, label in self.given.items() if item not in items}
        skipped = self.skipped - items
        discarded = self.discarded - items
        new_classes = self.new_classes
        # One answer about a group says what the group is.
        split = tuple(group for group in self.split if items.isdisjoint(group))
        if step.kind == "skip":
            skipped |= items
            split = self.split
        elif step.kind == "discard":
            discarded |= items
            split = self.split
        elif step.kind == "split":
            split = (*split, step.items)
        else:
            given.update(dict.fromkeys(step.items, step.label))
            if step.new and step.label not in new_classes:
                new_classes = (*new_classes, step.label)
        return Said(dict(sorted(given.items())), skipped, discarded, new_classes, split)

    def _merged(self, step: Step) -> Said:
        """Say of all items of one class that they are of another."""
        before, into = step.label
        given = {item: into if label == before else label for item, label in self.given.items()}
        new_classes = [label for label in self.new_classes if label != before]
        if step.new and into not in new_classes:
            new_classes.append(into)
        return replace(self, given=given, new_classes=tuple(new_classes))

    @cached_property
    def seen(self) -> frozenset[int]:
        """Items that a person looked at."""
        return self.skipped | self.discarded | frozenset(self.given)

    @cached_property
    def named(self) -> tuple[Any, ...]:
        """Those of `new_classes` that some item still has."""
        used = set(self.given.values())
        return tuple(label for label in self.new_classes if label in used)


def said_after(steps: Iterable[Step]) -> Said:
    """Return what was said in all of these steps."""
    said = Said()
    for step in steps:
        said = said.after(step)
    return said
