"""New groups: agglomeration by the mean log-odds of pairs."""

import torch

from handful.inference.new_groups import agglomerated, new_groups


def by_hand(log_odds):
    """The same, by comparing all pairs of groups at every step."""
    groups = [[item] for item in range(len(log_odds))]
    while len(groups) > 1:
        means = {
            (a, b): float(log_odds[groups[a]][:, groups[b]].double().mean())
            for a in range(len(groups))
            for b in range(a)
        }
        (a, b), best = max(means.items(), key=lambda pair: pair[1])
        if best <= 0:
            break
        groups[b] += groups.pop(a)
    return {frozenset(group) for group in groups}


def test_groups_are_those_of_a_comparison_of_all_pairs():
    generator = torch.Generator().manual_seed(0)
    for n_items in (2, 5, 24):
        for _ in range(5):
            odds = torch.randn(n_items, n_items, generator=generator)
            odds = (odds + odds.T) / 2 + 0.2
            assert {frozenset(group.tolist()) for group in agglomerated(odds)} == by_hand(odds)


def test_nothing_and_one_item():
    assert agglomerated(torch.zeros(0, 0)) == []
    assert [group.tolist() for group in agglomerated(torch.zeros(1, 1))] == [[0]]


def test_strays_are_not_a_class_and_the_typical_come_first():
    points = torch.tensor([[0.0, 0.0], [1.0, 0.0], [0.1, 0.0], [9.0, 9.0], [5.0, 0.0], [5.0, 0.1]])
    odds = torch.full((6, 6), -5.0)
    odds[:3, :3] = 2.0
    odds[4:, 4:] = 2.0
    scores = torch.tensor([[0.0, 1.0]]).repeat(6, 1)
    chances = torch.full((6,), 0.9, dtype=torch.float64)
    (group,) = new_groups(odds, points, chances, scores, torch.arange(6))
    assert group.items.tolist() == [2, 0, 1]
    assert new_groups(odds, points, chances, scores, torch.tensor([0, 0, 2, 3, 4, 5])) == []
    assert group.nearest == 1
    assert abs(group.cohesion - float(torch.sigmoid(torch.tensor(2.0)))) < 1e-6
    assert abs(group.worth - 2.7 * group.cohesion) < 1e-6
