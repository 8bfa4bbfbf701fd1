"""Strangers: levels and variances from left-out classes."""

import pytest
import torch
from torch.nn.functional import normalize

from handful.inference import head as head_module
from handful.inference.head import Head, fit_head
from handful.inference.strangers import fit_strangers


def clouds(n_classes=30, shots=5, dim=24, noise=0.25, seed=0):
    """Unit vectors of n_classes classes, and their codes."""
    generator = torch.Generator().manual_seed(seed)
    means = normalize(torch.randn(n_classes, dim, generator=generator), dim=-1)
    codes = torch.arange(n_classes).repeat_interleave(torch.as_tensor(shots).expand(n_classes))
    return normalize(means[codes] + noise * torch.randn(len(codes), dim, generator=generator), dim=-1), codes


def fitted(points, codes):
    return fit_strangers(fit_head(points, codes, int(codes.max()) + 1), points, codes)


def numbers(found):
    return torch.tensor([*found.pair_odds, *found.distance, *found.score, *found.level, *found.known, *found.unknown])


def test_left_out_examples_are_at_zero_and_left_out_classes_far_away():
    points, codes = clouds(noise=0.15)
    found = fitted(points, codes)
    assert found.pair_odds[0] < 0 < found.pair_odds[1]
    level, known = found.level.at(torch.ones(1)), found.known.at(torch.ones(1))
    assert float(level) > 2 * float(known) ** 0.5
    assert found.known.at(torch.tensor([9.0])) < known
    generator = torch.Generator().manual_seed(5)
    # New items of the same classes, from heads that saw all examples.
    head = fit_head(points, codes, 30)
    centres = normalize(torch.randn(30, 24, generator=torch.Generator().manual_seed(0)), dim=-1)
    own = torch.arange(30).repeat_interleave(20)
    items = normalize(centres[own] + 0.15 * torch.randn(600, 24, generator=generator), dim=-1)
    distances = (items - head.means[own]).square().sum(1) - head.spread / head.mass[own]
    t = found.statistic(distances, (items * head.weights[own]).sum(1) + head.offsets[own])
    assert abs(float(t.mean())) < 0.15 * float(level)
    assert float(t.var()) == pytest.approx(float(known), rel=0.5)


def test_the_order_of_examples_does_not_matter():
    points, codes = clouds(20, 6)
    order = torch.randperm(len(codes), generator=torch.Generator().manual_seed(1))
    torch.testing.assert_close(
        numbers(fitted(points, codes)), numbers(fitted(points[order], codes[order])), rtol=1e-3, atol=1e-3
    )


def test_neither_origin_nor_scale_matters():
    points, codes = clouds(20, 5)
    here = fitted(points, codes)
    head = fit_head(4 * points - 1, codes, 20, 16.0)
    there = fit_strangers(head, 4 * points - 1, codes)
    for name in ("pair_odds", "level", "known", "unknown"):
        assert getattr(there, name) == pytest.approx(getattr(here, name), rel=0.02, abs=0.02)


def test_copies_say_no_more_than_one():
    points, codes = clouds(20, 5)
    twice = fitted(torch.cat([points, points]), torch.cat([codes, codes]))
    once = fitted(points, codes)
    assert float(twice.known.at(torch.ones(1))) == pytest.approx(float(once.known.at(torch.ones(1))), rel=0.3)
    assert twice.pair_odds[1] == pytest.approx(once.pair_odds[1], rel=0.1)


def test_unequal_numbers_of_examples_are_fine():
    points, codes = clouds(20, [1, 2, 3, 5, 40] * 4)
    found = fitted(points, codes)
    assert found is not None
    assert numbers(found).isfinite().all()


@pytest.mark.parametrize("shots", [1, [2] * 9 + [1] * 11])
def test_too_few_examples_cannot_tell(shots):
    assert fitted(*clouds(20, shots)) is None


def test_class_means_cannot_tell():
    points, codes = clouds(20, 5)
    means = points.view(20, 5, -1).mean(1)
    head = Head.of_means(means, torch.full((20,), 5.0), points, codes)
    assert len(head.left_out.rows) == 100
    assert fit_strangers(head, points, codes) is None


def test_classes_that_are_no_classes_cannot_tell_or_are_close():
    """With shuffled labels two examples of a class are no more alike than others."""
    points, codes = clouds(20, 5)
    shuffled = codes[torch.randperm(100, generator=torch.Generator().manual_seed(2))]
    found = fitted(points, shuffled)
    assert found is None or abs(found.pair_odds[1]) < 5


def test_identical_examples_cannot_tell():
    codes = torch.arange(10).repeat_interleave(5)
    assert fitted(torch.eye(10)[codes], codes) is None


@pytest.mark.parametrize("folds", [1, 5])
def test_a_head_against_near_classes_can_tell(folds, monkeypatch):
    monkeypatch.setattr(head_module, "FULL_WORK", 0)
    monkeypatch.setattr(head_module, "RIVALS", 8)
    if folds == 1:
        monkeypatch.setattr(head_module, "FOLDED_WORK", 0)
    found = fitted(*clouds(40, 5))
    assert found is not None
    assert float(found.level.at(torch.ones(1))) > 1
