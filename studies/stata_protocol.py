"""Catalogues of names under StatA's protocol: a bank of sentences, and one vector per class, that of its name.

    python studies/stata_protocol.py DATA --tune
    python studies/stata_protocol.py DATA --group tuning [--only LABEL ...] [--again]
    python studies/stata_protocol.py DATA --group confirmation
    python studies/stata_protocol.py --render

DATA is a folder that holds the banks. A name is the name of the class as the data set has it, with spaces for
underscores, embedded by the backbone `minilm`, which made the vectors of the sentences.

**Protocol** (Zanella et al., CVPR 2025). The number of classes of a batch is drawn from a range: 1-4, 2-10 and 5-25 for
batches of 64; 5-25, 25-50, 50-100 and all for batches of 1,000. A range ends at the number of classes. For batches of
1,000 it begins where any classes have that many sentences: at 7, 9 and 11 instead of 5. In a stream, each class spreads
its sentences over slots in proportions drawn from a Dirichlet distribution, and consecutive batches of 64 are cut from
it. The concentrations, 0.1 and 0.01, and 64 were chosen here. Each batch is labelled alone.

**Settings.** `published` are the defaults of a method. `tuned` is the temperature with the highest mean accuracy over
all cells on clinc150, with tasks of another seed (`--tune`): sentences and names have other cosines than images and
texts. Methods are told neither how many classes occur nor which.

Batches of 64: 60 tasks per cell; batches of 1,000: 6. EM-Dirichlet gets every fifth of these, and differences are over
the tasks that both methods have. One thread. What is kept is not measured again without `--again`.
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

import handful
from handful import FeatureBank, fewshot
from handful.extraction.backbones import load_backbone
from handful.fewshot import Draw, FixedSupport, TaskBatch, TaskSpec, UniformOverPool
from handful.fewshot.reports.summary import Estimate
from handful.fewshot.reports.tables import markdown_table
from handful.fewshot.tasks.rules import Picks, generator, round_to_sum, uniforms
from pages import Page, dots, keep, kept

RESULTS = Path(__file__).parent / "results" / "stata_protocol"
GROUPS = {"tuning": ("clinc150-minilm",), "confirmation": ("banking77-minilm", "hwu64-minilm")}
TEST_SEED, TUNING_SEED = 0, 1
# Tasks per cell by items per batch: to compare methods, and to choose a temperature.
TASKS, TUNING_TASKS = {64: 60, 1000: 6}, {64: 6, 1000: 1}
# Slow methods solve every so many of the tasks, and of those to choose a temperature.
SLOW_STEP, SLOW_TUNING_STEP = 5, 3
CHUNK = 10  # tasks in memory at once
NAMES_ALONE = "names alone"

Ints = np.ndarray[Any, np.dtype[np.int64]]
Solve = Callable[[TaskBatch], Tensor]
Kept = dict[str, dict[str, Any]]


# Streams of random numbers that no rule of the package uses.
RANGE_STREAM, ARRIVAL_STREAM = 7, 8


@dataclass(frozen=True)
class RangeOverPool(UniformOverPool):
    """Rows as in `UniformOverPool`, of a number of classes that is drawn for each task from `least` … `k_eff`."""

    least: int = 1

    def pick(self, free: Ints, n_query: int, seed: int, indices: Ints) -> Picks:
        """Pick queries among the `free` rows of some of the classes."""
        uniform = uniforms(seed, indices, RANGE_STREAM, 1 + self.k_eff)
        count = self.least + (uniform[:, :1] * (self.k_eff - self.least + 1)).astype(np.int64)
        rank = uniform[:, 1:].argsort(-1).argsort(-1)
        return super().pick(np.where(rank < count, free, 0), n_query, seed, indices)


def arrivals(labels: Ints, concentration: float, size: int, seed: int, indices: Sequence[int]) -> Ints:
    """Rows of batches in the order in which items arrive; task i is the i-th batch.

    The order has one slot per class. Each class spreads its rows over the slots in proportions drawn from a Dirichlet
    distribution, and in a slot the classes follow each other in random order. Rows that do not fill a batch are left
    out; then another order of the same rows begins.
    """
    rounds, batches = np.divmod(np.asarray(indices), len(labels) // size)
    orders = {number: _order(labels, concentration, seed, number) for number in set(rounds.tolist())}
    pairs = zip(rounds.tolist(), (batches * size).tolist(), strict=True)
    return np.stack([orders[number][first : first + size] for number, first in pairs])


def _order(labels: Ints, concentration: float, seed: int, number: int) -> Ints:
    n_classes, rng = int(labels.max()) + 1, generator(seed, number, ARRIVAL_STREAM)
    turns = rng.random((n_classes, n_classes))  # [slot, class]
    keys = []
    for k in range(n_classes):
        of_class = np.flatnonzero(labels == k)
        counts = round_to_sum(rng.dirichlet(np.full(n_classes, concentration)), len(of_class))
        slots = np.repeat(np.arange(n_classes), counts)
        keys.append(np.stack([slots, turns[slots, k], of_class[rng.permutation(len(of_class))]]))
    slots, turn, rows = np.concatenate(keys, 1)
    order: Ints = rows[np.lexsort((turn, slots))].astype(np.int64)
    return order


@dataclass(frozen=True)
class Setting:
    """A cell of the protocol: items per batch, and the range of the number of classes or the stream they come from."""

    name: str
    size: int
    least: int = 0
    most: int = 0
    concentration: float | None = None

    def draw(self, labels: Ints, seed: int, indices: Sequence[int]) -> Draw:
        """Draw tasks whose support is a bank with one row per class."""
        names = np.arange(int(labels.max()) + 1)
        if self.concentration is None:
            spec = TaskSpec(FixedSupport.whole(names), self.rule(labels), self.size)
            return fewshot.draw(labels, spec, seed, indices)
        rows = arrivals(labels, self.concentration, self.size, seed, indices)
        every = names[None]
        return Draw(np.asarray(indices), every, every, every, rows, labels[rows], support_elsewhere=True)

    def rule(self, labels: Ints) -> RangeOverPool:
        """Return the query rule of a range, within what the bank has."""
        sizes = np.sort(np.bincount(labels))
        enough = int((sizes.cumsum() < self.size).sum()) + 1
        most = min(self.most or len(sizes), len(sizes))
        return RangeOverPool(most, max(min(self.least or most, most), enough))


SETTINGS = (
    Setting("1–4", 64, 1, 4),
    Setting("2–10", 64, 2, 10),
    Setting("5–25", 64, 5, 25),
    Setting("5–25 of 1,000", 1000, 5, 25),
    Setting("25–50 of 1,000", 1000, 25, 50),
    Setting("50–100 of 1,000", 1000, 50, 100),
    Setting("all of 1,000", 1000),
    Setting("stream, 0.1", 64, concentration=0.1),
    Setting("stream, 0.01", 64, concentration=0.01),
)


@dataclass(frozen=True)
class Contestant:
    """A labelled function from tasks on unit vectors to the predicted class of each query."""

    label: str
    solve: Solve
    slow: bool = False


def by_method(name: str, **options: Any) -> Solve:
    """Return a method of the package as a function to predictions."""

    def solve(task: TaskBatch) -> Tensor:
        return fewshot.solve(name, task, **options).predictions

    return solve


def by_scores(task: TaskBatch) -> Tensor:
    """Give the cosines of the items and the names to `infer_scores`, one batch after the other."""
    labels = []
    with warnings.catch_warnings(action="ignore"):
        for t in range(task.n_tasks):
            one = task.select(slice(t, t + 1))
            names = one.support[0][one.support_labels[0].argsort()]
            labels.append(handful.infer_scores((one.query[0] @ names.mT).numpy(), kind="similarities").labels)
    return torch.as_tensor(np.stack(labels))


def by_names(task: TaskBatch) -> Tensor:
    """Label each batch with a classifier made of the names."""
    labels = []
    with warnings.catch_warnings(action="ignore"):
        for t in range(task.n_tasks):
            one = task.select(slice(t, t + 1))
            names = one.support[0][one.support_labels[0].argsort()]
            classifier = handful.BatchClassifier.from_names(dict(enumerate(names.numpy())))
            labels.append(classifier.predict(one.query[0].numpy()))
    return torch.as_tensor(np.stack(labels))


# Temperatures that are tried, and whether the method is slow.
TEMPERATURES: Mapping[str, tuple[tuple[float, ...], bool]] = {
    "em_dirichlet": ((30.0, 15.0, 10.0, 7.0), True),
    "transclip": ((200.0, 100.0, 50.0), False),
    "stata": ((100.0, 30.0, 15.0, 10.0), False),
}


def contestants(tuned: Mapping[str, float]) -> list[Contestant]:
    """Return the methods in the order of the table; `tuned` has the temperature of each rival."""
    found = [Contestant(NAMES_ALONE, by_method("nearest_prototype"))]
    for name, (_, slow) in TEMPERATURES.items():
        found.append(Contestant(f"{name}, published", by_method(name), slow))
        if name in tuned:
            found.append(Contestant(f"{name}, tuned", by_method(name, temperature=tuned[name]), slow))
    return [
        *found,
        Contestant("roll_call, a name as an example", by_method("roll_call")),
        Contestant("infer_scores, cosines", by_scores),
        Contestant("from_names", by_names),
    ]


# ---------------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Named:
    """A bank of items and the bank of its classes' names."""

    items: FeatureBank
    names: FeatureBank

    @classmethod
    def read(cls, folder: Path) -> Named:
        """Read the items and embed the names."""
        items = handful.read_bank(folder)
        vectors = load_backbone("minilm").embed([name.replace("_", " ") for name in items.class_names])
        return cls(items, FeatureBank.from_arrays(vectors, np.arange(len(vectors)), items.class_names))

    def right(self, setting: Setting, solve: Solve, seed: int, indices: Sequence[int]) -> list[int]:
        """Count the right labels of each task."""
        found: list[int] = []
        for first in range(0, len(indices), CHUNK):
            drawn = setting.draw(self.items.labels, seed, indices[first : first + CHUNK])
            task, truth = fewshot.gather(self.items, drawn, support_bank=self.names)
            found += (solve(fewshot.transform("l2", task)) == truth).sum(-1).tolist()
        return found


def addresses(setting: Setting, *, slow: bool, tuning: bool = False) -> list[int]:
    """Return the numbers of the tasks of a cell."""
    tasks, step = (TUNING_TASKS, SLOW_TUNING_STEP) if tuning else (TASKS, SLOW_STEP)
    return list(range(0, tasks[setting.size], step if slow else 1))


def tune(bank: Named) -> dict[str, Any]:
    """Measure every temperature of every rival; the one with the highest mean over the cells is `chosen`."""
    found: dict[str, Any] = {}
    for name, (temperatures, slow) in TEMPERATURES.items():
        means = {}
        for temperature in temperatures:
            solve = by_method(name, temperature=temperature)
            cells = []
            for setting in SETTINGS:
                indices = addresses(setting, slow=slow, tuning=True)
                right = bank.right(setting, solve, TUNING_SEED, indices)
                cells.append(100 * float(np.mean(right)) / setting.size)
            means[temperature] = round(float(np.mean(cells)), 2)
            print(name, temperature, means[temperature], [round(cell, 1) for cell in cells], flush=True)
        found[name] = {"chosen": max(means, key=lambda temperature: means[temperature]), "means": means}
    return found


def measure(folder: Path, file: Path, wanted: Sequence[Contestant], *, again: bool) -> None:
    """Measure what is not kept yet, and keep it."""
    bank = Named.read(folder)
    found: dict[str, Kept] = kept(file.parent, [file.stem]).get(file.stem, {})
    for setting in SETTINGS:
        cell = found.setdefault(setting.name, {})
        for contestant in wanted:
            if contestant.label in cell and not again:
                continue
            indices, began = addresses(setting, slow=contestant.slow), time.process_time()
            right = bank.right(setting, contestant.solve, TEST_SEED, indices)
            seconds = (time.process_time() - began) / len(indices)
            cell[contestant.label] = {"tasks": indices, "right": right, "seconds": round(seconds, 4)}
            keep(file, found)
            print(folder.name, setting.name, contestant.label, f"{np.mean(right) / setting.size:.1%}", flush=True)


# ---------------------------------------------------------------------------------------------------------------------


def accuracy(row: Mapping[str, Any], size: int) -> Estimate:
    """Percent of the items with the right label, over the tasks."""
    return Estimate.of(100 * np.array(row["right"]) / size)


def difference(one: Mapping[str, Any], other: Mapping[str, Any], size: int) -> Estimate:
    """`one` minus `other` in points, over the tasks that both have."""
    left, right = (dict(zip(row["tasks"], row["right"], strict=True)) for row in (one, other))
    both = [task for task in left if task in right]
    return Estimate.of(100 * np.array([left[task] - right[task] for task in both]) / size)


def means(banks: Mapping[str, Mapping[str, Kept]]) -> str:
    """Render the accuracy of every method in every cell, as means over banks."""
    lines = []
    for label in dict.fromkeys(label for of in banks.values() for cell in of.values() for label in cell):
        found = [
            [accuracy(of[s.name][label], s.size).mean for of in banks.values() if label in of.get(s.name, {})]
            for s in SETTINGS
        ]
        cells = [float(np.mean(values)) if values else np.nan for values in found]
        lines.append([label, *(f"{value:.1f}" for value in (*cells, float(np.mean(cells))))])
    return markdown_table(["method", *(setting.name for setting in SETTINGS), "mean"], lines)


def gains(banks: Mapping[str, Mapping[str, Kept]]) -> dict[str, list[float]]:
    """Points of every method over the names alone, cell by cell."""
    found: dict[str, list[float]] = {}
    for of in banks.values():
        for setting in SETTINGS:
            cell = of.get(setting.name, {})
            for label in (label for label in cell if label != NAMES_ALONE):
                apart = difference(cell[label], cell[NAMES_ALONE], setting.size)
                found.setdefault(label, []).append(apart.mean)
    return found


def below(banks: Mapping[str, Mapping[str, Kept]], label: str) -> int:
    """Count the cells in which a method is below the names alone by a whole interval."""
    apart = [
        difference(of[s.name][label], of[s.name][NAMES_ALONE], s.size)
        for of in banks.values()
        for s in SETTINGS
        if label in of.get(s.name, {})
    ]
    return sum(one.has_interval and one.mean + one.half_width < 0 for one in apart)


def page() -> Page:
    """Make the page."""
    tuned = json.loads((RESULTS / "tuned.json").read_text(encoding="utf-8"))
    chosen = "; ".join(f"{name} {value['chosen']:g}" for name, value in tuned.items())
    banks = kept(RESULTS, [name for names in GROUPS.values() for name in names])
    confirmed = {name: of for name, of in banks.items() if name in GROUPS["confirmation"]}
    ahead = gains(confirmed)
    published = json.loads((RESULTS / "published.json").read_text(encoding="utf-8"))
    return Page(
        name="stata_protocol",
        title="Names, under StatA's protocol",
        question=(
            "The catalogue has one vector per class, that of its name, and no examples. How do methods compare from "
            "one class present to all of them? The number of classes of a batch is drawn from the range at the head of "
            "a column; methods are told neither this number nor the classes. Batches have 64 items, or 1,000 where the "
            "column says so. In a stream, classes come and go with a Dirichlet concentration of 0.1 or 0.01. Percent "
            "of right labels, means over banking77 and hwu64."
        ),
        alt="Points gained over the nearest name, by method: one dot per cell, a mark for the mean",
        figure=lambda: dots(
            {label: {"gain": values} for label, values in ahead.items()}, "points gained over the names alone", at=0
        ),
        table=means(confirmed),
        shows=(
            f"`from_names` gains {np.mean(ahead['from_names']):+.1f} points over the names alone on average, and "
            f"is below them by an interval in {below(confirmed, 'from_names')} of {len(ahead['from_names'])} cells. "
            "Methods that expect every class lose where few occur; a name treated as an example loses where many do."
        ),
        limits=(
            "Everything was chosen on clinc150, which is only in the file. *Published* are the settings of the papers, "
            f"*tuned* the temperature that was best on a few other tasks of clinc150 ({chosen}). `em_dirichlet` has a "
            "fifth of the tasks. These are sentences, and the papers are about images. "
            f"The published numbers have a file of their own and cannot be compared with these: "
            f"{published['source']} {published['units']}"
        ),
        made=(
            f"{TASKS[64]} tasks per cell, {TASKS[1000]} for batches of 1,000. Ranges end where a bank does: "
            f"{' '.join(LIMITS[name] for name in banks)} The docstring of `studies/stata_protocol.py` says how batches "
            "are drawn."
        ),
        commands=[
            "python studies/stata_protocol.py DATA --tune",
            "python studies/stata_protocol.py DATA --group tuning",
            "python studies/stata_protocol.py DATA --group confirmation",
            "python studies/stata_protocol.py --render",
        ],
        rows=[
            {
                "bank": name,
                "classes": setting.name,
                "method": label,
                "tasks": len(row["tasks"]),
                "accuracy": _pair(accuracy(row, setting.size)),
                "gain": _pair(difference(row, kept[setting.name][NAMES_ALONE], setting.size)),
                "seconds": row["seconds"],
            }
            for name, kept in banks.items()
            for setting in SETTINGS
            for label, row in kept.get(setting.name, {}).items()
        ],
        more={
            "published": [
                {"method": name, **dict(zip(published["columns"], row, strict=True))}
                for name, row in published["rows"].items()
            ]
        },
    )


def _pair(one: Estimate) -> list[float]:
    return [one.mean, one.half_width]


LIMITS = {
    "clinc150-minilm": "clinc150 has 150 classes; 7–25 instead of 5–25 of 1,000, as five classes have 750 sentences.",
    "banking77-minilm": "banking77 has 77 classes; 9–25 instead of 5–25 of 1,000, and 50–77 instead of 50–100.",
    "hwu64-minilm": "hwu64 has 64 classes; 11–25 instead of 5–25 of 1,000, and 50–64 instead of 50–100.",
}


def main() -> None:
    """Choose temperatures, measure a group, or write the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path, nargs="?", help="folder that holds the banks")
    parser.add_argument("--tune", action="store_true", help="choose the temperatures of the rivals")
    parser.add_argument("--group", choices=list(GROUPS))
    parser.add_argument("--only", nargs="+", metavar="LABEL", help="some of the methods")
    parser.add_argument("--again", action="store_true", help="measure again what is there")
    parser.add_argument("--render", action="store_true", help="write the page from what was kept")
    given = parser.parse_args()
    torch.set_num_threads(1)
    file = RESULTS / "tuned.json"
    if given.tune:
        found = tune(Named.read(given.data / GROUPS["tuning"][0]))
        file.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    if given.group:
        chosen = json.loads(file.read_text(encoding="utf-8"))
        wanted = contestants({name: value["chosen"] for name, value in chosen.items()})
        wanted = [one for one in wanted if not given.only or one.label in given.only]
        for name in GROUPS[given.group]:
            measure(given.data / name, RESULTS / f"{name}.json", wanted, again=given.again)
    if given.render:
        page().write()


if __name__ == "__main__":
    main()
