"""Why an item has its label."""

import numpy as np
import pytest
from scipy.special import softmax

from handful.errors import TaskError
from handful.estimators import BatchClassifier
from tests.worlds import Clouds

NAMES = np.array([f"class {k:02}" for k in range(20)])


@pytest.fixture(scope="module")
def world():
    """A classifier, and a batch of two classes whose first item looks like a third."""
    clouds = Clouds(20, 16)
    X = clouds.examples(5, 0.9)
    batch = clouds.around([3] * 30 + [7] * 20, 0.9)
    batch[0] = 0.4 * clouds.centres[3] + 0.6 * clouds.centres[5]
    return BatchClassifier().fit(X, NAMES.repeat(5)), X, batch


def test_the_batch_changes_what_an_item_is_alone(world):
    classifier, X, batch = world
    found, why = classifier.infer(batch), classifier.explain(batch, 0)
    head, catalogue = classifier.model_.head, classifier.model_
    assert (why.item, why.label, why.alone, why.rival) == (0, "class 03", "class 05", "class 05")
    assert why.certainty == pytest.approx(found.certainty[0])
    unit = batch[0] / np.linalg.norm(batch[0]) - catalogue.origin
    scores = head.weights @ unit + head.offsets
    assert why.alone_certainty == pytest.approx(softmax(scores)[5] * (1 - found.unknown[0]) * 101 / 102)
    assert why.from_item == pytest.approx(float(scores[3] - scores[5]))
    assert why.from_item < 0 < why.from_batch
    odds = np.log(found.probabilities[0, 3] / found.probabilities[0, 5])
    assert why.from_item + why.from_batch == pytest.approx(odds)
    others = (1 - found.unknown[1:]) @ np.asarray(found.probabilities)[1:]
    assert why.others_of_label == pytest.approx(others[3], abs=1e-3)
    assert why.others_of_rival == pytest.approx(others[5], abs=1e-3)
    cosines = (X / np.linalg.norm(X, axis=1, keepdims=True)) @ (batch[0] / np.linalg.norm(batch[0]))
    assert [near.position for near in why.nearest] == np.argsort(-cosines)[:3].tolist()
    assert [near.label for near in why.nearest] == NAMES.repeat(5)[np.argsort(-cosines)[:3]].tolist()
    assert why.nearest[0].distance == pytest.approx(np.sqrt(2 - 2 * cosines.max()))


def test_sentences(world):
    classifier, _, batch = world
    first, clear = classifier.explain(batch, [0, 10])
    assert str(first).startswith("Item 0 is 'class 03' (0.7")
    assert "Alone it would be 'class 05' (0.8" in str(first)
    assert "Of the other 49 items of the batch, 29 are expected to be 'class 03', none to be 'class 05'." in str(first)
    assert str(clear).startswith("Item 10 is 'class 03'")
    assert "Alone it would be the same" in str(clear)
    assert clear.rival not in (None, "class 03")


@pytest.mark.parametrize("seed", [4, 0])
def test_an_unknown_item_is_said_to_be_one(seed):
    clouds = Clouds(21, 24, seed)
    X, y = clouds.examples(5, 0.4, 20), np.arange(20).repeat(5)
    batch = clouds.around([3] * 12 + [20] * 8, 0.4)
    why = BatchClassifier().fit(X, y).explain(batch, 15)
    assert why.rejected
    assert str(why).startswith(f"Item 15 looks like none of the classes ({why.unknown:.2f}); ")
    # Expected counts leave unknown items out, and so does what others hold.
    assert why.others_of_label == pytest.approx(0, abs=0.5)


def test_added_examples_are_found(world):
    _, X, batch = world
    more = BatchClassifier().fit(X, NAMES.repeat(5)).partial_fit(batch[:1], ["class 03"])
    near = more.explain(batch, 0).nearest[0]
    assert (near.position, near.label) == (100, "class 03")
    assert near.distance == pytest.approx(0, abs=1e-6)


def test_what_a_person_said_holds(world):
    classifier, _, batch = world
    why = classifier.explain(batch, 0, given={0: "class 05"})
    assert (why.label, why.nearest[0].position) == ("class 05", 100)
    assert why.certainty == 1


def test_candidates_hold_alone_too(world):
    classifier, _, batch = world
    assert classifier.explain(batch, 0, candidates=["class 03", "class 07"]).alone == "class 03"
    only = classifier.explain(batch, 0, candidates=["class 07"])
    assert (only.label, only.rival, only.from_batch) == ("class 07", None, 0.0)
    assert "expected" not in str(only)


def test_names_alone_explain_too(world):
    _, _, batch = world
    named = BatchClassifier().add_names({"this": batch[0], "that": batch[40], "else": -batch[0]})
    why = named.explain(batch, 0)
    assert (why.label, why.alone, why.nearest) == ("this", "this", ())


def test_what_cannot_be_explained_is_refused(world):
    classifier, _, batch = world
    with pytest.raises(TaskError, match="the items 0 to 49, got 50"):
        classifier.explain(batch, 50)
