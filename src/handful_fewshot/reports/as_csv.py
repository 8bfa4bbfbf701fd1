"""The numbers of a report as CSV: every measure of every cell, and every difference between two methods.

Shares are between 0 and 1, as in the rows of the run, and nothing is rounded. A measure that no task has is empty.
"""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations
from typing import Any, TypeAlias

from handful_fewshot.benchmark.run import ABOUT, identity
from handful_fewshot.benchmark.score import TaskScores
from handful_fewshot.reports.summary import Column, MeanEstimate, Result, paired_difference

CsvRow: TypeAlias = Mapping[str, Any]

MEASURES = (*TaskScores._fields, "n_iter", "converged", "seconds", "cpu_seconds")
# What a cell has besides its method; two methods are compared on the same tasks.
OF_TASKS = (
    *("bank", "split", "support_bank", "shots", "k_eff", "n_query", "n_classes", "protocol"),
    *("unknown_classes", "unknown_share", "seed"),
)
OF_METHOD = ("method", "scale", "options")


def measures(outcomes: Sequence[Result]) -> Iterator[CsvRow]:
    """Return a row for each cell: what it is, its tasks, and each measure with half the width of its interval."""
    for result in outcomes:
        about = _about(result)
        counts = {"n_tasks": len(result.tasks), "n_failed": result.n_failed}
        estimates = [_estimate(name, result.estimate(name)) for name in MEASURES]
        yield {name: about[name] for name in ABOUT if name != "task"} | counts | _joined(estimates)


def differences(columns: Sequence[Column]) -> Iterator[CsvRow]:
    """Return a row for each two methods on the same tasks: accuracy of the first minus that of the second."""
    for column in columns:
        for a, b in combinations(column.results, 2):
            first = _about(a)
            second = _about(b)
            names = _joined([{name: first[name], f"{name}_2": second[name]} for name in OF_METHOD])
            difference = paired_difference(a, b)
            found = {"n_tasks": difference.n} | _estimate("difference", difference)
            yield {name: first[name] for name in OF_TASKS} | names | found


def csv_text(rows: Iterator[CsvRow]) -> str:
    """Return rows as CSV, with a line of their keys; empty if there are none."""
    text = io.StringIO()
    writer: csv.DictWriter[str] | None = None
    for row in rows:
        if writer is None:
            writer = csv.DictWriter(text, list(row), lineterminator="\n")
            writer.writeheader()
        writer.writerow(row)
    return text.getvalue()


def _about(result: Result) -> CsvRow:
    return identity(result.cell, result.transform)


def _estimate(name: str, estimate: MeanEstimate) -> dict[str, Any]:
    """Return mean and half width, None where there is none."""
    known = (value if math.isfinite(value) else None for value in (estimate.mean, estimate.half_width))
    return dict(zip((name, f"{name}_half_width"), known, strict=True))


def _joined(records: Sequence[CsvRow]) -> dict[str, Any]:
    return {name: value for record in records for name, value in record.items()}
