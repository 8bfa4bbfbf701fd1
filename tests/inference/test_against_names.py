"""Names alone: the scale of the items, names that move, masks and priors."""

import pytest
import torch

from handful.inference.against_names import in_nats, label_by_names
from handful.inference.head import Head
from handful.inference.prior import Prior


def batches(classes, n_items=60, n_classes=80, dim=24, noise=1.3, seed=0, domain=0.0):
    """Names, and unit vectors of items of some classes of each batch, with their truth."""
    generator = torch.Generator().manual_seed(seed)
    centres = torch.randn(n_classes, dim, generator=generator) + domain
    names = torch.nn.functional.normalize(centres + 0.9 * torch.randn(n_classes, dim, generator=generator), dim=1)
    truth = torch.stack([torch.tensor(those)[torch.arange(n_items) % len(those)] for those in classes])
    points = centres[truth] + noise * torch.randn(*truth.shape, dim, generator=generator)
    return Head.of_names(names), torch.nn.functional.normalize(points, dim=-1), truth


def labelled(head, points, mask=None, prior=None):
    return label_by_names(points, mask, head, prior, max_iter=200, tol=1e-3)


def right(found, truth):
    return float((found.log_probabilities.argmax(-1) == truth).double().mean())


def test_few_classes_are_found_together():
    head, points, truth = batches([[k, k + 9, k + 30] for k in range(0, 24, 3)])
    alone = float(((points @ head.weights.T).argmax(-1) == truth).double().mean())
    assert right(labelled(head, points), truth) > alone + 0.08


@pytest.mark.parametrize(("n_present", "noise"), [(80, 0.7), (80, 1.3), (30, 1.3), (20, 1.6)])
def test_many_classes_lose_nothing_even_if_names_are_weak(n_present, noise):
    head, points, truth = batches([list(range(n_present))] * 6, n_items=80, noise=noise)
    alone = float(((points @ head.weights.T).argmax(-1) == truth).double().mean())
    assert alone < 0.85
    assert right(labelled(head, points), truth) > alone - 0.005


@pytest.mark.parametrize("domain", [1.0, 3.0])
@pytest.mark.parametrize("n_present", [2, 16])
def test_items_of_one_domain_do_not_all_join_the_largest_class(domain, n_present):
    head, points, truth = batches([list(range(n_present))] * 6, n_items=200, n_classes=16, domain=domain)
    alone = float(((points @ head.weights.T).argmax(-1) == truth).double().mean())
    assert right(labelled(head, points), truth) > alone + 0.05


def test_a_batch_does_not_change_another_and_neither_does_padding():
    head, points, _ = batches([[3, 7], [11, 12, 13, 14]])
    both = labelled(head, points).log_probabilities
    padded, mask = torch.cat([points[:1], torch.zeros(1, 20, 24)], 1), torch.arange(80) < 60
    torch.testing.assert_close(labelled(head, points[:1]).log_probabilities, both[:1])
    found = labelled(head, padded, mask.unsqueeze(0)).log_probabilities
    torch.testing.assert_close(found[:, :60], both[:1], atol=1e-4, rtol=1e-4)


def test_a_factor_on_names_changes_nothing():
    head, points, _ = batches([[3, 7, 20]])
    smaller = Head.of_names(0.2 * head.means)
    torch.testing.assert_close(
        labelled(smaller, points).log_probabilities, labelled(head, points).log_probabilities, atol=1e-3, rtol=1e-3
    )


def test_candidates_are_the_only_classes():
    head, points, truth = batches([[3, 7, 20]])
    weights = torch.zeros(1, 80, dtype=torch.float64)
    weights[0, [3, 7, *range(20, 30)]] = 1
    found = labelled(head, points, prior=Prior.of(weights, torch.tensor([300.0], dtype=torch.float64)))
    assert found.log_probabilities.exp().sum(1)[0, weights[0] == 0].sum() == 0
    assert right(found, truth) >= right(labelled(head, points), truth)


def test_one_class_and_equal_names_are_no_trouble():
    head, points, _ = batches([[3, 7, 20]])
    assert labelled(Head.of_names(head.means[:1]), points).log_probabilities.exp().min() > 0.999
    equal = labelled(Head.of_names(head.means[:1].repeat(4, 1)), points).log_probabilities.exp()
    torch.testing.assert_close(equal, torch.full_like(equal, 0.25))


def test_in_nats_scores_have_the_spread_of_the_first_pass():
    head, points, _ = batches([[3, 7, 20]])
    scores = points @ in_nats(head, points, None).weights.T
    deviation = (scores - scores.mean(-1, keepdim=True)).square().mean().sqrt()
    torch.testing.assert_close(deviation, torch.tensor(2.1), atol=1e-3, rtol=1e-3)
