"""Accuracy and CPU time of every method on real feature banks: 5 shots, 75 queries from at most 5 of all K classes.

    python studies/methods_table.py BANK...      run what is missing, write docs/measured/methods.md
    python studies/methods_table.py --render     write the page from the cells that are there

Every method sees the same tasks, at its defaults, and is printed with the scale of its features. Methods whose answer
depends on the scale have two rows: at the published scale, and at the found one.

A cell is a row on one bank: 1,000 tasks where one takes less than 0.02 s of CPU time, the first 200 of them where it
takes less than 0.2 s, else the first 20; or as many as `--budget-minutes` of CPU time allow, but at least two.
`--cpu-minutes` bounds the whole run: the cells that are left share what is left of it, from the quickest to the
slowest. Each cell is stored when it is finished. A stored cell is not run again, unless its budget stopped it and the
budget is larger now, or more tasks are wanted now.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import torch
from scipy.special import stdtrit
from torch import Tensor

import handful
import handful_fewshot as fewshot
from bank_data import Floats
from handful.extraction.encoders import load_encoder
from handful_fewshot.methods.method import FITS_FEW, FOUND_TRANSFORM
from handful_fewshot.reports.summary import FEW_MARK, FEW_TASKS, TaskMean, footnotes
from handful_fewshot.reports.tables import markdown_table
from handful_fewshot.task import TaskBatch
from handful_fewshot.transforms import about_the_classes, found_factors, method_at, parameters_of, scale_name
from pages import Page, dots, keep

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "studies" / "results" / "methods_table.json"

SPEC = fewshot.TaskSpec(fewshot.ShotsPerClass(5), fewshot.UniformOverPool(k_eff=5), n_query=75)
SEED = 0
PROBE = 2  # tasks that tell how long one takes
# Tasks of a method that takes less than so many CPU seconds for each; the first that holds.
TASKS_AT_SPEED = {0.02: 1000, 0.2: 200, np.inf: 20}
FEWEST_TASKS = 5
CHUNK_TASKS = 20  # tasks in memory at once
# What a cell says besides what decides its accuracies.
MEASURED = {
    *("n_tasks", "n_wanted", "accuracy", "half_width", "right", "cpu_seconds_per_task", "budget_minutes"),
    "cpu_minutes",
}
# Methods whose answer does not change if all features are multiplied by a number; a test asks every method.
NEED_NO_SCALE = {
    *("batch_classifier", "baseline_pp", "bd_cspn", "ilpc", "oslo", "em_dirichlet", "transclip", "stata"),
    *("sparse_em", "prototype_threshold", "zero_shot", "names_probe"),
}

Cell = dict[str, Any]


@dataclass(frozen=True)
class Row:
    """A method as the table runs it; `note` explains options that are not the defaults.

    A row that is `named` has tasks with names, on banks whose names can be embedded like their features.
    """

    method: str
    options: Mapping[str, Any] = field(default_factory=dict)
    named_transform: str | None = None
    note: str = ""
    named: bool = False

    @property
    def transform(self) -> str:
        """The method's own transform; unit length if that needs a base mean, which these banks do not have."""
        name = self.named_transform or fewshot.METHODS[self.method].transform
        return "l2" if "base_mean" in parameters_of(name) else name

    @property
    def by_default(self) -> bool:
        """Whether options, features and what a task has are those that the method has by itself."""
        return not self.options and self.named_transform is None and not self.named

    @property
    def title(self) -> str:
        """How the page calls it."""
        return method_at(self.method, scale_name(self.transform), *([self.note] if self.note else []))


PUBLIC = "public code"
NAMES = "names"
STORED = "stored pair"
# Who made the features of a bank whose names can be embedded alike, as its provenance says.
TEXT_ENCODER = "MiniLM"
# From the quickest to the slowest, so that a run that is cut short has most of the table.
AT_THEIR_OWN = [
    Row("nearest_prototype"),
    Row("prototype_threshold"),
    Row("bd_cspn"),
    Row("bd_cspn", {"sharpness": 50.0, "public_code": True}, "raw", PUBLIC),
    Row("prior_em"),
    Row("soft_kmeans"),
    Row("paddle"),
    Row("unem", {}, None, STORED),
    Row("laplacian_shot"),
    Row("pt_map"),
    Row("pt_map", {"step_size": 0.02, "column_mass": 15.0}, None, PUBLIC),
    Row("oslo"),
    Row("transclip"),
    Row("stata"),
    Row("proto_lp"),
    Row("sparse_em"),
    Row("batch_classifier"),
    Row("zero_shot", {}, None, NAMES, named=True),
    Row("names_probe", {}, None, NAMES, named=True),
    Row("em_dirichlet", {}, None, NAMES, named=True),
    Row("em_dirichlet", {"examples": True}, None, f"{NAMES}, with examples", named=True),
    Row("transclip", {}, None, NAMES, named=True),
    Row("transclip", {"examples": True}, None, f"{NAMES}, with examples", named=True),
    Row("stata", {}, None, NAMES, named=True),
    Row("baseline"),
    Row("baseline", {"head": "prototypes"}, "l2", PUBLIC),
    Row("baseline_pp"),
    Row("ostim"),
    Row("eol"),
    Row("em_dirichlet"),
    Row("em_dirichlet", {"examples": True}, None, "with examples"),
    Row("tim_adm"),
    Row("ici"),
    Row("paddle_gd"),
    Row("alpha_tim"),
    Row("tim"),
    Row("ilpc"),
]


def at_both(rows: Sequence[Row]) -> list[Row]:
    """Add the found scale to each method that depends on the scale, and PADDLE's published one if found is its own."""
    both = []
    for row in rows:
        other = FOUND_TRANSFORM if row.transform != FOUND_TRANSFORM else next(iter(FITS_FEW))
        both.append(row)
        if row.method not in NEED_NO_SCALE and row.by_default:
            both.append(Row(row.method, {}, other, row.note))
    return both


ROWS = at_both(AT_THEIR_OWN)


def identity(row: Row, bank: handful.FeatureBank, name: str) -> Cell:
    """Everything that decides the accuracies of a cell but the number of tasks."""
    names = {"names": TEXT_ENCODER} if row.named else {}
    return {
        **names,
        "bank": name,
        "content_hash": bank.content_hash,
        "n_classes": bank.n_classes,
        "dim": bank.dim,
        "method": row.method,
        "transform": row.transform,
        "options": dict(row.options),
        "spec": repr(SPEC),
        "seed": SEED,
    }


def can_be_named(bank: handful.FeatureBank) -> bool:
    """Whether the names of its classes can be embedded by the network of its features."""
    return TEXT_ENCODER in bank.provenance.encoder


@cache
def names_of(bank: handful.FeatureBank) -> Floats:
    """Vectors of the names of its classes, with spaces for underscores and in small letters."""
    return np.asarray(load_encoder("minilm").embed([name.replace("_", " ").lower() for name in bank.class_names]))


def gathered(bank: handful.FeatureBank, indices: range, names: Floats | None = None) -> tuple[TaskBatch, Tensor]:
    """Tasks of a bank with these numbers, and their labels."""
    return fewshot.gather(bank, fewshot.draw(bank.labels, SPEC, SEED, indices), names=names)


@cache
def factor_of(bank: handful.FeatureBank, index: int) -> Tensor:
    """Return the found scale of a task, which takes longer than some methods; all of them see the same tasks."""
    task, _ = gathered(bank, range(index, index + 1))
    return found_factors(about_the_classes(fewshot.transform("l2", task)))


def at_scale(name: str, task: TaskBatch, bank: handful.FeatureBank, indices: range) -> TaskBatch:
    """Transform tasks by name; at the found scale with factors that are kept."""
    if name != FOUND_TRANSFORM:
        return fewshot.transform(name, task)
    factors = torch.cat([factor_of(bank, index) for index in indices])
    return about_the_classes(fewshot.transform("l2", task)).mapped(lambda z: z * factors)


def run_tasks(row: Row, bank: handful.FeatureBank, indices: range) -> tuple[list[int], float]:
    """Labels of each task that are right, and the CPU seconds that `solve` took for all of them."""
    task, truth = gathered(bank, indices, names_of(bank) if row.named else None)
    task = at_scale(row.transform, task, bank, indices)
    start = time.process_time()
    predictions = fewshot.solve(row.method, task, **row.options).predictions
    seconds = time.process_time() - start
    return (predictions == truth).sum(-1).tolist(), seconds


def wanted_tasks(seconds: float) -> int:
    """How many tasks a method should have that takes so many CPU seconds for one."""
    return next(n for limit, n in TASKS_AT_SPEED.items() if seconds < limit)


def run_cell(row: Row, bank: handful.FeatureBank, budget_seconds: float) -> Cell:
    """As many tasks as the method's speed and the budget allow; the number of right labels of each is kept."""
    right, seconds = run_tasks(row, bank, range(PROBE))
    # A further step must fit as well, if it takes as long as those before.
    while (done := len(right)) < (wanted := wanted_tasks(seconds / len(right))):
        step = CHUNK_TASKS if wanted > min(TASKS_AT_SPEED.values()) else 1
        if seconds * (done + step) / done > budget_seconds:
            break
        more, took = run_tasks(row, bank, range(done, min(done + step, wanted)))
        right += more
        seconds += took
    accuracies = [count / SPEC.n_query for count in right]
    return {
        "n_tasks": len(right),
        "n_wanted": wanted,
        "accuracy": float(np.mean(accuracies)),
        "half_width": half_width(accuracies),
        "right": " ".join(map(str, right)),  # one line of the file
        "cpu_seconds_per_task": seconds / len(right),
    }


def half_width(values: Sequence[float]) -> float:
    """`t_{0.975, n-1} s / √n`: Student's interval of 95%, since some cells have few tasks."""
    n = len(values)
    return float(stdtrit(n - 1, 0.975) * np.std(values, ddof=1) / np.sqrt(n))


def load(results: Path) -> list[Cell]:
    """Return the cells that are stored."""
    return json.loads(results.read_text(encoding="utf-8"))["cells"] if results.is_file() else []


def store(results: Path, cell: Cell) -> None:
    """Replace an older cell of the same identity."""
    keep(results, {"cells": [old for old in load(results) if not same(old, cell)] + [cell]})


def same(cell: Cell, other: Cell) -> bool:
    """Whether two cells are of one identity."""
    return {key: cell[key] for key in cell.keys() - MEASURED} == {key: other[key] for key in other.keys() - MEASURED}


def finished(cell: Cell, budget_minutes: float) -> bool:
    """Whether a new run could not add tasks to it."""
    stopped = cell["n_tasks"] < cell["n_wanted"]
    if stopped:
        return bool(cell["budget_minutes"] >= budget_minutes)
    return bool(cell["n_tasks"] >= wanted_tasks(cell["cpu_seconds_per_task"]))


def run(
    paths: Sequence[Path], methods: Sequence[str], budget_minutes: float, results: Path, cpu_minutes: float = np.inf
) -> None:
    """Run the cells that are not stored, bank after bank for each row."""
    banks = {path.name: handful.read_bank(path) for path in paths}
    stored = load(results)
    wanted = [
        (row, name)
        for row in ROWS
        if row.method in methods
        for name, bank in banks.items()
        if can_be_named(bank) or not row.named
    ]
    cells = [(row, name, identity(row, banks[name], name)) for row, name in wanted]
    left = [
        (row, name, known)
        for row, name, known in cells
        if not any(same(known, cell) and finished(cell, budget_minutes) for cell in stored)
    ]
    begun = time.process_time()
    for done, (row, name, known) in enumerate(left):
        share = (60 * cpu_minutes - (time.process_time() - begun)) / (len(left) - done)
        if share <= 0:
            print(f"{cpu_minutes:g} CPU minutes are used up; {len(left) - done} cells are left", flush=True)
            return
        budgets = {"budget_minutes": budget_minutes} | ({"cpu_minutes": cpu_minutes} if cpu_minutes < np.inf else {})
        cell = known | run_cell(row, banks[name], min(60 * budget_minutes, share)) | budgets
        store(results, cell)
        print(f"{row.title:<28} {name:<20} {figures(cell)}", flush=True)


def figures(cell: Cell) -> str:
    """Mean accuracy and interval in percent, of five tasks or more; in brackets tasks and CPU seconds per task."""
    seconds = cell["cpu_seconds_per_task"]
    estimate = TaskMean(cell["accuracy"], cell["half_width"], cell["n_tasks"]).percent
    of_enough = estimate.text() if cell["n_tasks"] >= FEWEST_TASKS else "–"
    return f"{of_enough} ({cell['n_tasks']}; {seconds:{'.2g' if seconds < 99.5 else '.0f'}})"


# ---------------------------------------------------------------------------------------------------------------------


def table(cells: Sequence[Cell]) -> str:
    """Methods down, banks across; methods that were not run on any bank are named below."""
    banks = {cell["bank"]: f"{cell['bank'].partition('-')[0]}, K = {cell['n_classes']}" for cell in cells}
    lines, missing = [], []
    for row in ROWS:
        found = {cell["bank"]: figures(cell) for cell in cells if belongs(cell, row)}
        if found:
            otherwise = "no names" if row.named else "not run"
            lines.append([row.title, *(found.get(bank, otherwise) for bank in banks)])
        else:
            missing.append(row.title)
    text = markdown_table(["method", *banks.values()], lines)
    not_yet = [f"Not yet measured: {', '.join(missing)}."] if missing else []
    return "\n\n".join([text, *not_yet, *footnotes(text)])


def belongs(cell: Cell, row: Row) -> bool:
    """Whether a cell is the row's."""
    same_method = (cell["method"], cell["transform"], cell["options"]) == (row.method, row.transform, dict(row.options))
    return same_method and ("names" in cell) == row.named


def paired(cells: Sequence[Cell], bank: str, first: Row, second: Row) -> TaskMean:
    """Accuracy of the first row minus that of the second, in points, over the tasks of a bank that both have."""
    found = [next((c for c in cells if c["bank"] == bank and belongs(c, row)), {}) for row in (first, second)]
    right = [np.array(cell.get("right", "").split(), dtype=float) for cell in found]
    most = min(map(len, right))
    return TaskMean.of(100 * (right[0][:most] - right[1][:most]) / SPEC.n_query)


def at_one_scale(cells: Sequence[Cell]) -> str:
    """Compare PADDLE with other methods at the found scale, and each method with itself at both; empty if not run."""
    banks = list(dict.fromkeys(cell["bank"] for cell in cells))
    paddle = Row("paddle", {}, FOUND_TRANSFORM)
    prior_em = Row("prior_em", {}, FOUND_TRANSFORM)
    control = Row("sparse_em")
    compared = [
        *((prior_em, paddle), (Row("unem", {}, None, STORED), paddle), (Row("paddle"), paddle)),
        *((paddle, control), (prior_em, control), (Row("batch_classifier"), control)),
    ]
    sentences = []
    for first, second in compared:
        gains = {bank: paired(cells, bank, first, second) for bank in banks}
        said = ", ".join(f"{gain.text(1, '+')} on {bank.partition('-')[0]}" for bank, gain in gains.items() if gain.n)
        if said:
            sentences.append(f"`{first.title}` minus `{second.title}` on the same tasks, in points: {said}.")
    pairs = [(a, b) for a, b in pairwise(ROWS) if (a.method, a.options) == (b.method, b.options)]
    pairs = [(b, a) if b.transform == FOUND_TRANSFORM else (a, b) for a, b in pairs]
    scaled = [gain for found, other in pairs for bank in banks if (gain := paired(cells, bank, found, other)).decides]
    if scaled:
        above = sum(gain.above_zero for gain in scaled)
        below = sum(gain.mean < 0 and not gain.holds_zero for gain in scaled)
        sentences.append(
            f"The found scale is ahead of the other in {above} of {len(scaled)} pairs of a method and a data set that "
            f"were run at both on 30 tasks or more, and behind in {below}."
        )
    return " ".join(sentences)


def page(cells: Sequence[Cell]) -> Page:
    """Make the page."""
    short = sum(cell["n_tasks"] < cell["n_wanted"] for cell in cells)
    enough = [cell for cell in cells if cell["n_tasks"] >= FEWEST_TASKS]
    few = {row.title: any(cell["n_tasks"] < FEW_TASKS for cell in enough if belongs(cell, row)) for row in ROWS}
    found = {
        row.title + FEW_MARK * few[row.title]: [100 * cell["accuracy"] for cell in enough if belongs(cell, row)]
        for row in ROWS
    }
    order = {title: values for title, values in found.items() if len(values) == len({cell["bank"] for cell in cells})}
    return Page(
        name="methods",
        title="All methods on real features",
        question=(
            "How accurate is every method, and how long does it take? Accuracy in percent with a 95% interval "
            "(Student's t, over tasks); in brackets the number of tasks, and the CPU seconds per task on one thread, "
            "without those to find the scale. "
            f"Tasks have 5 shots of each of K classes, and {SPEC.n_query} queries of {SPEC.query.k_eff} classes. "
            "Each name has the scale of the features in brackets: two methods at different scales differ by both. "
            "[Choose a method](../understand/choose_a_method.md) says what to make of it."
        ),
        alt="Accuracy of every method: one dot per data set, a mark for the mean",
        figure=lambda: dots(
            {title: {"accuracy": values} for title, values in order.items()},
            f"percent right ({FEW_MARK} fewer than {FEW_TASKS} tasks on at least one data set)",
        ),
        table=table(cells),
        shows=(
            "Five of many classes occur in these batches. Methods that look for few classes gain over "
            "`nearest_prototype`, except where the published scale does not fit the features: `paddle` and `prior_em` "
            "lose there on cub200. So `unem`, at the found scale, is not shown to be better than `paddle` as a method: "
            "[PADDLE at both scales](scale.md) is measured on other tasks. Methods that expect every class to have its "
            "share fall far below it. Methods that train by gradient take seconds to minutes per task. "
            "**When every method has a good scale**, `prior_em` and `paddle` are nearly level. Both have the price of "
            "the classes that are used, and only `paddle` moves prototypes with the batch; `soft_kmeans` moves them "
            "without the price, and is below `nearest_prototype`. So the price is what pays, and prototypes that move "
            "add little. It pays only at a scale that fits: half squared distances are nats, and where they are large "
            "beside the price, items stay with the nearest prototype and too many classes are used. "
            + at_one_scale(cells)
        ).rstrip(),
        limits=(
            f"A time budget stopped {short} of {len(cells)} cells, and their intervals are wide; accuracy on fewer "
            f"than {FEWEST_TASKS} tasks is not shown, and such methods are not in the figure. No option was tuned on "
            "these banks, but `batch_classifier` and `found_scale` were built on them. Methods that reject "
            "items expect some of no class; here are none. `eol` also expects every class in the query: of 659 "
            "classes it says those that do not occur, and nothing is right, unless its `marginal_weight` is 0."
        ),
        made=(
            "Options and transforms are the defaults, except `cl2n`, which needs base classes: `l2` is used instead. "
            f"Rows called “{PUBLIC}” are the versions in PADDLE's tables, see "
            "[paper to code](../understand/paper_to_code.md); that of `pt_map` is told a column sum of 15 = |Q|/K_eff. "
            f"Rows called “{NAMES}” have tasks with the names of the classes, embedded by the network of the "
            f"sentences; in other rows class means stand for names. The “{STORED}” of `unem` are constants that its "
            "authors learned on mini-ImageNet. All methods see the same tasks, slow ones the first of them."
        ),
        commands=[
            f"python studies/methods_table.py {' '.join(dict.fromkeys(cell['bank'] for cell in cells))}"
            f" --budget-minutes {max(cell['budget_minutes'] for cell in cells):g}"
            + "".join(
                f" --cpu-minutes {most:g}" for most in [max(cell.get("cpu_minutes", 0) for cell in cells)] if most
            ),
        ],
        rows=[
            {
                "method": row.title,
                **{key: cell[key] for key in ("bank", "n_classes", "transform", "n_tasks", "n_wanted")},
                "scale": scale_name(row.transform),
                "options": ", ".join(f"{name}={value!r}" for name, value in row.options.items()),
                "accuracy": [100 * cell["accuracy"], 100 * cell["half_width"]],
                "cpu_seconds_per_task": cell["cpu_seconds_per_task"],
                "budget_minutes": cell["budget_minutes"],
            }
            for row in ROWS
            for cell in cells
            if belongs(cell, row)
        ],
    )


def main() -> None:
    """Run, then write the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("banks", nargs="*", type=Path, help="folders of banks")
    parser.add_argument("--budget-minutes", type=float, default=30.0, help="CPU minutes per cell")
    parser.add_argument("--cpu-minutes", type=float, default=np.inf, help="CPU minutes of the whole run")
    parser.add_argument("--methods", nargs="+", default=list(fewshot.METHODS), choices=list(fewshot.METHODS))
    parser.add_argument("--results", type=Path, default=RESULTS, help="where cells are stored")
    parser.add_argument("--render", action="store_true", help="run nothing, write the page")
    arguments = parser.parse_args()
    if not arguments.render and not arguments.banks:
        parser.error("name at least one bank to run on, or --render to write the page from stored cells")
    torch.set_num_threads(1)
    arguments.results.parent.mkdir(parents=True, exist_ok=True)
    if not arguments.render:
        run(arguments.banks, arguments.methods, arguments.budget_minutes, arguments.results, arguments.cpu_minutes)
    page(load(arguments.results)).write()


if __name__ == "__main__":
    main()
