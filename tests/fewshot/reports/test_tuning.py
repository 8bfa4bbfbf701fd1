"""Tuning: the published grids, the best point, and the plan that tests it."""

import json
from dataclasses import replace

import numpy as np
import pytest

from handful.errors import OptionError
from handful_fewshot import Dirichlet, ShotsPerClass, TaskSpec
from handful_fewshot.benchmark import Journal, complete
from handful_fewshot.benchmark.paper import PAPER_BANKS
from handful_fewshot.benchmark.plan import bound_plan, grid, read_plan
from handful_fewshot.errors import PlanError
from handful_fewshot.reports.tuning import GRIDS, choices, choices_markdown, tuned_plan, tuning_plan, write_tuned_plan
from tests.banks_at_hand import random_bank
from tests.conftest import SHARED
from tests.fewshot.reports.runs_at_hand import made_up_run, noisy

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
def paper_banks():
    splits = {"base": range(4), "validation": range(4, 10), "test": range(10, 16)}
    bank = random_bank(n_classes=16, least=40, most=50, splits=splits)
    return {"mini": bank, "mine": replace(bank, splits={name: splits[name] for name in ("validation", "test")})}


def test_tasks_are_five_way_on_validation_classes_with_a_seed_of_their_own(paper_banks):
    for cell in tuning_plan(paper_banks, list(GRIDS)):
        assert cell.spec == TaskSpec(ShotsPerClass(5), Dirichlet(5, 2.0), 75, 5)
        assert (cell.split, cell.seed, cell.n_tasks) == ("validation", 1, 1000)


def test_every_grid_is_the_published_one_with_the_published_choice(paper_banks):
    plan = bound_plan(tuning_plan(paper_banks, list(GRIDS)), paper_banks)  # no cell twice
    found = {
        (bank, method): [cell.options for cell in plan if (cell.bank, cell.method) == (bank, method)]
        for bank in paper_banks
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


def test_a_grid_of_ones_own_has_the_published_value_beside_it(paper_banks):
    plan = tuning_plan(
        paper_banks, ["laplacian_shot"], [{"smoothness": 2.0}, {"smoothness": 3}], tasks=7, query="balanced"
    )
    assert [cell.options["smoothness"] for cell in plan if cell.bank == "mini"] == [2.0, 3, 0.7]
    assert {cell.n_tasks for cell in plan} == {7}
    (first, *_) = tuning_plan(paper_banks, ["oslo"], [{"inlier_temperature": 0.3}])
    assert first.options == {"inlier_temperature": 0.3}


@pytest.mark.parametrize(
    ("methods", "points", "sentence"),
    [
        (["soft_kmeans"], [], "soft_kmeans has no published grid"),
        (["magic"], [{"a": 1}], "no method is called 'magic'"),
        (["tim"], [{"speed": 1}], "tim has no option 'speed'"),
    ],
)
def test_what_cannot_be_tuned_is_refused(paper_banks, methods, points, sentence):
    with pytest.raises((PlanError, OptionError), match=sentence):
        tuning_plan(paper_banks, methods, points)


@pytest.mark.parametrize(
    ("splits", "sentence"),
    [
        ({}, "has no split 'validation' and no split 'test': .* its splits are none"),
        ({"validation": [0, 1]}, "has no split 'test'"),
        ({"validation": [0, 1, 2], "test": [2, 3]}, "have 1 classes in common"),
    ],
)
def test_options_are_not_chosen_on_the_classes_they_are_tested_on(paper_banks, splits, sentence):
    with pytest.raises(PlanError, match=sentence):
        tuning_plan({"mine": replace(paper_banks["mine"], splits=splits)}, ["tim"])


SPLITS = {"validation": range(6), "test": range(6, 12)}


@pytest.fixture(scope="module")
def banks():
    return {"my bank": random_bank(n_classes=12, least=30, most=40, splits=SPLITS)}


def chosen(tmp_path, banks, method, accuracies):
    """Choose among points of these accuracies; the published one has the last of them if it is not among them."""
    points, numbers = zip(*accuracies, strict=True)
    plan = tuning_plan(banks, [method], points)
    return choices(made_up_run(tmp_path / "run", bound_plan(plan, banks), list(numbers)))[0]


def smoothness(*pairs):
    return [({"smoothness": value}, numbers) for value, numbers in pairs]


def test_the_best_mean_is_chosen_and_the_published_stands_beside_it(tmp_path, banks):
    points = smoothness((0.3, noisy(0.6)), (0.7, noisy(0.5)), (1.1, noisy(0.55)))
    choice = chosen(tmp_path, banks, "laplacian_shot", points)
    assert choice.names == ("smoothness",)
    assert choice.found.cell.options == {"smoothness": 0.3}
    assert choice.published.cell.options == {"smoothness": 0.7}
    line = choices_markdown([choice]).splitlines()[-1]
    assert line.startswith("| my bank | laplacian_shot (centred on base classes) | smoothness=0.7 | 50.00 ± ")
    assert line.endswith("| +10.00 ± 0.00 | better |")


@pytest.mark.parametrize(
    ("accuracies", "expected"),
    [
        (smoothness((0.3, [0.5, 0.7]), (0.7, [0.7, 0.5])), 0.7),  # a tie: the published choice
        (smoothness((0.3, [0.5, 0.7]), (0.4, [0.7, 0.5]), (0.7, [0.2, 0.2])), 0.3),  # a tie of others: the first
        (smoothness((0.3, [0.9]), (0.5, [0.8, 0.9]), (0.7, [0.7, 0.2])), 0.3),  # on the tasks that all have
        (smoothness((0.3, []), (0.5, [0.8, 0.9]), (0.7, [0.7, 0.2])), 0.5),  # a point that no task has
    ],
)
def test_ties_and_tasks_in_common(tmp_path, banks, accuracies, expected):
    assert chosen(tmp_path, banks, "laplacian_shot", accuracies).found.cell.options["smoothness"] == expected


def test_the_plan_runs_both_on_the_test_classes(tmp_path, banks):
    plan = bound_plan(tuning_plan(banks, ["laplacian_shot", "bd_cspn"]), banks)
    accuracies = [noisy(0.5 + 0.01 * k) for k in range(len(plan))]
    journal = made_up_run(tmp_path / "run", plan, accuracies)
    banks["my bank"].save(tmp_path / "bank")
    journal.extend(plan, {"my bank": str(tmp_path / "bank")})
    file = write_tuned_plan(journal)
    assert file == tmp_path / "run" / "tuned.toml"
    entries, places = read_plan(file)
    assert places == {"my bank": str(tmp_path / "bank")}
    cells = grid(entries, banks)
    assert [(cell.method, cell.split, dict(cell.options)) for cell in cells] == [
        ("laplacian_shot", "test", {"smoothness": 1.2}),
        ("laplacian_shot", "test", {"smoothness": 0.7}),
        ("bd_cspn", "test", {"public_code": True, "sharpness": 120.0}),
        ("bd_cspn", "test", {"public_code": True, "sharpness": 50.0}),
    ]
    assert {cell.transform for cell in cells} == {"cl2n", "raw"}
    assert "# published: 54.0 ± " in file.read_text()


def test_a_choice_that_was_published_is_tested_once(tmp_path, banks):
    choice = chosen(tmp_path, banks, "laplacian_shot", smoothness((0.3, [0.5, 0.7]), (0.7, [0.9, 0.8])))
    (tmp_path / "plan.toml").write_text(tuned_plan([choice], {}))
    assert len(grid(read_plan(tmp_path / "plan.toml")[0], banks)) == 1
    assert "| 0 | the same |" in choices_markdown([choice])


def test_a_tuning_without_tasks_is_refused(tmp_path, banks):
    plan = bound_plan(tuning_plan(banks, ["laplacian_shot"]), banks)
    with pytest.raises(PlanError, match="has no tasks yet"):
        choices(Journal.create(tmp_path / "run", plan))


def test_three_lines_of_python_tune(tmp_path, banks):
    plan = tuning_plan(banks, ["laplacian_shot"], [{"smoothness": 0.0}, {"smoothness": 5.0}], tasks=3, n_query=20)
    journal = Journal.create(tmp_path / "run", bound_plan(plan, banks))
    complete(journal, banks)
    means = {cell.options["smoothness"]: journal.columns(cell)["accuracy"].mean() for cell in journal.plan}
    (choice,) = choices(journal)
    assert means[choice.found.cell.options["smoothness"]] == np.max(list(means.values()))
    assert write_tuned_plan(journal, tmp_path / "other.toml").is_file()
