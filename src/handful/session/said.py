"""What people said about the items of one batch, by their positions, as it stands now."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from handful.catalogue.said import Said


@dataclass(frozen=True)
class BatchSaid:
    """What was said last about each item.

    Attributes
    ----------
    given : dict of int to label
        Items with an answer; None for none of the classes.
    skipped, discarded : frozenset of int
        Items that were seen and left open, and items that are unfit to be labelled.
    named : tuple of label
        Classes of these answers, in the order in which they were named.
    """

    given: dict[int, Any] = field(default_factory=dict)
    skipped: frozenset[int] = frozenset()
    discarded: frozenset[int] = frozenset()
    named: tuple[Any, ...] = ()

    @classmethod
    def of(cls, said: Said, positions: Mapping[int, int], label: Callable[[str], Any]) -> BatchSaid:
        """Return what a catalogue says about some of its items.

        Parameters
        ----------
        said
            What people said.
        positions
            The position of each item of the batch.
        label
            Returns the label of a name.
        """
        given = {}
        others: dict[str, set[int]] = {"open": set(), "bad": set()}
        for item, position in positions.items():
            answer = said.answers.get(item)
            if answer is None:
                continue
            if answer.kind in others:
                others[answer.kind].add(position)
            else:
                given[position] = None if answer.label is None else label(answer.label)
        used = set(given.values())
        named = tuple(one for one in map(label, said.classes) if one in used)
        return cls(dict(sorted(given.items())), frozenset(others["open"]), frozenset(others["bad"]), named)

    @cached_property
    def seen(self) -> frozenset[int]:
        """Items that a person looked at."""
        return self.skipped | self.discarded | frozenset(self.given)
