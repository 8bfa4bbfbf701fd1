"""Tuning on validation classes: grids of one option each, and the choice of the most accurate value.

The published protocol tunes competitors on five-way five-shot tasks and then tests them with many more classes in the
support than occur in the query, a setting their tuning never saw. The realistic protocol tunes at the K and K_eff that
will be tested.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

import numpy as np

from handful.benchmark import paper
from handful.benchmark.journal import Journal
from handful.benchmark.plan import Banks, Cell, Plan, named_bank
from handful.tasks import ShotsPerClass, TaskSpec, UniformOverPool

VALIDATION = "validation"


def _sweep(*options: str, values: Sequence[float]) -> tuple[dict[str, float], ...]:
    """Give each value to all of these options at once."""
    return tuple(dict.fromkeys(options, value) for value in values)


# What the public code sweeps for each method, and the values there.
GRIDS: Mapping[str, tuple[Mapping[str, Any], ...]] = MappingProxyType(
    {
        "paddle": _sweep("complexity_weight", values=(15.0, 30.0, 40.0, 50.0, 60.0, 70.0, 75.0, 80.0, 85.0, 90.0)),
        "tim": _sweep("marginal_weight", values=(0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5)),
        "alpha_tim": _sweep(
            "tsallis_alpha_marginal",
            "tsallis_alpha_conditional",
            values=(5.0, 5.5, 6.0, 6.5, 7.0, 7.5, 8.0, 8.5, 9.0, 9.5),
        ),
        "laplacian_shot": _sweep("smoothness", values=(0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0, 1.1, 1.2)),
        "bd_cspn": _sweep("sharpness", values=(5.0, 8.0, 10.0, 15.0, 20.0, 30.0, 50.0, 70.0, 100.0, 120.0)),
        "pt_map": _sweep("step_size", values=(0.002, 0.005, 0.008, 0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.4)),
        "ici": _sweep("n_components", values=range(2, 12)),
    }
)
FIVE_WAY = TaskSpec(ShotsPerClass(5), UniformOverPool(5), n_query=75, n_classes=5)


def five_way(banks: Banks, bank: str, methods: Sequence[str] = tuple(GRIDS), **sizes: Any) -> Plan:
    """Return the published protocol: 5-way 5-shot tasks of validation classes, |Q| = 75."""
    return _grid(banks, bank, methods, FIVE_WAY, **sizes)


def realistic(banks: Banks, bank: str, target: TaskSpec, methods: Sequence[str] = tuple(GRIDS), **sizes: Any) -> Plan:
    """Tune on validation classes with the same spec as in the test, including K_eff and number of classes."""
    return _grid(banks, bank, methods, target, **sizes)


def chosen(journal: Journal) -> dict[tuple[str, str], dict[str, Any]]:
    """Return the most accurate options of each (bank, method) of a run; of equals, the first.

    Only tasks that all cells of a method have are counted, so that no value is judged on easier ones.
    """
    groups: dict[tuple[str, str], list[Cell]] = {}
    for cell in journal.plan:
        groups.setdefault((cell.bank, cell.method), []).append(cell)
    rows = journal.columns()
    best: dict[tuple[str, str], dict[str, Any]] = {}
    for key, cells in groups.items():
        of_cell = [(rows["cell"] == cell.content_hash) & ~np.isnan(rows["accuracy"]) for cell in cells]
        shared = set.intersection(*(set(rows["task"][mine].tolist()) for mine in of_cell))
        counted = np.isin(rows["task"], list(shared))
        if shared:
            means = [float(rows["accuracy"][mine & counted].mean()) for mine in of_cell]
            best[key] = dict(cells[int(np.argmax(means))].options)
    return best


def _grid(
    banks: Banks, bank: str, methods: Sequence[str], spec: TaskSpec, *, n_tasks: int = 1000, seed: int = paper.SEED
) -> Plan:
    split = VALIDATION if VALIDATION in named_bank(banks, bank).splits else ""
    return tuple(
        Cell(
            bank,
            spec,
            method,
            split=split,
            transform=paper.TRANSFORMS.get(method, ""),
            options={**paper.public_options(method, bank, spec), **values},
            seed=seed,
            n_tasks=n_tasks,
        )
        for method in methods
        for values in GRIDS[method]
    )
