import numpy as np
import pytest

from handful_fewshot import ShotsPerClass, TaskSpec, UniformOverPool, UnknownClasses
from handful_fewshot.benchmark.plan import Cell
from handful_fewshot.reports.summary import FEW_NOTE, columns_of, results
from handful_fewshot.reports.tables import (
    UNKNOWN_HEAD,
    accuracy_html,
    accuracy_latex,
    accuracy_notes,
    convergence_rows,
    differences_table,
    unknown_rows,
)
from tests.fewshot.reports.runs_at_hand import made_up_run, noisy

MINI = TaskSpec(ShotsPerClass(5), UniformOverPool(5))
OWN = TaskSpec(ShotsPerClass(5), UniformOverPool(5), n_query=50)
PAPER = {"split": "test", "bank_shape": (20, 512, 12_000)}
PLAN = (
    Cell("mini", MINI, "paddle", **PAPER),
    Cell("mini", MINI, "nearest_prototype", **PAPER),
    Cell("my_own", OWN, "paddle"),
)


@pytest.fixture
def columns(tmp_path):
    numbers = [noisy(0.6, 1200), noisy(0.5, 1000), noisy(0.7)]
    return columns_of(results(made_up_run(tmp_path / "run", PLAN, numbers)))


def test_latex_is_booktabs_with_every_special_letter_escaped(columns):
    text = accuracy_latex(columns)
    for rule in ("toprule", "midrule", "bottomrule"):
        assert rf"\{rule}" in text
    assert r"paddle (found scale) & found_scale & \textbf{60.0}$_{\pm 0.6}$ (63.2) & ".replace("d_s", r"d\_s") in text
    assert r"nearest\_prototype (centred on base classes) & cl2n & 50.0$_{\pm 0.6}$ & not in the plan \\" in text
    assert r"my\_own" in text
    assert r"\caption{Accuracy in percent.}" in text
    assert r"\emph{tasks} &  & 1,000--1,200 & 100 \\" in text
    assert text.count(r"\begin{") == text.count(r"\end{") == 2
    assert len({line.count("&") for line in text.splitlines() if line.endswith(r"\\")}) == 1


def test_differences_are_from_the_best(columns):
    ((label, estimate),) = differences_table(columns[0])
    assert label == "paddle (found scale) − nearest_prototype (centred on base classes)"
    assert estimate.mean == pytest.approx(100 * (np.mean(noisy(0.6, 1200)[:1000]) - 0.5))  # on the tasks both have
    assert estimate.n == 1000


def test_one_task_has_no_interval_and_no_task_no_mean(tmp_path):
    columns = columns_of(results(made_up_run(tmp_path / "run", PLAN, [[0.5], [], [0.7, 0.7]])))
    latex, html = accuracy_latex(columns), accuracy_html(columns)
    alone = "The paper's numbers are not beside figures of one task, which have no interval."
    assert rf"{FEW_NOTE} {alone}}}".replace("†", r"\textdagger{}") in latex
    assert r"scale & 50.0, no interval\textdagger{} & 70.0$_{\pm 0.0}$\textdagger{}" in latex
    assert r"classes) & cl2n & not run yet & not in the plan" in latex
    assert "<td>50.0<span class='interval'>, no interval</span>†" in html
    assert not any(word in text for text in (latex, html) for word in ("nan", "inf", "∞"))


def test_unknown_items_have_a_table_that_says_whose_score_it_is(tmp_path, columns):
    assert [unknown_rows(column) for column in columns] == [[], []]
    spec = TaskSpec(ShotsPerClass(5), UniformOverPool(5), unknown=UnknownClasses(3, 0.2))
    plan = (Cell("mini", spec, "oslo"), Cell("mini", spec, "paddle"), Cell("mini", MINI, "paddle"))
    journal = made_up_run(tmp_path / "open", plan, [noisy(0.6), noisy(0.7), noisy(0.8)], unknown_auroc=0.9)
    column, without = columns_of(results(journal))
    assert unknown_rows(without) == []
    oslo, paddle = (dict(zip(UNKNOWN_HEAD, row, strict=True)) for row in unknown_rows(column))
    assert (oslo["method"], oslo["transform"], oslo["score"]) == ("oslo (centred on the task)", "task_cl2n", "its own")
    assert (paddle["method"], paddle["score"]) == ("paddle (found scale)", "1 − highest probability")
    assert {row["AUROC"] for row in (oslo, paddle)} == {"90.0 ± 0.0"}
    assert [row["accuracy on known"][:7] for row in (oslo, paddle)] == ["60.0 ± ", "70.0 ± "]


def test_a_tie_goes_to_the_most_accurate_on_the_tasks_they_share_not_to_the_one_with_most_tasks(tmp_path):
    plan = tuple(Cell("my_own", OWN, method) for method in ("soft_kmeans", "paddle", "nearest_prototype"))
    many, poor = noisy(0.6, 400, spread=0.3), noisy(0.2, 400, seed=2)
    few = [a + b for a, b in zip(many, noisy(0.01, 50, seed=1, spread=0.2), strict=False)]
    (column,) = columns_of(results(made_up_run(tmp_path / "run", plan, [many, few, poor])))
    assert {result.cell.method for result in column.best()} == {"paddle", "soft_kmeans"}
    tie, win = differences_table(column)
    assert [row[0] for row in (tie, win)] == [
        "paddle (found scale) − soft_kmeans (found scale)",
        "paddle (found scale) − nearest_prototype (centred on base classes)",
    ]
    assert tie[1].mean == pytest.approx(1.0)
    assert tie[1].holds_zero


def test_the_papers_numbers_are_not_beside_a_bank_of_other_classes(tmp_path):
    plan = (
        Cell("mini", MINI, "paddle", bank_shape=(150, 384, 9000)),
        Cell("mini", MINI, "tim", bank_shape=(150, 384, 9000)),
        Cell("tiered", MINI, "paddle", split="test", bank_shape=(160, 512, 206_209)),
    )
    columns = columns_of(results(made_up_run(tmp_path / "run", plan, [noisy(0.9)] * 3)))
    note = (
        "The paper's numbers are not beside mini, which has 150 classes and 384 dimensions, but the test split of "
        "mini-ImageNet has 20, with 512 from ResNet-18."
    )
    text = accuracy_latex(columns)
    assert note in text
    assert "63.2" not in text
    assert "(45.8)" in text
    assert accuracy_html(columns).count("class='paper'") == 1


def test_the_transform_that_was_used_is_in_every_table(tmp_path):
    spec = TaskSpec(ShotsPerClass(5), UniformOverPool(5), unknown=UnknownClasses(3, 0.2))
    cells = [("with_base", OWN), ("without", OWN), ("without", spec)]
    plan = tuple(Cell(bank, tasks, "nearest_prototype") for bank, tasks in cells)
    journal = made_up_run(tmp_path / "run", plan, [noisy(0.6), [], []])
    rows = journal.table().to_pylist()
    journal.append([{**row, "cell": cell.content_hash, "transform": "l2"} for cell in plan[1:] for row in rows])
    columns = columns_of(results(journal))
    used = "cl2n (with_base), l2 (without)"
    note = (
        "nearest_prototype on without ran with l2 instead of cl2n: there are no base classes apart from those of the "
        "tasks."
    )
    assert accuracy_notes(columns) == [note]
    text = accuracy_latex(columns).replace(r"\_", "_")
    assert used in text
    assert note in text
    assert used in accuracy_html(columns)
    assert unknown_rows(columns[-1])[0][:2] == ("nearest_prototype (unit length)", "l2")


def test_time_to_convergence_is_that_of_the_tasks_that_converged(tmp_path):
    methods = ("alpha_tim", "paddle_gd", "paddle")
    plan = tuple(Cell("my_own", OWN, method) for method in methods)
    journal = made_up_run(tmp_path / "run", plan, [[], [], []])
    for cell, seconds, converged in zip(
        plan, ([9.0, 9.0], [1.0, 5.0], [0.1, 0.3]), ([0, 0], [1, 0], [1, 1]), strict=True
    ):
        other = made_up_run(tmp_path / cell.method, (cell,), [[0.5, 0.7]])
        rows = other.table().to_pylist()
        journal.append(
            [{**row, "seconds": s, "converged": bool(c)} for row, s, c in zip(rows, seconds, converged, strict=True)]
        )
    columns = columns_of(results(journal))
    found = dict(zip(methods, convergence_rows(columns[0]), strict=True))
    assert [found[method][2] for method in methods] == ["not reached", "1†", "0.2 ± 1.3†"]
    assert [found[method][3] for method in methods] == ["0 of 2 tasks", "1 of 2 tasks", "2 of 2 tasks"]
    without = made_up_run(tmp_path / "without", plan[::2], [[0.5], [0.6]])
    assert convergence_rows(columns_of(results(without))[0]) == []
