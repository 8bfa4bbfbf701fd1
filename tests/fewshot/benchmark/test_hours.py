"""What is said of a plan's time before it starts."""

from dataclasses import replace

import pytest

from handful_fewshot import FixedSupport, ShotsPerClass, TaskSpec, UniformOverPool
from handful_fewshot.benchmark.completion import CellProgress
from handful_fewshot.benchmark.hours import LAWS, estimated_hours, estimated_seconds
from handful_fewshot.benchmark.plan import Cell
from handful_fewshot.methods import METHODS

SPEC = TaskSpec(ShotsPerClass(5), UniformOverPool(k_eff=5))
CELL = Cell("b", SPEC, "tim", bank_shape=(160, 512))


def test_a_law_is_of_a_method():
    assert set(LAWS) <= set(METHODS)


def test_seconds_are_a_line_in_the_largest_product():
    fixed, each = LAWS["tim"]
    assert estimated_seconds(CELL) == pytest.approx(fixed + each * 160 * 875 * 512 / 1e6)
    of_a_fixed_support = replace(CELL, spec=replace(SPEC, support=FixedSupport(range(800))))
    assert estimated_seconds(of_a_fixed_support) == estimated_seconds(CELL)
    fixed, each = LAWS["paddle"]
    assert estimated_seconds(replace(CELL, method="paddle")) == pytest.approx(fixed + each * 160 * 75 * 512 / 1e6)
    assert estimated_seconds(replace(CELL, method="oslo")) is None


def test_hours_are_those_of_the_tasks_left_and_a_budget_bounds_them():
    def said(cell: Cell, done: int = 0) -> str:
        return estimated_hours([CellProgress(cell, done, 0, cell.n_tasks, 0.0)])

    hours = 1000 * estimated_seconds(CELL) / 3600
    assert said(CELL).startswith(f"about {hours:.2g} CPU hours")
    assert said(CELL, 500).startswith(f"about {hours / 2:.2g} CPU hours")
    assert said(replace(CELL, cpu_budget=360.0)).startswith("about 0.1 CPU hours")
    assert "without oslo" in said(replace(CELL, method="oslo"))
    assert "without" not in said(replace(CELL, method="oslo"), 1000)
