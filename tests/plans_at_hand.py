"""Small plans for tests."""

from __future__ import annotations

from handful import FeatureBank
from handful_fewshot import Balanced, ShotsPerClass, TaskSpec
from handful_fewshot.benchmark.plan import Cell, Plan, bound_plan
from tests.banks_at_hand import random_bank

SPEC = TaskSpec(ShotsPerClass(2), Balanced(2), n_query=6)


def small_banks() -> dict[str, FeatureBank]:
    return {"toy": random_bank(n_classes=5, least=10, most=14)}


def small_plan(banks: dict[str, FeatureBank], n_tasks: int = 20) -> Plan:
    cells = [Cell("toy", SPEC, method, n_tasks=n_tasks) for method in ("paddle", "nearest_prototype", "soft_kmeans")]
    return bound_plan(cells, banks)
