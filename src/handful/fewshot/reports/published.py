"""The paper's numbers, as data, and which cell of a plan each belongs to."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from importlib import resources
from types import MappingProxyType
from typing import Any

from handful.fewshot.benchmark.paper import DIMENSIONS, K_EFF, N_QUERY, PAPER_BANKS, TEST_CLASSES
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

    The column is recognised by the name of the bank, by the shots and by the protocol. The bank must have the classes
    and the dimension of the paper's, see `why_unpublished`. PADDLE with a λ other than the paper's has no published
    number.
    """
    return None if why_unpublished(cell) else _printed(cell)


def why_unpublished(cell: Cell) -> str:
    """Return why the number that the paper printed for a cell of this name is not that of its bank; empty if it is."""
    if _printed(cell) is None:
        return ""
    dataset, backbone = PAPER_BANKS[cell.bank]
    classes, dimensions = TEST_CLASSES[dataset], DIMENSIONS[backbone]
    if cell.split in ("", "test") and cell.bank_shape == (classes, dimensions):
        return ""
    split = f" in its split {cell.split!r}" if cell.split else ""
    return (
        f"has {cell.bank_shape[0]} classes{split} and {cell.bank_shape[1]} dimensions, but the test split of {dataset} "
        f"has {classes}, with {dimensions} from {backbone}"
    )


def _printed(cell: Cell) -> float | None:
    """Return what the paper printed for a column of this name, whatever the bank is."""
    spec = cell.spec
    known = cell.bank in PAPER_BANKS and cell.method in PAPER_METHODS and "complexity_weight" not in cell.options
    protocol = (UniformOverPool(K_EFF), N_QUERY, None, None)
    if not known or (spec.query, spec.n_query, spec.n_classes, spec.unknown) != protocol:
        return None
    dataset, backbone = PAPER_BANKS[cell.bank]
    shots = spec.support.shots if isinstance(spec.support, ShotsPerClass) else None
    key = [backbone, dataset, shots, PAPER_METHODS[cell.method]]
    return next((accuracy for *row, accuracy in _content()["rows"] if row == key), None)
