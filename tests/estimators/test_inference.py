"""What a batch says about its classes."""

import warnings
from dataclasses import replace

import numpy as np
import pytest
import torch
from handful.estimators.inference import PRESENT, inferred, of_solution, presence_if_independent
from hypothesis import given
from hypothesis import strategies as st

import handful
from handful.catalogue import Catalogue
from handful.datasets import load_clinc150
from handful.engine.model import Context
from handful.estimators import BatchClassifier, TransductiveClassifier
from tests.tasks_at_hand import random_task


@given(seed=st.integers(0, 1000))
def test_presence_is_one_minus_the_chance_of_no_item(seed):
    probabilities = np.random.default_rng(seed).dirichlet(np.full(4, 0.3), 12)
    np.testing.assert_allclose(
        presence_if_independent(torch.from_numpy(probabilities)), 1 - np.prod(1 - probabilities, axis=0), atol=1e-12
    )


def test_presence_of_the_certain_and_of_the_barely_possible():
    probabilities = np.array([[1.0, 0.0, 0.0], [1.0 - 1e-18, 0.0, 1e-18], [1.0, 0.0, 1e-18]])
    found = presence_if_independent(torch.from_numpy(probabilities))
    assert found[:2].tolist() == [1.0, 0.0]
    assert float(found[2]) == pytest.approx(2e-18, rel=1e-6)


@pytest.fixture(scope="module")
def sentences():
    """A catalogue of real sentences, and the other rows of each class."""
    bank, rng = load_clinc150(), np.random.default_rng(0)
    rows = [rng.permutation(np.flatnonzero(bank.labels == k)) for k in range(bank.n_classes)]
    support = np.concatenate([of_class[:5] for of_class in rows])
    catalogue = Catalogue.of(torch.from_numpy(bank.take(support).astype(np.float32)), bank.labels[support])
    return bank, catalogue, [of_class[5:] for of_class in rows]


def batch_of(bank, rows):
    return torch.from_numpy(bank.take(np.concatenate(rows)).astype(np.float32))


def test_everything_agrees_with_the_answer_of_the_catalogue(sentences):
    bank, catalogue, spare = sentences
    query = batch_of(bank, [spare[3][:20], spare[30][:10]])
    found, expected = inferred(catalogue, query), catalogue.label(query, Context())
    assert found.joint_weight == expected.joint_weight
    assert 0 < found.joint_weight < 1
    assert (found.n_iter, found.converged) == (1, True)
    np.testing.assert_array_equal(found.presence, expected.presence)
    np.testing.assert_array_equal(found.rejected, expected.rejected)
    np.testing.assert_allclose(found.expected_counts, expected.expected_counts)
    np.testing.assert_allclose(found.expected_counts, expected.probabilities.sum(0), atol=1e-3)
    np.testing.assert_allclose(found.class_proportions, found.expected_counts / 30)
    np.testing.assert_allclose(found.probabilities.sum(-1), 1)
    assert (found.labels == found.probabilities.argmax(-1).numpy()).all()


def test_present_classes_are_those_with_an_even_chance_the_largest_first(sentences):
    bank, catalogue, spare = sentences
    found = inferred(catalogue, batch_of(bank, [spare[k][: 6 + k // 10] for k in range(0, 100, 10)]))
    counts, chances = found.expected_counts, found.presence
    assert set(found.present_classes.tolist()) == set(np.flatnonzero(chances >= PRESENT).tolist())
    assert (np.diff(counts[found.present_classes]) <= 0).all()
    # A class can hold most of an item and still be absent: the chance decides, not the count.
    assert ((chances > 0) & (chances <= 1)).all()  # one by rounding
    assert (chances < 1 - 1e-6).sum() > 140


def test_presence_says_how_often_a_class_is_there(sentences):
    """Over many batches: of the classes said to be present with a chance above a half, most are; of the others few."""
    bank, catalogue, spare = sentences
    rng, chances, truth = np.random.default_rng(1), [], []
    for _ in range(30):
        present = rng.choice(150, 5, replace=False)
        found = inferred(catalogue, batch_of(bank, [spare[k][:12] for k in present]))
        chances.append(found.presence)
        truth.append(np.isin(np.arange(150), present))
    p, there = np.concatenate(chances), np.concatenate(truth)
    assert there[p >= 0.9].mean() > 0.9
    assert there[p < 0.1].mean() < 0.01
    assert p.sum() == pytest.approx(there.sum(), rel=0.2)


def test_names_may_differ_from_labels(sentences):
    bank, catalogue, spare = sentences
    query = batch_of(bank, [spare[3][:20]])
    names = np.array(bank.class_names)
    assert (inferred(catalogue, query, names).labels == names[inferred(catalogue, query).labels]).all()


def test_other_methods_have_no_joint_weight():
    task = random_task(0, n_tasks=1)
    found = of_solution(task, "nearest_prototype", {}, np.arange(task.n_classes))
    assert found.joint_weight is None
    np.testing.assert_allclose(found.presence, presence_if_independent(found.probabilities), atol=1e-12)


def _fitted(n_classes, shots):
    rng = np.random.default_rng(0)
    y = np.arange(n_classes).repeat(shots)
    return BatchClassifier().fit(rng.normal(size=(n_classes, 8))[y] + 0.2 * rng.normal(size=(len(y), 8)), y)


@pytest.mark.parametrize(
    ("make", "reason"),
    [
        (lambda: _fitted(1, 30), "with a single class; add"),
        (lambda: _fitted(6, 3), "at least 20 different examples in classes of two or more; add"),
        (lambda: BatchClassifier().fit(np.ones((30, 8)), np.arange(6).repeat(5)), "20 different examples"),
        (lambda: BatchClassifier.from_names({"a": np.eye(8)[0], "b": np.eye(8)[1]}), "names of classes alone; add"),
        (lambda: TransductiveClassifier("soft_kmeans").fit(np.eye(8), np.arange(8)), "the method 'soft_kmeans'; use"),
    ],
)
def test_an_answer_says_why_unknown_items_were_not_judged(make, reason):
    batch = np.random.default_rng(1).normal(size=(12, 8))
    with warnings.catch_warnings(action="ignore"):
        found = make().infer(batch)
    assert reason in found.unknown_reason
    assert found.unknown_reason in found.summary()
    assert "unknown items not judged" in repr(found)
    assert "rejected" not in repr(found)


def test_groups_say_why_unknown_items_were_not_judged():
    batch = np.random.default_rng(1).normal(size=(12, 8))
    found = _fitted(6, 3).infer(batch, groups=["a", "b"] * 6)
    assert "20 different examples" in found.unknown_reason
    assert found["a"].unknown_reason == found.unknown_reason
    assert "unknown items not judged" in repr(found)
    assert found.unknown_reason in found.summary()
    assert "not judged" in found.summary().splitlines()[2]


def test_judged_items_need_no_reason():
    batch = np.random.default_rng(1).normal(size=(12, 8))
    for found in (_fitted(6, 5).infer(batch), _fitted(6, 5).infer(batch, groups=[0] * 12)):
        assert found.unknown_reason is None
        assert "not judged" not in repr(found)


def test_scores_of_several_classes_judge_unknown_items_and_others_do_not():
    chances = np.random.default_rng(0).uniform(size=(12, 4))
    assert "another model" in handful.infer_scores(chances, kind="sigmoid").unknown_reason
    assert handful.infer_scores(chances, kind="sigmoid", several=True).unknown_reason is None


def weak_world(seed):
    """Two noisy examples of each class, and a batch with nothing unknown in it."""
    rng = np.random.default_rng(seed)
    centres, y = rng.normal(size=(40, 32)), np.arange(40).repeat(2)
    X, batch = (centres[of] + 2.0 * rng.normal(size=(len(of), 32)) for of in (y, np.arange(5).repeat(12)))
    return X, y, batch


@pytest.mark.filterwarnings("ignore::handful.errors.HandfulWarning")
@pytest.mark.parametrize("seed", range(4))
def test_features_that_cannot_tell_left_out_classes_reject_nothing(seed):
    X, y, batch = weak_world(seed)
    found = BatchClassifier().fit(X, y).infer(batch)
    assert "examples of a class that was left out look like those of the other classes" in found.unknown_reason
    assert not found.rejected.any()


def test_an_answer_without_rejected_items_says_how_many_may_be_unknown():
    found = _fitted(6, 5).infer(np.random.default_rng(1).normal(size=(12, 8)))
    none = np.zeros(12, dtype=bool)
    wide, narrow = (replace(found, rejected=none, unknown_interval=(0.0, high)) for high in (0.4, 0.1))
    assert "Up to 40% of the items may be like none of the classes" in wide.summary()
    assert "may be like none" not in narrow.summary()
    assert "may be like none" not in replace(wide, unknown_reason="It cannot be judged.").summary()
