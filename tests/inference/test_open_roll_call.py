"""Open roll call: nothing unknown costs nothing, new groups are proposed, strays are called, stacks equal loops."""

import pytest
import torch
from torch.nn.functional import normalize

from handful.inference import open_roll_call
from handful.inference.head import Head, fit_head
from handful.inference.open_roll_call import label_open
from handful.inference.roll_call_stack import AgainstHead, label
from handful.inference.strangers import fit_strangers

OPTIONS = {"max_iter": 200, "tol": 1e-3}
KNOWN, DIM = 60, 48


class World:
    """Gaussian classes around random directions; the catalogue has the first 60 of 100."""

    def __init__(self, seed: int = 0, shots: int = 5, noise: float = 0.12) -> None:
        self.generator = torch.Generator().manual_seed(seed)
        self.noise = noise
        self.means = normalize(torch.randn(100, DIM, generator=self.generator), dim=-1)
        codes = torch.arange(KNOWN).repeat_interleave(shots)
        points = self.around(codes)
        self.origin = points.mean(0)
        self.head = fit_head(points - self.origin, codes, KNOWN, 1.0)
        self.strangers = fit_strangers(self.head, points - self.origin, codes)

    def around(self, codes: torch.Tensor) -> torch.Tensor:
        noise = self.noise * torch.randn(len(codes), DIM, generator=self.generator)
        return normalize(self.means[codes] + noise, dim=-1)

    def batch(self, known: int, n_known: int, unknown: list[int]) -> tuple[torch.Tensor, torch.Tensor]:
        """Items of some known classes, and as many as named of the first unknown ones; unknown have codes from 60."""
        present = torch.randperm(KNOWN, generator=self.generator)[:known]
        truth = present[torch.randint(known, (n_known,), generator=self.generator)] if n_known else present[:0]
        new = torch.arange(KNOWN, KNOWN + len(unknown)).repeat_interleave(torch.tensor(unknown or [0]))[: sum(unknown)]
        truth = torch.cat([truth, new])
        truth = truth[torch.randperm(len(truth), generator=self.generator)]
        return self.around(truth) - self.origin, truth

    def ask(self, items: torch.Tensor):
        return label_open(AgainstHead(items.unsqueeze(0), None, self.head), self.strangers, **OPTIONS)

    def closed(self, items: torch.Tensor):
        return label(AgainstHead(items.unsqueeze(0), None, self.head), **OPTIONS)


@pytest.fixture(scope="module")
def fitted():
    return World()


@pytest.fixture
def world(fitted):
    fitted.generator.manual_seed(1)  # whichever tests ran before
    return fitted


@pytest.mark.parametrize("known", [4, 15, 50])
def test_nothing_unknown_costs_nothing(world, known):
    right = closed_right = called = 0.0
    for _ in range(20):
        items, truth = world.batch(known, 75, [])
        found, closed = world.ask(items), world.closed(items)
        right += float((found.called.log_probabilities[0].argmax(-1) == truth).double().mean())
        closed_right += float((closed.log_probabilities[0].argmax(-1) == truth).double().mean())
        called += float(found.rejected.double().mean())
        assert 0 <= float(found.interval[0, 0]) <= 0.1
    assert right / 20 >= closed_right / 20 - 0.003
    assert called / 20 <= 0.02


def test_a_closed_batch_has_the_closed_answer(world):
    items, _ = world.batch(5, 60, [])
    found = world.ask(items)
    assert not bool(found.is_open)
    assert torch.equal(found.called.log_probabilities, world.closed(items).log_probabilities)
    assert found.groups == [[]]
    assert not bool(found.rejected.any())


def test_removed_classes_are_proposed(world):
    items, truth = world.batch(5, 45, [15, 12])
    found = world.ask(items)
    strange = truth >= KNOWN
    assert bool(found.is_open)
    assert float(found.unknown[0][strange].min()) > float(found.unknown[0][~strange].median())
    assert (found.rejected[0] == strange).double().mean() > 0.95
    assert float(found.unknown.mean()) == pytest.approx(27 / 72, abs=0.08)
    low, high = found.interval[0].tolist()
    assert low <= 27 / 72 <= high
    first, second = found.groups[0][:2]
    for group in (first, second):
        assert float((truth[group.items] == truth[group.items].mode().values).double().mean()) >= 0.8
    assert {int(truth[g.items].mode().values) for g in (first, second)} == {60, 61}
    assert first.worth >= second.worth


def test_present_classes_are_those_of_known_items(world):
    items, truth = world.batch(5, 45, [15, 12])
    presence = world.ask(items).called.presence[0]
    there = torch.zeros(KNOWN, dtype=torch.bool).index_fill_(0, truth[truth < KNOWN], True)
    assert (presence[there] > 0.5).all()
    assert int((presence[~there] > 0.5).sum()) <= 1
    closed = world.closed(items).presence[0]
    assert int((closed[~there] > 0.5).sum()) >= 2


def test_counts_are_those_of_known_items_and_probabilities_sum_to_one(world):
    items, _ = world.batch(5, 45, [15, 12])
    found = world.ask(items)
    q = found.called.log_probabilities[0].double().exp()
    torch.testing.assert_close(q.sum(-1), torch.ones(72, dtype=torch.float64), atol=1e-5, rtol=0)
    expected = ((1 - found.unknown[0]).unsqueeze(-1) * q).sum(0)
    torch.testing.assert_close(found.called.expected_counts[0], expected)


def test_known_items_beside_unknown_ones_are_labelled_no_worse():
    world = World(seed=3, noise=0.16)
    right = closed_right = 0.0
    for _ in range(20):
        items, truth = world.batch(5, 45, [10, 10, 10])
        kept = truth < KNOWN
        right += float((world.ask(items).called.log_probabilities[0].argmax(-1) == truth)[kept].double().mean())
        closed_right += float((world.closed(items).log_probabilities[0].argmax(-1) == truth)[kept].double().mean())
    assert right >= closed_right - 0.06  # 0.3 points each


def test_strays_are_called_and_not_proposed(world):
    items, truth = world.batch(5, 55, [1] * 20)
    found = world.ask(items)
    strange = truth >= KNOWN
    assert found.rejected[0][strange].double().mean() > 0.8
    assert found.rejected[0][~strange].double().mean() < 0.05
    assert found.groups == [[]]


def test_copies_of_one_item_are_one_piece_of_evidence(world):
    items, _ = world.batch(5, 50, [1])
    once = world.ask(items)
    strange = items[-1:].repeat(20, 1)
    copies = world.ask(torch.cat([items, strange]))
    assert copies.unknown.isfinite().all()
    assert float(copies.unknown[0, :51].mean()) == pytest.approx(float(once.unknown[0].mean()), abs=0.05)


def test_copies_of_known_items_are_known(world):
    items, _ = world.batch(3, 6, [])
    found = world.ask(items.repeat(12, 1))
    assert float(found.rejected.double().mean()) == 0


@pytest.mark.parametrize("n_items", [1, 2, 3, 5])
def test_tiny_batches(world, n_items):
    items, truth = world.batch(n_items, n_items, [])
    found = world.ask(items)
    assert found.unknown.shape == (1, n_items)
    assert found.unknown.isfinite().all()
    assert (found.called.log_probabilities[0].argmax(-1) == truth).all()
    assert not bool(found.rejected.any())


@pytest.mark.parametrize("seed", range(4))
def test_a_batch_without_any_known_item(world, seed):
    """It is noticed, though one of two groups may pass as known: to their mean, the batch comes from elsewhere."""
    world.generator.manual_seed(seed)
    items, truth = world.batch(1, 0, [20, 20])
    found = world.ask(items)
    assert bool(found.is_open)
    assert float(found.unknown.mean()) > 0.3
    assert found.called.log_probabilities.exp().sum(-1).allclose(torch.ones(1, 40), atol=1e-5)
    assert 1 <= len(found.groups[0]) <= 2
    assert float((truth[found.groups[0][0].items] == truth[found.groups[0][0].items][0]).double().mean()) == 1


def test_a_stack_of_unequal_batches_equals_a_loop(world):
    shapes = [(5, 45, [15, 12]), (5, 60, []), (1, 1, []), (8, 20, [1] * 6), (2, 5, [12])]
    batches = [world.batch(*shape)[0] for shape in shapes]
    slots = max(map(len, batches))
    points, mask = torch.zeros(len(batches), slots, DIM), torch.zeros(len(batches), slots, dtype=torch.bool)
    for row, items in enumerate(batches):
        points[row, : len(items)], mask[row, : len(items)] = items, True
    together = label_open(AgainstHead(points, mask, world.head), world.strangers, **OPTIONS)
    assert 0 < int(together.is_open.sum()) < len(batches)
    for row, items in enumerate(batches):
        one, n = world.ask(items), len(items)
        torch.testing.assert_close(together.unknown[row, :n], one.unknown[0], atol=1e-4, rtol=0)
        assert (together.unknown[row, n:] == 0).all()
        assert torch.equal(together.interval[row], one.interval[0])
        assert bool(together.is_open[row]) == bool(one.is_open)
        torch.testing.assert_close(
            together.called.log_probabilities[row, :n].exp(),
            one.called.log_probabilities[0].exp(),
            atol=1e-4,
            rtol=0,
        )
        assert together.called.log_probabilities[row, n:].isneginf().all()
        torch.testing.assert_close(
            together.called.expected_counts[row], one.called.expected_counts[0], atol=1e-3, rtol=0
        )
        assert [g.items.tolist() for g in together.groups[row]] == [g.items.tolist() for g in one.groups[0]]


def test_a_batch_dealt_into_parts_says_the_same(world, monkeypatch):
    items, truth = world.batch(5, 120, [40, 40])
    whole = world.ask(items)
    monkeypatch.setattr(open_roll_call, "MOST_LINKED", 70)
    parts = world.ask(items)
    assert (whole.rejected == parts.rejected).double().mean() > 0.97
    for group in parts.groups[0][:2]:
        assert float((truth[group.items] == truth[group.items].mode().values).double().mean()) >= 0.8


@pytest.mark.parametrize("shots", [1, 5])
def test_a_catalogue_that_cannot_tell_gives_the_closed_answer(shots):
    world = World(shots=shots)
    if shots > 1:  # a head of class means
        codes = torch.arange(KNOWN).repeat_interleave(shots)
        points = world.around(codes) - world.origin
        world.head = Head.of_means(
            points.view(KNOWN, shots, -1).mean(1), torch.full((KNOWN,), float(shots)), points, codes
        )
        world.strangers = fit_strangers(world.head, points, codes)
    assert world.strangers is None
    items, _ = world.batch(5, 40, [20])
    found = world.ask(items)
    assert found.unknown.isnan().all()
    assert found.interval.tolist() == [[0, 1]]
    assert not bool(found.is_open.any())
    assert not bool(found.rejected.any())
    assert torch.equal(found.called.log_probabilities, world.closed(items).log_probabilities)
