import random

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from handful.large.shard import Dropped, Sums
from handful.large.tree_sum import Piece, TreeSum, added


def values_of(n_shards):
    generator = torch.Generator().manual_seed(n_shards)
    # Of very different sizes, so that the order of the sum shows in its bits.
    scale = torch.tensor(10.0, dtype=torch.float64) ** torch.randint(-9, 9, (n_shards, 1), generator=generator)
    return list(torch.randn(n_shards, 5, dtype=torch.float64, generator=generator) * scale)


def by_hand(values):
    """Halve at the largest power of two below the length: the tree over numbers of shards."""
    if len(values) == 1:
        return values[0]
    half = 1 << ((len(values) - 1).bit_length() - 1)
    return by_hand(values[:half]) + by_hand(values[half:])


@given(st.integers(1, 40), st.integers(1, 6), st.randoms(use_true_random=False))
def test_however_shards_are_dealt_to_workers_the_sum_has_the_same_bits(n_shards, n_workers, chance):
    values = values_of(n_shards)
    workers = [TreeSum(n_shards) for _ in range(n_workers)]
    for shard in chance.sample(range(n_shards), n_shards):
        chance.choice(workers).put(Piece(0, shard, values[shard]))
    sent = [piece for worker in workers for piece in worker.pieces()]
    chance.shuffle(sent)
    driver = TreeSum(n_shards)
    for piece in sent:
        driver.put(piece)
    assert torch.equal(driver.whole(), by_hand(values))


def test_the_order_matters_in_general_so_that_the_tree_is_needed():
    values = values_of(40)
    shuffled = random.Random(0).sample(values, 40)
    assert not torch.equal(by_hand(values), by_hand(shuffled))


def test_a_worker_with_neighbouring_shards_sends_few_pieces():
    worker = TreeSum(1024)
    for shard in range(256, 512):
        worker.put(Piece(0, shard, torch.ones(1)))
    assert [(level, place) for level, place, _ in worker.pieces()] == [(8, 1)]
    for shard in range(512, 513):
        worker.put(Piece(0, shard, torch.ones(1)))
    assert [(level, place) for level, place, _ in worker.pieces()] == [(8, 1), (0, 512)]
    with pytest.raises(ValueError, match="unpack"):
        worker.whole()


def test_every_kind_of_result_adds():
    ones = torch.ones(3, dtype=torch.float64)
    assert added(Dropped(1, 0.5, 0.2), Dropped(2, 0.25, 0.3)) == Dropped(3, 0.75, 0.3)
    pair = added((ones, ones), (ones, 2 * ones))
    assert [part.tolist() for part in pair] == [[2.0] * 3, [3.0] * 3]
    one = Sums(torch.tensor([1, 4]), ones[:2], torch.ones(2, 2))
    other = Sums(torch.tensor([0, 4]), ones[:2], torch.ones(2, 2))
    both = added(one, other)
    assert both.classes.tolist() == [0, 1, 4]
    assert both.mass.tolist() == [1.0, 1.0, 2.0]
    assert both.sums.tolist() == [[1.0, 1.0], [1.0, 1.0], [2.0, 2.0]]
    assert both.sums.dtype == torch.float64
