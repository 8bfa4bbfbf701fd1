import numpy as np
import pytest

from handful.fewshot import ShotsPerClass, TaskSpec, UniformOverPool, UnknownClasses
from handful.fewshot.benchmark.plan import Cell
from handful.fewshot.reports.summary import columns_of, results
from handful.fewshot.reports.tables import (
    accuracy_table,
    differences_table,
    render_html,
    render_latex,
    render_markdown,
    unknown_markdown,
)
from tests.fewshot.reports.runs_at_hand import made_up_run, noisy

MINI = TaskSpec(ShotsPerClass(5), UniformOverPool(5))
OWN = TaskSpec(ShotsPerClass(5), UniformOverPool(5), n_query=50)
PLAN = (Cell("mini", MINI, "paddle"), Cell("mini", MINI, "nearest_prototype"), Cell("my_own", OWN, "paddle"))


@pytest.fixture
def columns(tmp_path):
    numbers = [noisy(0.6, 1200), noisy(0.5, 1000), noisy(0.7)]
    return columns_of(results(made_up_run(tmp_path / "run", PLAN, numbers)))


@pytest.fixture
def table(columns):
    return accuracy_table(columns)


def test_markdown_has_interval_number_of_tasks_and_the_papers_number(table):
    head, _, paddle, nearest = render_markdown(table).splitlines()
    assert head == "| method | mini, 5-shot, K_eff=5 | my_own, 5-shot, K_eff=5, \\|Q\\|=50 |"
    assert paddle.startswith("| paddle | **60.0** ")
    assert "± 0.6 (1,200) / 63.2 |" in paddle
    assert nearest.startswith("| nearest_prototype | 50.0 ± 0.6 (1,000) |")
    assert nearest.endswith("|  |")


def test_latex_is_booktabs_with_every_special_letter_escaped(table):
    text = render_latex(table, "Accuracy, %")
    for rule in ("toprule", "midrule", "bottomrule"):
        assert rf"\{rule}" in text
    assert r"\textbf{60.0}" in text
    assert "(63.2)" in text
    assert r"nearest\_prototype & 50.0$" in text
    assert r"my\_own" in text
    assert r"\caption{Accuracy, \%}" in text
    assert r"\emph{tasks} & 1,000--1,200 & 100 \\" in text
    assert text.count(r"\begin{") == text.count(r"\end{") == 2
    assert len({line.count("&") for line in text.splitlines() if line.endswith(r"\\")}) == 1


def test_differences_are_from_the_best(columns):
    ((label, estimate),) = differences_table(columns[0])
    assert label == "paddle − nearest_prototype"
    assert estimate.mean == pytest.approx(100 * (np.mean(noisy(0.6, 1200)[:1000]) - 0.5))  # on the tasks both have
    assert estimate.n == 1000


def test_one_task_has_no_interval_and_no_task_no_mean(tmp_path):
    table = accuracy_table(columns_of(results(made_up_run(tmp_path / "run", PLAN, [[0.5], [], [0.7, 0.7]]))))
    paddle, nearest = render_markdown(table).splitlines()[2:]
    assert paddle == "| paddle | 50.0, no interval (1) / 63.2 | **70.0** ± 0.0 (2) |"
    assert nearest == "| nearest_prototype | – (0) |  |"
    latex, html = render_latex(table), render_html(table)
    assert r"paddle & 50.0, no interval (63.2) & \textbf{70.0}$_{\pm 0.0}$" in latex
    assert r"nearest\_prototype & -- & --" in latex
    assert "<td>50.0<span class='interval'>, no interval</span>" in html
    assert not any(word in text for text in (latex, html, paddle) for word in ("nan", "inf", "∞"))


def test_unknown_items_have_a_table_that_says_whose_score_it_is(tmp_path, columns):
    assert unknown_markdown(columns) == ""
    spec = TaskSpec(ShotsPerClass(5), UniformOverPool(5), unknown=UnknownClasses(3, 0.2))
    plan = (Cell("mini", spec, "oslo"), Cell("mini", spec, "paddle"), Cell("mini", MINI, "paddle"))
    journal = made_up_run(tmp_path / "open", plan, [noisy(0.6), noisy(0.7), noisy(0.8)], unknown_auroc=0.9)
    text = unknown_markdown(columns_of(results(journal)))
    title, _, head, _, oslo, paddle = text.splitlines()
    assert title == "mini, 5-shot, K_eff=5, 3 unknown at 20 %"
    assert head.startswith("| method | score | AUROC | AUPR | precision at 90 % recall | accuracy on known | ")
    assert oslo.startswith("| oslo | its own | 90.0 ± 0.0 | ")
    assert paddle.startswith("| paddle | 1 − highest probability | 90.0 ± 0.0 | ")
    assert " | 60.0 ± " in oslo
    assert " | 70.0 ± " in paddle
