"""Left-out examples: folds, copies, and what they say about the numbers of examples."""

import torch

from handful.inference import left_out
from handful.inference.head import fit_head
from handful.inference.left_out import copies, folds
from tests.heads_at_hand import accuracy, clouds


def test_left_out_examples_were_not_seen():
    """With random labels an example that had been seen would be recognised."""
    generator = torch.Generator().manual_seed(0)
    points = torch.nn.functional.normalize(torch.randn(100, 200, generator=generator), dim=1)
    codes = torch.arange(100) % 10
    head = fit_head(points, codes, 10)
    right = (head.left_out.lead < 0).double().mean()
    assert right < 0.25
    assert accuracy(head, points, codes) > 0.9


def test_folds_follow_the_geometry_alone():
    points, codes, _, _ = clouds(dtype=torch.float64)
    generator = torch.Generator().manual_seed(3)
    order, names = torch.randperm(100, generator=generator), torch.randperm(20, generator=generator)
    turn = torch.linalg.qr(torch.randn(24, 24, generator=generator, dtype=torch.float64))[0]
    dealt = folds(points, codes)
    assert torch.equal(dealt[order], folds(points[order], codes[order]))
    assert torch.equal(dealt, folds(points, names[codes]))
    assert torch.equal(dealt, folds(points @ turn + 2, codes))
    assert all(sorted(dealt[codes == k].tolist()) == [0, 1, 2, 3, 4] for k in range(20))


def test_rows_at_equal_distances_are_no_copies():
    assert (folds(torch.eye(30), torch.arange(30) % 2) >= 0).all()
    assert (copies(torch.eye(30), torch.arange(30) % 2) == 1).all()


def test_the_slope_of_ln_s_is_one_unless_there_is_evidence(monkeypatch):
    points, codes, _, _ = clouds(40, torch.tensor([1, 2, 4, 12]).repeat(10))
    monkeypatch.setattr(left_out, "SLOPE_DEVIATION", 1e-9)
    held = fit_head(points, codes, 40)
    monkeypatch.setattr(left_out, "SLOPES", (1.0,))
    torch.testing.assert_close(held.offsets, fit_head(points, codes, 40).offsets)
    monkeypatch.setattr(left_out, "SLOPES", (2.0,))
    steep = fit_head(points, codes, 40)
    few, many = torch.bincount(codes) == 1, torch.bincount(codes) == 12
    assert (steep.offsets - held.offsets)[few].mean() > (steep.offsets - held.offsets)[many].mean() + 2
