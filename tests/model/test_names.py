"""Names beside examples: good ones help, others change nothing, a class may have its name alone."""

from dataclasses import replace

import numpy as np
import pytest

from handful.model.head import LinearHead, fit_head
from handful.model.names import NameVectors
from handful.model.settings import DEFAULT
from tests.model.catalogues_at_hand import accuracy, with_names


@pytest.mark.parametrize("shots", [1, 2, 5])
def test_good_names_help_and_others_change_nothing(shots):
    points, codes, items, truth, names = with_names(shots)
    without = fit_head(points, codes, 40)
    assert accuracy(fit_head(points, codes, 40, names=names), items, truth) > accuracy(without, items, truth) + 0.02
    shuffled = NameVectors(np.random.default_rng(3).permutation(names.points), names.codes)
    assert np.array_equal(fit_head(points, codes, 40, names=shuffled).weights, without.weights)


def test_a_class_without_examples_is_found_by_its_name():
    points, codes, items, truth, names = with_names(4, of_names=0.3)
    kept, named = codes >= 5, truth < 5
    for numbers in (DEFAULT.trained_numbers, 0):
        settings = replace(DEFAULT, trained_numbers=numbers)
        head = fit_head(points[kept], codes[kept], 40, names=names, settings=settings)
        assert accuracy(head, items[named], truth[named]) > 0.4
        assert (head.mass[:5] >= 1).all()


def test_names_alone():
    names = np.array([[1.0, 0.0], [0.0, 1.0], [-1.0, -1.0]])
    head = LinearHead.of_names(names)
    assert head.scores(names).argmax(1).tolist() == [0, 1, 2]
    assert (head.temperature, head.confidence, len(head.left_out.rows)) == (1.0, None, 0)
