import math

import numpy as np
import pytest
import torch
from sklearn.metrics import log_loss, recall_score

from handful.benchmark.score import score
from handful.solution import Solution


def solution_of(log_p: torch.Tensor) -> Solution:
    n = len(log_p)
    return Solution(log_p, log_p.exp().mean(1), torch.ones(n, dtype=torch.long), torch.ones(n, dtype=torch.bool))


def test_scores_are_those_of_scikit_learn():
    generator = torch.Generator().manual_seed(0)
    log_p = torch.randn(5, 30, 7, generator=generator).log_softmax(-1)
    truth = torch.randint(0, 4, (5, 30), generator=generator)
    scores = score(solution_of(log_p), truth)
    for t in range(5):
        y, p = truth[t].numpy(), log_p[t].exp().double().numpy()
        found, present = set(p.argmax(1)), set(y)
        assert scores.accuracy[t] == pytest.approx((p.argmax(1) == y).mean())
        expected = recall_score(y, p.argmax(1), labels=sorted(present), average="macro")
        assert scores.macro_recall[t] == pytest.approx(expected)
        assert scores.n_predicted[t] == len(found)
        assert scores.presence_precision[t] == pytest.approx(len(found & present) / len(found))
        assert scores.presence_recall[t] == pytest.approx(len(found & present) / len(present))
        shares = np.bincount(y, minlength=7) / 30
        assert scores.proportion_error[t] == pytest.approx(np.abs(p.mean(0) - shares).sum() / 2, abs=1e-6)
        expected = log_loss(y, p / p.sum(1, keepdims=True), labels=np.arange(7))
        assert scores.negative_log_likelihood[t] == pytest.approx(expected, rel=1e-5)


def test_a_class_ruled_out_costs_a_finite_amount():
    log_p = torch.tensor([[[0.0, -torch.inf], [0.0, -torch.inf]]])
    scores = score(solution_of(log_p), torch.tensor([[0, 1]]))
    assert scores.negative_log_likelihood.item() == pytest.approx(-math.log(1e-12) / 2)


def test_proportions_are_right_or_wholly_wrong():
    log_p = torch.tensor([[[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]]).log()
    assert (
        score(solution_of(log_p), torch.tensor([[1, 0]])).proportion_error.item() == 0.0
    )  # the right classes, mixed up
    assert score(solution_of(log_p), torch.tensor([[2, 2]])).proportion_error.item() == 1.0
