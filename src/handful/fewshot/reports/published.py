"""The paper's numbers, as data, and which cell of a plan each belongs to."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from importlib import resources
from types import MappingProxyType
from typing import Any

from handful.fewshot.benchmark.paper import K_EFF, N_QUERY, PAPER_BANKS
from handful.fewshot.benchmark.plan import Cell
from handful.fewshot.tasks import ShotsPerClass, UniformOverPool

PAPER_METHODS: Mapping[str, str] = MappingProxyType(
    {
        "baseline": "Baseline",
        "ici": "LR+ICI",
        "bd_cspn": "BD-CSPN",
        "pt_map": "PT-MAP",
        "laplacian_shot": "LaplacianShot",
        "tim": "TIM",
        "alpha_tim": "alpha-TIM",
        "paddle": "PADDLE",
        "soft_kmeans": "K-means",
    }
)


@cache
def _content() -> Any:
    return json.loads(resources.files("handful.fewshot.reports").joinpath("published.json").read_text(encoding="utf-8"))


def source() -> str:
    """Where the numbers come from."""
    return str(_content()["source"])


def published_accuracy(cell: Cell) -> float | None:
    """Accuracy in percent that the paper printed for a cell's column and method; None where it printed none.

    The column is recognised by the name of the bank, by the shots and by the protocol. PADDLE with a λ other than the
    paper's has no published number.

    Examples
    --------
    >>> from handful.fewshot import TaskSpec
    >>> published_accuracy(Cell("mini", TaskSpec(ShotsPerClass(20), UniformOverPool(5)), "paddle"))
    80.0
    """
    spec = cell.spec
    known = cell.bank in PAPER_BANKS and cell.method in PAPER_METHODS and "complexity_weight" not in cell.options
    if not known or spec.query != UniformOverPool(K_EFF) or spec.n_query != N_QUERY or spec.n_classes is not None:
        return None
    dataset, backbone = PAPER_BANKS[cell.bank]
    shots = spec.support.shots if isinstance(spec.support, ShotsPerClass) else None
    key = [backbone, dataset, shots, PAPER_METHODS[cell.method]]
    return next((accuracy for *row, accuracy in _content()["rows"] if row == key), None)
