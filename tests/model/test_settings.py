"""Settings that change nothing on the batches of the study of sensitivity: half or twice their value acts elsewhere."""

import importlib
from dataclasses import replace

import numpy as np
import pytest

from handful.fitted import FittedModel
from handful.model.head import fit_head
from handful.model.knowledge import Knowledge
from handful.model.names import NameVectors
from handful.model.scores import factor_of_labelled
from handful.model.settings import DEFAULT

pytest.importorskip("matplotlib", reason="the study of sensitivity draws with matplotlib, which is not installed")
pytest.importorskip("torch", reason="the study of sensitivity needs torch, which is not installed")
study = importlib.import_module("sensitivity")


def examples(n_classes, shots, dim, noise, seed=0):
    rng = np.random.default_rng(seed)
    centres, codes = rng.normal(size=(n_classes, dim)), np.repeat(np.arange(n_classes), shots)
    return centres, (centres[codes] + noise * rng.normal(size=(len(codes), dim))).astype(np.float32), codes


def few_examples(settings):
    _, points, codes = examples(12, 3, 16, 0.8)
    return fit_head(points, codes, 12, settings=settings).temperature


def very_few_examples(settings):
    _, points, codes = examples(6, 3, 16, 0.8)
    return fit_head(points, codes, 6, settings=settings).spread


def names_of_few_classes(settings):
    centres, points, codes = examples(40, 3, 24, 1.2)
    names = NameVectors((2 * centres[:3] + 1).astype(np.float32), np.arange(3))
    return fit_head(points, codes, 40, names=names, settings=settings).weights


def names_beside_class_means(settings):
    centres, points, codes = examples(40, 3, 24, 1.2)
    names = NameVectors((2 * centres + 1).astype(np.float32), np.arange(40))
    return fit_head(points, codes, 40, names=names, settings=replace(settings, trained_numbers=0)).weights


def names_that_hardly_go_with_examples(settings):
    centres, points, codes = examples(40, 3, 24, 1.2)
    noise = np.random.default_rng(1).normal(size=centres.shape)
    means = np.stack([points[codes == k].mean(0) for k in range(40)])
    names = [NameVectors((centres + level * noise).astype(np.float32), np.arange(40)) for level in range(4, 40, 4)]
    return [some.are_informative(means, np.full(40, 3.0), settings) for some in names]


def batch_of_as_many_classes(settings):
    centres, points, codes = examples(150, 4, 24, 0.8)
    items = centres[:120] + 0.8 * np.random.default_rng(1).normal(size=(120, 24))
    catalogue = replace(FittedModel.of(points, codes, "raw"), settings=settings)
    return catalogue.label_points(catalogue.points(items.astype(np.float32)), Knowledge()).unknown


def large_uneven_batch(settings):
    centres, points, codes = examples(150, 4, 24, 0.8)
    rng = np.random.default_rng(1)
    truth = np.minimum(rng.geometric(0.05, size=4000), 150) - 1
    items = centres[truth] + 0.9 * rng.normal(size=(4000, 24))
    catalogue = replace(FittedModel.of(points, codes, "raw"), settings=settings)
    return catalogue.label_points(catalogue.points(items.astype(np.float32)), Knowledge()).probabilities


def labelled_items_with_scores(settings):
    nats = 3 * np.random.default_rng(0).normal(size=(30, 8))
    return factor_of_labelled(nats, np.where(np.arange(30) % 4, nats.argmax(1), 0), settings)


ACTS_ON = {
    "fewest_for_spread": very_few_examples,
    "fewest_left_out": few_examples,
    "sized_count": large_uneven_batch,
    "pair_least": batch_of_as_many_classes,
    "usual_name_weight": names_beside_class_means,
    "fewest_named": names_of_few_classes,
    "informative_sds": names_that_hardly_go_with_examples,
    "log_factor_sd": labelled_items_with_scores,
}


def test_those_that_the_page_calls_checked_are_checked():
    assert tuple(ACTS_ON) == study.CHECKED


@pytest.mark.parametrize("number", ACTS_ON)
def test_half_or_twice_a_number_changes_what_it_acts_on(number):
    now = ACTS_ON[number](DEFAULT)
    others = [ACTS_ON[number](study.changed(number, factor)) for factor in study.FACTORS]
    assert any(
        other is None or np.abs(np.asarray(other, float) - np.asarray(now, float)).max() > 1e-4 for other in others
    )
