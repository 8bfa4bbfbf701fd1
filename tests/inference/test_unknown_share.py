"""The share of unknown items: found, covered by its interval, and not fooled by copies, groups or large batches."""

import math
from typing import NamedTuple

import pytest
import torch

from handful.inference.strangers import Line, Strangers
from handful.inference.unknown_share import share_of as shares_of

PLAIN = Strangers((-3.0, 20.0), (0.0, 1.0), (0.0, 1.0), Line(4.0, 0.0), Line(0.2, 0.8), Line(0.2, 0.8))


class One(NamedTuple):
    """What one batch says."""

    chances: torch.Tensor
    low: float
    high: float
    evidence: float


def share_of(strangers: Strangers, t: torch.Tensor, n: torch.Tensor, copies: torch.Tensor | None = None) -> One:
    """Ask about a single batch; by default its items are all different."""
    weights = 1 / n if copies is None else 1 / (n * copies)
    found = shares_of(strangers, *(part.unsqueeze(0) for part in (t, n, weights)))
    return One(found.chances[0], *found.interval[0].tolist(), float(found.evidence))


def drawn(n_known, n_unknown, seed=0, size=1.0):
    generator = torch.Generator().manual_seed(seed)
    n = torch.full((n_known + n_unknown,), size, dtype=torch.float64)
    noise = (0.2 + 0.8 / size) ** 0.5 * torch.randn(len(n), generator=generator, dtype=torch.float64)
    return torch.cat([torch.zeros(n_known), torch.full((n_unknown,), 4.0)]) + noise, n


@pytest.mark.parametrize("share", [0.1, 0.3, 0.6])
def test_the_share_is_found_and_its_interval_holds_it(share):
    covered = 0
    for seed in range(20):
        t, n = drawn(100 - int(100 * share), int(100 * share), seed)
        found = share_of(PLAIN, t, n)
        assert float(found.chances.mean()) == pytest.approx(share, abs=0.1)
        assert found.evidence > 3
        covered += found.low <= share <= found.high
    assert covered >= 16


def test_known_items_are_no_evidence():
    found = [share_of(PLAIN, *drawn(75, 0, seed)) for seed in range(20)]
    assert sum(share.evidence > 3 for share in found) <= 1
    assert all(share.low == 0 for share in found)
    assert max(float(share.chances.mean()) for share in found) < 0.05


def test_known_items_farther_out_than_the_catalogue_are_not_unknown():
    t, n = drawn(75, 0)
    assert share_of(PLAIN, t + 1, n).evidence < 3


def test_a_group_is_one_piece_of_evidence():
    t, n = drawn(20, 1)
    alone = share_of(PLAIN, t, n).evidence
    group = torch.cat([t, t[-1:].repeat(9)]), torch.cat([n[:-1], torch.full((10,), 10.0, dtype=torch.float64)])
    narrow = Strangers((-3.0, 20.0), (0.0, 1.0), (0.0, 1.0), Line(4.0, 0.0), Line(1.0, 0.0), Line(1.0, 0.0))
    assert share_of(narrow, *group).evidence == pytest.approx(share_of(narrow, t, n).evidence, rel=1e-5)
    assert alone > 0


def test_odd_items_of_a_large_batch_count_no_more_than_its_groups():
    """Items without links are the odd ones of their classes if the batch has hundreds of groups."""
    t, n = drawn(2000, 0, size=5.0)
    odd = torch.full((60,), 3.0, dtype=torch.float64)
    many = share_of(PLAIN, torch.cat([t, odd]), torch.cat([n, torch.ones_like(odd)]))
    assert many.evidence < 3
    # With as many groups as count fully, they are evidence.
    few = share_of(PLAIN, torch.cat([t[:40], odd]), torch.cat([n[:40], torch.ones_like(odd)]))
    assert few.evidence > 100


def test_the_interval_is_that_of_this_batch():
    """Two groups of five are unknown: little is known about ρ, but nobody doubts which items are unknown."""
    t = torch.cat([torch.zeros(20), torch.full((10,), 40.0)]).double()
    n = torch.full((30,), 5.0, dtype=torch.float64)
    far = Strangers((-3.0, 20.0), (0.0, 1.0), (0.0, 1.0), Line(40.0, 0.0), Line(1.0, 0.0), Line(1.0, 0.0))
    found = share_of(far, t, n)
    assert found.low == pytest.approx(1 / 3, abs=0.02)
    assert found.high == pytest.approx(1 / 3, abs=0.02)


def test_copies_are_one_piece_of_evidence():
    t, n = drawn(20, 1)
    copies = torch.tensor([1] * 20 + [10] * 10)
    t_copies, n_copies = torch.cat([t, t[-1:].repeat(9)]), torch.ones(30, dtype=torch.float64)
    assert share_of(PLAIN, t_copies, n_copies, copies).evidence == pytest.approx(
        share_of(PLAIN, t, n).evidence, rel=1e-5
    )


def test_farther_out_is_never_less_unknown():
    """Even if unknown items vary less than known ones."""
    narrow = Strangers((-3.0, 20.0), (0.0, 1.0), (0.0, 1.0), Line(2.0, 0.0), Line(1.0, 2.0), Line(0.2, 0.2))
    t = torch.linspace(-4, 30, 200, dtype=torch.float64)
    for size in (1.0, 4.0):
        chances = share_of(narrow, t, torch.full_like(t, size)).chances
        assert (chances.diff() >= -1e-6).all()


def test_lone_items_with_a_narrow_unknown_level_are_known():
    narrow = Strangers((-3.0, 20.0), (0.0, 1.0), (0.0, 1.0), Line(0.3, 0.0), Line(0.0, 3.5), Line(0.0, 1.5))
    generator = torch.Generator().manual_seed(0)
    t = 1.2 * torch.randn(75, generator=generator, dtype=torch.float64)
    for sizes in (torch.ones(75), torch.cat([torch.ones(70), torch.full((5,), 5.0)])):
        found = share_of(narrow, t, sizes.double())
        assert (found.chances > 0.5).double().mean() < 0.1


def test_a_chance_is_at_most_one():
    generator = torch.Generator().manual_seed(1)
    t = torch.cat([torch.randn(40, generator=generator), 4 + 5 * torch.rand(20, generator=generator)]).double()
    assert float(share_of(PLAIN, t, torch.ones_like(t)).chances.max()) <= 1


def test_blocks_change_nothing(monkeypatch):
    t, n = drawn(40, 20)
    whole = share_of(PLAIN, t, n)
    monkeypatch.setattr("handful.inference.unknown_share.BLOCK_NUMBERS", 3000)
    parts = share_of(PLAIN, t, n)
    torch.testing.assert_close(whole.chances, parts.chances, atol=1e-6, rtol=0)
    assert math.log(parts.evidence) == pytest.approx(math.log(whole.evidence), abs=1e-4)


def test_a_stack_equals_a_loop_and_padding_counts_nothing():
    alone = [drawn(40, 20), drawn(15, 0, 1), drawn(1, 2, 2)]
    t, n, weights = torch.full((3, 60), 50.0).double(), torch.ones(3, 60).double(), torch.zeros(3, 60).double()
    for row, (of_items, sizes) in enumerate(alone):
        t[row, : len(of_items)], n[row, : len(of_items)] = of_items, sizes
        weights[row, : len(of_items)] = 1 / sizes
    found = shares_of(PLAIN, t, n, weights)
    for row, (of_items, sizes) in enumerate(alone):
        one = share_of(PLAIN, of_items, sizes)
        torch.testing.assert_close(found.chances[row, : len(of_items)], one.chances, atol=1e-6, rtol=0)
        assert (found.chances[row, len(of_items) :] == 0).all()
        assert found.interval[row].tolist() == [one.low, one.high]
        assert float(found.evidence[row]) == pytest.approx(one.evidence, rel=1e-5)
