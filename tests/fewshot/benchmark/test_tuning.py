import json
from dataclasses import replace

import pytest

from handful.errors import OptionError, PlanError
from handful.fewshot import Dirichlet, ShotsPerClass, TaskSpec
from handful.fewshot.benchmark.paper import PAPER_BANKS
from handful.fewshot.benchmark.plan import bound_plan
from handful.fewshot.benchmark.tuning import GRIDS, tuning_plan
from tests.banks_at_hand import random_bank
from tests.conftest import SHARED

# What the paper's public code calls the options, and the methods they belong to.
SWEPT = {
    "alpha_tim": "alpha-TIM alpha",
    "bd_cspn": "BD-CSPN temperature",
    "ici": "ICI d",
    "laplacian_shot": "LaplacianShot lambda",
    "pt_map": "PT-MAP alpha",
    "tim": "TIM marginal-entropy weight",
}


@pytest.fixture(scope="module")
def banks():
    splits = {"base": range(4), "validation": range(4, 10), "test": range(10, 16)}
    bank = random_bank(n_classes=16, least=40, most=50, splits=splits)
    return {"mini": bank, "mine": replace(bank, splits={name: splits[name] for name in ("validation", "test")})}


def test_tasks_are_five_way_on_validation_classes_with_a_seed_of_their_own(banks):
    for cell in tuning_plan(banks, list(GRIDS)):
        assert cell.spec == TaskSpec(ShotsPerClass(5), Dirichlet(5, 2.0), 75, 5)
        assert (cell.split, cell.seed, cell.n_tasks) == ("validation", 1, 1000)


def test_every_grid_is_the_published_one_with_the_published_choice(banks):
    plan = bound_plan(tuning_plan(banks, list(GRIDS)), banks)  # no cell twice
    found = {
        (bank, method): [cell.options for cell in plan if (cell.bank, cell.method) == (bank, method)]
        for bank in banks
        for method in GRIDS
    }
    assert [options["sharpness"] for options in found["mini", "bd_cspn"]] == [5, 8, 10, 15, 20, 30, 50, 70, 100, 120]
    assert all(options["public_code"] for options in found["mini", "bd_cspn"])
    # The pair behind the tables was not on the grid of equal orders.
    orders = [(o["tsallis_alpha_marginal"], o["tsallis_alpha_conditional"]) for o in found["mine", "alpha_tim"]]
    assert orders == [*((k / 2, k / 2) for k in range(10, 20)), (7.0, 5.0)]
    file = SHARED / "paper_results.json"
    if file.is_file():
        sweeps = json.loads(file.read_text())["validation_tuning_5way_5shot"]["mini/ResNet-18"]
        for method, name in SWEPT.items():
            values = [float(value) for value in sweeps[name]]
            assert [float(next(iter(point.values()))) for point in GRIDS[method]] == values
    assert "mini" in PAPER_BANKS


def test_a_grid_of_ones_own_has_the_published_value_beside_it(banks):
    plan = tuning_plan(banks, ["laplacian_shot"], [{"smoothness": 2.0}, {"smoothness": 3}], tasks=7, query="balanced")
    assert [cell.options["smoothness"] for cell in plan if cell.bank == "mini"] == [2.0, 3, 0.7]
    assert {cell.n_tasks for cell in plan} == {7}
    (first, *_) = tuning_plan(banks, ["oslo"], [{"inlier_temperature": 0.3}])
    assert first.options == {"inlier_temperature": 0.3}


@pytest.mark.parametrize(
    ("methods", "points", "sentence"),
    [
        (["soft_kmeans"], [], "soft_kmeans has no published grid"),
        (["magic"], [{"a": 1}], "no method is called 'magic'"),
        (["tim"], [{"speed": 1}], "tim has no option 'speed'"),
    ],
)
def test_what_cannot_be_tuned_is_refused(banks, methods, points, sentence):
    with pytest.raises((PlanError, OptionError), match=sentence):
        tuning_plan(banks, methods, points)


@pytest.mark.parametrize(
    ("splits", "sentence"),
    [
        ({}, "has no split 'validation' and no split 'test': .* its splits are none"),
        ({"validation": [0, 1]}, "has no split 'test'"),
        ({"validation": [0, 1, 2], "test": [2, 3]}, "have 1 classes in common"),
    ],
)
def test_options_are_not_chosen_on_the_classes_they_are_tested_on(banks, splits, sentence):
    with pytest.raises(PlanError, match=sentence):
        tuning_plan({"mine": replace(banks["mine"], splits=splits)}, ["tim"])
