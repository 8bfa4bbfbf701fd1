"""What every number of the engine changes: the answers at half and at twice its value.

    python studies/sensitivity.py DATA [--tasks 4] [--only presence.STRAYS ...]

Prints one row per number: mean accuracy, mean log loss, mean squared error of presence summed over the classes of a
batch, and the share of known items that are rejected, each minus that of the engine as it is. Data: `clinc150-minilm`,
`cub200-efflite0` and `esc50-birdnet` with 1 and 5 examples per class; batches of 75 items of 5 and of 20 classes, and
of 5 classes and 3 that the catalogue lacks. Catalogues and batches are the same for all rows. Numbers that belong to
the fit of a head are changed before it is fitted. Tolerances, sizes of blocks and limits of work are left out.
"""

from __future__ import annotations

import argparse
import importlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from handful.engine.head import fit_head
from handful.engine.model import Reference, label_batch
from handful.engine.unknown import fit_unknown_model
from harm_data import bank, orders, rng_of
from side_by_side import Ints, chosen

BANKS = ("clinc150-minilm", "cub200-efflite0", "esc50-birdnet")
SHOTS, N_QUERY, REMOVED = (1, 5), 75, 5
# Numbers that can change an answer, by module, and what each means.
NUMBERS = {
    "presence.STRAYS": "share of items of classes that are otherwise absent",
    "presence.SHARED_ERROR": "correlation of the errors of two items of a class with one example, as odds",
    "presence.UNEVEN": "Dirichlet parameter of uneven batches",
    "presence.EVEN": "Dirichlet parameter of even batches",
    "presence.UNEVEN_LOG_ODDS": "log-odds of an uneven batch before anything is seen",
    "presence.SOFTNESS": "temperature of the relaxation",
    "presence.LEAST_ALONE": "classes that hold less, items labelled alone, are absent but for strays",
    "presence.FREQUENCY": "frequency of the noise of a class",
    "place.CHANCE": "an offset counts as far as it exceeds this many times what chance gives",
    "positions.PULL": "examples that an item given to a class counts",
    "positions.BELIEVED": "share of the gain of a moved mean that is believed",
    "model.CERTAINTY": "power of far by which labels of a far batch are softened",
    "unknown.NOTHING_UNKNOWN": "chance that nothing is unknown, before anything is seen",
    "unknown.MOST_GROUPS": "pieces of evidence that groups count at most",
    "unknown.REJECTED": "chance above which an item is rejected",
    "levels.COMMON": "share of the variance of an item that its class has in common",
    "levels.PAIR_WEIGHT": "weight of all pairs against the ridge",
    "links.NEAR": "links that an item keeps",
    "head.INVERSE_RIDGE": "inverse ridge of the head",
    "head.USUAL_TEMPERATURE": "temperature if nothing can be left out",
}
WHOLE = {"links.NEAR"}
# Of a chance the odds are changed.
CHANCES = {"presence.STRAYS", "unknown.NOTHING_UNKNOWN", "unknown.REJECTED"}


class World(NamedTuple):
    """A catalogue, and batches with their true classes, -1 for none."""

    points: Any
    codes: Ints
    n_classes: int
    batches: list[tuple[Any, Ints]]


def worlds(data: Path, tasks: int) -> Iterator[World]:
    """Draw catalogues and batches."""
    for name in BANKS:
        features, labels = bank(data / name)
        for shots in SHOTS:
            rows, rng = orders(data / name, 0), rng_of("sensitivity", name, shots)
            kept = np.sort(rng.permutation(len(rows))[REMOVED:])
            removed = np.setdiff1d(np.arange(len(rows)), kept)
            held = np.concatenate([rows[k][:shots] for k in kept])
            origin, left = features[held].mean(0), [own[shots:] for own in rows]
            batches = []
            for _ in range(tasks):
                for classes in (
                    rng.choice(kept, 5, replace=False),
                    rng.choice(kept, 20, replace=False),
                    np.append(rng.choice(kept, 5, replace=False), rng.choice(removed, 3, replace=False)),
                ):
                    picked = chosen(rng, left, classes, N_QUERY)
                    place = np.searchsorted(kept, labels[picked]).clip(max=len(kept) - 1)
                    truth = np.where(kept[place] == labels[picked], place, -1)
                    batches.append((features[picked] - origin, truth))
            yield World(features[held] - origin, np.searchsorted(kept, labels[held]), len(kept), batches)


def figures(world: World) -> list[tuple[float, float, float, float]]:
    """Accuracy, log loss, error of presence and known items rejected, of every batch."""
    head = fit_head(world.points, world.codes, world.n_classes, 1.0)
    reference, found = Reference(head, fit_unknown_model(head, world.points, world.codes)), []
    for points, truth in world.batches:
        said, known = label_batch(points, reference), truth >= 0
        own = said.probabilities[known, truth[known]]
        there = np.bincount(truth[known], minlength=world.n_classes) > 0
        right = said.probabilities[known].argmax(1) == truth[known]
        error = float(((said.presence - there) ** 2).sum())
        loss, rejected = -np.log(own.clip(1e-12)).mean(), said.rejected[known].mean()
        found.append((100 * float(right.mean()), float(loss), error, 100 * float(rejected)))
    return found


@contextmanager
def changed(number: str, factor: float) -> Iterator[None]:
    """Multiply a number of the engine, or the odds of a chance, in every module that has imported it."""
    module, name = number.split(".")
    home = importlib.import_module(f"handful.engine.{module}")
    usual = getattr(home, name)
    other = round(usual * factor) if number in WHOLE else usual * factor
    if number in CHANCES:
        other = usual * factor / (1 - usual + usual * factor)
    places = [importlib.import_module(f"handful.engine.{one}") for one in ("model", "presence", "unknown", "head")]
    places = [place for place in (home, *places) if getattr(place, name, None) is usual]
    for place in places:
        setattr(place, name, other)
    try:
        yield
    finally:
        for place in places:
            setattr(place, name, usual)


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path, help="folder that holds the data")
    parser.add_argument("--tasks", type=int, default=4, help="batches of each kind per catalogue")
    parser.add_argument("--only", nargs="+", choices=list(NUMBERS), default=list(NUMBERS))
    given = parser.parse_args()
    drawn = list(worlds(given.data, given.tasks))
    usual = np.mean([row for world in drawn for row in figures(world)], 0)
    print(
        "| number | factor | accuracy | log loss | presence | known rejected | meaning |\n|---|---|---|---|---|---|---|"
    )
    print(f"| as it is | 1 | {usual[0]:.1f} | {usual[1]:.3f} | {usual[2]:.2f} | {usual[3]:.1f} | |", flush=True)
    for number in given.only:
        for factor in (0.5, 2.0):
            with changed(number, factor):
                now = np.mean([row for world in drawn for row in figures(world)], 0) - usual
            change = f"{now[0]:+.1f} | {now[1]:+.3f} | {now[2]:+.2f} | {now[3]:+.1f}"
            print(f"| {number} | {factor} | {change} | {NUMBERS[number]} |", flush=True)


if __name__ == "__main__":
    main()
