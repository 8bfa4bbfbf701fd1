"""Groups, each labelled as one batch: the rows of each, and the answer that it has alone."""

import numpy as np
import torch

from handful.catalogue import Catalogue
from handful.engine.model import Context
from handful.engine.prior import Prior
from handful.estimators.batches import CatalogueItems, by_group


def world(seed=0):
    rng = np.random.default_rng(seed)
    centres, codes = rng.normal(size=(12, 16)), np.arange(12).repeat(5)
    catalogue = Catalogue.of(torch.from_numpy(centres[codes] + 0.5 * rng.normal(size=(60, 16))), codes)
    truth = np.array([1, 4, 4, 1, 7, 7, 7, 4])
    return catalogue, torch.from_numpy(centres[truth] + 0.5 * rng.normal(size=(8, 16))), truth


def test_a_group_has_the_answer_that_it_has_alone():
    catalogue, features, _ = world()
    group_of = np.array([1, 0, 0, 1, 2, 2, 2, 0])
    found = list(by_group(CatalogueItems(catalogue, features), group_of))
    assert [place for place, _, _ in found] == [0, 1, 2]
    assert np.concatenate([rows for _, rows, _ in found]).tolist() == [1, 2, 7, 0, 3, 4, 5, 6]
    for _, rows, answer in found:
        alone = catalogue.label(features[rows], Context())
        np.testing.assert_array_equal(answer.probabilities, alone.probabilities)


def test_every_group_has_its_own_prior_and_what_is_given_holds():
    catalogue, features, truth = world()
    weights = np.ones((2, 12))
    weights[1, 7] = 0
    given = np.full(8, -1)
    given[0] = 9
    items = CatalogueItems(catalogue, features, given)
    first, second = (
        found
        for _, _, found in by_group(items, np.array([0, 0, 0, 0, 1, 1, 1, 1]), Prior.of(weights, np.full(2, 300.0)))
    )
    assert first.probabilities.argmax(1).tolist() == [9, *truth[1:4]]
    assert not second.probabilities[:, 7].any()
