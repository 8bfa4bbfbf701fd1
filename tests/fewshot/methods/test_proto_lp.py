"""protoLP: the labels of prototypes against their objective, the iterations written out, and what balance does."""

import pytest
import torch

import handful_fewshot as fewshot
from handful_fewshot.methods import proto_lp
from tests.fewshot.methods.test_nearest_prototype import class_means
from tests.tasks_at_hand import random_task


def nearest(query: torch.Tensor, w: torch.Tensor, balanced: bool) -> torch.Tensor:
    z = torch.softmax(-10 * torch.cdist(query, w).square(), -1)
    return swept(z, len(query) / len(w), z[:0]) if balanced else z


def at_hand(seed: int, **shape) -> fewshot.TaskBatch:
    """Features on the unit sphere, where the published cost weight belongs."""
    return fewshot.transform("task_cl2n", random_task(seed, spread=1.5, **shape))


def by_the_objective(z_support: torch.Tensor, z_query: torch.Tensor, smoothness: float) -> torch.Tensor:
    """Minimise `‖Z_S A - Y_S‖² + γ tr(Aᵀ Zᵀ (I - Z Λ⁻¹ Zᵀ) Z A)` as least squares with a root of the graph's matrix."""
    z = torch.cat([z_support, z_query])
    graph = torch.eye(len(z), dtype=z.dtype) - z @ torch.diag(1 / z.sum(0)) @ z.T
    values, vectors = torch.linalg.eigh(graph)
    root = (vectors * values.clamp(min=0).sqrt()) @ vectors.T
    rows = torch.cat([z_support, smoothness**0.5 * root @ z])
    return torch.linalg.lstsq(rows, torch.cat([z_support, torch.zeros(len(z), z.shape[1], dtype=z.dtype)])).solution


@pytest.mark.parametrize("smoothness", [0.05, 1.0, 30.0])
def test_the_labels_of_prototypes_minimise_the_objective(smoothness):
    generator = torch.Generator().manual_seed(0)
    z = torch.softmax(3 * torch.randn(4, 20, 6, dtype=torch.float64, generator=generator), -1)
    counts = torch.tensor([1, 2, 3, 1, 5, 2])
    z_support = torch.eye(6, dtype=torch.float64).repeat_interleave(counts, 0)
    found = proto_lp.prototype_labels(z, counts.double()[None], smoothness)
    for t in range(4):
        torch.testing.assert_close(found[t], by_the_objective(z_support, z[t], smoothness))
    # They are shares: a point that passes them on gets shares, too.
    torch.testing.assert_close(found.sum(-1), torch.ones(4, 6, dtype=torch.float64))
    assert (found >= 0).all()


def swept(plan: torch.Tensor, column: float, fixed: torch.Tensor) -> torch.Tensor:
    """Sinkhorn's sweeps as in the authors' code: rows of the support are set to their labels again and again."""
    joint = torch.cat([fixed, plan])
    for _ in range(3000):
        joint = joint / joint.sum(1, keepdim=True)
        joint = joint * ((fixed.sum(0) + column) / joint.sum(0))
        joint[: len(fixed)] = fixed
    return joint[len(fixed) :]


@pytest.mark.parametrize("balanced", [False, True])
def test_it_is_what_the_equations_say(balanced, monkeypatch):
    monkeypatch.setattr(proto_lp, "Z_TOLERANCE", 1e-12)
    monkeypatch.setattr(proto_lp, "F_TOLERANCE", 1e-12)
    task = at_hand(1)
    solution = fewshot.solve("proto_lp", task, max_iter=4, smoothness=0.5, balanced=balanced)
    one_hot = torch.nn.functional.one_hot(task.support_labels, 6).double()
    for t in range(task.n_tasks):
        w = torch.nn.functional.normalize(class_means(task)[t], dim=-1)
        for _ in range(4):
            z = nearest(task.query[t], w, balanced)
            f = z @ by_the_objective(one_hot[t], z, 0.5)
            f = swept(f, 15 / 6, one_hot[t]) if balanced else f
            m, points = torch.cat([one_hot[t], 0.7 * f + 0.3 * z]), torch.cat([task.support[t], task.query[t]])
            w = w + 0.2 * (m.T @ points / m.sum(0)[:, None] - w)
        torch.testing.assert_close(solution.prototypes[t], w, atol=1e-6, rtol=0)
        expected = nearest(task.query[t], w, balanced)
        torch.testing.assert_close(solution.log_assignments[t].exp(), expected, atol=1e-6, rtol=0)


def test_only_balance_gives_every_class_its_share():
    task = at_hand(2, n_present=2, n_query=60)
    free, forced = (fewshot.solve("proto_lp", task, balanced=balanced).proportions for balanced in (False, True))
    torch.testing.assert_close(forced, torch.full_like(forced, 1 / 6), atol=1e-2, rtol=0)
    assert (free.amax(-1) > 2 / 6).all()
