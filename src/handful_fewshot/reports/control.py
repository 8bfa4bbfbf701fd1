"""below_nearest: where the published scale costs more than it gains, by the nearest prototype on the same tasks.

The nearest prototype has no scale to get wrong. A method that is behind it, by the interval of the difference on the
same tasks, is not shown to be a bad method: its features have the wrong scale.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from types import MappingProxyType

import numpy as np

from handful.banks import FeatureBank
from handful_fewshot.benchmark.journal import Journal
from handful_fewshot.benchmark.plan import Cell
from handful_fewshot.benchmark.run import Material, run_range
from handful_fewshot.methods.method import FITS_FEW
from handful_fewshot.reports.summary import Column, Result, columns_of, paired_difference, results

CONTROL = "nearest_prototype"
# Where the plan has no nearest prototype, it is run on so many of the tasks: enough for an interval of a few points.
CONTROL_TASKS = 200
# Tasks in memory at once.
AT_ONCE = 20
# Columns of a result that a difference in accuracy needs.
KINDS = MappingProxyType({"task": np.int64, "accuracy": np.float64, "transform": object})


def below_nearest(journal: Journal, find_bank: Callable[[str], FeatureBank | None]) -> list[str]:
    """Return a sentence for each method at the published scale that falls below the nearest prototype.

    Parameters
    ----------
    journal : Journal
        The run; it need not be complete.
    find_bank : callable
        Returns the bank of a given name, or None. Without it a list of tasks is judged only if the plan has the nearest
        prototype.
    """
    sentences = []
    for column in columns_of(results(journal)):
        published = [one for one in column.results if one.transform in FITS_FEW and len(one.tasks)]
        control = _control(column, published, find_bank) if published else None
        if control is None:
            continue
        for result in published:
            lead = paired_difference(control, result).percent
            if lead.decides and lead.above_zero:
                sentences.append(
                    f"{column.title}: {result.label} is {lead.text(unit=' points')} below {control.label} on the same "
                    f"{lead.n} tasks, so its scale does not fit these features; add --scale found."
                )
    return sentences


def _control(column: Column, judged: list[Result], find_bank: Callable[[str], FeatureBank | None]) -> Result | None:
    """Return the nearest prototype on the tasks of a column: from the run if it is there, else solved now."""
    planned = next((one for one in column.results if one.cell.method == CONTROL and len(one.tasks)), None)
    if planned is not None:
        return planned
    cell = judged[0].cell
    cell = replace(cell, method=CONTROL, transform="", parameters={}, options={}, keep="", method_hash="")
    banks = {name: find_bank(name) for name in (cell.bank, cell.support_bank) if name}
    there = {name: bank for name, bank in banks.items() if bank is not None}
    if len(there) < len(banks) or cell.bound(there).bank_hash != cell.bank_hash:
        return None
    return _solved(cell, Material.of(cell, there), judged[0].tasks[:CONTROL_TASKS].tolist())


def _solved(cell: Cell, material: Material, tasks: list[int]) -> Result:
    parts = (tasks[start : start + AT_ONCE] for start in range(0, len(tasks), AT_ONCE))
    rows = [row for part in parts for row in run_range(cell, material, part) if row["error"] is None]
    columns = {name: np.array([row[name] for row in rows], kind) for name, kind in KINDS.items()}
    return Result(cell, (), columns, len(tasks) - len(rows), "")
