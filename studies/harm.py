"""What labelling a batch jointly gains and costs, on clean data and under real conditions.

    python studies/harm.py DATA [--banks banking77-minilm ...] [--parts clean shots ...] [--again]
    python studies/harm.py --render

DATA is a folder that holds the data. Nothing was tuned on them. All items have a class of the catalogue:
`open_batches.py` measures batches in which some have none. Five examples per class and batches of 75 items unless said;
where classes have fewer rows left, a batch has all of them.

- **clean**: 1, 5 and 10 shots; 5, 20 and all classes present.
- **shots**: the number of examples per class is log-uniform from 1 to 50 (or as many as leave 6 rows of the class).
- **wrong_labels**: 10 or 20% of the examples have the label of another class.
- **confusable**: the classes present are a class and those with the nearest means.
- **stray**: 74 items of five classes and one of a sixth; accuracy is that of the one.
- **sizes**: 1 to 5,000 items of 5 or 20 classes, as far as their rows go, and 5,000 of as many classes as hold them.
- **requests** (`hint3-*-minilm`): the catalogue is what a company wrote, the batch what people really asked, in natural
  shares. `original_split.npy` is 1 for the catalogue. Ten shuffles, each cut into batches.
- **laboratories** (`lung-two-atlases`): cells of one laboratory as the catalogue, at most 3, 5, 10 or all of a type,
  and two batches of another. Ten draws of the catalogue.
- **shifted** (`caltech101-shifted`): the catalogue is clean, the items are other photographs after a change.

100 batches per cell, over 5 catalogues. *Alone* is the best rule of a cell among three that label each item alone: the
nearest class mean (`prototype`), the scores of the catalogue's head (`head`), and the same with classes as probable as
their share of the examples (`logistic`). Intervals are Student's t over the means of catalogues where there are five,
else over batches; over items where the same items come again in several batches.

The simple control, `sparse_em`, labels jointly too: EM of the shares under the head's scores, with half an item taken
off every count. It is no rule that labels each item alone, so it is never the best of them.
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable, Iterable, Sequence
from functools import cache, partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from bank_data import Bools, Floats, Ints, bank, chosen, orders, rng_of, shuffled, unit, whole_numbers
from control import CONTROL, control, head_scores
from handful.estimators import BatchClassifier
from handful_fewshot.reports.summary import MeanEstimate
from handful_fewshot.reports.tables import markdown_table
from pages import NOT_YET, Cells, Page, dots, kept, mean, measure_groups

RESULTS = Path(__file__).parent / "results" / "harm"
BANKS = ("banking77-minilm", "hwu64-minilm", "tinyimagenet200-efflite0", "caltech101-efflite0")
ELSEWHERE = ("hint3-sofmattress-minilm", "lung-two-atlases", "caltech101-shifted")
GROUPS = {"confirmation": [*BANKS, *ELSEWHERE]}
LABORATORY_BATCHES = (4, 5)
ITEMS, SHOTS, MOST_SHOTS, SPARE = 75, 5, 50, 6
BATCHES, CATALOGUES, DRAWS = 100, 5, 10
SIZES = (1, 5, 15, 75, 250, 1000, 5000)
HARM = 5.0  # points below the rule
BINS = 15  # of the calibration error
TOGETHER = (CONTROL, "jointly")  # rules that look at the whole batch
IN_SHORT = {
    "shots": "from 1 to 50 examples per class",
    "wrong_labels": "10 or 20% of the examples mislabelled",
    "confusable": "only classes that resemble one another",
    "stray": "the single item of a sixth class, among 74 of five",
    "sizes": "batches of 1 to 5,000 items",
    "requests": "real requests to a company",
    "laboratories": "cells from another laboratory",
    "shifted": "photographs after a change, clean catalogue",
}

Row = dict[str, Any]


class Batch(NamedTuple):
    """Unit vectors, their true labels, and which items they are."""

    points: Floats
    truth: Ints
    items: Ints


class Outcome(NamedTuple):
    """What every rule made of a batch: whether it is right about each item, and what the joint answer says."""

    catalogue: int
    items: Ints
    right: dict[str, Bools]
    probability: Floats
    warned: bool

    def accuracy(self, rule: str) -> float:
        """Percent of the items that a rule labels right."""
        return 100 * float(self.right[rule].mean())


class Catalogue:
    """All rules, fitted to the same examples; `number` tells catalogues of one cell apart."""

    def __init__(self, examples: Floats, labels: Ints, number: int = 0) -> None:
        self.number, self.classes = number, np.unique(labels)
        self.means = np.stack([examples[labels == k].mean(0) for k in self.classes])
        with warnings.catch_warnings(action="ignore"):
            self.jointly = BatchClassifier().fit(examples, labels)

    def outcome(self, batch: Batch) -> Outcome:
        """Label a batch by all rules."""
        fitted: Any = self.jointly.model_
        scores = head_scores(self.jointly, batch.points)
        with warnings.catch_warnings(action="ignore"):
            answer = self.jointly.infer(batch.points)
        labels = {
            "prototype": self.classes[(batch.points @ self.means.T - 0.5 * (self.means**2).sum(1)).argmax(1)],
            "head": self.classes[scores.argmax(1)],
            "logistic": self.classes[(scores * fitted.head.temperature + np.log(fitted.head.mass)).argmax(1)],
            CONTROL: self.classes[control(scores)],
            "jointly": answer.labels,
        }
        return Outcome(
            self.number,
            batch.items,
            {rule: given == batch.truth for rule, given in labels.items()},
            np.asarray(answer.probabilities.max(1)),
            bool(answer.diagnostics),
        )


Drawn = Iterable[tuple[Catalogue, Iterable[Batch]]]


def cell(drawn: Callable[[], Drawn], *, over_items: bool = False, last: bool = False) -> Row:
    """Label all batches of a cell; `last`: accuracy is that of the last item of each."""
    outcomes = [catalogue.outcome(batch) for catalogue, batches in drawn() for batch in batches]
    if last:
        outcomes = [one._replace(right={k: v[-1:] for k, v in one.right.items()}) for one in outcomes]
    weights = np.array([len(one.items) if over_items else 1.0 for one in outcomes])
    accuracy = {
        rule: float(np.average([one.accuracy(rule) for one in outcomes], weights=weights)) for rule in outcomes[0].right
    }
    alone = max((rule for rule in accuracy if rule not in TOGETHER), key=accuracy.__getitem__)
    gain = estimated(outcomes, alone, over_items)
    over = estimated(outcomes, CONTROL, over_items)
    harmed = [one for one in outcomes if one.accuracy("jointly") < one.accuracy(alone) - HARM]
    return {
        "batches": len(outcomes),
        "items": round(float(np.mean([len(one.items) for one in outcomes])), 1),
        "accuracy": {rule: round(value, 2) for rule, value in accuracy.items()},
        "alone": alone,
        "gain": [round(gain.mean, 2), round(gain.half_width, 2)],
        "gain_over_control": [round(over.mean, 2), round(over.half_width, 2)],
        "harmed": 0 if last else len(harmed),
        "warned": sum(one.warned for one in outcomes),
        "harmed_warned": 0 if last else sum(one.warned for one in harmed),
        "calibration_error": None if last else round(calibration_error(outcomes), 2),
    }


def estimated(outcomes: Sequence[Outcome], rule: str, over_items: bool) -> MeanEstimate:
    """Points by which labelling jointly is ahead of a rule on the same batches, with a 95% interval."""
    if over_items:
        items = np.concatenate([one.items for one in outcomes])
        gains = 100 * np.concatenate([one.right["jointly"].astype(float) - one.right[rule] for one in outcomes])
        _, place = np.unique(items, return_inverse=True)
        return MeanEstimate.of(np.bincount(place, gains) / np.bincount(place))
    gains = np.array([one.accuracy("jointly") - one.accuracy(rule) for one in outcomes])
    numbers = np.array([one.catalogue for one in outcomes])
    if len(which := np.unique(numbers)) >= CATALOGUES:
        gains = np.array([gains[numbers == number].mean() for number in which])
    return MeanEstimate.of(gains)


def calibration_error(outcomes: Sequence[Outcome]) -> float:
    """`100 Σ_b n_b/n |accuracy_b - probability_b|` over bins of equal width."""
    probability = np.concatenate([one.probability for one in outcomes]).astype(float)
    right = np.concatenate([one.right["jointly"] for one in outcomes])
    place = np.minimum((probability * BINS).astype(int), BINS - 1)
    off = np.bincount(place, right, BINS) - np.bincount(place, probability, BINS)
    return 100 * float(np.abs(off).sum()) / len(right)


@cache
def plain(folder: Path, shots: int, number: int) -> Catalogue:
    """Fit a catalogue of as many examples of every class."""
    features, labels = bank(folder)
    rows = np.concatenate([order[:shots] for order in orders(folder, number)])
    return Catalogue(features[rows], labels[rows], number)


def taken(folder: Path, rows: Ints) -> Batch:
    """Items of a bank as a batch."""
    features, labels = bank(folder)
    return Batch(features[rows], labels[rows], rows)


def some(folder: Path, left: list[Ints], present: int, rng: np.random.Generator) -> list[Batch]:
    """Draw the batches of one catalogue, of a few classes, from rows that are not in it."""
    return [
        taken(folder, chosen(rng, left, rng.choice(len(left), present, replace=False), ITEMS))
        for _batch in range(BATCHES // CATALOGUES)
    ]


def clean(folder: Path) -> Cells:
    """Equal shots, right labels, one source."""
    n_classes = len(orders(folder, 0))

    def drawn(shots: int, present: int) -> Drawn:
        for number in range(CATALOGUES):
            rng, left = rng_of("clean", folder.name, shots, present, number), left_of(folder, shots, number)
            yield plain(folder, shots, number), some(folder, left, present, rng)

    for shots in (1, 5, 10):
        for present in (5, 20, n_classes):
            key = {"shots": shots, "present": "all" if present == n_classes else present}
            yield "clean", key, partial(cell, partial(drawn, shots, present))


def left_of(folder: Path, shots: int, number: int) -> list[Ints]:
    """Rows of each class that are not examples of a catalogue."""
    return [rows[shots:] for rows in orders(folder, number)]


def unequal(folder: Path) -> Cells:
    """Classes with one example next to classes with fifty."""
    features, labels = bank(folder)
    most = min(MOST_SHOTS, int(np.bincount(labels).max()) - SPARE)

    def drawn(present: int) -> Drawn:
        for number in range(CATALOGUES):
            rng, order = rng_of("shots", folder.name, present, number), orders(folder, number)
            counts = [min(round(most ** rng.random()), len(rows) - SPARE) for rows in order]
            held = np.concatenate([rows[:n] for rows, n in zip(order, counts, strict=True)])
            left = [rows[n:] for rows, n in zip(order, counts, strict=True)]
            yield Catalogue(features[held], labels[held], number), some(folder, left, present, rng)

    for present in (5, 20):
        yield "shots", {"most_shots": most, "present": present}, partial(cell, partial(drawn, present))


def wrong_labels(folder: Path) -> Cells:
    """Examples with the label of another class."""
    features, labels = bank(folder)

    def drawn(share: float, present: int) -> Drawn:
        for number in range(CATALOGUES):
            rng, order = rng_of("wrong", folder.name, share, present, number), orders(folder, number)
            held = np.concatenate([rows[:SHOTS] for rows in order])
            given = labels[held]
            wrong = rng.choice(len(given), round(share * len(given)), replace=False)
            given[wrong] = (given[wrong] + rng.integers(1, len(order), len(wrong))) % len(order)
            yield Catalogue(features[held], given, number), some(folder, left_of(folder, SHOTS, number), present, rng)

    for share in (0.1, 0.2):
        for present in (5, 20):
            yield "wrong_labels", {"wrong": share, "present": present}, partial(cell, partial(drawn, share, present))


def confusable(folder: Path) -> Cells:
    """Only classes that resemble one another occur."""
    features, labels = bank(folder)
    means = np.stack([features[labels == k].mean(0) for k in range(int(labels.max()) + 1)])
    squares = (means**2).sum(-1) - 2 * means @ means.T + (means**2).sum(-1, keepdims=True)

    def drawn(present: int) -> Drawn:
        for number in range(CATALOGUES):
            rng, left = rng_of("confusable", folder.name, present, number), left_of(folder, SHOTS, number)
            near = [np.argsort(squares[rng.integers(len(left))])[:present] for _batch in range(BATCHES // CATALOGUES)]
            yield plain(folder, SHOTS, number), [taken(folder, chosen(rng, left, which, ITEMS)) for which in near]

    for present in (5, 10):
        yield "confusable", {"present": present}, partial(cell, partial(drawn, present))


def stray(folder: Path) -> Cells:
    """Give a batch of five classes a single item of a sixth."""

    def drawn() -> Drawn:
        for number in range(CATALOGUES):
            rng, left = rng_of("stray", folder.name, number), left_of(folder, SHOTS, number)
            picked = [rng.choice(len(left), 6, replace=False) for _batch in range(BATCHES // CATALOGUES)]
            rows = [
                np.concatenate([chosen(rng, left, which[:5], ITEMS - 1), chosen(rng, left, which[5:], 1)])
                for which in picked
            ]
            yield plain(folder, SHOTS, number), [taken(folder, of) for of in rows]

    yield "stray", {"present": 6}, partial(cell, drawn, last=True)


def sizes(folder: Path) -> Cells:
    """From one item to 5,000."""
    most = int(np.bincount(bank(folder)[1]).max()) - SHOTS

    def drawn(present: int | None, size: int) -> Drawn:
        n = max(1, BATCHES * min(max(ITEMS // size, 1), 5) // max(size // 250, 1) // CATALOGUES)
        for number in range(CATALOGUES):
            rng, left = rng_of("sizes", folder.name, present, size, number), left_of(folder, SHOTS, number)
            picked = [classes_of(rng, left, present, size) for _batch in range(n)]
            yield plain(folder, SHOTS, number), [taken(folder, chosen(rng, left, which, size)) for which in picked]

    for present in (5, 20):
        for smaller, size in zip((0, *SIZES), SIZES, strict=False):
            if smaller < present * most:
                yield "sizes", {"present": present, "size": size}, partial(cell, partial(drawn, present, size))
    yield "sizes", {"present": "enough", "size": SIZES[-1]}, partial(cell, partial(drawn, None, SIZES[-1]))


def classes_of(rng: np.random.Generator, left: list[Ints], present: int | None, size: int) -> Ints:
    """Draw `present` classes, or as many as together have `size` items."""
    order = rng.permutation(len(left))
    if present is None:
        present = int(np.searchsorted(np.cumsum([len(left[k]) for k in order]), size)) + 1
    return order[:present]


def requests(folder: Path) -> Cells:
    """Real requests to a company."""

    @cache
    def fitted() -> tuple[Catalogue, Ints]:
        features, labels = bank(folder)
        written = whole_numbers(folder / "original_split.npy") == 1
        asked = np.flatnonzero(~written & np.isin(labels, labels[written]))
        return Catalogue(features[written], labels[written]), asked

    def drawn(size: int) -> Drawn:
        catalogue, asked = fitted()
        rng, batches = rng_of("requests", folder.name, size), list[Batch]()
        for _shuffle in range(DRAWS):
            parts = np.split(rng.permutation(asked), range(size, len(asked), size))
            batches += [taken(folder, part) for part in parts if len(part) >= 5]
        yield catalogue, batches

    for size in (30, 75):
        yield "requests", {"size": size}, partial(cell, partial(drawn, size), over_items=True)


def laboratories(folder: Path) -> Cells:
    """Cells of one laboratory as the catalogue, batches of another."""
    reference, types = unit(folder / "reference.npy"), whole_numbers(folder / "reference_labels.npy")
    cells, truth = unit(folder / "query.npy"), whole_numbers(folder / "query_labels.npy")
    numbers = whole_numbers(folder / "query_batches.npy")

    def drawn(cap: int | None) -> Drawn:
        for draw in range(1 if cap is None else DRAWS):
            rng = rng_of("laboratories", cap, draw)
            held = np.concatenate([rng.permutation(np.flatnonzero(types == k))[:cap] for k in np.unique(types)])
            picked = [np.flatnonzero((numbers == b) & (truth <= types.max())) for b in LABORATORY_BATCHES]
            yield (
                Catalogue(reference[held], types[held], draw),
                [Batch(cells[rows], truth[rows], rows) for rows in picked],
            )

    for cap in (3, 5, 10, None):
        yield "laboratories", {"most_shots": cap}, partial(cell, partial(drawn, cap), over_items=True)


def shifted(folder: Path) -> Cells:
    """Give a clean catalogue batches of photographs after a change."""
    features, labels = bank(folder.with_name("caltech101-efflite0"))
    rows = whole_numbers(folder / "rows.npy")

    @cache
    def fitted(number: int) -> tuple[Catalogue, list[Ints]]:
        order = shuffled(np.random.default_rng(number), labels[rows])
        held = rows[np.concatenate([places[:SHOTS] for places in order])]
        return Catalogue(features[held], labels[held], number), [places[SHOTS:] for places in order]

    def drawn(kind: str, present: int) -> Drawn:
        vectors = features[rows] if kind == "unchanged" else unit(folder / f"{kind}.npy")
        for number in range(CATALOGUES):
            catalogue, left = fitted(number)
            rng = rng_of("shifted", kind, present, number)
            picked = [
                chosen(rng, left, rng.choice(len(left), present, replace=False), ITEMS)
                for _batch in range(BATCHES // CATALOGUES)
            ]
            yield catalogue, [Batch(vectors[places], labels[rows[places]], places) for places in picked]

    for kind in ("unchanged", *json.loads((folder / "kinds.json").read_text())):
        for present in (5, 20):
            yield "shifted", {"change": kind, "present": present}, partial(cell, partial(drawn, kind, present))


def cells(folder: Path) -> Cells:
    """Return the cells of a bank."""
    if folder.name in BANKS:
        for condition in (clean, unequal, wrong_labels, confusable, stray, sizes):
            yield from condition(folder)
    else:
        yield from dict(zip(ELSEWHERE, (requests, laboratories, shifted), strict=True))[folder.name](folder)


def measured() -> list[Row]:
    """Return a row for each cell that was measured, with its data and condition."""
    return [
        {"data": name, "condition": condition, **row}
        for name, parts in kept(RESULTS / "confirmation", GROUPS["confirmation"]).items()
        for condition, rows in parts.items()
        for row in rows
    ]


def lines(rows: Sequence[Row]) -> dict[str, list[Row]]:
    """Return the cells of each line of the table."""
    usual = [row for row in rows if row["condition"] == "clean"]
    found = {
        "clean, 5 or 10 examples per class, 5 or 20 present": [
            row for row in usual if row["shots"] > 1 and row["present"] != "all"
        ],
        "clean, one example per class, 5 or 20 present": [
            row for row in usual if row["shots"] == 1 and row["present"] != "all"
        ],
        "clean, all classes present": [row for row in usual if row["present"] == "all"],
        **{text: [row for row in rows if row["condition"] == name] for name, text in IN_SHORT.items()},
    }
    return {what: chosen for what, chosen in found.items() if chosen}


def place(row: Row) -> str:
    """Say which cell a row is, in words."""
    parts = [row["data"].split("-")[1 if row["data"].startswith("hint3") else 0]]
    texts: dict[str, Callable[[Any], str]] = {
        "shots": lambda n: "1 shot" if n == 1 else f"{n} shots",
        "most_shots": lambda n: f"at most {n or 'all'} shots",
        "size": lambda n: "1 item" if n == 1 else f"{n} items",
        "change": str,
        "wrong": lambda share: f"{100 * share:.0f}% mislabelled",
        "present": lambda n: f"{n} present",
    }
    return ", ".join(parts + [text(row[key]) for key, text in texts.items() if key in row])


def table(rows: Sequence[Row]) -> str:
    """Render the mean and the worst cell of each condition."""
    entries = []
    for what, of in lines(rows).items():
        lowest = min(of, key=lambda row: sum(row["gain"]))
        points, half = lowest["gain"]
        entries.append(
            [
                what,
                f"{mean(row['accuracy'][row['alone']] for row in of):.1f}",
                f"{mean(row['accuracy'][CONTROL] for row in of):.1f}" if all(map(with_control, of)) else NOT_YET,
                f"{mean(row['accuracy']['jointly'] for row in of):.1f}",
                f"{points:+.1f} ± {half:.1f} ({place(lowest)})",
                f"{sum(row['harmed'] for row in of)} of {sum(row['batches'] for row in of)}",
            ]
        )
    if not entries:
        return NOT_YET
    head = ["condition", "each item alone", CONTROL, "jointly", "lowest gain of a cell", "harmed"]
    return markdown_table(head, entries)


def with_control(row: Row) -> bool:
    """Whether the simple control was measured in a cell."""
    return CONTROL in row["accuracy"]


def page() -> Page:
    """Make the page from what was kept."""
    rows = measured()
    harmed, warned, both = (sum(row[key] for row in rows) for key in ("harmed", "warned", "harmed_warned"))
    others = sum(row["batches"] for row in rows) - harmed
    usual = [row for row in rows if row["condition"] == "clean" and row["present"] != "all"]
    errors = [
        mean(row["calibration_error"] for row in usual if (row["shots"] > 1) == several) for several in (True, False)
    ]
    return Page(
        name="harm",
        title="Gain and harm",
        question=(
            "When is it better to label items as a batch, and when is it worse than one at a time? "
            "Accuracy is in percent. *Each item alone* is the best of three rules in each cell: nearest class mean, "
            "the linear classifier fitted to the catalogue, and plain logistic regression. `sparse_em` is the simple "
            "control: the same linear classifier, and EM of the shares of the classes. A *cell* is one data set "
            "under one condition. *Lowest gain* is that of the cell whose 95% interval ends lowest, and a batch is "
            "*harmed* if it is more than 5 points below the rule. Nothing was tuned on these data. "
            "[When it hurts](../understand/when_it_hurts.md) says what to do about it."
        ),
        alt="Points gained over labelling each item alone, by condition: one dot per cell, a mark for the mean",
        figure=lambda: dots(
            {what: {"gain": [row["gain"][0] for row in of]} for what, of in lines(rows).items()},
            "points gained over each item alone",
            at=0,
        ),
        table=table(rows),
        shows=(
            "Unequal numbers of examples, single items of another class and cells of another laboratory are labelled "
            "worse than by 0.5.0 (74.6, 56.8 and 87.7%), and with unequal numbers the simple control is ahead. Where "
            "few classes of the catalogue occur and numbers are equal, labelling jointly gains in nearly every cell, "
            "also with noise or wrong labels. Where all classes occur, on real requests and on cells of "
            "another laboratory, there is nothing to gain and a little to lose. A single item of a class that is "
            "otherwise absent is often given to one of the large classes: that is the price of the gain. Warnings do "
            f"not help to find the batches that were harmed: {both} of {harmed} had one, as had {warned - both} of "
            f"the {others} others."
        ),
        limits=(
            f"The mean calibration error of the probabilities is {errors[0]:.1f} points with 5 or 10 examples per "
            f"class and {errors[1]:.1f} with one. Four data sets of sentences and photographs, one company and one "
            "pair of laboratories do not stand for every use."
        ),
        made="The docstring of `studies/harm.py` says how catalogues and batches are drawn.",
        commands=["python studies/harm.py DATA", "python studies/harm.py --render"],
        rows=rows,
    )


if __name__ == "__main__":
    measure_groups(__doc__, GROUPS, RESULTS, cells, page)
