"""What a catalogue tells about items of no class."""

import numpy as np

from handful.engine.head import fit_head
from handful.engine.levels import fit_levels, logistic_line, unjudged


def catalogue(shots=5, n_classes=20, noise=0.5, seed=0):
    rng = np.random.default_rng(seed)
    codes = np.repeat(np.arange(n_classes), shots)
    return rng.normal(size=(n_classes, 16))[codes] + noise * rng.normal(size=(len(codes), 16)), codes


def test_unknown_items_lie_farther_and_groups_vary_less():
    points, codes = catalogue()
    found = fit_levels(fit_head(points, codes, 20), points, codes)
    assert sum(found.level) > 3
    assert found.known[1] > 0
    assert found.pair_odds[1] > 0


def test_order_of_examples_does_not_matter():
    points, codes = catalogue()
    order = np.random.default_rng(1).permutation(len(codes))
    found = fit_levels(fit_head(points, codes, 20), points, codes)
    again = fit_levels(fit_head(points[order], codes[order], 20), points[order], codes[order])
    assert np.allclose(np.array(found[3:6]), np.array(again[3:6]), rtol=0.02)


def test_a_catalogue_that_cannot_tell_says_why():
    points, codes = catalogue(shots=1)
    head = fit_head(points, codes, 20)
    assert fit_levels(head, points, codes) is None
    assert "at least 20 different examples" in unjudged(head)


def test_a_logistic_line_has_the_slope_of_its_data():
    rng = np.random.default_rng(0)
    x = rng.normal(size=20_000)
    truth = (rng.random(20_000) < 1 / (1 + np.exp(1 - 2 * x))).astype(float)
    a, b = logistic_line(x, truth, np.ones(20_000))
    assert abs(a + 1) < 0.1
    assert abs(b - 2) < 0.1
