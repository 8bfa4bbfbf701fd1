"""Figures of `docs/understand/model.md` that no page of measurements has.

    python studies/model_figures.py DATA [--batches 100] [--only alone counted rounding]

DATA is a folder that holds the banks. Each part prints its figures:

*alone*: batches by the scores of a head, as if they came from another model. What changes if the first item of a class
tells something about itself (`alone_per_class` = 0): labels that are right, and the mean log-loss.

*counted*: batches of 4,000 items by such scores. What changes if up to 8,192 items are counted (`most_counted_scores`).

*rounding*: catalogues with one example per class. How far probabilities move with the order of the examples, in double
precision, and with a factor on all features; also with shorter tails of the noise of the chains (`noise_tail`).
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from bank_data import Floats, Ints, bank, chosen, orders, rng_of
from handful.catalogue import Catalogue
from handful.engine.knowledge import Knowledge
from handful.engine.labelling import label_scores
from handful.engine.scores import in_nats, unit_of
from handful.engine.settings import DEFAULT, Settings

BANKS = ("clinc150-minilm", "banking77-minilm", "cub200-efflite0")
SHOTS = 5
SIZES = (3, 10, 75)
# Classes of a batch at most, and items of a large one.
CLASSES, LARGE = 5, 4_000
COUNTED = 2**13
# Catalogues with one example per class: classes, those of the batch, and items of each of these.
ONE_EXAMPLE = (("clinc150-minilm", 50), ("cub200-efflite0", 100))
PRESENT, EACH = 4, 15
SHORT_TAIL = 0.01
LEAST = 1e-12
Doubles = npt.NDArray[np.float64]


class Scored(NamedTuple):
    """Items of a bank that are no examples, with the scores of a head, and their rows by class."""

    scores: Floats
    truth: Ints
    rows: list[Ints]


def scored(folder: Path) -> Scored:
    """Fit a head to some examples of each class, and score all other items."""
    features, labels = bank(folder)
    order = orders(folder, 0)
    held = np.concatenate([rows[:SHOTS] for rows in order])
    catalogue = Catalogue.of(features[held], labels[held])
    scores = catalogue.head.scores(catalogue.points(features))
    return Scored(scores, labels, [rows[SHOTS:] for rows in order])


def labelled(scores: Floats, settings: Settings) -> Floats:
    """Label a batch by scores, as those of another model."""
    nats = in_nats(scores, unit_of(scores, settings=settings), settings=settings)
    return label_scores(nats, settings=settings).probabilities


def right(probabilities: Floats, truth: Ints) -> float:
    """Percent of items with the right label."""
    return 100 * float((probabilities.argmax(1) == truth).mean())


def loss(probabilities: Floats, truth: Ints) -> float:
    """Mean log-loss."""
    own = probabilities[np.arange(len(truth)), truth].astype(np.float64)
    return float(-np.log(np.maximum(own, LEAST)).mean())


def alone(data: Path, n_batches: int) -> Iterator[str]:
    """Measure what `alone_per_class` changes."""
    items = {name: scored(data / name) for name in BANKS}
    rules = {"as it is": DEFAULT, "alone_per_class = 0": replace(DEFAULT, alone_per_class=0.0)}
    for size in SIZES:
        found: dict[str, list[tuple[float, float]]] = {rule: [] for rule in rules}
        for name, (scores, truth, rows) in items.items():
            for number in range(n_batches):
                rng = rng_of("model figures", name, size, number)
                classes = rng.permutation(len(rows))[:CLASSES].tolist()
                batch = chosen(rng, rows, classes, size)
                for rule, settings in rules.items():
                    q = labelled(scores[batch], settings)
                    found[rule].append((right(q, truth[batch]), loss(q, truth[batch])))
        for rule, values in found.items():
            percent, nats = np.mean(values, axis=0)
            yield f"{size} items, {rule}: {percent:.1f} % right, log-loss {nats:.2f}"


def counted(data: Path) -> Iterator[str]:
    """Measure what `most_counted_scores` changes."""
    for name in BANKS:
        scores, truth, rows = scored(data / name)
        batch = chosen(rng_of("model figures", name, "large"), rows, range(len(rows)), LARGE)
        for most in (0, COUNTED):
            q = labelled(scores[batch], replace(DEFAULT, most_counted_scores=most))
            yield f"{name}, {most} items counted: {right(q, truth[batch]):.1f} % right"


def rounding(data: Path) -> Iterator[str]:
    """Measure how far probabilities move with changes that should change nothing."""
    for name, n_classes in ONE_EXAMPLE:
        features, _ = bank(data / name)
        rng = rng_of("model figures", name, "rounding")
        order = orders(data / name, 0)
        classes = rng.permutation(len(order))[:n_classes]
        examples = features[[order[k][0] for k in classes]]
        items = features[np.concatenate([order[k][1 : 1 + EACH] for k in classes[:PRESENT]])]
        again = rng.permutation(n_classes)
        labels = np.arange(n_classes)
        first = _answer(examples, labels, items, DEFAULT)
        for tail in (DEFAULT.noise_tail, SHORT_TAIL):
            settings = replace(DEFAULT, noise_tail=tail)
            before = _answer(examples, labels, items, settings)
            moved = {
                "order": _answer(examples[again], labels[again], items, settings),
                "double precision": _answer(examples.astype(np.float64), labels, items.astype(np.float64), settings),
                "times 1000": _answer(1000 * examples, labels, 1000 * items, settings),
                "times 2": _answer(2 * examples, labels, 2 * items, settings),
            }
            figures = ", ".join(f"{change} {np.abs(after - before).max():.1e}" for change, after in moved.items())
            others = int((before.argmax(1) != first.argmax(1)).sum())
            yield f"{name}, {n_classes} classes, noise_tail {tail:g}: {figures}; {others} other labels of {len(items)}"


def _answer(
    examples: npt.NDArray[np.floating], labels: Ints, items: npt.NDArray[np.floating], settings: Settings
) -> Doubles:
    """Probabilities of a batch."""
    catalogue = replace(Catalogue.of(examples, labels), settings=settings)
    found = catalogue.label_points(catalogue.points(items), Knowledge())
    return found.probabilities.astype(np.float64)


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path, help="folder that holds the banks")
    parser.add_argument("--batches", type=int, default=100, help="of each bank and size, of the part `alone`")
    parser.add_argument("--only", nargs="+", choices=("alone", "counted", "rounding"))
    asked = parser.parse_args()
    parts = {
        "alone": alone(asked.data, asked.batches),
        "counted": counted(asked.data),
        "rounding": rounding(asked.data),
    }
    for part, lines in parts.items():
        if asked.only is None or part in asked.only:
            for line in lines:
                print(f"{part}: {line}", flush=True)


if __name__ == "__main__":
    main()
