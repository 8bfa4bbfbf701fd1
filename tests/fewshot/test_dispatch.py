"""solve: names, chunks."""

import dataclasses

import pytest

import handful
from handful import fewshot
from handful.errors import UnknownNameError
from handful.fewshot.dispatch import CHUNK_NUMBERS, tasks_per_chunk
from tests.tasks_at_hand import random_task


def test_an_unknown_method_is_refused_with_the_known_ones():
    with pytest.raises(
        UnknownNameError,
        match="no method is called 'padle'; there are roll_call, paddle, soft_kmeans",
    ):
        fewshot.solve("padle", random_task(0))


def test_a_method_may_be_given_itself():
    task = random_task(0)
    by_name, by_itself = (
        fewshot.solve(method, task).log_assignments for method in ("paddle", fewshot.METHODS["paddle"])
    )
    assert by_name.equal(by_itself)


def test_chunks_shrink_with_the_size_of_a_task():
    small, large = random_task(0), random_task(0, n_classes=40, n_query=200, dim=100)
    assert tasks_per_chunk(small, 0) > tasks_per_chunk(large, 0) >= 1


def test_a_method_that_keeps_the_support_in_view_gets_smaller_chunks():
    task = random_task(0, n_tasks=1, n_classes=40, shots=20)
    n_numbers = (40 + 15) * 8 + 15**2 + 8 * 15 * 40
    assert tasks_per_chunk(task, 0) == CHUNK_NUMBERS // n_numbers
    assert tasks_per_chunk(task, 3) == CHUNK_NUMBERS // (n_numbers + 3 * 800 * 40)


def test_chunks_are_equally_large(monkeypatch):
    sizes = []
    paddle = fewshot.METHODS["paddle"]
    counted = dataclasses.replace(
        paddle, solve=lambda task, options: sizes.append(task.n_tasks) or paddle.solve(task, options)
    )
    monkeypatch.setattr(handful.fewshot.dispatch, "METHODS", {"paddle": counted})
    monkeypatch.setattr(handful.fewshot.dispatch, "CHUNK_NUMBERS", 4 * (15**2 + 8 * 15 * 6 + (15 + 6) * 8))
    fewshot.solve("paddle", random_task(0, n_tasks=6))
    assert sizes == [3, 3]
