import numpy as np
import pytest

from handful.errors import PlanError
from handful.fewshot.benchmark.completion import complete
from handful.fewshot.benchmark.journal import Journal
from handful.fewshot.benchmark.plan import bound_plan, grid, read_plan
from handful.fewshot.benchmark.tuning import tuning_plan
from handful.fewshot.reports.tuning import choices, choices_markdown, tuned_plan, write_tuned_plan
from tests.banks_at_hand import random_bank
from tests.fewshot.reports.runs_at_hand import made_up_run, noisy

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
    assert line.startswith("| my bank | laplacian_shot | smoothness=0.7 | 50.00 ± ")
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


def test_a_tie_between_others_goes_to_the_default(tmp_path, banks):
    # The public configuration has 50, the default of the method is 10.
    values = {8.0: [0.6, 0.8], 10.0: [0.8, 0.6], 50.0: [0.5, 0.5]}
    points = [({"sharpness": value}, numbers) for value, numbers in values.items()]
    assert chosen(tmp_path, banks, "bd_cspn", points).found.cell.options["sharpness"] == 10.0


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
