"""The scikit-learn dress: its own contract, labels of any kind, and what a batch says."""

import numpy as np
import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

import handful
from handful.datasets import load_clinc150
from handful.errors import OptionError
from handful.estimators import PaddleClassifier, TransductiveClassifier

JOINT = "every predict is one joint problem: the label of an item depends on the other items in the call"


def by_design(estimator) -> dict[str, str]:
    """The one declared exception to scikit-learn's contract."""
    return {"check_methods_subset_invariance": JOINT}


@parametrize_with_checks(
    [PaddleClassifier(), TransductiveClassifier("soft_kmeans", feature_transform="raw")],
    expected_failed_checks=by_design,
)
def test_scikit_learns_contract(estimator, check):
    check(estimator)


def catalogue(shots: int = 5):
    """Random rows of every class, the other rows by class, and the names of all."""
    bank, rng = load_clinc150(), np.random.default_rng(0)
    rows = [rng.permutation(np.flatnonzero(bank.labels == k)) for k in range(bank.n_classes)]
    support = np.concatenate([of_class[:shots] for of_class in rows])
    names = np.array(bank.class_names)[bank.labels]
    return bank, bank.take(support).astype(np.float32), names[support], names, [of_class[shots:] for of_class in rows]


def test_present_classes_of_real_sentences():
    bank, features, labels, names, spare = catalogue()
    classifier, rng = PaddleClassifier().fit(features, labels), np.random.default_rng(1)
    one_by_one = TransductiveClassifier("nearest_prototype", feature_transform="l2").fit(features, labels)
    right, right_alone, found, believed = [], [], [], []
    for _ in range(20):
        present = rng.choice(150, 3, replace=False)
        rows = np.concatenate([spare[k][:20] for k in present])
        batch = bank.take(rows).astype(np.float32)
        inference = classifier.infer(batch)
        right_alone.append((one_by_one.predict(batch) == names[rows]).mean())
        right.append((inference.labels == names[rows]).mean())
        found.append(len(set(names[rows]) & set(inference.present_classes)))
        believed.append(len(inference.present_classes))
        assert inference.expected_counts.sum() == pytest.approx(60)
        assert inference.class_proportions.sum() == pytest.approx(1)
    assert np.mean(right) > np.mean(right_alone) + 0.03
    assert np.mean(found) > 2.8
    assert np.mean(believed) < 4


def test_the_answer_is_that_of_the_library():
    bank, features, labels, _, spare = catalogue()
    batch = bank.take(np.concatenate(spare[:4])).astype(np.float32)
    classes, encoded = np.unique(labels, return_inverse=True)
    task = handful.transform("l2", handful.TaskBatch.single(features, encoded, batch, 150))
    expected = classes[handful.solve("calibrated_paddle", task).predictions[0]]
    assert (PaddleClassifier().fit(features, labels).predict(batch) == expected).all()


@pytest.mark.parametrize("labels", [["a", "b", "a"], [True, False, True], [7, -3, 7], np.array([2.0, 5.0, 2.0])])
def test_labels_come_back_as_they_went_in(labels):
    features = np.array([[0.0, 1.0], [1.0, 0.0], [0.1, 1.0]])
    predicted = (
        TransductiveClassifier("nearest_prototype", feature_transform="l2").fit(features, labels).predict(features)
    )
    assert predicted.tolist() == list(labels)


def test_mistakes_are_refused_with_a_sentence():
    features = np.eye(3)
    with pytest.raises(OptionError, match="method must be one of calibrated_paddle, "):
        TransductiveClassifier("magic").fit(features, [0, 1, 2])
    with pytest.raises(OptionError, match="feature_transform must be None or one of raw, "):
        TransductiveClassifier(feature_transform="magic").fit(features, [0, 1, 2])
    with pytest.raises(OptionError, match="has no option 'speed'"):
        TransductiveClassifier(options={"speed": 1}).fit(features, [0, 1, 2])
