"""TIM and α-TIM: no denormal numbers, and blocks; `methods/test_tim.py` compares the descent with autograd."""

import pytest
import torch

from handful import fewshot
from handful.fewshot.solvers.frame import Frame
from handful.fewshot.solvers.mutual_information import InformationProblem, Loss, probabilities
from tests.tasks_at_hand import random_task


def test_no_probability_is_denormal():
    """Classes 1e4 nats apart: the exponential of most logits would lie below the normal range, or be zero."""
    task = random_task(7, spread=0.1, dtype=torch.float32)
    for factor in (3.0, 10.0, 100.0):
        scaled = task.with_features(factor * task.support, factor * task.query)
        loss = Loss(1.0, 1.0, 1.0, 1.0)
        frame = Frame(scaled)
        p, log_p = probabilities(InformationProblem.of(frame, loss), frame.support.mean(), 1.0)
        assert p.min() > torch.finfo(torch.float32).tiny
        assert log_p.isfinite().all()


@pytest.mark.parametrize("method", ["tim", "tim_adm", "alpha_tim"])
def test_blocks_change_nothing(method, monkeypatch):
    task = random_task(9, n_tasks=5)
    whole = fewshot.solve(method, task, max_iter=5, temperature=0.5)
    monkeypatch.setattr("handful.fewshot.task.BLOCK_NUMBERS", 1)
    cut = fewshot.solve(method, task, max_iter=5, temperature=0.5)
    torch.testing.assert_close(whole.log_assignments, cut.log_assignments)
    torch.testing.assert_close(whole.prototypes, cut.prototypes)
