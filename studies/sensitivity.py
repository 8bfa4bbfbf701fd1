"""Every number of the engine: what it means, where it comes from, and what changes at half and at twice its value.

    python studies/sensitivity.py DATA [--only presence.STRAYS ...] [--batches 2] [--workers 2]
    python studies/sensitivity.py --render

`NUMBERS` lists all module-level numbers of `handful.engine`; a test compares it with the code. The first command
prints a table and keeps it in `studies/results/sensitivity.json`, the second writes the page from what was kept.

Batches are those of the tuning group of `open_batches.py`, of 75 items: *closed* and *open*, with 30 % unknown items,
of `clinc150-3`, `clinc150-oos` and `esc50-3`, and closed ones of `clinc150` with one example per class;
*shifted*, closed and open, of `clinc150-typos`, `curekart`, `powerplay11` and `lung-10`. *prior*: closed batches, and
the classes present weigh ten times as much as others. *scores*: closed batches by the scores of the head, as if they
came from another model. *means*: those of 50 types of sound and of one example per class, by heads of class means. All
are the same for every row.

Of a chance the odds are changed, of a list of values to try every second one is left out or the middles are added.
Numbers that belong to the fit of a head are changed before it is fitted. What these batches do not use has no figures.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from bank_data import rng_of
from handful.catalogue import Catalogue
from handful.engine import head, left_out, linear, links, model, names, pooling, presence, questions, scores, tilt
from handful.engine import unknown as unknown_items
from handful.engine.head import LinearHead
from handful.engine.model import Context, Reference, label_batch
from handful.engine.scores import in_nats, label_scores, unit_of
from open_batches_data import GROUPS, Cell, Floats, Ints, bank, drawn
from pages import Page, dots, keep

MODULES = (head, left_out, linear, links, model, names, pooling, presence, questions, scores, tilt, unknown_items)
RESULTS = Path(__file__).parent / "results" / "sensitivity.json"
HOME, ELSEWHERE = (
    ("clinc150-3", "clinc150-oos", "esc50-3"),
    ("clinc150-typos", "curekart", "powerplay11", "lung-10"),
)
OF_MEANS, SHARE, WEIGHT, FACTORS = ("clinc150-1", "esc50-3"), 0.3, 10.0, (0.5, 2.0)
MAIN = {
    "closed": "right, closed",
    "open": "right, open",
    "shifted": "right, shifted",
    "known rejected": "known rejected, closed",
    "unknown rejected": "unknown rejected, open",
}
FIGURES = MAIN | {"prior": "right, prior", "scores": "right, scores", "means": "right, means"}
# A number that changes no figure by more than this many points is flat.
FLAT = 2.0


class Number(NamedTuple):
    """A number of the engine.

    `origin` is *tuned* on the tuning group, *measured* there, a *convention*, a limit of *work* or of *rounding*, or a
    *code*. `kind` is a "chance", or of the "fit" of a catalogue, or both; "unused" if only names, siblings, questions,
    labels of a person or very large catalogues and batches use it.
    """

    meaning: str
    origin: str
    kind: str = ""


NUMBERS = {
    "head.INVERSE_RIDGE": Number("inverse ridge of the head, for rows of unit length", "tuned", "fit"),
    "head.USUAL_TEMPERATURE": Number(
        "temperature if nothing can be left out", "measured: 0.35 to 0.43 at one shot on three banks", "fit"
    ),
    "head.RIVALS": Number("classes an example is compared with if there are very many", "work", "unused"),
    "head.NEAR_SLOPE": Number("slope from which training against near classes starts", "tuned", "unused"),
    "head.FULL_WORK": Number("work up to which an example is compared with all classes", "work", "unused"),
    "head.FOLDED_WORK": Number("work up to which all folds are left out", "work", "unused"),
    "head.MOST_NUMBERS": Number("numbers of the examples up to which a head is trained", "work", "unused"),
    "left_out.FOLDS": Number("folds in which examples are left out", "convention", "fit"),
    "left_out.FEWEST_LEFT_OUT": Number("examples that have to be left out to learn from them", "convention", "fit"),
    "left_out.TEMPERATURES": Number("temperatures that are tried", "work", "fit"),
    "linear.TOLERANCE": Number("share of the first gradient at which training stops", "work", "fit"),
    "linear.NATS_OF_MEANS": Number("slope of class means, in nats", "measured: 11 to 16 on three banks", "fit"),
    "linear.SHARE_OF_EXCESS": Number(
        "share of V/s that is taken off a distance from a mean", "measured: 0.5 to 0.75 on three banks", "fit"
    ),
    "linear.SHRINKAGES": Number("shrinkages of the covariance that are tried", "work", "fit"),
    "linear.PULL": Number("examples that an item counts in a moved mean", "tuned"),
    "linear.BELIEVED": Number("share of the gain of a moved mean that is applied", "tuned"),
    "links.LINKS": Number("links that an item keeps", "work"),
    "links.FEW_CLASSES": Number(
        "nats by which two items called none of these share a class more likely", "tuned", "unused"
    ),
    "links.MOST_ANCHORS": Number("items that all others are linked with", "work", "unused"),
    "model.MOST_DECIDING": Number("items of a large batch that decide", "work", "unused"),
    "model.MOST_COUNTED": Number("items of a large batch that are counted", "work", "unused"),
    "model.MOST_AT_A_TIME": Number("items that are labelled at a time", "work", "unused"),
    "model.MOST_KEPT": Number("scores of counted items that are kept for a second look", "work", "unused"),
    "model.MOST_GATHERED": Number("rejected items that are gathered into groups", "work", "unused"),
    "model.RULED_OUT": Number(
        "nats by which a class without a name that a person gave rules out others", "convention", "unused"
    ),
    "model.UNNAMED": Number("nats by which a class without a name is less likely", "tuned", "unused"),
    "model.UNNAMED_ELSEWHERE": Number("the same in a batch from elsewhere", "tuned", "unused"),
    "model.UNNAMED_FIRST": Number("the same when the distance is estimated", "tuned", "unused"),
    "model.LOWEST": Number("exponents are not smaller", "rounding"),
    "names.USUAL_SLOPE": Number("slope from names to examples", "measured: 0.5 on clinc150", "unused"),
    "names.NAME_WEIGHTS": Number("weights of a name that are tried", "work", "unused"),
    "names.USUAL_NAME_WEIGHT": Number("weight of a name if examples cannot tell", "convention", "unused"),
    "pooling.CONCENTRATIONS": Number("concentrations of siblings that are tried", "work", "unused"),
    "pooling.FORGETTING": Number("rates of forgetting that are tried", "work", "unused"),
    "pooling.LEAST_GAIN": Number("nats that siblings have to gain: a Bayes factor of twenty", "convention", "unused"),
    "pooling.FOLLOW": Number(
        "how much closer batches follow siblings than counts with errors suggest", "tuned", "unused"
    ),
    "presence.STRAYS": Number("share of items of classes that are otherwise absent", "tuned", "chance"),
    "presence.SHARED_ERROR": Number("correlation of errors within a class with one example, as odds", "tuned"),
    "presence.EVEN": Number("Dirichlet parameter of even batches", "tuned"),
    "presence.UNEVEN_LOG_ODDS": Number("log-odds of an uneven batch before anything is seen", "tuned"),
    "presence.CHAINS": Number("chains", "work"),
    "presence.SWEEPS": Number("sweeps of a chain", "work"),
    "presence.SOFTNESS": Number("temperature of the relaxation", "tuned"),
    "presence.FREQUENCY": Number("frequency of the noise of a class", "tuned"),
    "questions.MOST_COMPARED": Number("items among which questions are chosen", "work", "unused"),
    "scores.NATS": Number("nats per unit of another model's scores", "tuned"),
    "scores.LOG_FACTOR_SD": Number("deviation of the log of that among models", "tuned", "unused"),
    "tilt.CHANCE": Number("an offset counts beyond this many times what chance gives", "tuned"),
    "tilt.CONCENTRATION": Number("items that prior weights count as", "tuned"),
    "unknown.COMMON": Number("share of the variance of an item that its class has in common", "tuned", "fit chance"),
    "unknown.NOTHING_UNKNOWN": Number("chance that nothing is unknown", "convention", "chance"),
    "unknown.ELSEWHERE": Number("chance that a batch comes from elsewhere", "tuned", "chance"),
    "unknown.OTHER_SHIFT": Number("scale of the shift of a batch from elsewhere", "tuned"),
    "unknown.OTHER_WIDTH": Number("deviation of the log of its width", "tuned"),
    "unknown.NEAR_LEVEL": Number("level of unknown items that look nearly known", "tuned"),
    "unknown.NEAR_CHANCE": Number("chance of a batch with such items", "tuned", "chance"),
    "unknown.MOST_GROUPS": Number("groups that count as evidence at most", "tuned"),
    "unknown.REJECTED": Number("chance above which an item is rejected", "convention", "chance"),
    "unknown.MOST_KNOWN_REJECTED": Number(
        "share of known items that may be rejected where a share is told", "tuned", "unused"
    ),
    "unknown.SMALLEST": Number("a sum of weights that is divided by is at least this", "rounding", "unused"),
    "unknown.WRONG_LABEL": Number("chance that a label of a person is wrong", "tuned", "unused"),
}
CELLS = {name: GROUPS["tuning"][name] for name in (*HOME, *ELSEWHERE)} | {
    "clinc150-1": Cell(partial(bank, folder="clinc150-minilm", shots=1))
}


class World(NamedTuple):
    """A catalogue's examples, and batches with their true classes, -1 for none."""

    cell: str
    examples: Floats
    labels: Ints
    batches: list[tuple[Floats, Ints]]


class Fitted(NamedTuple):
    """A world, its catalogue, and the same with a head of class means, if that is measured."""

    world: World
    catalogue: Catalogue
    means: Reference | None


def worlds(data: Path, n_batches: int) -> Iterator[World]:
    """Draw catalogues and batches."""
    for name, cell in CELLS.items():
        material, rng = cell.make(data, name, 0), rng_of("sensitivity", name)
        classes, batches = np.unique(material.labels), []
        for share in (0.0, SHARE) if name != "clinc150-1" else (0.0,):
            for number in range(n_batches):
                pool = material.pools[number % len(material.pools)]
                rows = drawn(pool, share, rng)
                codes = np.searchsorted(classes, pool.truth[rows]).clip(max=len(classes) - 1)
                batches.append((pool.points[rows], np.where(classes[codes] == pool.truth[rows], codes, -1)))
        yield World(name, material.examples, material.labels, batches)


def fitted(world: World) -> Fitted:
    """Fit the catalogue of a world."""
    catalogue = Catalogue.of(world.examples, world.labels)
    _ = catalogue.reference.unknown_model
    if world.cell not in OF_MEANS:
        return Fitted(world, catalogue, None)
    points, codes = catalogue.points(world.examples), np.searchsorted(catalogue.classes, world.labels)
    return Fitted(world, catalogue, Reference(LinearHead.of_means(catalogue.means, catalogue.shots, points, codes)))


def right(probabilities: Floats, truth: Ints) -> float:
    """Percent of known items with the right label."""
    known = truth >= 0
    return 100 * float((probabilities[known].argmax(1) == truth[known]).mean())


def figures(one: Fitted) -> Iterator[tuple[str, float]]:
    """Measure every batch of a world."""
    catalogue, elsewhere = one.catalogue, one.world.cell in ELSEWHERE
    for points, truth in ((catalogue.points(rows), truth) for rows, truth in one.world.batches):
        answer, known = label_batch(points, catalogue.reference), truth >= 0
        kind = "closed" if known.all() else "open"
        yield "shifted" if elsewhere else kind, right(answer.probabilities, truth)
        if kind == "open":
            yield "unknown rejected", 100 * float(answer.rejected[~known].mean())
            continue
        yield "known rejected", 100 * float(answer.rejected.mean())
        if elsewhere:
            continue
        weights = np.where(np.isin(np.arange(catalogue.n_classes), truth), WEIGHT, 1.0)
        context = Context(np.log(weights / weights.sum()), tilt.CONCENTRATION)
        yield "prior", right(label_batch(points, catalogue.reference, context).probabilities, truth)
        scored = catalogue.head.scores(points)
        yield "scores", right(label_scores(in_nats(scored, unit_of(scored))).probabilities, truth)
        if one.means is not None:
            yield "means", right(label_batch(points, one.means).probabilities, truth)


def means_of(all_fitted: Sequence[Fitted]) -> dict[str, float]:
    """Mean of each figure over the batches."""
    rows = [row for one in all_fitted for row in figures(one)]
    return {name: float(np.mean([value for kind, value in rows if kind == name])) for name in FIGURES}


def other_value(value: Any, factor: float, kind: str) -> Any:
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
    if "chance" in kind:
        return value * factor / (1 - value + value * factor)
    return max(1, round(value * factor)) if isinstance(value, int) else value * factor


@contextmanager
def changed(number: str, factor: float) -> Iterator[None]:
    """Change a number of the engine in every module that has imported it."""
    home, name = number.split(".")
    usual = getattr(importlib.import_module(f"handful.engine.{home}"), name)
    value = other_value(usual, factor, NUMBERS[number].kind)
    modules = [module for module in MODULES if getattr(module, name, None) is usual]
    try:
        for module in modules:
            setattr(module, name, value)
        unknown_items._grid.cache_clear()
        yield
    finally:
        for module in modules:
            setattr(module, name, usual)
        unknown_items._grid.cache_clear()


_SHARED: list[Fitted] = []  # what worker processes inherit


def change(task: tuple[str, float]) -> tuple[str, float, dict[str, float]]:
    """Return the figures with one number changed."""
    number, factor = task
    with changed(number, factor):
        again = [fitted(one.world) for one in _SHARED] if "fit" in NUMBERS[number].kind else _SHARED
        return number, factor, means_of(again)


def measure(data: Path, only: Sequence[str], n_batches: int, workers: int) -> dict[str, Any]:
    """Return what each number changes, and the figures of the engine as it is."""
    _SHARED[:] = [fitted(world) for world in worlds(data, n_batches)]
    found: dict[str, Any] = {"as it is": means_of(_SHARED)}
    print(json.dumps(found), flush=True)
    tasks = [(number, factor) for number in only for factor in FACTORS if NUMBERS[number].kind != "unused"]
    with get_context("fork").Pool(workers, partial(os.nice, 10)) as pool:
        for number, factor, now in pool.imap_unordered(change, tasks):
            row = {name: round(now[name] - found["as it is"][name], 2) for name in FIGURES}
            found.setdefault(number, {})[str(factor)] = row
            print(number, factor, json.dumps(row), flush=True)
    return found


def largest(changes: Mapping[str, Mapping[str, float]], names: Iterable[str] = FIGURES) -> float:
    """Return the largest change of some figures."""
    return max(abs(row[name]) for row in changes.values() for name in names)


def value_of(number: str) -> str:
    """Return the value as text."""
    home, name = number.split(".")
    value = getattr(importlib.import_module(f"handful.engine.{home}"), name)
    if isinstance(value, tuple | np.ndarray):
        return f"{len(value)} from {min(value):g} to {max(value):g}"
    return f"{value:g}"


def table(found: Mapping[str, Any], numbers: Sequence[str], columns: Sequence[str], names: Sequence[str]) -> str:
    """Return a table: what is said about each number, and changes at half and at twice its value."""
    titles = ["number", *columns, *(FIGURES[name] for name in names)]
    usual = ["as it is", *[""] * len(columns), *(f"{found['as it is'][name]:.1f}" for name in names)]
    rows = [titles, ["-"] * len(titles), usual]
    for number in numbers:
        about = {"value": value_of(number), **NUMBERS[number]._asdict()}
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
    of_labels = max(measured, key=lambda number: largest(found[number], ("closed", "open", "shifted")))
    most = largest(found[of_labels], ("closed", "open", "shifted"))
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
            f"The engine has {len(NUMBERS)} module-level numbers, limits of its work included. {len(measured)} of "
            f"them can change these batches, and {len(moving)} do so by more than two points. Labels change most with "
            f"`{of_labels}`, by {most:.1f} points."
        ),
        limits=(
            f"The other {len(NUMBERS) - len(measured)} numbers act on names, siblings, questions, labels of a person "
            "or very large catalogues and batches alone. One number is changed at a time, on data that the method was "
            "tuned on, with two batches of each kind: a point is six items of closed batches. The file has the origin "
            "of every number, and what changes with a prior, with scores and with class means."
        ),
        made="The docstring of `studies/sensitivity.py` lists data and batches.",
        commands=["python studies/sensitivity.py DATA", "python studies/sensitivity.py --render"],
        rows=[
            {"number": number, "value": value_of(number), "meaning": about.meaning, "origin": about.origin}
            | {
                f"{name} at {factor:g}": found.get(number, {}).get(str(factor), {}).get(name, "")
                for name in FIGURES
                for factor in FACTORS
            }
            for number, about in NUMBERS.items()
        ],
    )


def main() -> None:
    """Measure and print a table, or write the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path, nargs="?", help="folder that holds the data")
    parser.add_argument("--batches", type=int, default=2, help="batches of each kind per catalogue")
    parser.add_argument("--workers", type=int, default=2, help="processes, which give way to others")
    parser.add_argument("--only", nargs="+", choices=list(NUMBERS), default=list(NUMBERS))
    parser.add_argument("--render", action="store_true", help="write the page from what was kept")
    asked = parser.parse_args()
    if asked.data:
        found = measure(asked.data, asked.only, asked.batches, asked.workers)
        found = (json.loads(RESULTS.read_text(encoding="utf-8")) if RESULTS.is_file() else {}) | found
        keep(RESULTS, {name: found[name] for name in ("as it is", *NUMBERS) if name in found})
        print(table(found, list(NUMBERS), ["value", "meaning", "origin"], list(FIGURES)))
    if asked.render or not asked.data:
        page().write()


if __name__ == "__main__":
    main()
