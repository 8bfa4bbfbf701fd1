"""Diagnostics: each can be triggered, and none fires on ordinary batches of real sentences."""

import re
from pathlib import Path

import numpy as np
import pytest

import handful
from handful.datasets import load_clinc150
from handful.errors import (
    UnlikeCatalogueWarning,
    WeakFeaturesWarning,
)
from handful.estimators import BatchClassifier, Diagnostic
from handful.estimators.batches import Batches
from handful.estimators.diagnostics import (
    FEWEST_ITEMS,
    LEAST_CONFIDENCE,
    LEAST_SIGNAL,
    unlike_catalogue,
    weak_features,
)
from handful.estimators.items import ModelItems
from handful.fitted import FittedModel
from handful.model.knowledge import Knowledge
from tests.optional import optional

fewshot = optional("handful_fewshot", needs="torch")


@pytest.fixture(scope="module")
def bank():
    return load_clinc150()


def real_task(bank, index: int, *, shots: int = 5, k_eff: int = 5, n_query: int = 40):
    spec = fewshot.TaskSpec(fewshot.ShotsPerClass(shots), fewshot.UniformOverPool(k_eff), n_query)
    task, truth = fewshot.gather(bank, fewshot.draw(bank.labels, spec, seed=0, indices=[index]))
    return task.support[0].numpy(), task.support_labels[0].numpy(), task.query[0].numpy(), truth[0].numpy()


def only(inference):
    (found,) = inference.diagnostics
    return found


def one_catalogue(bank, shots: int, seed: int = 0):
    """A classifier of all classes, and the other rows of each class."""
    rng = np.random.default_rng(seed)
    rows = [rng.permutation(np.flatnonzero(bank.labels == k)) for k in range(bank.n_classes)]
    support = np.concatenate([of_class[:shots] for of_class in rows])
    classifier = BatchClassifier().fit(bank.take(support).astype(np.float32), bank.labels[support])
    return classifier, [of_class[shots:] for of_class in rows], rng


@pytest.mark.parametrize("shots", [1, 5, 10])
def test_ordinary_batches_are_silent(bank, shots):
    classifier, spare, rng = one_catalogue(bank, shots)
    for k_eff in (1, 2, 5, 20, 60):
        for _ in range(2):
            rows = np.concatenate([spare[k] for k in rng.choice(150, k_eff, replace=False)])
            batch = bank.take(rng.choice(rows, min(60, len(rows)), replace=False))
            inference = classifier.infer(batch.astype(np.float32))
            assert inference.diagnostics == ()
            assert 0 < inference.joint_weight < 1


def test_every_diagnostic_that_is_documented_is_given_somewhere_and_the_other_way_round():
    """Names in the docstring are those of the calls of `Diagnostic` in the package."""
    about = Diagnostic.__doc__.partition("name : str")[2].partition("message : str")[0]
    documented = set(re.findall(r"`([a-z_]+)`", about))
    source = Path(handful.__file__).parent
    given = [
        name
        for path in source.rglob("*.py")
        for name in re.findall(r'Diagnostic\(\s*"(\w+)"', path.read_text(encoding="utf-8"))
    ]
    assert len(given) == len(set(given))
    assert set(given) == documented


# -- items labelled alone ----------------------------------------------------------------------------------------------


def test_very_uneven_batches_are_labelled_alone(bank):
    classifier, spare, rng = one_catalogue(bank, 5)
    counts = [44, 14, 8, 6, 5, 4, 3, 2, 2, 2]  # natural shares: few classes hold most items
    rows = np.concatenate([rng.choice(of_class, n) for of_class, n in zip(spare[:10], counts, strict=True)])
    batch = bank.take(rows).astype(np.float32)
    inference = classifier.infer(batch)
    assert inference.diagnostics == ()  # nothing is wrong
    even = bank.take(np.concatenate([rng.choice(of_class, 9) for of_class in spare[:10]])).astype(np.float32)
    assert inference.joint_weight < 0.5 < classifier.infer(even).joint_weight
    # Most of the answer is what each item would get alone: few labels differ from those of the head.
    alone = classifier.model_.scores(classifier.model_.points(batch), Knowledge()).argmax(1)
    assert (inference.probabilities.argmax(1) == alone).mean() > 0.9


def test_even_batches_are_labelled_jointly(bank):
    X, y, batch, _ = real_task(bank, 0)
    classifier = BatchClassifier().fit(X, y)
    inference = classifier.infer(batch)
    assert inference.joint_weight > 0.5
    moved = np.log(inference.probabilities) - classifier.model_.scores(classifier.model_.points(batch), Knowledge())
    moved -= moved.mean(1, keepdims=True)
    # The mixture of both answers moves items by different amounts: this test and the last one can tell them apart.
    assert np.abs(moved - moved[:1]).max() > 0.1


# -- unlike_catalogue --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("k_eff", [2, 20])
def test_features_in_another_order_are_unlike_the_catalogue(bank, k_eff):
    X, y, batch, _ = real_task(bank, 1, k_eff=k_eff)
    shuffled = batch[:, np.random.default_rng(0).permutation(batch.shape[1])]
    with pytest.warns(UnlikeCatalogueWarning, match="same model and preprocessing"):
        found = only(BatchClassifier().fit(X, y).infer(shuffled))
    assert found.name == "unlike_catalogue"
    assert found.value < found.threshold == LEAST_CONFIDENCE


def test_certainty_is_compared_with_that_of_left_out_examples(bank):
    X, y, _, _ = real_task(bank, 0)
    head = BatchClassifier().fit(X, y).model_.head
    assert head.confidence is not None
    least = LEAST_CONFIDENCE * head.confidence
    assert unlike_catalogue(40, least + 1e-6, head) is None
    assert unlike_catalogue(40, least - 1e-6, head).value == pytest.approx(LEAST_CONFIDENCE, rel=1e-5)
    assert unlike_catalogue(FEWEST_ITEMS - 1, least - 1e-6, head) is None


# -- weak_features -----------------------------------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore::handful.errors.UnlikeCatalogueWarning")
def test_labels_of_other_rows_are_weak_features(bank):
    X, y, batch, _ = real_task(bank, 0)
    with pytest.warns(WeakFeaturesWarning, match="labels of the catalogue belong to these rows"):
        inference = BatchClassifier().fit(X, np.random.default_rng(0).permutation(y)).infer(batch)
    found = {d.name: d for d in inference.diagnostics}["weak_features"]
    assert found.value < found.threshold == LEAST_SIGNAL


def test_right_labels_are_far_from_weak(bank):
    X, y, _, _ = real_task(bank, 0)
    assert weak_features(BatchClassifier().fit(X, y).model_.head, 0.0) is None


@pytest.mark.parametrize("shots", [1, 3])
def test_a_single_class_or_a_single_example_says_nothing_about_features(shots):
    rng = np.random.default_rng(0)
    assert BatchClassifier().fit(rng.standard_normal((shots, 4)), ["a"] * shots).infer(np.eye(4)).diagnostics == ()
    assert BatchClassifier().fit(np.eye(4), list("abcd")).infer(np.eye(4) + 0.1).diagnostics == ()


def test_copies_of_one_example_say_nothing_about_features():
    rng = np.random.default_rng(0)
    X = np.repeat(rng.standard_normal((6, 8)), 3, axis=0)
    inference = BatchClassifier().fit(X, np.repeat(np.arange(6), 3)).infer(X[::3])
    assert inference.labels.tolist() == list(range(6))
    assert inference.diagnostics == ()


@pytest.mark.filterwarnings("ignore::handful.errors.HandfulWarning")
def test_features_that_are_all_equal_are_weak():
    found = BatchClassifier().fit(np.ones((12, 4)), np.arange(4).repeat(3)).infer(np.ones((8, 4)))
    assert [diagnostic.name for diagnostic in found.diagnostics] == ["weak_features", *["equal_classes"] * 3]


@pytest.mark.filterwarnings("ignore::handful.errors.HandfulWarning")
def test_vectors_of_zeros_are_said():
    catalogue, batch = np.eye(4), np.concatenate([np.eye(4), np.zeros((3, 4))])
    classifier = BatchClassifier().fit(catalogue, list("abcd"))
    found = classifier.infer(batch)
    assert [(diagnostic.name, diagnostic.value) for diagnostic in found.diagnostics] == [("zero_vectors", 3)]
    groups = classifier.infer(batch, groups=["x"] * 4 + ["y"] * 3)
    assert groups["x"].diagnostics == ()
    assert "zero_vectors" in [diagnostic.name for diagnostic in groups["y"].diagnostics]
    raw = Batches.of(ModelItems(FittedModel.of(catalogue, np.array(list("abcd")), "raw"), batch)).answer()
    assert "zero_vectors" not in [diagnostic.name for diagnostic in raw.diagnostics]


def test_a_warning_points_at_the_line_that_asked():
    catalogue, batch = np.eye(4), np.concatenate([np.eye(4), np.zeros((3, 4))])
    classifier = BatchClassifier().fit(catalogue, list("abcd"))
    for ask in (classifier.predict, classifier.predict_proba, classifier.infer):
        with pytest.warns(UnlikeCatalogueWarning) as caught:
            ask(batch)
        assert [warning.filename for warning in caught] == [__file__]
