"""Two levels of classes: how often the finest level that is sure is right, and how many items it is given for.

    python studies/two_levels.py DATA --batches 40 [--only groceries ...]
    python studies/two_levels.py --render

DATA is a folder that holds the banks. A catalogue has one or five examples per class, a batch 75 items of a few
classes; items are never examples. If some are unknown, two more classes are in the batch, and not in the catalogue.

- `groceries`: `grocery-efflite0`, 81 kinds of 43 coarse kinds, six in a batch. Examples are photographs of the
  authors' part for training, items those of their part for tests: other shops.
- `groceries by icons`: the same items, and the iconic picture of each product as its only example.
- `birds`: `cub200-efflite0`, 200 species, eight in a batch. The coarse class is the last word of the name.
- `requests`: `banking77-minilm`, 77 intents, six in a batch. Coarse classes are made up: pairs of intents whose means
  are near, the nearest first.

`nearest` is the class with the nearest mean, `sparse_em` the simple control (`control.py`), `fine` the label of an
item, `coarse` its most probable coarse class, and `sure` is `Answer.sure_labels`, over the items that have one; its
threshold was chosen on other batches of these banks. Results are kept in
`studies/results/two_levels`; `--render` writes the page from them. Small catalogues: `reliability.py`.
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from bank_data import Floats, Ints, bank, unit, whole_numbers
from control import CONTROL, control, head_scores
from handful.estimators import BatchClassifier
from handful_fewshot.reports.summary import MeanEstimate
from handful_fewshot.reports.tables import markdown_table
from pages import Page, dots, file_of, keep, kept, mean, measure_or_render

RESULTS = Path(__file__).parent / "results" / "two_levels"
BANKS = {
    "groceries": "grocery-efflite0",
    "groceries by icons": "grocery-efflite0",
    "birds": "cub200-efflite0",
    "requests": "banking77-minilm",
}
PRESENT = {"groceries": 6, "groceries by icons": 6, "birds": 8, "requests": 6}
# Examples per class, and classes of a batch that the catalogue lacks.
CELLS = {"1 example": (1, 0), "5 examples": (5, 0), "5 examples, some unknown": (5, 2)}
ITEMS = 75


class Bank(NamedTuple):
    """Vectors, their classes, the coarse class of each class, and which rows may be examples and items."""

    features: Floats
    labels: Ints
    coarse: Ints
    examples: Ints
    items: Ints


@cache
def read_bank(data: Path, name: str) -> Bank:
    """Read a bank with its coarse classes."""
    folder = data / BANKS[name]
    features, labels = bank(folder)
    every = np.arange(len(labels))
    if name.startswith("groceries"):
        part, coarse = (whole_numbers(folder / f"{file}.npy") for file in ("original_split", "coarse_labels"))
        of_class = np.array([coarse[labels == k][0] for k in range(labels.max() + 1)])
        if name == "groceries":
            return Bank(features, labels, of_class, every[part == 0], every[part == 2])
        icons = unit(folder / "iconic_features.npy")
        rows, classes = np.concatenate([features, icons]), np.concatenate([labels, np.arange(len(icons))])
        return Bank(rows, classes, of_class, np.arange(len(labels), len(rows)), every[part == 2])
    if name == "birds":
        species = json.loads((folder / "classes.json").read_text(encoding="utf-8"))
        return Bank(
            features, labels, np.unique([one.split("_")[-1] for one in species], return_inverse=True)[1], every, every
        )
    return Bank(features, labels, pairs(features, labels), every, every)


def pairs(features: Floats, labels: Ints) -> Ints:
    """Return the number of the pair of each class: of those that are left, the two with the nearest means."""
    means = np.stack([features[labels == k].mean(0) for k in range(labels.max() + 1)])
    means /= np.linalg.norm(means, axis=1, keepdims=True)
    cosines, found = means @ means.T, np.full(len(means), -1)
    np.fill_diagonal(cosines, -np.inf)
    for number in range(len(means) // 2):
        found[list(np.unravel_index(cosines.argmax(), cosines.shape))] = number
        cosines[found >= 0], cosines[:, found >= 0] = -np.inf, -np.inf
    return np.where(found < 0, len(means), found)


def measured(one: Bank, present: int, shots: int, number: int, missing: int = 0) -> dict[str, float | None]:
    """Draw a batch, label it, and return percent of right answers and of items that have one.

    The catalogue lacks some of the classes of the batch, `missing` in number. Their items are never right.
    """
    rng = np.random.default_rng([shots, number])
    there = rng.choice(len(one.coarse), present + missing, replace=False)
    listed = np.setdiff1d(np.arange(len(one.coarse)), there[:missing])
    examples = np.concatenate([rng.permutation(one.examples[one.labels[one.examples] == k])[:shots] for k in listed])
    left = np.setdiff1d(one.items[np.isin(one.labels[one.items], there)], examples)
    items = rng.permutation(left)[:ITEMS]
    with warnings.catch_warnings(action="ignore"):
        classifier = BatchClassifier().fit(one.features[examples], one.labels[examples])
        # Coarse classes are numbers after those of the classes, so that no two are equal.
        names = {k: len(one.coarse) + int(c) for k, c in enumerate(one.coarse)}
        found = classifier.infer(one.features[items], coarse={k: names[k] for k in listed.tolist()})
    assert found.coarse is not None
    truth, sure = one.labels[items], found.sure_labels
    coarse, known = np.array([names[k] for k in truth.tolist()]), np.isin(truth, listed)
    near = nearest(one.features[examples], one.labels[examples], one.features[items])
    simple = classifier.classes_[control(head_scores(classifier, one.features[items]))]
    right = {"fine": found.labels == truth, "coarse": known & (found.coarse.labels == coarse)}
    given, is_fine = np.array([label is not None for label in sure]), sure == found.labels
    right_sure = np.where(is_fine, right["fine"], right["coarse"])
    return {
        "nearest": percent((near == truth)[known]),
        CONTROL: percent((simple == truth)[known]),
        "fine": percent(right["fine"][known]),
        "coarse": percent(right["coarse"][known]),
        "sure": percent(right_sure[given]) if given.any() else None,
        "answered fine": percent((is_fine & given)[known]),
        "answered coarse": percent((~is_fine & given)[known]),
        "answered unknown": percent(given[~known]) if missing else None,
    }


def nearest(examples: Floats, labels: Ints, items: Floats) -> Ints:
    """Return the class whose mean is nearest to each item, by the cosine."""
    classes = np.unique(labels)
    means = np.stack([examples[labels == k].mean(0) for k in classes])
    means /= np.linalg.norm(means, axis=1, keepdims=True)
    return np.asarray(classes[(items @ means.T).argmax(1)])


def percent(values: Any) -> float:
    """Mean of truth values, in percent."""
    return round(100 * float(np.mean(values)), 2)


def figure(rows: Sequence[Mapping[str, Any]], name: str) -> MeanEstimate:
    """Return the mean over the batches that have this figure."""
    return MeanEstimate.of(np.array([row[name] for row in rows if row[name] is not None]))


def table(found: Mapping[str, Mapping[str, Any]]) -> str:
    """Return right answers and how many are given, by bank and shots."""
    lines = [
        [
            f"{name}, {cell}",
            *(f"{mean(row[each] for row in rows):.0f}" for each in ("nearest", CONTROL, "fine", "coarse")),
            f"**{figure(rows, 'sure').text()}**",
            *(f"{mean(row[each] for row in rows):.0f}" for each in ("answered fine", "answered coarse")),
            *(f"{mean(row[each] for row in rows):.0f}" if CELLS[cell][1] else "" for each in ("answered unknown",)),
        ]
        for name, of in found.items()
        for cell, rows in of.items()
    ]
    titles = [
        "catalogue",
        "nearest mean",
        "`sparse_em`",
        "class right",
        "coarse class right",
        "sure label right",
        "sure of a class",
        "of a coarse class",
        "unknown, yet sure",
    ]
    return markdown_table(titles, lines)


def _span(cells: Mapping[str, Sequence[Mapping[str, Any]]]) -> str:
    """Write the smallest and the largest percent of sure labels that are right."""
    means = [figure(rows, "sure").mean for rows in cells.values()]
    return f"{min(means):.0f} to {max(means):.0f}"


def page() -> Page:
    """Make the page from what was kept."""
    found = kept(RESULTS, BANKS)
    shown = {
        f"{name}, {cell}": {
            "class": [row["fine"] for row in rows],
            "coarse class": [row["coarse"] for row in rows],
            "sure label": [row["sure"] for row in rows if row["sure"] is not None],
        }
        for name, of in found.items()
        for cell, rows in of.items()
    }
    five = {name: of["5 examples"] for name, of in found.items() if "5 examples" in of}
    sure = [row["sure"] for rows in five.values() for row in rows if row["sure"] is not None]
    whole = sum(value == 100 for value in sure)
    some_unknown = {name: of["5 examples, some unknown"] for name, of in found.items() if "5 examples" in of}
    return Page(
        name="two_levels",
        title="Two levels",
        question=(
            "Where classes cannot be told apart, the coarse class is an answer too. `sure_label` is the finest level "
            "with a certainty of at least 0.9. How often is it right, and for how many items is there one? *Some "
            "unknown*: two more classes are in the batch, and not in the catalogue. Percent, means over 40 "
            "batches of 75 items with 95% intervals. `sparse_em` is the simple control: a linear classifier and the "
            "shares of the classes by EM."
        ),
        alt="Percent of right classes, coarse classes and sure labels on three banks, one dot per batch",
        figure=lambda: dots(shown, "percent right"),
        table=table(found),
        shows=(
            f"With five examples per class, sure labels are right in {_span(five)}%, where labels alone are not; if "
            f"about a quarter of the items is unknown, in {_span(some_unknown)}%. That leaves many labels that are "
            "right and not sure. The coarse level adds most where species look alike. With one example per class, few "
            "items are sure of anything. Small catalogues have a [page of their own](reliability.md)."
        ),
        limits=(
            "Items that are sure of nothing still have a label. A batch errs as a whole: with five "
            f"examples, all sure labels are right in {whole} of {len(sure)} batches, and {min(sure):.0f}% in the "
            "worst one. Pairs of requests are made up."
        ),
        made=(
            "The docstring of `studies/two_levels.py` says how batches are drawn. "
            "[Two levels of classes](../do/coarse.md) explains the first command."
        ),
        commands=[
            "handful classify birds.parquet photos.parquet --coarse genus --out labels.csv",
            "python studies/two_levels.py DATA --batches 40",
            "python studies/two_levels.py --render",
        ],
        rows=[
            {"catalogue": name, "cell": cell, "batch": number, **row}
            for name, of in found.items()
            for cell, rows in of.items()
            for number, row in enumerate(rows)
        ],
    )


def measure(data: Path, name: str, n: int) -> None:
    """Measure the cells of a bank."""
    one = read_bank(data, name)
    cells = {
        cell: [measured(one, PRESENT[name], shots, number, missing) for number in range(n)]
        for cell, (shots, missing) in CELLS.items()
        if name != "groceries by icons" or (shots, missing) == (1, 0)
    }
    keep(file_of(RESULTS, name), cells)


if __name__ == "__main__":
    measure_or_render(__doc__, BANKS, measure, page)
