"""The simple control: EM of shares in closed form, its objective, and what happens to classes without support."""

import numpy as np
import pytest
import torch

import handful_fewshot as fewshot
from handful_fewshot.methods.sparse_em import SharesProblem, head_scores, step
from handful_fewshot.numerics.vectors import softmax
from tests.fewshot.methods.test_prior_em import reweighted
from tests.tasks_at_hand import random_task

HALF = 0.5


def by_hand(chances: np.ndarray, taken_off: float, n_iter: int) -> np.ndarray:
    """The two formulas of the method, for one batch."""
    shares = chances.mean(0)
    for _ in range(n_iter):
        joint = chances * shares
        joint = joint / joint.sum(1, keepdims=True)
        counts = np.maximum(joint.sum(0) - taken_off, 0)
        if counts.sum() == 0:
            return chances
        shares = counts / counts.sum()
    return joint


def chances_of(task: fewshot.TaskBatch) -> np.ndarray:
    return torch.softmax(head_scores(task), -1).numpy()


def posterior(scores: torch.Tensor, shares: torch.Tensor, taken_off: float) -> torch.Tensor:
    """`Σ_n ln Σ_k π_k p_nk - t Σ_k ln π_k` over the classes in use, task by task."""
    used = shares > 0
    evidence = (scores.log_softmax(-1) + shares.log().unsqueeze(-2)).logsumexp(-1).sum(-1)
    return evidence - taken_off * shares.log().where(used, 0).sum(-1)


@pytest.mark.parametrize("taken_off", [0.0, HALF, 1.5])
def test_it_is_what_the_formulas_say(taken_off):
    task = random_task(3, spread=2.0)
    found = fewshot.solve("sparse_em", task, taken_off=taken_off, max_iter=40, tol=0.0)
    for t, chances in enumerate(chances_of(task)):
        expected = by_hand(chances, taken_off, 40)
        np.testing.assert_allclose(found.log_assignments[t].exp(), expected, atol=1e-9)
        np.testing.assert_allclose(found.proportions[t], expected.mean(0), atol=1e-9)


def test_with_nothing_taken_off_it_is_em_of_the_shares_of_a_fixed_classifier():
    """Saerens' EM begins at equal shares, whose first step gives the shares that the control begins with."""
    task = random_task(4, spread=2.0)
    found = fewshot.solve("sparse_em", task, taken_off=0.0, max_iter=30, tol=0.0)
    for t, chances in enumerate(chances_of(task)):
        np.testing.assert_allclose(found.log_assignments[t].exp(), reweighted(chances, 31), atol=1e-9)


def shares_of_a_mixture(seed: int) -> tuple[SharesProblem, torch.Tensor]:
    """Scores in which few of twelve classes occur, and the shares to begin with."""
    generator = torch.Generator().manual_seed(seed)
    scores = 2 * torch.randn(5, 40, 12, dtype=torch.float64, generator=generator)
    scores[..., :3] += 2
    return SharesProblem(scores, None), torch.softmax(scores, -1).mean(-2)


def test_the_posterior_never_falls_while_no_class_leaves_and_classes_never_come_back():
    n_kept = 0
    for seed in range(10):
        problem, shares = shares_of_a_mixture(seed)
        for _ in range(60):
            new, _ = step(problem, shares, HALF)
            assert not ((new > 0) & (shares == 0)).any()
            same = ((new > 0) == (shares > 0)).all(-1)
            risen = posterior(problem.scores, new, HALF) - posterior(problem.scores, shares, HALF)
            assert (risen[same] > -1e-10).all()
            n_kept += int(same.sum())
            shares = new
        assert ((shares > 0).sum(-1) < 12).all()
    assert n_kept > 500


def test_the_end_is_a_stationary_point_of_the_posterior_of_the_classes_in_use():
    """`Σ_n p_nk / Σ_j π_j p_nj - t / π_k` is the same for every class in use: the multiplier of `Σ_k π_k = 1`."""
    problem, shares = shares_of_a_mixture(1)
    for _ in range(3000):
        shares, _ = step(problem, shares, HALF)
    p = torch.softmax(problem.scores, -1)
    slopes = (p / (p @ shares.unsqueeze(-1))).sum(-2) - HALF / shares
    for of_task, used in zip(slopes, shares > 0, strict=True):
        assert used.sum() > 1
        assert of_task[used].max() - of_task[used].min() < 1e-8


def test_a_class_leaves_exactly_when_its_support_is_at_most_half_an_item():
    """Two classes and two sure items, of which the second class has a share of the first one alone."""
    for chance, stays in ((0.45, False), (0.55, True)):
        scores = torch.tensor([[[1 - chance, chance], [1.0, 0.0]]], dtype=torch.float64).log()
        equal = torch.full((1, 2), 0.5, dtype=torch.float64)
        new, _ = step(SharesProblem(scores, None), equal, HALF)
        assert bool(new[0, 1] > 0) == stays
        if stays:  # (chance - 1/2) / (2 - 1)
            torch.testing.assert_close(new[0, 1], torch.tensor(chance - HALF, dtype=torch.float64))


def test_if_no_class_has_half_an_item_each_query_is_labelled_alone():
    scores = torch.zeros(2, 2, 8, dtype=torch.float64)
    scores[:, 0, 1], scores[1] = 0.1, 0.0
    problem = SharesProblem(scores, None)
    shares = torch.softmax(scores, -1).mean(-2)
    for _ in range(3):
        shares, u = step(problem, shares, HALF)
        assert (shares == 0).all()
    torch.testing.assert_close(u.weights, softmax(scores).weights)


def test_absent_classes_are_left_out_and_present_ones_gain():
    task = random_task(5, n_tasks=6, n_classes=20, n_present=2, n_query=40, spread=2.5, dim=6)
    found = fewshot.solve("sparse_em", task)
    alone = fewshot.solve("sparse_em", task, taken_off=40.0)
    assert found.converged.all()
    assert ((found.proportions > 0).sum(-1) < (alone.proportions > 1e-3).sum(-1)).all()
    np.testing.assert_allclose(alone.log_assignments.exp(), chances_of(task), atol=1e-12)


def test_it_has_no_prototypes():
    with pytest.raises(fewshot.solution.UndefinedError, match="no prototypes"):
        _ = fewshot.solve("sparse_em", random_task(0)).prototypes
