"""Solution: what it computes late, and what it does not have."""

import pytest
import torch

import handful_fewshot as fewshot
from handful_fewshot import Solution
from handful_fewshot.errors import UndefinedError
from tests.tasks_at_hand import random_task


def test_what_a_method_lacks_is_said_when_asked_for():
    log_u, ones = torch.zeros(2, 4, 1), torch.ones(2)
    plain = Solution(log_u, log_u[:, 0].exp(), ones.long(), ones.bool())
    with pytest.raises(UndefinedError, match="no prototypes"):
        _ = plain.prototypes
    with pytest.raises(UndefinedError, match="no objective"):
        _ = plain.objective


def test_a_batch_that_is_recorded_is_not_cut(monkeypatch):
    task = random_task(4, n_tasks=3)
    whole = fewshot.solve("paddle", task, record=True).trace
    monkeypatch.setattr("handful_fewshot.dispatch.CHUNK_NUMBERS", 1)
    assert torch.equal(fewshot.solve("paddle", task, record=True).trace.observed, whole.observed)
