"""Whether the certainty of a label is the chance that it is right, in small catalogues.

    python studies/reliability.py DATA [--batches 40] [--only birds ...]
    python studies/reliability.py --render

DATA is a folder that holds the banks. A catalogue has 3, 6, 12 or 20 classes with 2, 3 or 5 examples each, a batch 30
items of 2 to 6 of these classes. If some are unknown, 8 of the 30 items are of two classes that the catalogue lacks.
40 batches are drawn for each, every one with a catalogue of its own; items are never examples.

`certainty` is `Answer.certainty`, and `probability` the same without the factor for the number of examples: the
probability of the label times the chance that the item has one of the classes. Labels of rejected items do not count.
For each the labels are counted by bins, with the sum of the values and the number of right labels.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure

from bank_data import Floats, Ints, bank
from handful.estimators import BatchClassifier
from handful_fewshot.reports.plots import COLOURS, MARKS
from handful_fewshot.reports.tables import markdown_table
from pages import Page, file_of, keep, kept, measure_or_render

RESULTS = Path(__file__).parent / "results" / "reliability"
BANKS = {
    "requests": "clinc150-minilm",
    "birds": "cub200-efflite0",
    "characters": "omniglot659-conv4",
    "sounds": "esc50-birdnet",
    "objects": "tinyimagenet200-efflite0",
    "questions to a bank": "banking77-minilm",
    "groceries": "grocery-efflite0",
    "voices": "audiomnist-speakers",
}
CATALOGUES = [(classes, shots) for classes in (3, 6, 12, 20) for shots in (2, 3, 5)]
ITEMS, UNKNOWN, BATCHES = 30, 8, 40
EDGES = (0.0, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99, 1.0)
HIGH, SURE = EDGES.index(0.99), EDGES.index(0.95)
MOST_WRONG = 3.0  # percent of the labels above 0.99
FEWEST = 30  # labels that a share is taken of

Row = dict[str, Any]


def one_batch(features: Floats, labels: Ints, classes: int, shots: int, number: int, *, some: bool) -> dict[str, Any]:
    """Draw a catalogue and a batch; return [labels, sum, right] of each bin, of certainty and of probability."""
    rng = np.random.default_rng([classes, shots, int(some), number])
    drawn = rng.choice(labels.max() + 1, classes + 2, replace=False)
    listed, missing = drawn[:classes], drawn[classes:]
    examples = np.concatenate([rng.permutation(np.flatnonzero(labels == k))[:shots] for k in listed])
    present = listed[: rng.integers(2, 7)]
    items = rng.permutation(np.setdiff1d(np.flatnonzero(np.isin(labels, present)), examples))[:ITEMS]
    if some:
        others = rng.permutation(np.flatnonzero(np.isin(labels, missing)))[:UNKNOWN]
        items = np.concatenate([items[: ITEMS - UNKNOWN], others])
    with warnings.catch_warnings(action="ignore"):
        answer = BatchClassifier().fit(features[examples], labels[examples]).infer(features[items])
    kept_items = ~answer.rejected
    right = (answer.labels == labels[items])[kept_items]
    certainty = answer.certainty[kept_items]
    probability = certainty * (len(examples) + 2) / (len(examples) + 1)
    return {"certainty": binned(certainty, right), "probability": binned(probability, right)}


def binned(values: Any, right: Any) -> Any:
    """Return the number of values of each bin, their sum, and how many are right, [bin, 3]."""
    place = np.clip(np.searchsorted(EDGES, values) - 1, 0, len(EDGES) - 2)
    return np.stack([np.bincount(place, w, len(EDGES) - 1) for w in (np.ones(len(values)), values, right)], 1)


def measure(data: Path, name: str, n: int) -> None:
    """Measure the cells of a bank."""
    features, labels = bank(data / BANKS[name])
    found = {}
    for classes, shots in CATALOGUES:
        for some in (False, True):
            batches = [one_batch(features, labels, classes, shots, i, some=some) for i in range(min(n, BATCHES))]
            found[f"{classes} {shots} {some:d}"] = {
                what: np.round(sum(one[what] for one in batches), 3).tolist() for what in batches[0]
            }
    keep(file_of(RESULTS, name), found)


def rows_of(found: Mapping[str, Mapping[str, Any]]) -> list[Row]:
    """Return a row for each bank, catalogue, kind of batch, value and bin that has labels."""
    return [
        {
            "bank": name,
            **dict(zip(("classes", "examples", "unknown"), map(int, cell.split()), strict=True)),
            "value": what,
            "bin": place,
            "above": EDGES[place],
            **dict(zip(("labels", "sum", "right"), counts, strict=True)),
        }
        for name, cells in found.items()
        for cell, values in cells.items()
        for what, bins in values.items()
        for place, counts in enumerate(bins)
        if counts[0]
    ]


def chosen(rows: Sequence[Row], value: str, unknown: int, name: str | None = None, least: int = 0) -> list[Row]:
    """Return the rows of a value, a kind of batch, a bank or all of them, and bins from one on."""
    return [
        row
        for row in rows
        if row["value"] == value and row["unknown"] == unknown and name in (None, row["bank"]) and row["bin"] >= least
    ]


def total(rows: Sequence[Row], what: str) -> float:
    """Sum a column."""
    return float(sum(row[what] for row in rows))


def share(rows: Sequence[Row], what: str = "right") -> float:
    """Return the sum of a column by the number of labels, in percent; NaN of nothing."""
    n = total(rows, "labels")
    return 100 * total(rows, what) / n if n else float("nan")


def worst_cell(rows: Sequence[Row]) -> tuple[float, str]:
    """Return the largest percentage of wrong labels among catalogues with enough of them, and which one that is."""
    cells: dict[str, list[Row]] = {}
    for row in rows:
        cells.setdefault(f"{row['bank']}, {row['classes']} classes × {row['examples']}", []).append(row)
    enough = [(100 - share(some), name) for name, some in cells.items() if total(some, "labels") >= FEWEST]
    return max(enough, default=(float("nan"), ""))


def table(rows: Sequence[Row], names: Sequence[str]) -> str:
    """Return one line per bank: how far the mean is from the share that is right, and what is above 0.95 and 0.99."""

    def number(value: float, digits: int = 1) -> str:
        return "" if np.isnan(value) else f"{value:.{digits}f}"

    lines = []
    for name in names:
        line = [name]
        for unknown in (0, 1):
            of = chosen(rows, "certainty", unknown, name)
            sure = chosen(rows, "certainty", unknown, name, SURE)
            line += [number(share(of)), number(share(of, "sum")), number(100 - share(sure))]
        high = chosen(rows, "probability", 0, name, HIGH)
        line += [f"{total(high, 'labels'):.0f}", number(100 - share(high)), number(worst_cell(high)[0])]
        lines.append(line)
    titles = [
        "bank",
        *("right", "certainty", "wrong above 0.95"),
        *("right, some unknown", "certainty", "wrong above 0.95"),
        *("probability above 0.99", "of these wrong", "in the worst catalogue"),
    ]
    return markdown_table(titles, lines)


def figure(rows: Sequence[Row], names: Sequence[str]) -> Any:
    """Draw the share of right labels against the mean certainty, by bank, for closed batches and with unknown items."""
    with mpl.rc_context({"font.size": 9}):
        drawing = Figure(figsize=(7, 4.4), layout="constrained")
        for axes, unknown, title in zip(
            drawing.subplots(1, 2, sharey=True), (0, 1), ("closed", "a quarter unknown"), strict=True
        ):
            axes.plot([0, 100], [0, 100], color="0.6", linewidth=0.8)
            for k, name in enumerate(names):
                of = chosen(rows, "certainty", unknown, name)
                bins = [[row for row in of if row["bin"] == place] for place in range(len(EDGES) - 1)]
                points = [(share(some, "sum"), share(some)) for some in bins if total(some, "labels") >= FEWEST]
                axes.plot(
                    *np.transpose(points),
                    f"{MARKS[k % len(MARKS)]}-",
                    color=COLOURS[k % len(COLOURS)],
                    markersize=4,
                    linewidth=0.8,
                    label=name if not unknown else None,
                )
            axes.set(title=title, xlabel="certainty, percent", xlim=(0, 100), ylim=(0, 100), aspect="equal")
            axes.grid(color="0.92")
        drawing.axes[0].set_ylabel("percent right")
        drawing.legend(loc="outside lower center", ncols=4, frameon=False)
    return drawing


def page() -> Page:
    """Make the page from what was kept."""
    found = kept(RESULTS, BANKS)
    rows, names = rows_of(found), list(found)
    gaps = {
        unknown: [share(of, "sum") - share(of) for name in names if (of := chosen(rows, "certainty", unknown, name))]
        for unknown in (0, 1)
    }
    high = chosen(rows, "probability", 0, least=HIGH)
    most, where = worst_cell(high)
    wrong = worst_cell(chosen(rows, "certainty", 0, least=HIGH))[0]
    return Page(
        name="reliability",
        title="Reliability",
        question=(
            "Is a label with a certainty of 0.9 right nine times in ten, if a catalogue has 3 to 20 classes with 2 to "
            "5 examples each? The figure has one line per bank, over 12 such catalogues; on the diagonal, certainty is "
            "what it says. Below it, certainty is too high."
        ),
        alt="Share of right labels against their certainty on eight banks, closed and with a quarter of unknown items",
        figure=lambda: figure(rows, names),
        table=table(rows, names),
        shows=(
            f"In closed batches, the mean certainty differs from the share that is right by {min(gaps[0]):+.1f} to "
            f"{max(gaps[0]):+.1f} points, and by {min(gaps[1]):+.1f} to {max(gaps[1]):+.1f} if a quarter of the items "
            "is unknown. Certainty has the factor (n + 1)/(n + 2) for n examples, so that no label of a catalogue "
            f"with fewer than 98 is above 0.99; of those that are, at most {wrong:.1f}% are wrong in any catalogue. "
            f"Without this factor, {100 - share(high):.1f}% of the labels above 0.99 are wrong over all, and "
            f"{most:.1f}% in the worst catalogue ({where})."
        ),
        limits=(
            "A batch errs as a whole: if two classes are confused, all labels of one of them are wrong together. In "
            "the worst catalogue the wrong labels come from few batches. Shares of fewer than "
            f"{FEWEST} labels are left out."
        ),
        made="The docstring of `studies/reliability.py` says how catalogues and batches are drawn.",
        commands=["python studies/reliability.py DATA", "python studies/reliability.py --render"],
        rows=rows,
    )


if __name__ == "__main__":
    measure_or_render(__doc__, BANKS, measure, page)
