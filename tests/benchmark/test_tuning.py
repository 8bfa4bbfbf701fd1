from dataclasses import replace

import pytest

from handful import ShotsPerClass, TaskSpec, UniformOverPool
from handful.benchmark.plan import bound_plan
from handful.benchmark.run import Material, run_range
from handful.benchmark.tuning import GRIDS, chosen, five_way, realistic
from tests.banks_at_hand import random_bank
from tests.reports.runs_at_hand import made_up_run, noisy


@pytest.fixture(scope="module")
def banks():
    splits = {"base": [0, 1, 2], "validation": list(range(3, 12)), "test": list(range(12, 20))}
    return {"mini": random_bank(n_classes=20, least=25, most=30, splits=splits)}


def test_both_protocols_use_validation_classes_and_differ_in_the_tasks(banks):
    target = TaskSpec(ShotsPerClass(2), UniformOverPool(3), n_query=30)
    plans = five_way(banks, "mini", n_tasks=3), realistic(banks, "mini", target, n_tasks=3)
    for plan in plans:
        assert len(bound_plan(plan, banks)) == sum(map(len, GRIDS.values()))
        assert {cell.split for cell in plan} == {"validation"}
    assert {(cell.spec.n_classes, cell.spec.query.k_eff) for cell in plans[0]} == {(5, 5)}
    assert {cell.spec for cell in plans[1]} == {target}
    for plan in plans:
        for cell in bound_plan([plan[0], plan[-35]], banks):
            (row,) = run_range(cell, Material.of(cell, banks), [0])
            assert row["error"] is None


def test_both_orders_of_alpha_tim_move_together(banks):
    (cell, *_) = five_way(banks, "mini", ["alpha_tim"])
    assert cell.options == {"tsallis_alpha_marginal": 5.0, "tsallis_alpha_conditional": 5.0}


def test_the_most_accurate_value_is_chosen_on_the_tasks_that_all_values_have(tmp_path, banks):
    plan = five_way(banks, "mini", ["paddle"])[:3]
    plan = (*plan, replace(plan[0], method="soft_kmeans", options={}))
    # The second is best where it can be compared; the third only did the easy tasks.
    numbers = [noisy(0.5, 40), noisy(0.6, 40), [0.99] * 10 + [None] * 30, [None] * 40]
    numbers[1][:10] = [1.0] * 10
    assert chosen(made_up_run(tmp_path / "run", plan, numbers)) == {
        ("mini", "paddle"): dict(plan[1].options),
    }
