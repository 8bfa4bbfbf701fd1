"""What answers are evidence of: labels that a person looked at, and whether they were right.

An answer is compared with what was shown when it was given, which its event has. So the evidence is a function of the
events: no later labelling changes it, and nothing is labelled again to find it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from handful.catalogue.events import LABELLING, Event, EventItem
from handful.session.stopping import Look, chance_of_slip


@dataclass(frozen=True)
class Evidence:
    """What the answers about a batch were evidence of.

    Attributes
    ----------
    looks : tuple of Look
        Labels that a person looked at.
    exceptions : dict of int to str or None
        Items whose label was said to be wrong, and which were not answered since, with that label.
    n_exceptions : int
        All whose label was said to be wrong.
    found_right : dict of str or None to float
        For each label, as how many answers its items count that were found right.
    slips : dict of int to float
        Chances that answers against labels are mistaken.
    """

    looks: tuple[Look, ...] = ()
    exceptions: Mapping[int, str | None] = field(default_factory=dict)
    n_exceptions: int = 0
    found_right: Mapping[str | None, float] = field(default_factory=dict)
    slips: Mapping[int, float] = field(default_factory=dict)


def evidence_of(events: Iterable[Event]) -> Evidence:
    """Return what answers about a batch are evidence of; `events` are those that count, in order."""
    looks: list[Look] = []
    exceptions: dict[int, str | None] = {}
    n_exceptions = 0
    found_right: dict[str | None, float] = {}
    slips: dict[int, float] = {}
    for event in events:
        answered = event.answered
        # Items that an answer is not about were shown with others, and their label is wrong, whatever they are.
        wrong = {one.item: one.offered for one in event.items if not one.answered}
        for offered, look in looks_of(event).items():
            looks.append(look)
            found_right[offered] = found_right.get(offered, 0.0) + look.n_right
        for item in answered:
            slips.pop(item, None)
        exceptions = {item: offered for item, offered in (exceptions | wrong).items() if item not in answered}
        n_exceptions += len(wrong)
        if len(answered) == 1 and event.kind in LABELLING:
            one = next(one for one in event.items if one.answered)
            if one.wrong is not None and one.offered != event.label_of(one):
                slips[one.item] = chance_of_slip(one.wrong)
    return Evidence(tuple(looks), exceptions, n_exceptions, found_right, slips)


def looks_of(event: Event) -> dict[str | None, Look]:
    """Compare an answer with the labels that were shown, by label."""
    if event.kind not in LABELLING:
        return {}
    by_label: dict[str | None, list[EventItem]] = {}
    for one in sorted(event.items, key=lambda one: not one.answered):
        if one.support is not None:
            by_label.setdefault(one.offered, []).append(one)
    return {
        offered: Look(
            tuple(one.risk or 0.0 for one in items),
            tuple(not one.answered or offered != event.label_of(one) for one in items),
            items[0].support or 0.0,
            rejected=offered is None,
        )
        for offered, items in by_label.items()
    }
