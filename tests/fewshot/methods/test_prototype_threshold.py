"""The threshold on the nearest prototype: by hand, and that it rejects the share of unknown items that it says."""

import numpy as np
import pytest
import torch

import handful_fewshot as fewshot
from tests.tasks_at_hand import random_task


@pytest.mark.parametrize("share", [0.2, 0.5, 0.9])
def test_it_is_what_the_equations_say(share):
    task = random_task(2, n_tasks=2, spread=1.5)
    solution = fewshot.solve("prototype_threshold", task, rejected_share=share, temperature=0.2)
    for t in range(2):
        support, labels, query = task.support[t].numpy(), task.support_labels[t].numpy(), task.query[t].numpy()
        means = np.stack([support[labels == k].mean(0) for k in range(6)])

        def cosines(points, means=means):
            lengths = np.linalg.norm(points, axis=1)[:, None] * np.linalg.norm(means, axis=1)
            return points @ means.T / lengths

        others = [max(c for k, c in enumerate(row) if k != y) for row, y in zip(cosines(support), labels, strict=True)]
        threshold = np.quantile(others, share)
        found = cosines(query)
        np.testing.assert_allclose(solution.unknown[t], 1 / (1 + np.exp((found.max(1) - threshold) / 0.2)))
        assert solution.predictions[t].tolist() == found.argmax(1).tolist()
        np.testing.assert_allclose(solution.prototypes[t], means)


def test_the_share_of_unknown_items_that_are_rejected_is_the_one_asked_for():
    """Classes are drawn alike, so a class outside the support is as unlike those in it as they are each other."""
    rng = np.random.default_rng(0)
    centres = rng.standard_normal((120, 10))
    strangers = rng.standard_normal((4000, 10))
    support = (centres[:, None] + 0.3 * rng.standard_normal((120, 5, 10))).reshape(-1, 10)
    query = strangers + 0.3 * rng.standard_normal(strangers.shape)
    task = fewshot.TaskBatch.single(support, np.repeat(np.arange(120), 5), query, 120)
    for share in (0.25, 0.5, 0.75):
        unknown = fewshot.solve("prototype_threshold", task, rejected_share=share).unknown
        assert (unknown > 0.5).double().mean() == pytest.approx(share, abs=0.1)


def test_the_ranking_of_queries_does_not_depend_on_the_share():
    task = random_task(3)
    order = [fewshot.solve("prototype_threshold", task, rejected_share=s).unknown.argsort(-1) for s in (0.1, 0.9)]
    assert torch.equal(*order)


def test_of_one_class_nothing_is_rejected():
    task = random_task(3, n_classes=1, n_present=1)
    assert (fewshot.solve("prototype_threshold", task).unknown < 0.5).all()
