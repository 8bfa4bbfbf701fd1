"""Tuning as published: every point of a method's grid is a cell, on tasks of validation classes.

The paper tunes its competitors on the validation classes of each data set, with 5-way 5-shot tasks of 75 queries, after
Veilleux et al. (NeurIPS 2021), whose queries are spread over the five classes by a Dirichlet distribution. All classes
of such a task occur in its query, so the target setting, in which few of many occur, is not seen. The grids, and the
values that were chosen, are those of the public code.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, TypeAlias

from handful.errors import PlanError
from handful.fewshot.benchmark.method_file import is_place, load_method
from handful.fewshot.benchmark.paper import TRANSFORMS, public_options
from handful.fewshot.benchmark.plan import Banks, Cell, Plan, grid, named_bank, task_spec
from handful.fewshot.methods import METHODS

Point: TypeAlias = Mapping[str, Any]

# Splits that options are chosen on, and tested on afterwards.
VALIDATION, TEST = "validation", "test"
# Keys of a plan for the tasks of the tuning. The seed is neither that of the paper's plans nor a plan's default.
TASKS: Mapping[str, Any] = MappingProxyType(
    {
        **{"split": VALIDATION, "shots": 5, "n_classes": 5, "k_eff": 5, "query": "dirichlet", "n_query": 75},
        **{"seed": 1, "tasks": 1000},
    }
)


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
    as `tasks=200` or `query="balanced"`, and `transform`.
    """
    entry = {**TASKS, **keys}
    for bank in banks:
        _refuse_without_splits(banks, bank, entry["split"])
    cells: list[Cell] = []
    for bank in banks:
        for method in (load_method(name) if is_place(name) else name for name in methods):
            if method not in METHODS:
                raise PlanError(f"no method is called {method!r}; choose from {', '.join(METHODS)}")
            wanted = [*(points or GRIDS.get(method, ()))]
            if not wanted:
                raise PlanError(
                    f"{method} has no published grid; give the values of its options, or choose from {', '.join(GRIDS)}"
                )
            fixed = public_options(method, bank, task_spec(entry, banks))
            published = published_point(method, fixed, list(wanted[0]))
            wanted += [published] if published not in wanted else []
            of_method = {"bank": bank, "method": method, "options": [{**fixed, **point} for point in wanted]}
            cells += grid([{"transform": TRANSFORMS.get(method, ""), **entry, **of_method}], banks)
    return tuple(cells)


def published_point(method: str, public: Point, names: Sequence[str]) -> dict[str, Any]:
    """Values of these options behind the paper's tables: those of the public configurations, else the defaults."""
    known = {**default_options(method), **public}
    if unknown := [name for name in names if name not in known]:
        METHODS[method].make_options(**dict.fromkeys(unknown))  # raises an error that names the options there are
    return {name: known[name] for name in names}


def default_options(method: str) -> dict[str, Any]:
    """All options of a method with their defaults; none of a method that this process does not have."""
    return dataclasses.asdict(METHODS[method].make_options()) if method in METHODS else {}


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
