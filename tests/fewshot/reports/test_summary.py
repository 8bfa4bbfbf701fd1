from dataclasses import replace

import numpy as np
import pytest

from handful_fewshot.benchmark.plan import Cell
from handful_fewshot.reports.summary import (
    MeanEstimate,
    columns_of,
    paired_difference,
    results,
    verdict,
)
from tests.fewshot.reports.runs_at_hand import made_up_run, noisy
from tests.plans_at_hand import SPEC

PADDLE, KMEANS, ALPHA = (Cell("toy", SPEC, method) for method in ("paddle", "soft_kmeans", "alpha_tim"))


def test_the_interval_is_that_of_the_mean():
    values = np.array([1.0, 2.0, 3.0, 6.0])
    estimate = MeanEstimate.of(values)
    assert estimate.mean == 3.0
    # The standard error of the mean, and the 97.5% point of Student's t with three degrees of freedom, from a table.
    assert estimate.half_width == pytest.approx(3.182446 * np.sqrt(14 / 3) / 2)
    assert estimate.n == 4


def test_nothing_is_said_of_no_task():
    nothing = MeanEstimate.of(np.array([]))
    assert nothing.text() == nothing.percent.text(2, "+") == ""
    assert not nothing.has_interval
    assert verdict(nothing, "a", "b") == "no task in common"
    assert [verdict(MeanEstimate(mean, 1.0, 30), "a", "b") for mean in (2.0, -2.0, 0.5)] == ["a", "b", "tie"]


@pytest.mark.parametrize("n", [1, 2, 29])
def test_few_tasks_that_agree_are_no_win(n):
    difference = MeanEstimate.of(np.full(n, 0.067))
    assert verdict(difference, "a", "b") == "too few tasks to tell"
    assert not difference.decides


@pytest.mark.parametrize(
    ("estimate", "text"), [((0.012345, 0.000678, 9), "0.0123 ± 0.0007"), ((71.25, 3.4, 9), "71.2 ± 3.4")]
)
def test_numbers_have_as_many_digits_as_they_are_sure_of(estimate, text):
    assert MeanEstimate(*estimate).rounded() == text


def test_the_unit_stands_beside_the_number():
    assert MeanEstimate.of(np.array([90.7])).text(unit="%") == "90.7% on one task"
    assert MeanEstimate.of(np.array([90.0, 92.0])).text(unit="%") == "91.0 ± 12.7%"


def test_differences_are_taken_task_by_task_on_the_tasks_both_have(tmp_path):
    hard = noisy(0.5, 100, spread=0.3)
    better = [value + 0.01 for value in hard[:60]]
    journal = made_up_run(tmp_path / "run", (PADDLE, KMEANS), [better, hard])
    a, b = results(journal)
    difference = paired_difference(a, b)
    assert difference.n == 60
    assert difference.mean == pytest.approx(0.01)
    assert not difference.holds_zero  # though each mean's own interval is far wider
    assert a.estimate().half_width > 0.05


def test_failures_are_counted_and_take_no_part(tmp_path):
    journal = made_up_run(tmp_path / "run", (PADDLE,), [[0.2, None, 0.4]])
    (result,) = results(journal)
    assert (result.n_failed, result.first_error) == (1, "TaskError: too few")
    assert result.tasks.tolist() == [0, 2]
    assert result.estimate().mean == pytest.approx(0.3)


def test_results_on_the_same_tasks_are_one_column_and_ties_share_first_place(tmp_path):
    other = replace(PADDLE, spec=replace(SPEC, n_query=8))
    tuned = replace(PADDLE, options={"complexity_weight": 2.0})
    plan = (PADDLE, other, KMEANS, tuned)
    numbers = [noisy(0.8, seed=1), noisy(0.7), noisy(0.5, seed=2), noisy(0.805, seed=3)]
    tuned_label = "paddle (complexity_weight=2, found scale)"
    first, second = columns_of(results(made_up_run(tmp_path / "run", plan, numbers)))
    assert [r.label for r in first.results] == [
        "paddle (found scale)",
        "soft_kmeans (found scale)",
        tuned_label,
    ]
    assert {r.label for r in first.best()} == {"paddle (found scale)", tuned_label}
    assert first.title == "toy, 2-shot, K_eff=2, balanced, |Q|=6"
    assert [r.label for r in second.results] == ["paddle (found scale)"]


def test_labels_name_the_scale_and_the_options_that_tell_results_apart(tmp_path):
    same = [replace(PADDLE, transform="l2", options={"max_iter": n}) for n in (5, 6)]
    labels = [r.label for r in results(made_up_run(tmp_path / "same", tuple(same), [[], []]))]
    assert labels == ["paddle (max_iter=5, unit length)", "paddle (max_iter=6, unit length)"]
    labels = [r.label for r in results(made_up_run(tmp_path / "other", (PADDLE, same[0]), [[], []]))]
    assert labels == ["paddle (found scale)", "paddle (max_iter=5, unit length)"]


def test_a_few_easy_tasks_do_not_make_a_best(tmp_path):
    hard = noisy(0.5, 100, spread=0.3)
    good, poor = [value + 0.1 for value in hard], [value - 0.1 for value in hard]
    easy = sorted(range(100), key=lambda task: -hard[task])[:36]
    lucky = [good[task] - 0.05 if task in easy else None for task in range(100)]
    (column,) = columns_of(results(made_up_run(tmp_path / "run", (PADDLE, KMEANS, ALPHA), [good, poor, lucky])))
    assert max(column.results, key=lambda r: r.estimate().mean).cell.method == "alpha_tim"
    assert [r.label for r in column.best()] == ["paddle (found scale)"]


@pytest.mark.parametrize(
    ("numbers", "best"),
    [
        ([[0.5], [0.9]], []),  # one task each
        ([noisy(0.5, 29), noisy(0.9, 29)], []),  # too few
        ([noisy(0.5, 30), noisy(0.9, 30)], ["soft_kmeans"]),
        ([noisy(0.5, 29), noisy(0.9, 40)], ["soft_kmeans"]),  # the other cannot be judged
        ([[*noisy(0.5, 40), *[None] * 40], [*[None] * 40, *noisy(0.9, 40)]], []),  # no task in common
        ([[*noisy(0.5, 40), *[None] * 20], [*[None] * 20, *noisy(0.9, 40)]], []),  # 20 tasks in common
        ([[], []], []),
    ],
)
def test_nobody_wins_on_few_tasks(tmp_path, numbers, best):
    (column,) = columns_of(results(made_up_run(tmp_path / "run", (PADDLE, KMEANS), numbers)))
    assert [r.cell.method for r in column.best()] == best
