"""What a tuning found: the best options of each method on each bank, beside the published ones, and a plan of both."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from handful.errors import PlanError
from handful.fewshot.benchmark.journal import Journal, banks_at
from handful.fewshot.benchmark.paper import public_options
from handful.fewshot.benchmark.tuning import TEST, default_options, published_point
from handful.fewshot.reports.summary import Result, common_means, paired_difference, results, verdict
from handful.fewshot.reports.tables import markdown_table
from handful.machine.outputs import refuse_overwriting, written_whole

HEAD = ("bank", "method", "published", "accuracy, %", "found", "accuracy, %", "found − published", "")
PLAN_FILE = "tuned.toml"


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

    The run is one of `handful.fewshot.benchmark.tuning.tuning_plan`. Of options that tie, the published ones are
    chosen, then the defaults, then the first of the grid.
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
    default = {name: default_options(cell.method).get(name) for name in names}

    def tuned(result: Result) -> dict[str, Any]:
        return {name: result.cell.options[name] for name in names}

    means = common_means([result for result in grid if len(result.tasks)], least=1)
    if not means or (beside := next((result for result in grid if tuned(result) == published), None)) is None:
        raise PlanError(f"{cell.method} on {cell.bank} has no tasks yet, or no published options; tune it again")
    solved = [result for result in grid if result.label in means]
    best = max(solved, key=lambda r: (means[r.label], tuned(r) == published, tuned(r) == default))
    return Choice(best, beside, names)


def choices_markdown(chosen: Sequence[Choice]) -> str:
    """Render a table of what was published and what was found, with their difference on the same validation tasks."""
    rows = []
    for choice in chosen:
        found, published = choice.found, choice.published
        apart = paired_difference(found, published).percent
        gain = ("0", "the same") if found is published else (apart.text(2, "+"), verdict(apart, "better", "worse"))
        accuracies = [result.estimate().percent.text(2) for result in (published, found)]
        both = (choice.text(published), accuracies[0], choice.text(found), accuracies[1])
        rows.append((found.cell.bank, found.cell.method, *both, *gain))
    return markdown_table(HEAD, rows) + "\n"


def tuned_plan(chosen: Sequence[Choice], bank_places: Mapping[str, str]) -> str:
    """Return a plan in TOML that tests the found options, and the published ones beside them, on the test classes."""
    places = "".join(f"{_key(name)} = {_toml(place)}\n" for name, place in bank_places.items())
    blocks = [
        "# Written by `handful bench tune`; run it with `handful bench run`. It has the defaults of a plan for shots,\n"
        "# k_eff, tasks and the rest: add yours to [defaults].\n"
        f"[banks]\n{places}\n[defaults]\nsplit = {_toml(TEST)}\n"
    ]
    for choice in chosen:
        cell, same = choice.found.cell, choice.found is choice.published
        lines = [f"[[cells]]\nbank = {_toml(cell.bank)}\nmethod = {_toml(cell.method)}\n"]
        lines += [f"transform = {_toml(cell.transform)}\n", "options = [\n"]
        kinds = {
            "found and published" if same else "found": choice.found,
            **({} if same else {"published": choice.published}),
        }
        for kind, result in kinds.items():
            options = ", ".join(f"{_key(k)} = {_toml(v)}" for k, v in result.cell.options.items() if v is not None)
            accuracy = result.estimate().percent
            lines.append(
                f"  {{ {options} }},  # {kind}: {accuracy.text(unit=' %')} on {accuracy.n:,} validation tasks\n"
            )
        blocks.append("".join([*lines, "]\n"]))
    return "\n".join(blocks)


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
