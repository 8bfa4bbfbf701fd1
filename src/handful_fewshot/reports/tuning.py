"""Tuning as published: every point of a method's grid on validation classes, the best one, and a plan to test it.

The paper tunes its competitors on the validation classes of each data set, with 5-way 5-shot tasks of 75 queries, after
Veilleux et al. (NeurIPS 2021), whose queries are spread over the five classes by a Dirichlet distribution. All classes
of such a task occur in its query, so the target setting, in which few of many occur, is not seen. The grids, and the
values that were chosen, are those of the public code.
"""

from __future__ import annotations

import dataclasses
import json
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeAlias

from handful.machine.outputs import refuse_overwriting, written_whole
from handful_fewshot.benchmark.journal import Journal, banks_at
from handful_fewshot.benchmark.paper import TRANSFORMS, public_options
from handful_fewshot.benchmark.plan import Banks, Cell, Plan, grid, is_place, load_method, named_bank, task_spec
from handful_fewshot.errors import PlanError
from handful_fewshot.methods import METHODS, no_method
from handful_fewshot.methods.method import PUBLISHED
from handful_fewshot.reports.summary import Result, common_means, footnotes, paired_difference, results, verdict
from handful_fewshot.reports.tables import markdown_table
from handful_fewshot.transforms import method_at

Point: TypeAlias = Mapping[str, Any]

# Splits that options are chosen on, and tested on afterwards.
VALIDATION = "validation"
TEST = "test"
# Keys of a plan for the tasks of the tuning. The seed is neither that of the paper's plans nor a plan's default.
TASKS: Mapping[str, Any] = MappingProxyType(
    {
        **{"split": VALIDATION, "shots": 5, "n_classes": 5, "k_eff": 5, "query": "dirichlet", "n_query": 75},
        **{"seed": 1, "tasks": 1000},
    }
)
HEAD = ("bank", "method", "published", "accuracy, %", "found", "accuracy, %", "found − published", "")
PLAN_FILE = "tuned.toml"


def _points(name: str, *values: float) -> tuple[Point, ...]:
    return tuple({name: value} for value in values)


# α-TIM was swept with equal orders, although the orders behind the tables differ.
GRIDS: Mapping[str, tuple[Point, ...]] = MappingProxyType(
    {
        "alpha_tim": tuple(
            {"tsallis_alpha_marginal": k / 2, "tsallis_alpha_conditional": k / 2} for k in range(10, 20)
        ),
        "bd_cspn": _points("sharpness", 5.0, 8.0, 10.0, 15.0, 20.0, 30.0, 50.0, 70.0, 100.0, 120.0),
        "ici": _points("n_components", *range(2, 12)),
        "laplacian_shot": _points("smoothness", 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0, 1.1, 1.2),
        "pt_map": _points("step_size", 0.002, 0.005, 0.008, 0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.4),
        "tim": _points("marginal_weight", 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5),
    }
)


def tuning_plan(banks: Banks, methods: Sequence[str], points: Sequence[Point] = (), **keys: Any) -> Plan:
    """Make the cells of a tuning: each method on each bank with the options of each point of its grid.

    Banks have the splits `validation` and `test`, which must have no class in common. What is not tuned, transform and
    other options, is as in the plans of the paper. `points` are the grid of a method that has none in `GRIDS`, or
    replace it; the published values are added to every grid. `keys` are keys of a plan that differ from `TASKS`, such
    as `tasks=200` or `query="balanced"`, and `scale`.
    """
    entry = {**TASKS, **keys}
    for bank in banks:
        _refuse_without_splits(banks, bank, entry["split"])
    cells: list[Cell] = []
    for bank in banks:
        for method in (load_method(name) if is_place(name) else name for name in methods):
            if method not in METHODS:
                raise PlanError(str(no_method(method)))
            wanted = [*(points or GRIDS.get(method, ()))]
            if not wanted:
                raise PlanError(
                    f"{method} has no published grid; give the values of its options, or choose from {', '.join(GRIDS)}"
                )
            fixed = public_options(method, bank, task_spec(entry, banks))
            published = published_point(method, fixed, list(wanted[0]))
            wanted += [published] if published not in wanted else []
            of_method = {"bank": bank, "method": method, "options": [{**fixed, **point} for point in wanted]}
            cells += grid([{"scale": TRANSFORMS.get(method, PUBLISHED), **entry, **of_method}], banks)
    return tuple(cells)


def published_point(method: str, public: Point, names: Sequence[str]) -> dict[str, Any]:
    """Values of these options behind the paper's tables: those of the public configurations, else the defaults."""
    defaults = dataclasses.asdict(METHODS[method].make_options()) if method in METHODS else {}
    known = {**defaults, **public}
    if unknown := [name for name in names if name not in known]:
        METHODS[method].make_options(**dict.fromkeys(unknown))  # raises an error that names the options there are
    return {name: known[name] for name in names}


def _refuse_without_splits(banks: Banks, name: str, validation: str) -> None:
    splits = named_bank(banks, name).splits
    if absent := [split for split in (validation, TEST) if split not in splits]:
        raise PlanError(
            f"the bank {name!r} has no split {' and no split '.join(map(repr, absent))}: options are chosen on some "
            f"classes and tested on others; its splits are {', '.join(splits) or 'none'}. Give it some "
            "with dataclasses.replace(bank, splits={...}), and save it"
        )
    if both := set(splits[validation]) & set(splits[TEST]):
        raise PlanError(
            f"the splits {validation!r} and {TEST!r} of the bank {name!r} have {len(both)} classes in common; options "
            "must be chosen on classes that are not tested"
        )


@dataclass(frozen=True, eq=False)
class Choice:
    """The results of the best and of the published options of a method on a bank, and which options were tuned."""

    found: Result
    published: Result
    names: tuple[str, ...]

    def text(self, result: Result) -> str:
        """Tuned options of one of the two results."""
        return ", ".join(f"{name}={result.cell.options[name]}" for name in self.names)


def choices(journal: Journal) -> list[Choice]:
    """For each method on each bank, the options with the highest mean accuracy on the tasks that all of them have.

    The run is one of `tuning_plan`. Of options that tie, the published ones are
    chosen, then the first of the grid.
    """
    grids: dict[tuple[str, str], list[Result]] = {}
    for result in results(journal):
        grids.setdefault((result.cell.bank, result.cell.method), []).append(result)
    return [_choice(grid) for grid in grids.values()]


def _choice(grid: Sequence[Result]) -> Choice:
    cell = grid[0].cell
    values = {name: {repr(result.cell.options.get(name)) for result in grid} for name in cell.options}
    names = tuple(name for name, seen in values.items() if len(seen) > 1)
    published = published_point(cell.method, public_options(cell.method, cell.bank, cell.spec), names)

    def tuned(result: Result) -> dict[str, Any]:
        return {name: result.cell.options[name] for name in names}

    means = common_means([result for result in grid if len(result.tasks)], least=1)
    if not means or (beside := next((result for result in grid if tuned(result) == published), None)) is None:
        raise PlanError(f"{cell.method} on {cell.bank} has no tasks yet, or no published options; tune it again")
    solved = [result for result in grid if result.label in means]
    best = max(solved, key=lambda r: (means[r.label], tuned(r) == published))
    return Choice(best, beside, names)


def choices_markdown(chosen: Sequence[Choice]) -> str:
    """Render a table of what was published and what was found, with their difference on the same validation tasks."""
    rows = []
    for choice in chosen:
        found = choice.found
        published = choice.published
        apart = paired_difference(found, published).percent
        gain = ("0", "the same") if found is published else (apart.text(2, "+"), verdict(apart, "better", "worse"))
        accuracies = [result.estimate().percent.text(2) for result in (published, found)]
        both = (choice.text(published), accuracies[0], choice.text(found), accuracies[1])
        rows.append((found.cell.bank, method_at(found.cell.method, found.scale), *both, *gain))
    table = markdown_table(HEAD, rows)
    return "\n\n".join([table, *footnotes(table)]) + "\n"


def tuned_plan(chosen: Sequence[Choice], bank_places: Mapping[str, str]) -> str:
    """Return a plan in TOML that tests the found options, and the published ones beside them, on the test classes."""
    places = "".join(f"{_key(name)} = {_toml(place)}\n" for name, place in bank_places.items())
    blocks = [
        "# Written by `handful bench tune`; run it with `handful bench run`. It has the defaults of a plan for shots,\n"
        "# k_eff, tasks and the rest: add yours to [defaults].\n"
        f"[banks]\n{places}\n[defaults]\nsplit = {_toml(TEST)}\n"
    ]
    for choice in chosen:
        cell = choice.found.cell
        same = choice.found is choice.published
        lines = [f"[[cells]]\nbank = {_toml(cell.bank)}\nmethod = {_toml(cell.method)}\n"]
        lines += [f"scale = {_toml(cell.transform)}\n", "options = [\n"]
        kinds = {
            "found and published" if same else "found": choice.found,
            **({} if same else {"published": choice.published}),
        }
        for kind, result in kinds.items():
            options = ", ".join(f"{_key(k)} = {_toml(v)}" for k, v in result.cell.options.items() if v is not None)
            accuracy = result.estimate().percent
            lines.append(
                f"  {{ {options} }},  # {kind}: {accuracy.text(unit='%')} on {accuracy.n:,} validation tasks\n"
            )
        blocks.append("".join([*lines, "]\n"]))
    return "\n".join([*(f"# {note}" for note in footnotes("".join(blocks))), *blocks])


def write_tuned_plan(journal: Journal, path: str | os.PathLike[str] | None = None) -> Path:
    """Write what a tuning found as a plan, by default into the folder of the run, and return where it is."""
    file = journal.folder / PLAN_FILE if path is None else Path(path)
    if path is not None:
        refuse_overwriting({"run": journal.folder, **banks_at(journal.bank_places)}, {"plan": file})
    with written_whole(file) as place:
        place.write_text(tuned_plan(choices(journal), journal.bank_places), encoding="utf-8")
    return file


def _toml(value: Any) -> str:
    """Return a value as TOML; numbers, truth values and texts are written as in JSON."""
    return json.dumps(value, ensure_ascii=True)


def _key(name: str) -> str:
    return name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else _toml(name)
