"""Which items belong together: groups, copies, and unknown items as proposals."""

import numpy as np

from handful.model.links import Anchors, _strongest, find_copies, new_groups

NONE = np.arange(0)


def three_groups(seed=0):
    rng = np.random.default_rng(seed)
    return np.repeat(np.eye(8)[:3], [6, 5, 4], axis=0) + 0.05 * rng.normal(size=(15, 8))


def anchors_of(points):
    return Anchors.of(points[None], np.zeros(8), (-5.0, 10.0), find_copies(points)[0][None])


def links_of(anchors, points, rows=NONE):
    """Links of items of one batch; those of these rows are all of the anchors."""
    return anchors.link(anchors.compare(points[None], rows, np.arange(len(rows))))


def linked(points):
    """Links of items that are all anchors; sizes without the first axis."""
    every = np.arange(len(points))
    found = links_of(anchors_of(points), points, every)
    return found._replace(sizes=found.sizes[0])


def test_groups_have_the_size_of_their_items():
    assert np.allclose(linked(three_groups()).sizes, np.repeat([6, 5, 4], [6, 5, 4]), atol=0.3)


def test_copies_do_not_make_a_group():
    points = three_groups()
    copied = np.concatenate([points[:1], np.repeat(points[-1:], 9, 0)])
    assert np.allclose(linked(copied).sizes[1:], 1, atol=0.05)
    assert find_copies(copied)[1].tolist() == [1.0] + [9.0] * 9
    again = links_of(anchors_of(copied), points[-1:])  # a copy that is no anchor
    assert np.allclose(again.sizes, 1, atol=0.05)


def test_order_does_not_matter():
    points, order = three_groups(), np.random.default_rng(1).permutation(15)
    found, again = linked(points), linked(points[order])
    assert np.allclose(again.sizes, found.sizes[order])
    assert np.allclose(again.weights.toarray(), found.weights.toarray()[order][:, order])


def test_an_item_that_is_no_anchor_is_linked_like_one():
    points = three_groups()
    with_it, without = linked(points), anchors_of(points[1:])
    alone = links_of(without, points[:1])
    assert np.allclose(alone.sizes, with_it.sizes[0], rtol=0.05)
    mean = alone.means(points[None, 1:], points[None, :1])[0]
    assert np.allclose(mean, with_it.means(points[None], points[None])[0, :1], atol=0.02)
    # In blocks of any size.
    blocks = [links_of(without, points[at : at + 2]).sizes for at in (0, 2)]
    assert np.array_equal(np.concatenate(blocks, 1), links_of(without, points[:4]).sizes)


def test_one_item_stands_for_itself():
    assert linked(three_groups()[:1]).sizes.tolist() == [1.0]


def test_new_groups_are_those_of_three_different_items_or_more():
    points = np.concatenate([three_groups()[:6], np.repeat(three_groups()[6:7], 4, 0)])
    anchors = anchors_of(points)
    (found,) = new_groups(anchors.odds(anchors.cosines)[0], points, np.ones(10), points @ np.eye(8), anchors.copy_of[0])
    assert sorted(found.items.tolist()) == [0, 1, 2, 3, 4, 5]
    assert found.nearest == 0
    assert found.cohesion > 0.9


def test_the_strongest_are_found_in_rows_with_and_without_equal_values():
    values = np.array([[[5.0, 1.0, 4.0, 2.0, 3.0], [1.0, 2.0, 2.0, 2.0, 0.0], [3.0, 3.0, 3.0, 3.0, 3.0]]])
    found = _strongest(values, 2)
    assert found.shape == (1, 3, 2)
    assert sorted(found[0, 0].tolist()) == [0, 2]
    assert all(len(set(row.tolist())) == 2 for row in found[0])
    assert np.take_along_axis(values, found, -1)[0, 1:].tolist() == [[2, 2], [3, 3]]
