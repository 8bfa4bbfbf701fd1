"""Solution: what it computes late, and what it does not have."""

from functools import partial

import pytest
import torch

from handful import fewshot
from handful.errors import UndefinedError
from handful.fewshot import Solution
from tests.tasks_at_hand import random_task


def plain(n_tasks: int = 2, **extra) -> Solution:
    log_u = torch.randn(n_tasks, 4, 3, generator=torch.Generator().manual_seed(n_tasks)).log_softmax(-1)
    ones = torch.ones(n_tasks)
    return Solution(log_u, log_u.exp().mean(1), ones.long(), ones.bool(), **extra)


def constant(value: float, log_u: torch.Tensor) -> torch.Tensor:
    return torch.full((len(log_u), 3, 5), value)


def test_what_a_method_lacks_is_said_when_asked_for():
    with pytest.raises(UndefinedError, match="no prototypes"):
        _ = plain().prototypes
    with pytest.raises(UndefinedError, match="no objective"):
        _ = plain().objective


def test_joining_is_concatenation():
    parts = [plain(n, find_prototypes=partial(constant, float(n))) for n in (1, 2)]
    joined = Solution.join(parts)
    assert torch.equal(joined.log_assignments, torch.cat([p.log_assignments for p in parts]))
    assert torch.equal(joined.prototypes, torch.cat([p.prototypes for p in parts]))
    with pytest.raises(UndefinedError):
        _ = joined.objective


def test_traces_of_chunks_end_together(monkeypatch):
    task = random_task(4, n_tasks=3)
    whole = fewshot.solve("paddle", task, record=True).trace
    monkeypatch.setattr("handful.fewshot.dispatch.CHUNK_NUMBERS", 1)  # one task after the other
    cut = fewshot.solve("paddle", task, record=True).trace
    torch.testing.assert_close(cut.observed, whole.observed)
    assert cut.seconds.shape == whole.seconds.shape
