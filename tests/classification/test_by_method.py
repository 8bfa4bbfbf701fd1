"""classify(method=…): the labels of a few-shot method, and a word about what it cannot tell."""

import re

import numpy as np
import pytest

from handful.classification import classify
from handful.classification.labelled import class_names, how_labelled, predictions, unknown_summary
from handful.classification.page import write_page
from handful.errors import OptionError
from handful_fewshot import MethodClassifier

NAMES = np.array([f"kind {k}" for k in np.random.default_rng(1).permutation(12)])


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    rng, folder = np.random.default_rng(0), tmp_path_factory.mktemp("method")
    centres, y = rng.normal(size=(12, 24)).astype(np.float32), np.repeat(np.arange(12), 4)
    X = centres[y] + 0.5 * rng.normal(size=(48, 24)).astype(np.float32)
    truth = np.repeat([1, 7, 4], 8)
    batch = centres[truth] + 0.5 * rng.normal(size=(24, 24)).astype(np.float32)
    np.savez(folder / "catalogue.npz", features=X, labels=NAMES[y])
    np.savez(folder / "batch.npz", features=batch, site=["a", "b"] * 12)
    return folder / "catalogue.npz", folder / "batch.npz", (X, NAMES[y], batch, NAMES[truth])


@pytest.mark.parametrize("method", ["nearest_prototype", "paddle", "soft_kmeans"])
def test_labels_are_those_of_the_method(files, method):
    catalogue, batch, (X, y, points, _) = files
    found, expected = classify(catalogue, batch, method=method), MethodClassifier(method).fit(X, y).infer(points)
    assert predictions(found)["label"] == expected.labels.tolist()
    assert predictions(found)["certainty"] == pytest.approx(expected.certainty.tolist(), abs=1e-6)
    by_name = dict(zip(class_names(found), found.expected_counts, strict=True))
    assert [by_name[name] for name in expected.classes] == pytest.approx(expected.expected_counts.tolist(), abs=1e-4)
    rows = np.arange(len(points))
    np.testing.assert_allclose(found.certainty, found.probabilities[rows, found.codes[:, 0]] * 49 / 50)
    assert f"labelled by {method}" in how_labelled(found)


def test_what_the_method_cannot_tell_is_said_everywhere(files, tmp_path):
    catalogue, batch, (*_, truth) = files
    found = classify(catalogue, batch, method="nearest_prototype")
    assert np.isnan(found.presence).all()
    assert set(found.present_classes) == set(found.labels) >= set(truth)
    assert "not told" in found.summary()
    assert "Unknown items are not judged by nearest_prototype (unit length)" in unknown_summary(found)
    page = write_page(found, tmp_path / "page.html", title="batch") or (tmp_path / "page.html").read_text()
    assert "Unknown items are not judged by nearest_prototype (unit length)" in page
    assert "NaN" not in re.sub(r"isNaN|Number.isNaN", "", page)


def test_what_only_the_default_can_use_is_refused(files):
    catalogue, batch, _ = files
    for option in ({"group_by": "site"}, {"unknown": "other"}, {"candidates": [str(NAMES[0])]}, {"sequence": "site"}):
        with pytest.raises(OptionError, match=f"leave out {next(iter(option))}"):
            classify(catalogue, batch, method="paddle", **option)
    with pytest.raises(OptionError, match=r"no method is called 'paddel' .did you mean 'paddle'"):
        classify(catalogue, batch, method="paddel")
