"""Items of no class, from features to answers: found, proposed, added, and then known."""

import numpy as np
import pytest

from handful.datasets import load_clinc150
from handful.errors import LabelError
from handful.estimators import BatchClassifier
from handful_fewshot import MethodClassifier
from tests.worlds import Clouds


class Gaussian:
    """Classes around random directions; the catalogue has all but the last two."""

    def __init__(self, shots: int = 5) -> None:
        self.clouds = Clouds(32, 24)
        self.classifier = BatchClassifier().fit(self.clouds.examples(shots, 0.4, 30), np.arange(30).repeat(shots))

    def around(self, classes) -> np.ndarray:
        return self.clouds.around(np.asarray(classes), 0.4)


@pytest.fixture(scope="module")
def gaussian():
    return Gaussian()


TRUTH = np.array([3] * 12 + [7] * 12 + [30] * 12 + [31] * 8)


def test_items_of_new_classes_are_unknown_and_proposed(gaussian):
    found = gaussian.classifier.infer(gaussian.around(TRUTH))
    new = TRUTH >= 30
    assert found.rejected.tolist() == new.tolist()
    assert found.unknown[new].min() > 0.5 > found.unknown[~new].max()
    assert found.unknown.mean() == pytest.approx(20 / 44, abs=0.05)
    low, high = found.unknown_interval
    assert low <= 20 / 44 <= high
    assert [sorted(p.items.tolist()) for p in found.proposals] == [list(range(24, 36)), list(range(36, 44))]
    assert [p.size for p in found.proposals] == [12, 8]
    assert found.proposals[0].worth > found.proposals[1].worth > 0
    assert all(0 < p.cohesion <= 1 and p.nearest in range(30) for p in found.proposals)
    assert sorted(found.present_classes.tolist()) == [3, 7]
    np.testing.assert_allclose(found.expected_counts[[3, 7]], 12, atol=0.5)
    np.testing.assert_allclose(found.expected_counts, ((1 - found.unknown)[:, None] * found.probabilities).sum(0))


def test_a_proposal_is_added_as_it_is_and_then_known(gaussian):
    batch = gaussian.around(TRUTH)
    classifier = Gaussian().classifier
    for name, proposal in zip((30, 31), classifier.infer(batch).proposals, strict=True):
        classifier.partial_fit(batch[proposal.items], [name] * proposal.size, classes=[name])
    found = classifier.infer(gaussian.around(TRUTH))
    assert found.labels.tolist() == TRUTH.tolist()
    assert not found.rejected.any()


def test_predict_keeps_its_contract_and_gives_the_rejected_a_label_if_asked(gaussian):
    batch = gaussian.around(TRUTH)
    labels = gaussian.classifier.predict(batch)
    assert set(labels.tolist()) <= set(range(30))
    rejecting = gaussian.classifier.predict(batch, unknown=-1)
    assert rejecting.tolist() == np.where(TRUTH >= 30, -1, labels).tolist()
    known = gaussian.around(TRUTH[:24])
    assert (gaussian.classifier.predict(known, unknown=-1) == TRUTH[:24]).mean() > 0.9
    with pytest.raises(LabelError, match="labels must be of the catalogue's kind"):
        gaussian.classifier.predict(batch, unknown="other")


@pytest.mark.parametrize("classifier", [BatchClassifier(), MethodClassifier("nearest_prototype")])
def test_what_cannot_tell_says_so(classifier):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(30, 24)), np.arange(30)
    found = classifier.fit(X, y).infer(X[:12] + 0.1)
    assert found.unknown_reason is not None
    assert not found.rejected.any()
    assert np.isnan(found.unknown).all()
    assert np.isnan(found.unknown.mean())
    assert found.unknown_interval == (0, 1)
    assert found.proposals == ()
    if isinstance(classifier, BatchClassifier):
        assert classifier.predict(X[:12] + 0.1, unknown=-1).tolist() == found.labels.tolist()


def test_sentences_of_missing_intents_are_proposed():
    """Ten intents of the bundled data are not in the catalogue; three of them make a third of the batch."""
    bank, rng = load_clinc150(), np.random.default_rng(0)
    rows = [rng.permutation(np.flatnonzero(bank.labels == k)) for k in range(150)]
    gone = rng.permutation(150)[:10]
    kept = np.setdiff1d(np.arange(150), gone)
    catalogue = np.concatenate([rows[k][:5] for k in kept])
    classifier = BatchClassifier().fit(bank.take(catalogue), bank.labels[catalogue])
    areas, errors, proposed, pure = [], [], 0, 0
    for task in range(8):
        known, new = rng.choice(kept, 5, replace=False), rng.choice(gone, 3, replace=False)
        items = np.concatenate([rows[k][5:15] for k in known] + [rows[k][5:15] for k in new])
        truth = bank.labels[items]
        found = classifier.infer(bank.take(items))
        strange = np.isin(truth, gone)
        ranks = found.unknown.argsort().argsort() + 1
        areas.append((ranks[strange].sum() - 30 * 31 / 2) / (30 * 50))
        errors.append(abs(found.unknown.mean() - 0.375))
        proposed += len(found.proposals)
        for proposal in found.proposals:
            counts = np.bincount(truth[proposal.items], minlength=150)
            pure += counts.max() >= 0.8 * proposal.size and counts.argmax() in gone
        closed = classifier.infer(bank.take(items[~strange]))
        assert closed.rejected.mean() <= 0.1, task
    assert np.mean(areas) > 0.9
    assert np.mean(errors) < 0.12
    assert proposed >= 12
    assert pure >= 0.75 * proposed
