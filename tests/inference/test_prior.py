"""Prior weights against batches whose classes are known."""

import pytest
import torch

from handful.inference.prior import CONCENTRATION, Prior, lean

N_CLASSES = 12


def batch(classes, margin=2.0, seed=0):
    """Probabilities of items whose class leads by a few nats, less some noise; and their counts under tilts."""
    generator = torch.Generator().manual_seed(seed)
    scores = torch.randn(len(classes), N_CLASSES, generator=generator, dtype=torch.float64)
    scores[torch.arange(len(classes)), torch.tensor(classes)] += margin
    return scores, lambda tilts: (scores + tilts[0]).softmax(-1).sum(0, keepdim=True)


def prior(**weights):
    row = torch.ones(1, N_CLASSES, dtype=torch.float64)
    for name, weight in weights.items():
        row[0, int(name[1:])] = weight
    return Prior.of(row, torch.tensor([CONCENTRATION], dtype=torch.float64))


def tried(known, classes, **more):
    scores, count = batch(classes, **more)
    return scores, lean(known, torch.tensor([float(len(classes))], dtype=torch.float64), count)


LIKELY = {f"k{k}": 0.01 for k in range(3, N_CLASSES)}
UNLIKELY = {f"k{k}": 0.01 for k in range(3)}


def test_equal_weights_change_nothing():
    _, found = tried(prior(), [0, 1, 2] * 4)
    assert not found.tilts.any()
    assert float(found.trust) == 1
    _, same = tried(prior(**{f"k{k}": 7.0 for k in range(N_CLASSES)}), [0, 1, 2] * 4)
    assert not same.tilts.any()


def test_only_ratios_of_weights_count():
    row = torch.rand(1, N_CLASSES, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    c = torch.tensor([CONCENTRATION], dtype=torch.float64)
    _, found = tried(Prior.of(row, c), [0, 1, 2] * 4)
    _, same = tried(Prior.of(1000 * row, c), [0, 1, 2] * 4)
    torch.testing.assert_close(found.tilts, same.tilts)


def test_a_right_prior_holds_and_helps():
    classes = [0, 1, 2] * 4
    scores, found = tried(prior(**LIKELY), classes)
    assert float(found.trust) > 0.95
    assert (found.tilts[0, 3:] < -2).all()
    truth = torch.tensor(classes)
    before = (scores.argmax(-1) == truth).sum()
    assert ((scores + found.tilts[0]).argmax(-1) == truth).sum() > before


def test_a_batch_contradicts_a_wrong_prior():
    _, found = tried(prior(**UNLIKELY), [0, 1, 2] * 10)
    assert float(found.trust) == 0
    assert not found.tilts.any()


def test_the_more_items_the_less_a_prior_says():
    small, large = (tried(prior(**UNLIKELY), [0, 1, 2] * n, margin=1.0)[1] for n in (1, 30))
    assert float(large.trust) <= float(small.trust)
    # A class of small weight loses little once it holds many items, also where the prior holds as a whole.
    few, many = (tried(prior(**LIKELY), [0, 1, 2] * 10 + [5] * n, margin=6.0)[1].tilts[0, 5] for n in (1, 20))
    assert few < many - 0.5


def test_the_strength_is_that_of_the_concentration():
    _, count = batch([0, 1, 2] * 4)
    weights = prior(**LIKELY)
    tilts = [
        lean(Prior(weights.log_shares, torch.tensor([c]).double()), torch.tensor([12.0]).double(), count).tilts[0, 3:]
        for c in (1.0, 30.0, 1000.0)
    ]
    assert tilts[0].mean() > tilts[1].mean() > tilts[2].mean()


def test_a_ban_is_not_tilted_but_left_out():
    known = prior(k4=0.0)
    assert known.banned.nonzero().tolist() == [[0, 4]]
    scores, _ = batch([0, 1, 4] * 4)
    scores[:, 4] = -torch.inf
    found = lean(
        known,
        torch.tensor([12.0]).double(),
        lambda tilts: (scores + tilts[0]).softmax(-1).sum(0, keepdim=True),
    )
    assert torch.isfinite(found.tilts).all()
    assert not found.tilts.any()  # all others are alike


def test_batches_of_a_stack_do_not_meet():
    both = [batch([0, 1, 2] * 4), batch([3, 4, 5] * 4, seed=1)]
    known = Prior(torch.cat([prior(**LIKELY).log_shares] * 2), torch.full((2,), CONCENTRATION).double())
    together = lean(
        known,
        torch.tensor([12.0, 12.0]).double(),
        lambda tilts: torch.cat([count(tilts[i : i + 1]) for i, (_, count) in enumerate(both)]),
    )
    for i, (_, count) in enumerate(both):
        alone = lean(known.rows(torch.tensor([i])), torch.tensor([12.0]).double(), count)
        torch.testing.assert_close(together.tilts[i], alone.tilts[0])
    assert together.trust.tolist() == pytest.approx([1, 0], abs=0.05)


def test_weights_of_any_size_give_shares():
    found = prior(k0=1e308, k1=1e308, k2=5e-324)
    assert found.log_shares[0, :2].exp().tolist() == pytest.approx([0.5, 0.5])
    assert found.banned.any().item() is False
