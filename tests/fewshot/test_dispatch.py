"""solve: names, chunks, and what lies beyond the reach of a method's arithmetic."""

import dataclasses

import pytest
import torch

import handful_fewshot as fewshot
import handful_fewshot.dispatch
from handful import progress
from handful.errors import TaskError, UnknownNameError
from handful_fewshot.dispatch import CHUNK_NUMBERS, tasks_per_chunk
from tests.tasks_at_hand import random_task


def test_an_unknown_method_is_refused_with_the_known_ones():
    with pytest.raises(
        UnknownNameError,
        match=r"no method is called 'padle' \(did you mean 'paddle'\?\); choose from batch_classifier, sparse_em",
    ):
        fewshot.solve("padle", random_task(0))


def test_a_method_that_keeps_the_support_in_view_gets_smaller_chunks():
    task = random_task(0, n_tasks=1, n_classes=40, shots=20)
    n_numbers = (40 + 2 * 15) * 8 + 15**2 + 8 * 15 * 40
    assert tasks_per_chunk(task, 0) == CHUNK_NUMBERS // n_numbers
    assert tasks_per_chunk(task, 3) == CHUNK_NUMBERS // (n_numbers + 3 * 800 * 40)


def test_chunks_are_equally_large(monkeypatch):
    sizes = []
    paddle = fewshot.METHODS["paddle"]
    counted = dataclasses.replace(
        paddle, solve=lambda task, options: sizes.append(task.n_tasks) or paddle.solve(task, options)
    )
    monkeypatch.setattr(handful_fewshot.dispatch, "METHODS", {"paddle": counted})
    monkeypatch.setattr(handful_fewshot.dispatch, "CHUNK_NUMBERS", 4 * (15**2 + 8 * 15 * 6 + (2 * 15 + 6) * 8))
    fewshot.solve("paddle", random_task(0, n_tasks=6))
    assert sizes == [3, 3]


def test_the_task_is_named_with_its_magnitude_and_what_to_do():
    task = random_task(0, dtype=torch.float32)
    task.support[1] *= 1e12
    sentence = r"vectors of task 1 have lengths of up to .*e\+1.*; apply transform\('l2', task\) first"
    with pytest.raises(TaskError, match=sentence):
        fewshot.solve("batch_classifier", task)


def test_classes_that_tie_because_they_are_the_same():
    """At any scale: four classes with the same example have the same probability."""
    for factor in (1.0, 1e-3):
        task = fewshot.TaskBatch.single(factor * torch.ones(4, 3), [0, 1, 2, 3], factor * torch.eye(3), 4)
        found = fewshot.solve("nearest_prototype", task).log_assignments.exp()
        torch.testing.assert_close(found, torch.full_like(found, 0.25))


def test_no_answer_is_said_to_be_none():
    with pytest.raises(TaskError, match="task 0 has no finite answer"):
        fewshot.solve("tim_adm", random_task(0, dtype=torch.float32), temperature=1e38, max_iter=3)


@pytest.mark.parametrize("method", ["sparse_em", "batch_classifier"])
def test_fits_of_a_method_are_not_lines_of_a_log(method, monkeypatch, capsys):
    monkeypatch.setattr(progress, "LONG", 0.0)  # everything is long enough to be reported
    with progress.lines():
        fewshot.solve(method, random_task(0, n_tasks=2))
        assert capsys.readouterr().err == ""
        progress.Reporter().stage("run", 1)(1)
        assert "1 of 1" in capsys.readouterr().err
