"""Which items belong together: groups, copies, and unknown items as proposals."""

import numpy as np

from handful.engine.links import copies_of, link, new_groups


def three_groups(seed=0):
    rng = np.random.default_rng(seed)
    return np.repeat(np.eye(8)[:3], [6, 5, 4], axis=0) + 0.05 * rng.normal(size=(15, 8))


def test_groups_have_the_size_of_their_items():
    sizes = link(three_groups(), np.zeros(8), (-5.0, 10.0)).sizes
    assert np.allclose(sizes, np.repeat([6, 5, 4], [6, 5, 4]), atol=0.3)


def test_copies_do_not_make_a_group():
    points = three_groups()
    copied = np.concatenate([points[:1], np.repeat(points[-1:], 9, 0)])
    found = link(copied, np.zeros(8), (-5.0, 10.0))
    assert np.allclose(found.sizes[1:], 1, atol=0.05)
    assert found.copies.tolist() == [1.0] + [9.0] * 9


def test_order_does_not_matter():
    points, order = three_groups(), np.random.default_rng(1).permutation(15)
    found, again = link(points, np.zeros(8), (-5.0, 10.0)), link(points[order], np.zeros(8), (-5.0, 10.0))
    assert np.allclose(again.sizes, found.sizes[order])
    assert np.allclose(again.weights, found.weights[order][:, order])


def test_one_item_stands_for_itself():
    assert link(three_groups()[:1], np.zeros(8), (-5.0, 10.0)).sizes.tolist() == [1.0]


def test_new_groups_are_those_of_three_different_items_or_more():
    points = np.concatenate([three_groups()[:6], np.repeat(three_groups()[6:7], 4, 0)])
    links = link(points, np.zeros(8), (-5.0, 10.0))
    (found,) = new_groups(links.log_odds, points, np.ones(10), points @ np.eye(8), copies_of(points)[0])
    assert sorted(found.items.tolist()) == [0, 1, 2, 3, 4, 5]
    assert found.nearest == 0
    assert found.cohesion > 0.9
