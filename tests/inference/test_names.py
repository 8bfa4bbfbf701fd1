"""Names beside examples: where they lie, whether they say something, and how many examples each is worth."""

import pytest
import torch

from handful.inference.head import fit_head
from handful.inference.names import Names, TrainingRows
from tests.heads_at_hand import accuracy, clouds


def catalogue(n_classes=40, shots=2, noise=1.6, of_names=0.8, seed=0):
    """Examples, items, and names: the centres of the items, with noise, elsewhere and twice as large."""
    points, codes, items, truth = clouds(n_classes, shots, 24, noise, seed)
    centres = torch.stack([items[truth == k].mean(0) for k in range(n_classes)])
    centres = centres / centres.norm(dim=1, keepdim=True)
    noise = torch.randn(centres.shape, generator=torch.Generator().manual_seed(seed + 1))
    return points, codes, items, truth, Names(2 * (centres + of_names * noise / 24**0.5) + 1, torch.arange(n_classes))


@pytest.mark.parametrize("shots", [1, 2, 5])
def test_good_names_help(shots):
    points, codes, items, truth, names = catalogue(shots=shots)
    without, with_names = fit_head(points, codes, 40), fit_head(points, codes, 40, names=names)
    assert accuracy(with_names, items, truth) > accuracy(without, items, truth) + (0.02 if shots == 5 else 0.05)
    assert (with_names.mass > without.mass).all()


@pytest.mark.parametrize("shots", [1, 2, 5])
def test_names_that_say_nothing_change_nothing(shots):
    points, codes, _, _, names = catalogue(shots=shots)
    shuffled = Names(names.points[torch.randperm(40, generator=torch.Generator().manual_seed(3))], names.codes)
    without, with_names = fit_head(points, codes, 40), fit_head(points, codes, 40, names=shuffled)
    assert torch.equal(with_names.weights, without.weights)
    assert torch.equal(with_names.offsets, without.offsets)
    assert with_names.temperature == without.temperature


def test_the_better_the_names_the_more_they_are_worth():
    worths = []
    for of_names in (0.2, 2.5):
        points, codes, _, _, names = catalogue(shots=3, of_names=of_names)
        head = fit_head(points, codes, 40, names=names)
        worths.append(float((head.mass - 3).mean()))
    assert worths[0] > worths[1]


def test_a_class_without_examples_is_found_by_its_name():
    points, codes, items, truth, names = catalogue(shots=4, of_names=0.5)
    kept = codes >= 5
    head = fit_head(points[kept], codes[kept], 40, names=names)
    named = truth < 5
    assert torch.isfinite(head.weights).all()
    assert (head.mass[:5] >= 1).all()
    assert accuracy(head, items[named], truth[named]) > 0.4
    whole = fit_head(points, codes, 40)
    assert accuracy(head, items[~named], truth[~named]) > accuracy(whole, items[~named], truth[~named]) - 0.02


def test_some_classes_may_have_names_and_the_others_examples():
    points, codes, items, truth, names = catalogue(shots=4, of_names=0.3)
    kept = codes >= 5
    head = fit_head(points[kept], codes[kept], 40, names=Names(names.points[:5], names.codes[:5]))
    assert torch.isfinite(head.weights).all()
    assert (head.mass[5:] <= 4).all()
    named = truth < 5
    assert accuracy(head, items[named], truth[named]) > 0.4


def test_the_origin_of_the_names_does_not_matter():
    points, codes, _, _, names = catalogue(shots=2)
    one = fit_head(points, codes, 40, names=names)
    other = fit_head(points, codes, 40, names=Names(names.points - 3, names.codes))
    torch.testing.assert_close(one.mass, other.mass, atol=0.1, rtol=0)
    torch.testing.assert_close(one.weights, other.weights, atol=0.1, rtol=0.1)


def test_with_few_examples_a_name_is_worth_one():
    points, codes, _, _, names = catalogue(n_classes=3, shots=2)
    assert fit_head(points, codes, 3, names=names).mass.tolist() == [3, 3, 3]


def test_class_means_hold_names_too():
    points, codes, _, _, names = catalogue(shots=3, of_names=0.3)
    rows = TrainingRows(points, codes, 40)
    means = rows.means(torch.ones(len(points)), rows.shots)
    blended, mass = names.blended(means, rows.shots)
    assert mass.tolist() == [4.0] * 40
    torch.testing.assert_close(blended, (3 * means + names.among(means, rows.shots)) / 4)
    shuffled = Names(names.points.roll(7, 0), names.codes)
    assert shuffled.blended(means, rows.shots)[1].tolist() == [3.0] * 40
