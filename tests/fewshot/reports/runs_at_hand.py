"""Runs with made-up rows, for reports."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from handful.fewshot.benchmark.journal import COLUMNS, Journal
from handful.fewshot.benchmark.plan import Cell, Plan
from handful.fewshot.benchmark.run import METHOD
from handful.fewshot.benchmark.versions import code_version, versions_text
from handful.fewshot.methods import METHODS

FAILURE = ("error", "failed_by")


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
    row = {**numbers, "cell": cell.content_hash, "task": task, "method": cell.method, "transform": cell.transform}
    failed = {"error": "TaskError: too few", "failed_by": METHOD} if accuracy is None else dict.fromkeys(FAILURE)
    if not METHODS[cell.method].rejects:
        row["known_rejected"] = None
    made_by = {"attempts": 1, "versions": versions_text(), "code": code_version(cell.method)}
    return row | {"accuracy": accuracy, "converged": True} | failed | made_by | values
