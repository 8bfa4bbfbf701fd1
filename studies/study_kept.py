"""Summaries that `banks_study.py` kept of its cells, in place of rows, selected by what varies between them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any

import numpy as np

import handful_fewshot as fewshot
from banks_study import KEPT, QUICK, SCALED, SLOW
from handful_fewshot.benchmark.plan import Cell
from handful_fewshot.reports.summary import Column, Result, TaskMean, columns_of
from handful_fewshot.transforms import method_at, scale_name

PADDLE_LABEL = method_at("paddle", scale_name("range_scale_public_code"))
SCALED_LABEL = method_at("paddle", scale_name(SCALED["transform"], SCALED["parameters"]))


@dataclass(frozen=True, eq=False)
class Kept(Result):
    """A result of which the summary was kept, not the rows."""

    entry: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, entry: Mapping[str, Any]) -> Kept:
        """Read an entry of a file."""
        names = {f.name for f in fields(Cell)}
        cell = Cell.from_mapping({key: value for key, value in entry.items() if key in names})
        columns = {"task": np.arange(entry["n_tasks"]), "transform": np.full(entry["n_tasks"], entry["applied"])}
        return cls(cell, (), columns, entry["n_failed"], "", entry)

    def estimate(self, metric: str = "accuracy") -> TaskMean:
        """Return what was kept."""
        return _estimate(self.entry[metric], len(self.tasks))

    @property
    def gain(self) -> TaskMean:
        """Accuracy minus that of nearest prototype, on the same tasks."""
        return self.estimate("gain")


@dataclass(frozen=True)
class Study:
    """All that was kept, by what varies."""

    found: Sequence[Kept]

    def where(self, **wanted: Any) -> Study:
        """Return the part with these values of `shots`, `k_eff`, `n_query`, `bank`, `weighted`, `method` or `label`."""
        return Study([r for r in self.found if all(value_of(r, name) == value for name, value in wanted.items())])

    @property
    def usual(self) -> Study:
        """Return the part with |Q| = 75, or as near as the rows of a bank allow."""
        largest: dict[Any, int] = {}
        for r in (r for r in self.found if r.cell.spec.n_query <= 75):
            largest[_place(r)] = max(r.cell.spec.n_query, largest.get(_place(r), 0))
        return Study([r for r in self.found if r.cell.spec.n_query == largest.get(_place(r))])

    @property
    def columns(self) -> list[Column]:
        """By tasks."""
        return columns_of(self.found)

    @property
    def banks(self) -> list[str]:
        """Names of the banks."""
        return sorted({r.cell.bank for r in self.found})

    @property
    def labels(self) -> list[str]:
        """Quick ones first, then slow ones."""
        order = (*QUICK, *SLOW)
        places = {r.label: order.index(r.cell.method) for r in self.found}
        return sorted(places, key=lambda label: (places[label], label))


def _estimate(kept: Sequence[float], n: int) -> TaskMean:
    mean, half_width = kept
    return TaskMean(mean, half_width, n)


def _place(result: Kept) -> tuple[str, Any, Any]:
    return result.cell.bank, result.cell.spec.support, result.cell.spec.query.k_eff


def value_of(result: Kept, name: str) -> Any:
    """Return what a cell has under one of the names that `Study.where` chooses by."""
    cell = result.cell
    known = {
        "bank": cell.bank,
        "method": cell.method,
        "label": result.label,
        "shots": cell.spec.support.shots if isinstance(cell.spec.support, fewshot.ShotsPerClass) else None,
        "k_eff": cell.spec.query.k_eff,
        "n_query": cell.spec.n_query,
        "weighted": "complexity_weight" in cell.options,
    }
    return known[name]


def load() -> Study:
    """Read every file that `keep` wrote."""
    files = sorted(KEPT.glob("*.json"))
    return Study([Kept.of(entry) for file in files for entry in json.loads(file.read_text())["cells"]])
