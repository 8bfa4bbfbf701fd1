"""What events say, by plain loops: the definition, with which `Said` is compared.

Events come in the order of their revisions and then of their names. Who made an event had seen the events that it comes
after, those that these come after, and so on; nothing else.

- An event counts unless one that counts takes it back.
- An answer about an item stands unless another that counts is about the item too, and its author had seen the first.
- An answer that accepts gives each item the label that it was shown with; without one, it says none of the classes.
- A class that is renamed, in the order of these events, gives its other name to every answer that has its name then,
  and whose author had not seen the renaming; one that is removed takes the answer away.
- An item is disputed if answers that stand differ by kind or class; otherwise the last one is its answer.
- Classes come in the order in which the answers that stand named them first; those of one answer by their names.
- What arrived is at its place until it arrives elsewhere or is gone; what was said last about a batch is known.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from handful.catalogue.events import Event
from handful.catalogue.said import Said


def reference(events: Iterable[Event]) -> dict[str, Any]:
    """Say what events say, as `state_of` does of the product."""
    ordered = sorted(events, key=lambda one: (one.revision, one.event))
    seen = {one.event: had_seen(one, ordered) for one in ordered}
    counted = [one for one in ordered if counts(one, ordered)]
    standing: dict[int, list[Event]] = {}
    for one in counted:
        for item in answered(one):
            if not any(one.event in seen[later.event] for later in counted if item in answered(later)):
                standing.setdefault(item, []).append(one)
    answers: dict[int, list[tuple[str, str | None, str]]] = {}
    for item, said in standing.items():
        for one in said:
            given = label_then(one, item)
            label = None if given is None else name_now(one, given, counted, seen)
            kind = one.kind if one.kind in ("bad", "open") else "none" if given is None else "named"
            if not (kind == "named" and label is None):
                answers.setdefault(item, []).append((kind, label, one.event))
    disputed = {item for item, said in answers.items() if len({(kind, label) for kind, label, _ in said}) > 1}
    places: dict[str, dict[int, str]] = {}
    known = {}
    for one in counted:
        if one.kind == "arrived":
            places.setdefault(one.about["batch"], {}).update({item.item: item.place or "" for item in one.items})
        if one.kind == "gone":
            for item in one.items:
                places[one.about["batch"]].pop(item.item, None)
        if one.kind == "known":
            known[one.about["batch"]] = one.about["options"]
    return {
        "all": {item: tuple(said) for item, said in answers.items()},
        "answers": {item: said[-1] for item, said in answers.items() if item not in disputed},
        "disputed": disputed,
        "classes": classes(answers, ordered),
        "places": places,
        "known": known,
    }


def had_seen(event: Event, events: list[Event]) -> set[str]:
    """Names of the events that whoever made an event had seen."""
    by_name = {one.event: one for one in events}
    found: set[str] = set()
    left = list(event.after)
    while left:
        name = left.pop()
        if name not in found:
            found.add(name)
            left += by_name[name].after
    return found


def counts(event: Event, events: list[Event]) -> bool:
    """Whether nothing that counts takes an event back."""
    backs = [one for one in events if one.kind == "taken_back" and one.about["event"] == event.event]
    return not any(counts(one, events) for one in backs)


def answered(event: Event) -> list[int]:
    """Items that an event is an answer about."""
    if event.kind not in ("named", "accepted", "none", "bad", "open"):
        return []
    return [one.item for one in event.items if one.answered]


def label_then(answer: Event, item: int) -> str | None:
    """Return the class that an answer gave to an item, as it was called then."""
    if answer.kind == "accepted":
        return next(one.offered for one in answer.items if one.item == item)
    return answer.about["label"] if answer.kind == "named" else None


def name_now(answer: Event, given: str, counted: list[Event], seen: dict[str, set[str]]) -> str | None:
    """Return the class that an answer gave as it is called now."""
    name: str | None = given
    for one in counted:
        if one.kind in ("renamed", "removed") and one.about["label"] == name and one.event not in seen[answer.event]:
            name = one.about["into"] if one.kind == "renamed" else None
    return name


def classes(answers: dict[int, list[tuple[str, str | None, str]]], ordered: list[Event]) -> list[str]:
    """Return classes in the order in which they were named first."""
    found: list[str] = []
    for event in ordered:
        labels = {label for said in answers.values() for _, label, name in said if name == event.event}
        found += sorted(label for label in labels if label is not None)
    return list(dict.fromkeys(found))


def state_of(said: Said) -> dict[str, Any]:
    """All that `Said` says."""
    return {
        "all": {item: tuple(map(tuple, answers)) for item, answers in said.all_answers.items()},
        "answers": {item: tuple(answer) for item, answer in said.answers.items()},
        "disputed": set(said.disputed),
        "classes": list(said.classes),
        "places": said.places,
        "known": said.known,
    }
