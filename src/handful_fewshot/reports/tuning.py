"""Chosen options: of each method with several on the validation classes of a bank, the best; and a plan to test it."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from handful_fewshot.benchmark.journal import Journal
from handful_fewshot.benchmark.paper import TEST, VALIDATION, public_options, published_point
from handful_fewshot.reports.summary import (
    Column,
    Result,
    columns_of,
    common_means,
    footnotes,
    paired_difference,
    results,
    verdict,
)
from handful_fewshot.transforms import method_at

HEAD = ("bank", "method", "published", "accuracy, %", "found", "accuracy, %", "found − published", "")


@dataclass(frozen=True, eq=False)
class Choice:
    """The results of the best options of a method on a bank, and of the published ones if they were run."""

    found: Result
    published: Result | None
    names: tuple[str, ...]

    def text(self, result: Result) -> str:
        """Options of a result that differ between the results of the method."""
        return ", ".join(f"{name}={result.cell.options.get(name)}" for name in self.names)


def choices(journal: Journal) -> list[Choice]:
    """For each method on each list of validation tasks, the options with the highest mean accuracy on common tasks.

    Of options that tie, the published ones are chosen, then the first of the plan.
    """
    found = []
    for column in columns_of(results(journal)):
        for method in dict.fromkeys(result.cell.method for result in column.results):
            grid = [result for result in column.results if result.cell.method == method]
            choice = _choice(column, grid) if column.split == VALIDATION else None
            found += [choice] if choice is not None else []
    return found


def _choice(column: Column, grid: Sequence[Result]) -> Choice | None:
    """Return the best of the results of a method, if they differ in options and have tasks in common."""
    cell = grid[0].cell
    every = dict.fromkeys(name for result in grid for name in result.cell.options)
    names = tuple(name for name in every if len({repr(result.cell.options.get(name)) for result in grid}) > 1)
    solved = [result for result in grid if len(result.tasks)]
    means = common_means(solved, least=1)
    if not names or not means:
        return None
    public = published_point(cell.method, public_options(cell.method, column.bank, column.spec), names)

    def is_public(result: Result) -> bool:
        return all(result.cell.options.get(name) == value for name, value in public.items())

    best = max(solved, key=lambda result: (means[result.label], is_public(result)))
    return Choice(best, next(filter(is_public, solved), None), names)


def choice_rows(chosen: Sequence[Choice]) -> list[tuple[str, ...]]:
    """Return rows under `HEAD`: what was published and what was found, with their difference on the same tasks."""
    rows = list[tuple[str, ...]]()
    for choice in chosen:
        found = choice.found
        published = choice.published
        beside = ("not run", "")
        gain = ("", "")
        if published is not None:
            beside = (choice.text(published), published.estimate().percent.text(2))
            apart = paired_difference(found, published).percent
            gain = ("0", "the same") if found is published else (apart.text(2, "+"), verdict(apart, "better", "worse"))
        name = method_at(found.cell.method, found.scale)
        rows.append((found.cell.bank, name, *beside, choice.text(found), found.estimate().percent.text(2), *gain))
    return rows


def tuned_plan(chosen: Sequence[Choice], bank_places: Mapping[str, str]) -> str:
    """Return a plan in TOML that tests the found options, and the published ones beside them, on the test classes."""
    places = "".join(f"{_key(name)} = {_toml(place)}\n" for name, place in bank_places.items())
    blocks = [
        "# Written by `handful report`; run it with `handful bench run`. It has the defaults of a plan for shots,\n"
        "# k_eff, tasks and the rest: add yours to [defaults].\n"
        f"[banks]\n{places}\n[defaults]\nsplit = {_toml(TEST)}\n"
    ]
    for choice in chosen:
        cell = choice.found.cell
        lines = [f"[[cells]]\nbank = {_toml(cell.bank)}\nmethod = {_toml(cell.method)}\n"]
        lines += [f"scale = {_toml(cell.transform)}\n", "options = [\n"]
        kinds = {"found": choice.found}
        if choice.published is choice.found:
            kinds = {"found and published": choice.found}
        elif choice.published is not None:
            kinds["published"] = choice.published
        for kind, result in kinds.items():
            options = ", ".join(f"{_key(k)} = {_toml(v)}" for k, v in result.cell.options.items() if v is not None)
            accuracy = result.estimate().percent
            lines.append(
                f"  {{ {options} }},  # {kind}: {accuracy.text(unit='%')} on {accuracy.n:,} validation tasks\n"
            )
        blocks.append("".join([*lines, "]\n"]))
    return "\n".join([*(f"# {note}" for note in footnotes("".join(blocks))), *blocks])


def _toml(value: Any) -> str:
    """Return a value as TOML; numbers, truth values and texts are written as in JSON."""
    return json.dumps(value, ensure_ascii=True)


def _key(name: str) -> str:
    return name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else _toml(name)
