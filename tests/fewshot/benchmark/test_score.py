import math

import numpy as np
import pytest
import torch
from sklearn.metrics import average_precision_score, log_loss, recall_score, roc_auc_score

from handful_fewshot.benchmark.score import score
from handful_fewshot.solution import Solution


def solution_of(log_p: torch.Tensor) -> Solution:
    n = len(log_p)
    return Solution(log_p, log_p.exp().mean(1), torch.ones(n, dtype=torch.long), torch.ones(n, dtype=torch.bool))


def test_a_class_ruled_out_costs_a_finite_amount():
    log_p = torch.tensor([[[0.0, -torch.inf], [0.0, -torch.inf]]])
    scores = score(solution_of(log_p), torch.tensor([[0, 1]]))
    assert scores.negative_log_likelihood.item() == pytest.approx(-math.log(1e-12) / 2)


def open_solution_of(log_p: torch.Tensor, unknown: torch.Tensor) -> Solution:
    kept = (1 - unknown)[..., None]
    proportions = (kept * log_p.exp()).sum(1) / kept.sum(1).clamp(min=1e-300)
    n = len(log_p)
    counts, converged = torch.ones(n, dtype=torch.long), torch.ones(n, dtype=torch.bool)
    return Solution(log_p, proportions, counts, converged, unknown=unknown)


def test_scores_with_unknown_items_are_those_of_scikit_learn():
    generator = torch.Generator().manual_seed(1)
    log_p = torch.randn(5, 30, 7, generator=generator, dtype=torch.float64).log_softmax(-1)
    truth = torch.randint(-1, 4, (5, 30), generator=generator)
    unknown = torch.rand(5, 30, generator=generator, dtype=torch.float64)
    scores = score(open_solution_of(log_p, unknown), truth)
    for t in range(5):
        y, p, o = truth[t].numpy(), log_p[t].exp().numpy(), unknown[t].numpy()
        known = y >= 0
        found, present = set(p.argmax(1)[o <= 0.5]), set(y[known])
        assert scores.accuracy[t] == pytest.approx((p.argmax(1) == y)[known].mean())
        expected = recall_score(y[known], p.argmax(1)[known], labels=sorted(present), average="macro")
        assert scores.macro_recall[t] == pytest.approx(expected)
        assert scores.n_predicted[t] == len(found)
        assert scores.presence_precision[t] == pytest.approx(len(found & present) / len(found))
        assert scores.presence_recall[t] == pytest.approx(len(found & present) / len(present))
        assert scores.negative_log_likelihood[t] == pytest.approx(log_loss(y[known], p[known], labels=np.arange(7)))
        estimated = np.r_[((1 - o)[:, None] * p).sum(0) / 30, o.mean()]
        shares = np.r_[np.bincount(y[known], minlength=7) / 30, (~known).mean()]
        # Proportions of what is not rejected, weighted by how much that is, are the mean over all queries.
        assert scores.proportion_error[t] == pytest.approx(np.abs(estimated - shares).sum() / 2)
        assert scores.unknown_auroc[t] == pytest.approx(roc_auc_score(~known, o))
        assert scores.unknown_aupr[t] == pytest.approx(average_precision_score(~known, o))
        assert scores.unknown_share_error[t] == pytest.approx(abs(o.mean() - (~known).mean()))
        assert scores.known_rejected[t] == pytest.approx((o > 0.5)[known].mean())


def test_a_method_that_cannot_reject_is_ranked_by_one_minus_its_highest_probability():
    generator = torch.Generator().manual_seed(2)
    log_p = (5 * torch.randn(3, 30, 7, generator=generator)).log_softmax(-1)
    truth = torch.randint(-1, 4, (3, 30), generator=generator)
    scores = score(solution_of(log_p), truth)
    for t in range(3):
        expected = roc_auc_score(truth[t] < 0, 1 - log_p[t].double().exp().max(1).values)
        assert scores.unknown_auroc[t] == pytest.approx(expected)
        assert scores.unknown_share_error[t].isnan()
        assert scores.known_rejected[t].isnan()


def test_what_a_task_cannot_have_is_not_a_number():
    log_p = torch.tensor([[[0.0, -5.0], [0.0, -5.0]]]).log_softmax(-1)
    nothing_known = score(
        open_solution_of(log_p.double(), torch.ones(1, 2, dtype=torch.float64)), torch.tensor([[-1, -1]])
    )
    for name in ("accuracy", "macro_recall", "presence_precision", "presence_recall", "unknown_auroc"):
        assert getattr(nothing_known, name).isnan().all(), name
    assert nothing_known.n_predicted.item() == 0
    assert nothing_known.unknown_share_error.item() == 0
    assert nothing_known.proportion_error.item() == 0
    nothing_unknown = score(solution_of(log_p), torch.tensor([[0, 0]]))
    assert nothing_unknown.accuracy.item() == 1
    assert nothing_unknown.unknown_aupr.isnan().all()


def test_nine_of_ten_are_ninety_percent():
    """The precision where nine of ten unknown queries are found; the tenth comes last, after ten known ones."""
    unknown = torch.linspace(1, 0, 20, dtype=torch.float64)[None]
    truth = torch.tensor([[-1] * 9 + [0] * 10 + [-1]])
    log_p = torch.zeros(1, 20, 1, dtype=torch.float64)
    assert score(open_solution_of(log_p, unknown), truth).unknown_precision.item() == 1.0
