"""Class sizes from more items than decided: used where they describe the batch better, and not where they do not."""

import numpy as np

from handful.engine.head import fit_head
from handful.engine.model import BatchItems, Reference, decide
from handful.engine.sizes import with_sizes


def world(sizes, seed=0, noise=0.6):
    rng = np.random.default_rng(seed)
    centres, codes = rng.normal(size=(60, 16)), np.repeat(np.arange(60), 5)
    reference = Reference(fit_head(centres[codes] + noise * rng.normal(size=(300, 16)), codes, 60))
    truth = rng.permutation(np.repeat(np.arange(len(sizes)), sizes))
    return BatchItems(centres[truth] + noise * rng.normal(size=(len(truth), 16)), reference), truth


def test_classes_that_the_deciding_items_do_not_show_are_counted():
    items, truth = world((2000 / np.arange(1, 61) / 4.7).astype(int) + 1)
    decision, _ = decide(BatchItems(items.points[:60], items.reference))
    counted = with_sizes(decision, lambda: [items])
    before, after = ((one.label(items).probabilities.argmax(1) == truth).mean() for one in (decision, counted))
    assert len(counted.roll.columns) > len(decision.roll.columns)
    assert after >= before


def test_a_few_even_classes_stay_as_they_were_decided():
    items, _ = world([100] * 5)
    decision, _ = decide(BatchItems(items.points[:200], items.reference))
    assert with_sizes(decision, lambda: [items]) is decision
