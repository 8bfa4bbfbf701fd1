"""Runs with made-up rows, for reports."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from handful_fewshot.benchmark.journal import COLUMNS, Journal
from handful_fewshot.benchmark.plan import Cell, Plan
from handful_fewshot.benchmark.run import identity, versions_text
from handful_fewshot.methods import METHODS


def made_up_run(folder: Path, plan: Plan, accuracies: list[list[float]], **values: object) -> Journal:
    """One list of accuracies for each cell, a task each; None is a failure."""
    journal = Journal.create(folder, plan)
    with journal.writing():
        for cell, numbers in zip(plan, accuracies, strict=True):
            journal.append([_row(cell, task, number, values) for task, number in enumerate(numbers)])
    return journal


def noisy(mean: float, n: int = 100, seed: int = 0, spread: float = 0.1) -> list[float]:
    """Numbers with this very mean."""
    noise = np.random.default_rng(seed).standard_normal(n)
    return (mean + spread * (noise - noise.mean())).tolist()


def _row(cell: Cell, task: int, accuracy: float | None, values: dict[str, object]) -> dict[str, object]:
    numbers = {name: 0.5 if kind == "float64" else 3 for name, kind in COLUMNS.items() if kind in ("float64", "int64")}
    row = {**numbers, **identity(cell, cell.transform), "task": task}
    row |= {"error": "TaskError: too few" if accuracy is None else None, "versions": versions_text()}
    if not METHODS[cell.method].rejects:
        row["known_rejected"] = None
    return row | {"accuracy": accuracy, "converged": True} | values
