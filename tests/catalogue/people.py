"""People who work on catalogues: what they say at random, and how two states are compared."""

from __future__ import annotations

import random
import shutil
from pathlib import Path
from typing import Any

from handful.catalogue.events import EventItem
from handful.catalogue.file import Arrival, CatalogueFile, ItemContent
from handful.catalogue.join import join
from tests.catalogue.reference import state_of

BATCHES = ("monday", "tuesday")
NAMES = ("fox", "wolf", "bear", "owl", "Käse \u2028")


def photograph(name: str, place: str | None = None) -> Arrival:
    """A photograph whose bytes are its name."""
    return Arrival(place or f"{name}.jpg", ItemContent(name.encode(), "image"))


def photographs(n: int) -> list[Arrival]:
    """`n` photographs, each of another content."""
    return [photograph(f"{k}") for k in range(n)]


def items_of(*items: int) -> list[EventItem]:
    """What a sheet showed about items, none of which had a label."""
    return [EventItem(item) for item in items]


def says_something(catalogue: CatalogueFile, rng: random.Random, person: str = "") -> None:
    """Say one thing at random."""
    items = list(dict(catalogue.keys()))
    some = [
        EventItem(item, None, rng.random() < 0.8, rng.choice((*NAMES, None)), rng.random())
        for item in sorted(rng.sample(items, rng.randint(1, min(3, len(items)))))
    ]
    label = rng.choice(NAMES)
    kind = rng.choice(
        ("named",) * 5 + ("accepted",) * 2 + ("none", "bad", "open", "renamed", "renamed", "removed")
        + ("known",) + ("taken_back",) * 4 + ("arrive",) * 2
    )  # fmt: skip
    if kind == "named":
        catalogue.append("named", {"label": label, "sheet": None}, some, person=person)
    elif kind in ("accepted", "none", "bad", "open"):
        catalogue.append(kind, {}, some, person=person)
    elif kind == "renamed":
        catalogue.append("renamed", {"label": label, "into": rng.choice(NAMES)}, person=person)
    elif kind == "removed":
        catalogue.append("removed", {"label": label}, person=person)
    elif kind == "known":
        options = {"candidates": rng.sample(NAMES, 2), "prior": rng.random()}
        catalogue.append("known", {"batch": rng.choice(BATCHES), "options": options}, person=person)
    elif kind == "taken_back":
        said = [one for one in catalogue.history.events if one.kind not in ("arrived", "gone", "joined")]
        if said:
            catalogue.take_back(rng.choice(said).event, person=person)
    else:
        arrives_somehow(catalogue, rng)


def arrives_somehow(catalogue: CatalogueFile, rng: random.Random) -> None:
    """A batch comes again, with photographs that came, went, moved, changed or were copied."""
    names = rng.sample("abcdef", rng.randint(1, 5))
    contents = [rng.choice((name, name, name, "copy")) for name in names]
    arrivals = [photograph(content, f"{name}.jpg") for name, content in zip(names, contents, strict=True)]
    catalogue.arrive(rng.choice(BATCHES), arrivals)


def copied(catalogue: CatalogueFile, place: Path) -> CatalogueFile:
    """A copy of the file, as somebody takes it away."""
    assert catalogue.path is not None
    shutil.copyfile(catalogue.path, place)
    return CatalogueFile.open(place)


def by_key(catalogue: CatalogueFile) -> dict[str, Any]:
    """What is said in a catalogue, where items have the names that they have in all copies."""
    keys = dict(catalogue.keys())
    state = state_of(catalogue.said)
    return {
        **{name: {keys[item]: said for item, said in state[name].items()} for name in ("all", "answers")},
        "disputed": {keys[item] for item in state["disputed"]},
        "classes": state["classes"],
        "places": {batch: {keys[i]: place for i, place in here.items()} for batch, here in state["places"].items()},
        "known": state["known"],
    }


def joined_in_order(catalogues: list[CatalogueFile], place: Path) -> dict[str, Any]:
    """What is said when these are joined, one after the other, to a new copy of the first."""
    with copied(catalogues[0], place) as all_of_them:
        for one in catalogues[1:]:
            join(all_of_them, one)
        return by_key(all_of_them)
