"""Figures of `docs/understand/model.md` and of `handful.model.limits` that no page of measurements has.

    python studies/model_figures.py DATA [--batches 100] [--only alone counted rounding limits]

DATA is a folder that holds the banks. Each part prints its figures:

*alone*: batches of up to five classes by the scores of a head of one or five examples per class, as if they came from
another model. What changes if the first item of a class tells something about itself (`alone_per_class` = 0): labels
that are right, and the mean log-loss.

*counted*: batches of 4,000 items by such scores, with even shares of all classes, and with shares like 1, 1/2, 1/3 …
What changes if up to 8,192 items are counted (`most_counted_scores`).

*rounding*: ten catalogues of each bank, with one example per class, and 60 items of four classes. How far probabilities
move at most with the order of the examples, in double precision, and with a factor on all features.

*limits*: how far probabilities of 18 batches of 75 items, some of them unknown, move with each limit, in fit and
labelling: numbers of at least two at half and twice their value, chances above one half at half and twice their
distance from one, others at a tenth and at ten times their value. Coefficients of the normal distribution are left
alone.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from bank_data import Floats, Ints, bank, chosen, orders, rng_of
from handful.fitted import FittedModel
from handful.model import limits as limits_module
from handful.model.knowledge import Knowledge
from handful.model.labelling import label_scores
from handful.model.scores import in_nats, unit_of
from handful.model.settings import DEFAULT, Settings

BANKS = ("clinc150-minilm", "banking77-minilm", "cub200-efflite0")
SHOTS = (1, 5)
SIZES = (3, 10, 75)
# Classes of a batch at most, and items of a large one.
CLASSES, LARGE = 5, 4_000
COUNTED = 2**13
# Catalogues with one example per class: classes, those of the batch, and items of each of these.
ONE_EXAMPLE = (("clinc150-minilm", 50), ("cub200-efflite0", 100))
PRESENT, EACH, CATALOGUES = 4, 15, 10
# Catalogues of which limits are tried: classes, examples of each, batches, and of their items, classes and items each.
LIMIT_CLASSES, LIMIT_SHOTS, LIMIT_BATCHES, LIMIT_PRESENT, LIMIT_EACH = 40, 4, 6, 5, 15
LEAST = 1e-12
Doubles = npt.NDArray[np.float64]


class Scored(NamedTuple):
    """Items of a bank that are no examples, with the scores of a head, and their rows by class."""

    scores: Floats
    truth: Ints
    rows: list[Ints]


def scored(folder: Path, shots: int) -> Scored:
    """Fit a head to some examples of each class, and score all other items."""
    features, labels = bank(folder)
    order = orders(folder, 0)
    held = np.concatenate([rows[:shots] for rows in order])
    catalogue = FittedModel.of(features[held], labels[held])
    scores = catalogue.head.scores(catalogue.points(features))
    return Scored(scores, labels, [rows[shots:] for rows in order])


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
    rules = {"as it is": DEFAULT, "alone_per_class = 0": replace(DEFAULT, alone_per_class=0.0)}
    for shots in SHOTS:
        items = {name: scored(data / name, shots) for name in BANKS}
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
                yield f"{shots} per class, {size} items, {rule}: {percent:.1f}% right, log-loss {nats:.2f}"


def counted(data: Path) -> Iterator[str]:
    """Measure what `most_counted_scores` changes."""
    for name in BANKS:
        scores, truth, rows = scored(data / name, max(SHOTS))
        rng = rng_of("model figures", name, "large")
        order = rng.permutation(len(rows)).tolist()
        sizes = LARGE / np.arange(1, len(rows) + 1) / (1 / np.arange(1, len(rows) + 1)).sum()
        batches = {
            "even": chosen(rng, rows, range(len(rows)), LARGE),
            "uneven": np.concatenate([rows[k][: round(size)] for k, size in zip(order, sizes, strict=True)]),
        }
        for shares, batch in batches.items():
            for most in (0, COUNTED):
                q = labelled(scores[batch], replace(DEFAULT, most_counted_scores=most))
                of = f"{name}, {len(batch)} items, {shares} shares"
                yield f"{of}, {most} counted at most: {right(q, truth[batch]):.1f}% right"


CHANGES = ("order", "double precision", "times 1000", "times 2")


class Moved(NamedTuple):
    """How far the probabilities of a batch move at most with each of `CHANGES`, and labels other than those now."""

    most: list[float]
    other_labels: int


def moved(examples: Floats, items: Floats, settings: Settings, rng: np.random.Generator) -> Moved:
    """Compare answers after changes that should change nothing."""
    labels = np.arange(len(examples))
    again = rng.permutation(len(examples))
    before = _answer(examples, labels, items, settings)
    after = (
        _answer(examples[again], labels[again], items, settings),
        _answer(examples.astype(np.float64), labels, items.astype(np.float64), settings),
        _answer(1000 * examples, labels, 1000 * items, settings),
        _answer(2 * examples, labels, 2 * items, settings),
    )
    now = _answer(examples, labels, items, DEFAULT)
    others = int((before.argmax(1) != now.argmax(1)).sum())
    return Moved([float(np.abs(one - before).max()) for one in after], others)


def rounding(data: Path) -> Iterator[str]:
    """Measure how far probabilities move with changes that should change nothing."""
    for name, n_classes in ONE_EXAMPLE:
        features, _ = bank(data / name)
        found = []
        for number in range(CATALOGUES):
            rng = rng_of("model figures", name, "rounding", number)
            order = orders(data / name, number)
            classes = rng.permutation(len(order))[:n_classes]
            examples = features[[order[k][0] for k in classes]]
            items = features[np.concatenate([order[k][1 : 1 + EACH] for k in classes[:PRESENT]])]
            found.append(moved(examples, items, DEFAULT, rng))
        most = np.max([one.most for one in found], axis=0).tolist()
        figures = ", ".join(f"{change} {value:.1e}" for change, value in zip(CHANGES, most, strict=True))
        others = sum(one.other_labels for one in found)
        of = CATALOGUES * PRESENT * EACH
        yield f"{name}, {n_classes} classes: {figures}; {others} other labels of {of}"


def limits(data: Path) -> Iterator[str]:
    """Measure how far probabilities move with limits that no answer should depend on."""
    before = _limited(data)
    for name, value in vars(limits_module).items():
        if not name.isupper() or name.startswith("NORMAL"):
            continue
        for other in _others(value):
            with _set_limit(name, other):
                after = _limited(data)
            most = max(float(np.abs(a - b).max()) for a, b in zip(after, before, strict=True))
            yield f"{name}, {value:g}, at {other:g}: {most:.1e}"


def _others(value: float) -> tuple[float, float]:
    """Return two other values of a limit."""
    if abs(value) >= 2:
        return type(value)(value / 2), type(value)(value * 2)
    if value > 0.5:
        return 1 - (1 - value) / 2, 1 - (1 - value) * 2
    return value / 10, value * 10


@contextmanager
def _set_limit(name: str, value: float) -> Iterator[None]:
    """Change a limit in all modules that have it."""
    of_model = [module for path, module in sys.modules.items() if path.startswith("handful.model.")]
    having = [module for module in of_model if hasattr(module, name)]
    before = getattr(limits_module, name)
    for module in having:
        setattr(module, name, value)
    yield
    for module in having:
        setattr(module, name, before)


def _limited(data: Path) -> list[Doubles]:
    """Probabilities, also to be unknown, of batches whose last classes are not in the catalogue."""
    found = []
    for name in BANKS:
        features, _ = bank(data / name)
        order = orders(data / name, 0)
        held = np.concatenate([order[k][:LIMIT_SHOTS] for k in range(LIMIT_CLASSES)])
        catalogue = FittedModel.of(features[held], np.arange(LIMIT_CLASSES).repeat(LIMIT_SHOTS))
        for number in range(LIMIT_BATCHES):
            # Every third batch is closed; the others have two unknown classes.
            n_unknown = 0 if number % 3 == 0 else 2
            known = rng_of("limits", name, number).permutation(LIMIT_CLASSES)[: LIMIT_PRESENT - n_unknown]
            classes = [*known.tolist(), *range(LIMIT_CLASSES, LIMIT_CLASSES + n_unknown)]
            items = features[np.concatenate([order[k][LIMIT_SHOTS : LIMIT_SHOTS + LIMIT_EACH] for k in classes])]
            answer = catalogue.label_points(catalogue.points(items), Knowledge())
            unknown = np.nan_to_num(answer.unknown)
            found.append(np.column_stack([answer.probabilities, unknown]).astype(np.float64))
    return found


def _answer(
    examples: npt.NDArray[np.floating], labels: Ints, items: npt.NDArray[np.floating], settings: Settings
) -> Doubles:
    """Probabilities of a batch."""
    catalogue = replace(FittedModel.of(examples, labels), settings=settings)
    found = catalogue.label_points(catalogue.points(items), Knowledge())
    return found.probabilities.astype(np.float64)


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path, help="folder that holds the banks")
    parser.add_argument("--batches", type=int, default=100, help="of each bank and size, of the part `alone`")
    parser.add_argument("--only", nargs="+", choices=("alone", "counted", "rounding", "limits"))
    asked = parser.parse_args()
    parts = {
        "alone": alone(asked.data, asked.batches),
        "counted": counted(asked.data),
        "rounding": rounding(asked.data),
        "limits": limits(asked.data),
    }
    for part, lines in parts.items():
        if asked.only is None or part in asked.only:
            for line in lines:
                print(f"{part}: {line}", flush=True)


if __name__ == "__main__":
    main()
