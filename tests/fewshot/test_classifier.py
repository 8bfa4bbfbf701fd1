"""MethodClassifier: every method under the contract of scikit-learn, and what looks wrong with an answer."""

import numpy as np
import pytest
import torch
from sklearn.exceptions import NotFittedError
from sklearn.utils.estimator_checks import parametrize_with_checks

import handful_fewshot as fewshot
from handful.datasets import load_clinc150
from handful.errors import LabelError, OptionError, TaskError
from handful_fewshot import MethodClassifier
from handful_fewshot.classifier import FEWEST_ITEMS, LEAST_AGREEMENT, collapsed, not_converged
from handful_fewshot.errors import CollapseWarning, NotConvergedWarning

JOINT = "every predict is one joint problem: the label of an item depends on the other items in the call"
# Published PADDLE converges slowly where it collapses.
PATIENT = {"max_iter": 2000}
quiet = pytest.mark.filterwarnings("ignore::handful.errors.HandfulWarning")


def by_design(estimator) -> dict[str, str]:
    """The one declared exception to the contract of scikit-learn."""
    return {"check_methods_subset_invariance": JOINT}


@parametrize_with_checks([MethodClassifier("soft_kmeans", scale="raw")], expected_failed_checks=by_design)
@quiet
def test_the_contract_of_scikit_learn(estimator, check):
    check(estimator)


def toy(seed: int, n_classes: int = 5, dim: int = 6):
    """Two to four examples of each class, and a batch of two of the classes, in double precision."""
    rng = np.random.default_rng(seed)
    labels = rng.permutation(np.repeat(np.arange(n_classes), rng.integers(2, 5, n_classes)))
    centres = 3 * rng.standard_normal((n_classes, dim))
    X = centres[labels] + rng.standard_normal((len(labels), dim))
    batch = centres[rng.integers(0, 2, 15)] + rng.standard_normal((15, dim))
    return X, np.array(["ant", "bee", "cat", "dog", "elk"])[labels], batch


@pytest.mark.parametrize("method", list(fewshot.METHODS))
@quiet
def test_every_method_labels_a_batch(method):
    X, y, batch = toy(5)
    found = MethodClassifier(method).fit(X, y).infer(batch)
    assert set(found.labels) <= set(y)
    np.testing.assert_allclose(found.probabilities.sum(1), 1)
    assert found.joint_weight is None
    assert f"not judged by {method} (" in found.unknown_reason
    assert found.unknown_reason in found.summary()
    assert "unknown items not judged" in repr(found)
    assert not found.rejected.any()
    np.testing.assert_allclose(found.expected_counts, found.probabilities.sum(0))
    assert np.isnan(found.presence).all()


@quiet
@pytest.mark.parametrize(("method", "transform"), [("laplacian_shot", "l2"), ("paddle", "raw"), ("paddle", None)])
def test_the_answer_is_that_of_the_method(method, transform):
    bank, rng = load_clinc150(), np.random.default_rng(0)
    rows = [rng.permutation(np.flatnonzero(bank.labels == k)) for k in range(bank.n_classes)]
    support = np.concatenate([of_class[:5] for of_class in rows])
    features, batch = (bank.take(some).astype(np.float32) for some in (support, np.concatenate(rows[:3])[15:60]))
    names = np.array(bank.class_names)[bank.labels[support]]
    classes, codes = np.unique(names, return_inverse=True)
    found = MethodClassifier(method, scale=transform, options={"max_iter": 20}).fit(features, names)
    used = "found_scale" if transform is None else transform
    task = fewshot.transform(used, fewshot.TaskBatch.single(features, codes, batch, 150))
    expected = fewshot.solve(method, task, max_iter=20)
    answer = found.infer(batch)
    assert (answer.labels == classes[expected.predictions[0]]).all()
    np.testing.assert_allclose(answer.probabilities, expected.log_assignments[0].exp(), atol=1e-5)
    np.testing.assert_array_equal(found.predict(batch), answer.labels)
    np.testing.assert_array_equal(found.predict_proba(batch), answer.probabilities)


def test_mistakes_are_refused_with_a_sentence():
    features = np.eye(3)
    with pytest.raises(OptionError, match=r"no method is called .*choose from batch_classifier, sparse_em, paddle, "):
        MethodClassifier("magic").fit(features, [0, 1, 2])
    with pytest.raises(OptionError, match="scale must be None or one of published, found, raw, "):
        MethodClassifier(scale="magic").fit(features, [0, 1, 2])
    with pytest.raises(OptionError, match="has no option 'speed'"):
        MethodClassifier(options={"speed": 1}).fit(features, [0, 1, 2])
    with pytest.raises(NotFittedError):
        MethodClassifier().predict(features)
    with pytest.raises(LabelError, match="requires y"):
        MethodClassifier().fit(features, None)
    with pytest.raises(TaskError, match="2 features"):
        MethodClassifier("nearest_prototype").fit(features, [0, 1, 2]).predict(features[:, :2])


# -- what looks wrong --------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def bank():
    return load_clinc150()


def real_task(bank, index: int):
    spec = fewshot.TaskSpec(fewshot.ShotsPerClass(5), fewshot.UniformOverPool(5), 40)
    task, _ = fewshot.gather(bank, fewshot.draw(bank.labels, spec, seed=0, indices=[index]))
    return task.support[0].numpy(), task.support_labels[0].numpy(), task.query[0].numpy()


def test_collapse(bank):
    X, y, batch = real_task(bank, 0)
    published = MethodClassifier("paddle", scale="l2", options=PATIENT).fit(X, y)
    for ask in (published.predict, published.predict_proba, published.infer):
        with pytest.warns(
            CollapseWarning, match=r"items were labelled '\d+', but only .* Use BatchClassifier"
        ) as caught:
            found = ask(batch)
        assert caught[0].filename == __file__  # the line that asked
    (diagnostic,) = found.diagnostics
    assert diagnostic.name == "collapsed"
    assert diagnostic.value < diagnostic.threshold == LEAST_AGREEMENT
    # A few items are never called a collapse.
    assert published.infer(batch[: FEWEST_ITEMS - 1]).diagnostics == ()


def test_one_class_that_is_nearest_to_most_is_no_collapse():
    labels = torch.zeros(12, dtype=torch.int64)
    far = torch.tensor([0] * 3 + [1] * 3 + [2] * 3 + [3] * 3)
    assert collapsed(labels, far, "abcd").value == 0.25
    assert collapsed(labels, labels, "abcd") is None
    assert collapsed(far, far, "abcd") is None


def test_iterations_that_run_out(bank):
    X, y, batch = real_task(bank, 3)
    short = MethodClassifier("soft_kmeans", scale="l2", options={"max_iter": 3, "tol": 0.0}).fit(X, y)
    with pytest.warns(NotConvergedWarning, match="still changing after 3 iterations"):
        (found,) = short.infer(batch).diagnostics
    assert found.value == 3
    assert not_converged(3, True) is None


@pytest.mark.filterwarnings("error")
def test_arrays_that_are_read_only_are_taken_without_a_warning():
    """Arrays of a bank are mapped from its file."""
    X, y, batch = toy(0)
    for array in (X, batch):
        array.flags.writeable = False
    usual = torch.is_warn_always_enabled()
    torch.set_warn_always(True)
    try:
        MethodClassifier("nearest_prototype").fit(X, y).predict(batch)
    finally:
        torch.set_warn_always(usual)
