"""Every number of the model: what it means, where it comes from, and what changes at half and at twice its value.

    python studies/sensitivity.py DATA [--only strays ...] [--cells clinc150-3 ...] [--batches 1] [--workers 2]
    python studies/sensitivity.py --render

The numbers are the fields of `handful.model.settings.Settings`, which say what they mean and where they come from. The
first command prints a table and keeps it in `studies/results/sensitivity.json`, the second writes the page from what
was kept. A run of some of the cells is printed, and not kept.

Batches are those of the tuning group of `open_batches.py`, of 75 items: *closed* and *open*, with 30% unknown items,
of `clinc150-3`, `clinc150-oos` and `esc50-3`; *one example*: closed, of `clinc150` with one example per class;
*shifted*, closed and open, of `clinc150-typos`, `curekart`, `powerplay11` and `lung-10`. *answers*: open batches, of
which a person labels four items and calls three none of these. *told*: open batches, and the share of unknown items is
told. *prior*: closed batches, and the classes present weigh ten times as much as others. *groups*: closed batches in
pooled groups of 15 items. *scores*: closed batches by the scores of the head, as if they came from another model;
*several*: by chances of each class by itself. *names*: by one example per class as if it were the vector of a name.

Closed batches of `clinc150-3` are also labelled in ways that other catalogues and batches are: *named*: one example of
each class is the vector of its name, beside the two others; *near classes*: in training, examples are compared with
near classes only; *class means*: the head is made of class means; *large*: one batch of 1,500 items of 30 classes and
300 unknown ones. All are the same for every row.

Of a chance the odds are changed, of a list of values to try every second one is left out or the middles are added.
Numbers that belong to the fit of a catalogue are changed before it is fitted.
"""

from __future__ import annotations

import argparse
import json
import os
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import fields, replace
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from bank_data import rng_of
from handful.estimators import BatchClassifier
from handful.fitted import FittedModel
from handful.model.labelling import label_scores
from handful.model.scores import in_nats, unit_of
from handful.model.settings import DEFAULT, Settings
from handful.model.several import label_several
from open_batches_data import GROUPS, SIZE, Cell, Floats, Ints, Pool, bank, drawn
from pages import Page, dots, keep

RESULTS = Path(__file__).parent / "results" / "sensitivity.json"
HOME, ELSEWHERE = (
    ("clinc150-3", "clinc150-oos", "esc50-3"),
    ("clinc150-typos", "curekart", "powerplay11", "lung-10"),
)
ONE = "clinc150-1"
SHARE, WEIGHT, FACTORS = 0.3, 10.0, (0.5, 2.0)
# Answers of a person about an open batch, and items of a group.
NONE, CLASSES, GROUP = 3, 4, 15
# Other ways to label batches of one cell, with numbers that bring them about.
WAYS: dict[str, dict[str, Any]] = {
    "named": {},
    "near classes": {"full_work": 0},
    "class means": {"trained_numbers": 0},
}
WAYS_OF = "clinc150-3"
# Numbers that change nothing here, and of which `tests/model/test_settings.py` shows what they act on.
CHECKED = (
    "fewest_for_spread",
    "fewest_left_out",
    "sized_count",
    "pair_least",
    "usual_name_weight",
    "fewest_named",
    "informative_sds",
    "log_factor_sd",
)
# Known classes of a large batch, and items of each class.
LARGE_CLASSES, LARGE_ITEMS, LARGE_UNKNOWN = 30, 50, 30
MAIN = {
    "closed": "right, closed",
    "open": "right, open",
    "shifted": "right, shifted",
    "known rejected": "known rejected, closed",
    "unknown rejected": "unknown rejected, open",
}
FIGURES = MAIN | {
    "one example": "right, one example",
    "named": "right, named",
    "answers": "right, after answers",
    "told": "unknown rejected, share told",
    "prior": "right, prior",
    "groups": "right, pooled groups",
    "scores": "right, scores",
    "several": "right, several",
    "names": "right, names alone",
    "near classes": "right, near classes",
    "class means": "right, class means",
    "large": "right, large batch",
}
MAIN_LABELS = tuple(name for name, title in MAIN.items() if title.startswith("right"))
OF_LABELS = tuple(name for name, title in FIGURES.items() if title.startswith("right"))
MOVED = "largest change of a probability"
BATCHES = "batches of each kind"
Numbers = npt.NDArray[np.floating]
# A number that changes no figure by more than this many points is flat.
FLAT = 2.0
# A smaller change of a probability is rounding, as in `same_answers.py`.
NOTHING = 1e-5


NUMBERS = {field.name: field for field in fields(Settings)}
CELLS = {name: GROUPS["tuning"][name] for name in (*HOME, *ELSEWHERE)} | {
    ONE: Cell(partial(bank, folder="clinc150-minilm", shots=1))
}


class World(NamedTuple):
    """A catalogue's examples, and batches with their true classes, -1 for none; and one of `WAYS` to label them."""

    cell: str
    examples: Floats
    labels: Ints
    batches: list[tuple[Floats, Ints]]
    way: str = ""


def worlds(data: Path, n_batches: int, cells: Sequence[str]) -> Iterator[World]:
    """Draw catalogues and batches."""
    for name in cells:
        material, rng = CELLS[name].make(data, name, 0), rng_of("sensitivity", name)
        classes, batches = np.unique(material.labels), []
        for share in (0.0, SHARE) if name != ONE else (0.0,):
            for number in range(n_batches):
                pool = material.pools[number % len(material.pools)]
                batches.append(batch_of(pool, drawn(pool, share, rng), classes))
        world = World(name, material.examples, material.labels, batches)
        if name != WAYS_OF:
            yield world
            continue
        (pool,) = material.pools
        yield world._replace(batches=[*batches, batch_of(pool, rows_of_large(pool), classes)])
        for way in WAYS:
            yield world._replace(way=way, batches=batches[:n_batches])


def batch_of(pool: Pool, rows: Ints, classes: Ints) -> tuple[Floats, Ints]:
    """Return items and the codes of their classes, -1 for none."""
    codes = np.searchsorted(classes, pool.truth[rows]).clip(max=len(classes) - 1)
    return pool.points[rows], np.where(classes[codes] == pool.truth[rows], codes, -1)


def rows_of_large(pool: Pool) -> Ints:
    """Return the rows of a large batch: every fourth class, so that they are of all kinds, and all unknown ones."""
    known = [rows[:LARGE_ITEMS] for rows in pool.known[:: len(pool.known) // LARGE_CLASSES][:LARGE_CLASSES]]
    rows = np.concatenate([*known, *(rows[:LARGE_UNKNOWN] for rows in pool.unknown)])
    return np.asarray(rng_of("sensitivity", "large").permutation(rows))


def fitted(world: World, settings: Settings = DEFAULT) -> FittedModel:
    """Fit the catalogue of a world."""
    examples, labels = world.examples, world.labels
    if world.way == "named":
        _, first = np.unique(labels, return_index=True)
        others = np.setdiff1d(np.arange(len(labels)), first)
        made = FittedModel.of(examples[others], labels[others]).with_names(examples[first], labels[first])
    else:
        made = FittedModel.of(examples, labels)
    catalogue = replace(made, settings=replace(settings, **WAYS.get(world.way, {})))
    _ = catalogue.reference
    return catalogue


def right(probabilities: Numbers, truth: Ints) -> float:
    """Percent of known items with the right label."""
    known = truth >= 0
    return 100 * float((probabilities[known].argmax(1) == truth[known]).mean())


def figures(world: World, catalogue: FittedModel) -> Iterator[tuple[str, float, Numbers]]:
    """Measure every batch of a world: the name of a figure, its value, and the probabilities behind it."""
    settings = catalogue.settings
    elsewhere = world.cell in ELSEWHERE
    classifier = BatchClassifier()._became(catalogue)
    classifier.n_features_in_ = world.examples.shape[1]
    classes = catalogue.classes.tolist()
    for rows, truth in world.batches:
        found = classifier.infer(rows)
        way = "large" if len(rows) > SIZE else world.way
        if way:
            yield way, right(found.probabilities, truth), found.probabilities
            yield "", 0.0, found.unknown[:, None]
            continue
        known = truth >= 0
        kind = "closed" if known.all() else "open"
        kind = "shifted" if elsewhere else kind
        kind = "one example" if world.cell == ONE else kind
        yield kind, right(found.probabilities, truth), found.probabilities
        if not known.all():
            yield "unknown rejected", 100 * float(found.rejected[~known].mean()), found.unknown[:, None]
            said = np.flatnonzero(~known)[:NONE].tolist()
            given = dict.fromkeys(said) | {int(row): classes[truth[row]] for row in np.flatnonzero(known)[:CLASSES]}
            found = classifier.infer(rows, given=given)
            yield "answers", right(found.probabilities, truth), found.probabilities
            found = classifier.infer(rows, expect_unknown=SHARE)
            yield "told", 100 * float(found.rejected[~known].mean()), found.rejected[:, None] * 1.0
            continue
        yield "known rejected", 100 * float(found.rejected.mean()), found.unknown[:, None]
        if elsewhere:
            continue
        weights = np.where(np.isin(np.arange(catalogue.n_classes), truth), WEIGHT, 1.0)
        found = classifier.infer(rows, prior=weights)
        yield "prior", right(found.probabilities, truth), found.probabilities
        groups = np.arange(len(rows)) // GROUP
        found = classifier.infer(rows, groups=groups, pool=True)
        yield "groups", right(found.probabilities, truth), found.probabilities
        scored = catalogue.head.scores(catalogue.points(rows))
        nats = in_nats(scored, unit_of(scored, settings=settings), settings=settings)
        by_scores = label_scores(nats, settings=settings).probabilities
        yield "scores", right(by_scores, truth), by_scores
        best = nats.max(1)
        by_each = label_several(nats - best[:, None], best, settings=settings).probabilities
        yield "several", right(by_each, truth), by_each
        if world.cell == ONE:
            names = FittedModel.of_names(world.examples, world.labels)
            of_names = BatchClassifier()._became(replace(names, settings=settings))
            of_names.n_features_in_ = world.examples.shape[1]
            found = of_names.infer(rows)
            yield "names", right(found.probabilities, truth), found.probabilities


def measured(worlds: Sequence[World], catalogues: Sequence[FittedModel]) -> tuple[dict[str, float], list[Numbers]]:
    """Mean of each figure over the batches, and all probabilities."""
    rows = [row for world, catalogue in zip(worlds, catalogues, strict=True) for row in figures(world, catalogue)]
    values = {name: [value for kind, value, _ in rows if kind == name] for name in FIGURES}
    means = {name: float(np.mean(some)) if some else 0.0 for name, some in values.items()}
    return means, [probabilities for _, _, probabilities in rows]


def moved(before: Sequence[Numbers], after: Sequence[Numbers]) -> float:
    """Return the largest change of any probability; those that cannot be told count as zero."""
    pairs = zip(before, after, strict=True)
    return max(float(np.abs(np.nan_to_num(a) - np.nan_to_num(b)).max(initial=0)) for a, b in pairs)


def changes_nothing(changes: Mapping[str, Mapping[str, float]]) -> bool:
    """Whether neither half nor twice a number changes any probability or figure but for rounding."""
    return max(row[MOVED] for row in changes.values()) < NOTHING and largest(changes) == 0


def other_value(value: Any, factor: float, unit: str) -> Any:
    """Return half or twice a number, the odds of a chance, or the length of a list.

    Examples
    --------
    >>> other_value(0.5, 2.0, "chance"), other_value(5, 0.5, ""), other_value((1.0, 2.0, 3.0), 0.5, "")
    (0.6666666666666666, 2, (1.0, 3.0))
    """
    if isinstance(value, tuple | np.ndarray):
        some = np.asarray(value, float)
        step = np.arange(0, len(some) - 0.75, 2 if factor < 1 else 0.5)
        changed = np.interp(step, np.arange(len(some)), some)
        return changed if isinstance(value, np.ndarray) else tuple(changed.tolist())
    if unit == "chance":
        return value * factor / (1 - value + value * factor)
    return max(1, round(value * factor)) if isinstance(value, int) else value * factor


def changed(number: str, factor: float) -> Settings:
    """Return the settings with one number changed."""
    value = other_value(getattr(DEFAULT, number), factor, NUMBERS[number].metadata["unit"])
    return replace(DEFAULT, **{number: value})


class _Shared(NamedTuple):
    """What worker processes inherit."""

    worlds: list[World]
    catalogues: list[FittedModel]
    probabilities: list[Numbers]


_SHARED: list[_Shared] = []


def change(task: tuple[str, float]) -> tuple[str, float, dict[str, float], float]:
    """Return the figures with one number changed, and the largest change of a probability."""
    number, factor = task
    settings = changed(number, factor)
    (shared,) = _SHARED
    if NUMBERS[number].metadata["fitted"]:
        catalogues = [fitted(world, settings) for world in shared.worlds]
    else:
        catalogues = [catalogue.with_settings(settings) for catalogue in shared.catalogues]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        means, probabilities = measured(shared.worlds, catalogues)
    return number, factor, means, moved(shared.probabilities, probabilities)


def measure(data: Path, only: Sequence[str], n_batches: int, workers: int, cells: Sequence[str]) -> dict[str, Any]:
    """Return what each number changes, and the figures of the model as it is."""
    some = list(worlds(data, n_batches, cells))
    catalogues = [fitted(world) for world in some]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        usual, probabilities = measured(some, catalogues)
    _SHARED[:] = [_Shared(some, catalogues, probabilities)]
    found: dict[str, Any] = {"as it is": usual, BATCHES: n_batches}
    print(json.dumps(found), flush=True)
    tasks = [(number, factor) for number in only for factor in FACTORS]
    with get_context("fork").Pool(workers, partial(os.nice, 10)) as pool:
        for number, factor, now, most in pool.imap_unordered(change, tasks):
            row = {name: round(now[name] - usual[name], 2) for name in FIGURES} | {MOVED: float(f"{most:.2g}")}
            found.setdefault(number, {})[str(factor)] = row
            print(number, factor, json.dumps(row), flush=True)
    return found


def largest(changes: Mapping[str, Mapping[str, float]], names: Iterable[str] = FIGURES) -> float:
    """Return the largest change of some figures."""
    return max(abs(row[name]) for row in changes.values() for name in names)


def value_of(number: str) -> str:
    """Return the value as text."""
    value = getattr(DEFAULT, number)
    if isinstance(value, tuple | np.ndarray):
        return f"{len(value)} from {min(value):g} to {max(value):g}"
    return f"{value:g}"


def table(found: Mapping[str, Any], numbers: Sequence[str], columns: Sequence[str], names: Sequence[str]) -> str:
    """Return a table: what is said about each number, and changes at half and at twice its value."""
    titles = ["number", *columns, *(FIGURES[name] for name in names)]
    usual = ["as it is", *[""] * len(columns), *(f"{found['as it is'][name]:.1f}" for name in names)]
    rows = [titles, ["-"] * len(titles), usual]
    for number in numbers:
        about = {"value": value_of(number), **NUMBERS[number].metadata}
        changes, cells = found.get(number, {}), [""] * len(names)
        if changes:
            cells = ["/".join(f"{changes[str(factor)][name]:+.1f}" for factor in FACTORS) for name in names]
        rows.append([f"`{number}`", *(about[column] for column in columns), *cells])
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def page() -> Page:
    """Return the page of what was kept."""
    found = json.loads(RESULTS.read_text(encoding="utf-8"))
    measured = [number for number in NUMBERS if number in found]
    moving = [number for number in measured if largest(found[number], MAIN) > FLAT]
    moving.sort(key=lambda number: -largest(found[number], MAIN))
    figure = {
        number: {
            said: [found[number][str(factor)][name] for name in MAIN]
            for said, factor in zip(("half", "twice"), FACTORS, strict=True)
        }
        for number in moving
    }
    of_labels = max(measured, key=lambda number: largest(found[number], OF_LABELS))
    of_main = max(measured, key=lambda number: largest(found[number], MAIN_LABELS))
    unmoved = [number for number in measured if changes_nothing(found[number])]
    acts_on = dict[str, str]()
    for number in unmoved:
        what = NUMBERS[number].metadata["acts_on"]
        acts_on[what] = f"{acts_on[what]}, `{number}`" if what in acts_on else f"`{number}`"
    n_batches = found[BATCHES]
    return Page(
        name="sensitivity",
        title="Sensitivity",
        question=(
            "What changes if a number of the model is halved or doubled? Percent, and changes in points at half/at "
            "twice the value, of numbers that change a figure by more than two points."
        ),
        alt="Changes of five figures in points, for each number that changes one by more than two points",
        figure=lambda: dots(figure, "points", at=0),
        table=table(found, moving, ["value", "meaning"], list(MAIN)),
        shows=(
            f"`Settings` has {len(NUMBERS)} numbers, limits of its work included; {len(measured)} were changed. "
            f"{len(moving)} change a figure of the table by more than two points. Labels of these batches change most "
            f"with `{of_main}`, by {largest(found[of_main], MAIN_LABELS):.1f} points, and labels of any kind with "
            f"`{of_labels}`, by {largest(found[of_labels], OF_LABELS):.1f}. {len(unmoved)} change nothing here. "
            "By the code they act on something else: "
            f"{'; '.join(f'{what} ({names})' for what, names in acts_on.items())}. "
            f"For {', '.join(f'`{number}`' for number in CHECKED)} a test shows that; for the others it was not "
            "measured."
        ),
        limits=(
            f"One number is changed at a time, on data that the method was tuned on, with {n_batches} "
            f"{'batch' if n_batches == 1 else 'batches'} of each kind and catalogue: a point is about "
            f"{round(0.75 * 3 * n_batches)} items of closed batches. The file has the unit and the origin of every "
            "number, and what changes with one example per class, with names beside examples and alone, with answers "
            "of a person, with a prior, with scores, in a large batch, and with heads of very large catalogues; each "
            "of these is one catalogue, or a few. The model changed since: these are figures of the model before."
            + (f" Not measured yet: {', '.join(f'`{name}`' for name in NUMBERS if name not in found)}.")
        ),
        made=(
            "The docstring of `studies/sensitivity.py` lists data and batches. The rows come from four runs with "
            "`--only`; all four have the same figures as it is."
        ),
        commands=["python studies/sensitivity.py DATA", "python studies/sensitivity.py --render"],
        rows=[
            {"number": number, "value": value_of(number)}
            | {part: about.metadata[part] for part in ("meaning", "unit", "origin", "acts_on")}
            | {
                f"{name} at {factor:g}": found.get(number, {}).get(str(factor), {}).get(name, "")
                for name in (*FIGURES, MOVED)
                for factor in FACTORS
            }
            for number, about in NUMBERS.items()
        ],
    )


def main() -> None:
    """Measure and print a table, or write the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path, nargs="?", help="folder that holds the data")
    parser.add_argument("--batches", type=int, default=1, help="batches of each kind per catalogue")
    parser.add_argument("--workers", type=int, default=2, help="processes, which give way to others")
    parser.add_argument("--only", nargs="+", choices=list(NUMBERS), default=list(NUMBERS))
    parser.add_argument(
        "--cells", nargs="+", choices=list(CELLS), default=list(CELLS), help="catalogues; all by default"
    )
    parser.add_argument("--render", action="store_true", help="write the page from what was kept")
    asked = parser.parse_args()
    if asked.data:
        found = measure(asked.data, asked.only, asked.batches, asked.workers, asked.cells)
        print(table(found, asked.only, ["value", "meaning", "origin"], list(FIGURES)))
        if len(asked.only) < len(NUMBERS):
            found = (json.loads(RESULTS.read_text(encoding="utf-8")) if RESULTS.is_file() else {}) | found
        if len(asked.cells) == len(CELLS):
            keep(RESULTS, {name: found[name] for name in ("as it is", BATCHES, *NUMBERS) if name in found})
    if asked.render or not asked.data:
        page().write()


if __name__ == "__main__":
    main()
