"""Tuning: the published grids, the best point, and the plan that tests it."""

import json
from dataclasses import replace

import pytest

from handful_fewshot import Dirichlet, ShotsPerClass, TaskSpec
from handful_fewshot.benchmark import Cell, Journal
from handful_fewshot.benchmark.paper import GRIDS, tuning
from handful_fewshot.benchmark.plan import bound_plan, grid, read_plan
from handful_fewshot.errors import PlanError
from handful_fewshot.reports.page import write_report
from handful_fewshot.reports.tuning import choice_rows, choices, tuned_plan
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
    for cell in tuning(paper_banks):
        assert cell.spec == TaskSpec(ShotsPerClass(5), Dirichlet(5, 2.0), 75, 5)
        assert (cell.split, cell.seed, cell.n_tasks) == ("validation", 1, 1000)


def test_every_grid_is_the_published_one_with_the_published_choice(paper_banks):
    plan = bound_plan(tuning(paper_banks, n_tasks=7), paper_banks)  # no cell twice
    assert {cell.n_tasks for cell in plan} == {7}
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
        tuning({"mine": replace(paper_banks["mine"], splits=splits)})


SPLITS = {"validation": range(6), "test": range(6, 12)}


@pytest.fixture(scope="module")
def banks():
    return {"my bank": random_bank(n_classes=12, least=30, most=40, splits=SPLITS)}


SPEC = TaskSpec(ShotsPerClass(5), Dirichlet(5), 75, 5)


def chosen(tmp_path, banks, accuracies, split="validation"):
    """Choose among smoothnesses of LaplacianShot that have these accuracies."""
    cells = [
        Cell("my bank", SPEC, "laplacian_shot", split=split, options={"smoothness": value}) for value in accuracies
    ]
    return choices(made_up_run(tmp_path / "run", bound_plan(cells, banks), list(accuracies.values())))


def test_the_best_mean_is_chosen_and_the_published_stands_beside_it(tmp_path, banks):
    (choice,) = chosen(tmp_path, banks, {0.3: noisy(0.6), 0.7: noisy(0.5), 1.1: noisy(0.55)})
    assert choice.names == ("smoothness",)
    assert choice.found.cell.options == {"smoothness": 0.3}
    assert choice.published.cell.options == {"smoothness": 0.7}
    ((bank, method, published, accuracy, *_, gain, verdict),) = choice_rows([choice])
    assert (bank, method) == ("my bank", "laplacian_shot (centred on base classes)")
    assert (published, accuracy[:8]) == ("smoothness=0.7", "50.00 ± ")
    assert (gain, verdict) == ("+10.00 ± 0.00", "better")


@pytest.mark.parametrize(
    ("accuracies", "expected"),
    [
        ({0.3: [0.5, 0.7], 0.7: [0.7, 0.5]}, 0.7),  # a tie: the published choice
        ({0.3: [0.5, 0.7], 0.4: [0.7, 0.5], 0.7: [0.2, 0.2]}, 0.3),  # a tie of others: the first
        ({0.3: [0.9], 0.5: [0.8, 0.9], 0.7: [0.7, 0.2]}, 0.3),  # on the tasks that all have
        ({0.3: [], 0.5: [0.8, 0.9], 0.7: [0.7, 0.2]}, 0.5),  # a point that no task has
    ],
)
def test_ties_and_tasks_in_common(tmp_path, banks, accuracies, expected):
    (choice,) = chosen(tmp_path, banks, accuracies)
    assert choice.found.cell.options["smoothness"] == expected


def test_options_are_chosen_on_validation_classes_among_several_and_once_there_are_tasks(tmp_path, banks):
    several = {0.3: [0.5, 0.7], 0.7: [0.9, 0.8]}
    assert chosen(tmp_path / "test", banks, several, split="test") == []
    assert chosen(tmp_path / "one", banks, {0.3: [0.5, 0.7]}) == []
    assert chosen(tmp_path / "none", banks, {0.3: [], 0.7: []}) == []


def test_the_report_has_a_plan_that_runs_both_on_the_test_classes(tmp_path, banks):
    plan = [cell for cell in tuning(banks) if cell.method in ("laplacian_shot", "bd_cspn")]
    plan = bound_plan(sorted(plan, key=lambda cell: cell.method, reverse=True), banks)
    journal = made_up_run(tmp_path / "run", plan, [noisy(0.5 + 0.01 * k) for k in range(len(plan))])
    banks["my bank"].save(tmp_path / "bank")
    journal.extend(plan, {"my bank": str(tmp_path / "bank")})
    page = write_report(journal, tmp_path / "report")
    assert "<h2>Chosen options</h2>" in page.read_text()
    entries, places = read_plan(tmp_path / "report" / "tuned.toml")
    assert places == {"my bank": str(tmp_path / "bank")}
    cells = grid(entries, banks)
    assert [(cell.method, cell.split, dict(cell.options)) for cell in cells] == [
        ("laplacian_shot", "test", {"smoothness": 1.2}),
        ("laplacian_shot", "test", {"smoothness": 0.7}),
        ("bd_cspn", "test", {"public_code": True, "sharpness": 120.0}),
        ("bd_cspn", "test", {"public_code": True, "sharpness": 50.0}),
    ]
    assert {cell.transform for cell in cells} == {"cl2n", "raw"}
    assert "# published: 54.0 ± " in (tmp_path / "report" / "tuned.toml").read_text()


def test_a_choice_that_was_published_is_tested_once_and_one_without_it_alone(tmp_path, banks):
    for name, accuracies, gain in (
        ("same", {0.3: [0.5, 0.7], 0.7: [0.9, 0.8]}, ("0", "the same")),
        ("own", {0.3: [0.5, 0.7], 0.4: [0.9, 0.8]}, ("", "")),
    ):
        (choice,) = chosen(tmp_path / name, banks, accuracies)
        (tmp_path / "plan.toml").write_text(tuned_plan([choice], {}))
        assert len(grid(read_plan(tmp_path / "plan.toml")[0], banks)) == 1
        assert choice_rows([choice])[0][-2:] == gain


def test_a_run_without_a_choice_has_no_plan_beside_its_report(tmp_path, banks):
    journal = Journal.create(tmp_path / "run", bound_plan(tuning(banks), banks))
    page = write_report(journal, tmp_path / "report")
    assert not (page.parent / "tuned.toml").exists()
