"""Items whose class a person gave: their label is fixed, they are examples, and the rest of the batch gains."""

import numpy as np
import pandas as pd
import pytest

from handful.catalogue import Catalogue
from handful.engine.model import NO_CLASS
from handful.errors import LabelError, OptionError
from handful.estimators import BatchClassifier
from handful.estimators.given import with_given


@pytest.fixture(scope="module")
def shifted():
    """A batch from elsewhere: its items lie between the classes of the catalogue."""
    rng = np.random.default_rng(1)
    centres = rng.normal(size=(30, 16))
    X, y = centres.repeat(3, axis=0) + 0.8 * rng.normal(size=(90, 16)), np.arange(30).repeat(3)
    truth = np.repeat(np.arange(8), 25)
    own = centres[:8] + 0.8 * rng.normal(size=(8, 16))
    return BatchClassifier().fit(X, y), own[truth] + 0.8 * rng.normal(size=(200, 16)), truth


def test_the_rest_of_the_batch_gains(shifted):
    classifier, batch, truth = shifted
    before = classifier.infer(batch)
    wrong = np.flatnonzero(before.labels != truth)
    assert len(wrong) >= 30
    asked = before.probabilities.max(1).argsort()[:16].tolist()
    after = classifier.infer(batch, given={row: truth[row] for row in asked})
    assert (after.labels[asked] == truth[asked]).all()
    assert (after.probabilities[asked, truth[asked]] == 1).all()
    others = np.setdiff1d(np.arange(200), asked)
    assert (after.labels[others] == truth[others]).mean() > (before.labels[others] == truth[others]).mean() + 0.02
    assert classifier.catalogue_.n_examples == 90


def test_a_new_class_has_a_column_and_takes_its_items(shifted):
    classifier, batch, _truth = shifted
    given = dict.fromkeys(range(0, 5), 77)
    found = classifier.infer(batch, given=given, new_classes=[77])
    assert found.probabilities.shape == (200, 31)
    assert (found.labels[:5] == 77).all()
    assert (found.labels[5:25] == 77).mean() > 0.8
    assert 77 in found.present_classes
    assert not found.rejected[:5].any()
    assert (found.unknown[:5] == 0).all()


def test_groups_have_their_given_items_and_share_the_examples(shifted):
    classifier, batch, truth = shifted
    site = np.arange(200) % 3
    given = {4: 77, 60: 29, 199: truth[199]}
    found = classifier.infer(batch, groups=site, given=given, new_classes=[77])
    assert [found.labels[row] for row in given] == list(given.values())
    for place in range(3):
        rows = np.flatnonzero(site == place)
        inside = {int(np.flatnonzero(rows == row)[0]): label for row, label in given.items() if row in rows}
        assert [found[place].labels[row] for row in inside] == list(inside.values())
    assert set(found.classes.tolist()) == {*range(30), 77}


@pytest.mark.parametrize("groups", [None, np.zeros(200, int)])
def test_an_item_that_is_none_of_the_classes(shifted, groups):
    classifier, batch, _truth = shifted
    before, found = (classifier.infer(batch, given=given, groups=groups) for given in (None, {4: None}))
    assert not before.rejected[4]
    assert found.rejected[4]
    assert float(found.unknown[4]) == 1
    # Items that surely share its class are rejected with it, and few others. All items of this batch lie between the
    # classes: one answer that some of them have none makes the others doubtful too, and doubtful ones are labelled
    # alone.
    rejected = found.rejected & ~before.rejected
    assert (before.labels[rejected] == before.labels[4]).mean() > 0.5
    assert (found.labels == before.labels).mean() > 0.8


def test_nothing_given_changes_nothing(shifted):
    classifier, batch, _ = shifted
    assert (classifier.infer(batch, given={}).probabilities == classifier.infer(batch).probabilities).all()


def test_a_group_alone_has_the_same_answer_as_beside_others(shifted):
    classifier, batch, _truth = shifted
    both = classifier.infer(batch, groups=np.arange(200) // 125, given={3: 5})
    alone = classifier.infer(batch[:125], given={3: 5})
    assert np.allclose(both.probabilities[:125], alone.probabilities, atol=1e-6)


def test_items_that_are_given_are_examples_of_their_class():
    catalogue, batch = Catalogue.of(np.eye(3), np.array([0, 1, 2])), np.eye(3)
    more, same, codes = with_given(catalogue, batch, {1: 3}, [3])
    assert same is batch
    assert more.n_classes == 4
    assert codes.tolist() == [-1, 3, -1]
    assert with_given(catalogue, batch, {}) == (catalogue, batch, None)
    less, _, codes = with_given(catalogue, batch, {0: None})
    assert less is catalogue
    assert codes.tolist() == [NO_CLASS, -1, -1]


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({3: "C2"}, r"row 3 was given the label 'C2', which is none of the 5 classes \(did you mean 'c2'\?\)"),
        ({3: "zebra"}, "row 3 was given the label 'zebra', which is none of the 5 classes; correct it"),
        ({3: ""}, "row 3 was given the label ''; give a class, or None"),
        ({3: " \n"}, "give a class, or None"),
        ({3: float("nan")}, "row 3 was given the label nan"),
        ({3: pd.NA}, "row 3 was given the label <NA>"),
        ({3: 2}, "convert them first"),
        ({6: "c2"}, "rows 0 to 5"),
        ({-1: "c2"}, "rows 0 to 5"),
        ({"3": "c2"}, "given must map positions of rows"),
        ({True: "c2"}, "given must map positions of rows"),
        (["c2"], "given must map positions of rows"),
        (pd.Series({3: "c2"}), "given must map positions of rows"),
    ],
)
def test_labels_that_are_no_class_are_refused(given, said):
    rng = np.random.default_rng(0)
    classifier = BatchClassifier().fit(rng.normal(size=(10, 4)), [f"c{k}" for k in range(5)] * 2)
    with pytest.raises(LabelError, match=said):
        classifier.infer(rng.normal(size=(6, 4)), given=given)
    with pytest.raises(LabelError, match=said.replace("5 classes", "6 classes")):
        classifier.infer(rng.normal(size=(6, 4)), given=given, new_classes=["hyena"])


def test_a_class_is_new_if_that_is_said(shifted):
    classifier, batch, _ = shifted
    assert classifier.infer(batch, given={0: 77, 1: 5}, new_classes=[77, 78, 5]).classes.tolist() == [*range(30), 77]
    for new_classes, said in ((77, "must be a list of labels, got 77"), ("77", "must be a list of labels, got '77'")):
        with pytest.raises(OptionError, match=said):
            classifier.infer(batch, given={0: 77}, new_classes=new_classes)
    with pytest.raises(OptionError, match="no label is given; leave it out"):
        classifier.infer(batch, new_classes=[77])
