"""BatchClassifier: the contract of scikit-learn, labels of any kind, and what a batch says."""

import warnings
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError
from sklearn.semi_supervised import LabelSpreading
from sklearn.utils.estimator_checks import parametrize_with_checks

import handful
from handful.datasets import load_clinc150
from handful.errors import LabelError, OptionError, TaskError
from handful.estimators import BatchClassifier
from handful.estimators.classifiers import is_unlabelled
from tests.optional import given, optional, st
from tests.worlds import Clouds

torch = optional("torch")
fewshot = optional("handful_fewshot", needs="torch")

JOINT = "every predict is one joint problem: the label of an item depends on the other items in the call"


def by_design(estimator) -> dict[str, str]:
    """The one declared exception to scikit-learn's contract."""
    return {"check_methods_subset_invariance": JOINT}


@parametrize_with_checks([BatchClassifier()], expected_failed_checks=by_design)
@pytest.mark.filterwarnings("ignore::handful.errors.HandfulWarning")
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
    classifier, rng = BatchClassifier().fit(features, labels), np.random.default_rng(1)
    one_by_one = fewshot.MethodClassifier("nearest_prototype", scale="l2").fit(features, labels)
    right, right_alone, found, believed, called = [], [], [], [], []
    for _ in range(20):
        present = rng.choice(150, 3, replace=False)
        rows = np.concatenate([spare[k][:20] for k in present])
        batch = bank.take(rows).astype(np.float32)
        inference = classifier.infer(batch)
        right_alone.append((one_by_one.predict(batch) == names[rows]).mean())
        right.append((inference.labels == names[rows]).mean())
        found.append(len(set(names[rows]) & set(inference.present_classes)))
        believed.append(len(inference.present_classes))
        assert inference.expected_counts.sum() + inference.unknown.sum() == pytest.approx(60)
        called.append(inference.rejected.mean())
    assert np.mean(called) < 0.05
    assert np.mean(right) > np.mean(right_alone) + 0.03
    assert np.mean(found) > 2.8
    assert np.mean(believed) < 4


def test_the_answer_is_that_of_the_library():
    bank, features, labels, _, spare = catalogue()
    batch = bank.take(np.concatenate(spare[:4])).astype(np.float32)
    classes, encoded = np.unique(labels, return_inverse=True)
    task = fewshot.transform("l2", fewshot.TaskBatch.single(features, encoded, batch, 150))
    expected = fewshot.solve("batch_classifier", task)
    found = BatchClassifier().fit(features, labels).infer(batch)
    assert (found.labels == classes[expected.predictions[0]]).all()
    np.testing.assert_allclose(found.probabilities, expected.log_assignments[0].exp(), atol=1e-4)
    shares = found.expected_counts / found.expected_counts.sum()
    np.testing.assert_allclose(shares, expected.proportions[0], atol=1e-4)


@pytest.mark.parametrize("labels", [["a", "b", "a"], [True, False, True], [7, -3, 7], np.array([2.0, 5.0, 2.0])])
def test_labels_come_back_as_they_went_in(labels):
    features = np.array([[0.0, 1.0], [1.0, 0.0], [0.1, 1.0]])
    assert BatchClassifier().fit(features, labels).predict(features).tolist() == list(labels)


def toy(seed: int, n_classes: int = 5, dim: int = 6):
    """Two to four examples of each class, and a batch of two of the classes, in double precision."""
    rng = np.random.default_rng(seed)
    labels = rng.permutation(np.repeat(np.arange(n_classes), rng.integers(2, 5, n_classes)))
    centres = 3 * rng.standard_normal((n_classes, dim))
    X = centres[labels] + rng.standard_normal((len(labels), dim))
    batch = centres[rng.integers(0, 2, 15)] + rng.standard_normal((15, dim))
    return X, np.array(["ant", "bee", "cat", "dog", "elk"])[labels], batch


quiet = pytest.mark.filterwarnings("ignore::handful.errors.HandfulWarning")


def same_classifier(left, right, batch) -> None:
    assert left.classes_.tolist() == right.classes_.tolist()
    assert left.predict(batch).tolist() == right.predict(batch).tolist()
    # Sums of the same examples in another order.
    np.testing.assert_allclose(left.predict_proba(batch), right.predict_proba(batch), atol=1e-9)


@quiet
@given(seed=st.integers(0, 1000))
def test_growing_and_shrinking_equal_a_fresh_fit(seed):
    X, y, batch = toy(seed)
    new, old = y == "bee", y != "bee"
    fresh = BatchClassifier().fit(np.concatenate([X[old], X[new]]), np.concatenate([y[old], y[new]]))
    same_classifier(BatchClassifier().fit(X[old], y[old]).partial_fit(X[new], y[new], ["bee"]), fresh, batch)
    first = BatchClassifier().partial_fit(X[:8], y[:8])
    same_classifier(first.partial_fit(X[8:], y[8:], classes=np.unique(y)), BatchClassifier().fit(X, y), batch)
    shrunk = BatchClassifier().fit(X, y).remove_classes(["bee"])
    same_classifier(shrunk, BatchClassifier().fit(X[old], y[old]), batch)


def test_growing_and_shrinking_say_what_does_not_fit():
    X, y, _ = toy(0)
    fitted = BatchClassifier().fit(X, y)
    with pytest.raises(LabelError, match="label 'fly' is not among the 5 classes"):
        fitted.partial_fit(X[:1], ["fly"])
    with pytest.raises(LabelError, match="class 'fly' is not in the catalogue"):
        fitted.remove_classes(["fly"])
    with pytest.raises(NotFittedError):
        BatchClassifier().remove_classes(["ant"])
    assert fitted.classes_.tolist() == ["ant", "bee", "cat", "dog", "elk"]


@quiet
def test_the_semi_supervised_spelling():
    X, y, batch = toy(3)
    rows, labels = np.concatenate([batch, X]), np.concatenate([np.full(len(batch), -1, dtype=object), y])
    fitted = BatchClassifier().fit(rows, labels, unlabelled=-1)
    alone = BatchClassifier().fit(X, y).infer(batch)
    assert fitted.classes_.tolist() == ["ant", "bee", "cat", "dog", "elk"]
    assert fitted.transduction_.tolist() == alone.labels.tolist() + y.tolist()
    assert (fitted.label_distributions_[: len(batch)] == alone.probabilities).all()
    assert (fitted.classes_[fitted.label_distributions_.argmax(1)] == fitted.transduction_).all()
    np.testing.assert_allclose(fitted.label_distributions_.sum(1), 1)
    assert (fitted.predict(batch) == alone.labels).all()
    with pytest.raises(AttributeError, match="but not after its catalogue was changed"):
        _ = fitted.remove_classes(["ant"]).transduction_


@quiet
def test_it_speaks_as_label_spreading_does():
    X, _, batch = toy(4)
    y = np.arange(len(X)) % 3
    rows, labels = np.concatenate([X, batch]), np.concatenate([y, np.full(len(batch), -1)])
    ours, theirs = BatchClassifier().fit(rows, labels, unlabelled=-1), LabelSpreading().fit(rows, labels)
    for name in ("classes_", "transduction_", "label_distributions_"):
        assert getattr(ours, name).shape == getattr(theirs, name).shape
        assert getattr(ours, name).dtype == getattr(theirs, name).dtype
    assert BatchClassifier().fit(X, y).transduction_.tolist() == y.tolist()


def test_nothing_but_unlabelled_rows():
    with pytest.raises(LabelError, match="every row is unlabelled"):
        BatchClassifier().fit(np.eye(3), [-1, -1, -1], unlabelled=-1)


@quiet
@pytest.mark.parametrize("labels", [[0, 0, 1, 1, -1, -1], [0, 0, 0, 0, -1, -1]])
def test_what_minus_one_means_is_said_and_not_guessed(labels):
    X = toy(7)[0][:6]
    assert BatchClassifier().fit(X, labels).classes_.tolist() == sorted(set(labels))
    assert BatchClassifier().fit(X, labels, unlabelled=-1).classes_.tolist() == sorted(set(labels) - {-1})


def test_inferring_stores_nothing_and_threads_may_share(recwarn):
    bank, features, labels, _, spare = catalogue()
    classifier = BatchClassifier().fit(features, labels)
    before = {name: id(value) for name, value in vars(classifier).items()}
    batches = [bank.take(np.concatenate(spare[k : k + 3])).astype(np.float32) for k in range(0, 12, 3)]
    expected = [classifier.predict_proba(batch) for batch in batches]
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(classifier.predict_proba, batches))
    assert all((a == b).all() for a, b in zip(found, expected, strict=True))
    assert {name: id(value) for name, value in vars(classifier).items()} == before


def test_the_catalogue_is_our_own():
    X, y, batch = toy(6)
    fitted = BatchClassifier().fit(X, y)
    tensors = BatchClassifier().fit(rows := torch.from_numpy(X.copy()), y)
    expected = fitted.predict_proba(batch)
    X[:] = rows[:] = 0
    assert (fitted.predict_proba(batch) == expected).all()
    assert (tensors.predict_proba(batch) == expected).all()


@quiet
@pytest.mark.parametrize(
    ("dtype", "exponents"), [("f4", [-38, -30, -10, 10, 20, 30, 37]), ("f8", [-300, -30, 30, 150, 300])]
)
def test_features_of_any_scale_will_do(dtype, exponents):
    X, y, batch = toy(9)
    near = BatchClassifier().fit(X, y).infer(batch)
    for exponent in exponents:
        factor = np.float64(10.0) ** exponent
        far = BatchClassifier().fit((X * factor).astype(dtype), y).infer((batch * factor).astype(dtype))
        assert far.labels.tolist() == near.labels.tolist()
        np.testing.assert_allclose(far.probabilities, near.probabilities, atol=1e-3)
    with pytest.raises(TaskError, match="has lost digits"):
        BatchClassifier().fit((X * 1e-42).astype("f4"), y).predict((batch * 1e-42).astype("f4"))


def test_fit_fits_the_head_and_changes_leave_it_to_the_next_batch():
    X, y, batch = toy(10)
    fitted = BatchClassifier().fit(X, y)
    assert "head" in vars(fitted.model_)
    changes = (
        lambda c: c.partial_fit(X[:1], y[:1]),
        lambda c: c.partial_fit(X[:2] + 9, ["fly", "fly"], ["fly"]),
        lambda c: c.remove_classes(["ant"]),
    )
    for change in changes:
        changed = change(BatchClassifier().fit(X, y))
        assert "head" not in vars(changed.model_)
        with warnings.catch_warnings(action="ignore"):
            changed.infer(batch)
        assert "head" in vars(changed.model_)


@quiet
def test_single_precision_is_close_to_double():
    X, y, batch = toy(12)
    double = BatchClassifier().fit(X, y).infer(batch)
    single = BatchClassifier().fit(X.astype("f4"), y).infer(batch.astype("f4"))
    assert single.labels.tolist() == double.labels.tolist()
    assert BatchClassifier().fit(X.astype("f4"), y).model_.head.weights.dtype == np.float32
    np.testing.assert_allclose(single.probabilities, double.probabilities, atol=2e-3)
    np.testing.assert_allclose(single.presence, double.presence, atol=2e-3)


def test_a_catalogue_of_one_class():
    inference = BatchClassifier().fit(np.eye(4)[:2], ["a", "a"]).infer(np.eye(4))
    assert inference.labels.tolist() == ["a"] * 4
    np.testing.assert_allclose(inference.probabilities, 1)
    assert inference.present_classes.tolist() == ["a"]
    assert inference.expected_counts.tolist() == pytest.approx([4])


def test_two_classes_of_which_one_occurs():
    rng = np.random.default_rng(0)
    centres = np.array([[3.0, 0, 0, 0], [0, 3.0, 0, 0]])
    X, y = centres.repeat(5, axis=0) + rng.standard_normal((10, 4)), np.array(["a", "b"]).repeat(5)
    inference = BatchClassifier().fit(X, y).infer(centres[[0] * 30] + rng.standard_normal((30, 4)))
    assert inference.present_classes.tolist() == ["a"]
    assert (inference.labels == "a").all()


def test_one_example_of_each_class_and_a_batch_of_one_item():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((8, 16))
    fitted = BatchClassifier().fit(X, list("abcdefgh"))
    assert fitted.model_.head.confidence is None
    for k in range(8):
        assert fitted.predict(X[k : k + 1] + 0.1).tolist() == ["abcdefgh"[k]]


@quiet
def test_rows_given_twice_change_little():
    """The same examples twice are more mass, not other classes; copies are left out together."""
    X, y, batch = toy(13)
    once = BatchClassifier().fit(X, y)
    twice = BatchClassifier().fit(np.repeat(X, 2, axis=0), np.repeat(y, 2))
    assert twice.predict(batch).tolist() == once.predict(batch).tolist()
    left = twice.model_.head.left_out
    copies = {}
    for row, own in zip(left.rows.tolist(), left.own.tolist(), strict=True):
        copies.setdefault(row // 2, set()).add(round(own, 9))
    assert copies
    assert all(len(values) == 1 for values in copies.values())


def named_problem(shots=2, n_classes=30, seed=0, of_names=0.7):
    """Names, examples with labels, and a batch of three of the classes with its truth."""
    clouds = Clouds(n_classes, 24, seed)
    names = {f"c{k:02}": centre for k, centre in enumerate(clouds.examples(1, of_names))}
    codes = np.arange(n_classes).repeat(shots)
    X = clouds.around(codes, 1.2)
    truth = np.array([3] * 20 + [7] * 20 + [11] * 20)
    batch = clouds.around(truth, 1.2)
    return names, X, np.array(list(names))[codes], batch, np.array(list(names))[truth]


def test_names_alone_label_a_batch_jointly():
    names, _, _, batch, truth = named_problem()
    classifier = BatchClassifier().add_names(names)
    found = classifier.infer(batch)
    assert set(found.present_classes) == {"c03", "c07", "c11"}
    assert (found.labels == truth).mean() > 0.9
    assert np.isnan(found.unknown).all()
    assert (classifier.predict(batch, candidates=["c03", "c07"]) != "c11").all()
    groups = np.arange(60) % 2
    grouped = classifier.infer(batch, groups=groups)
    assert (grouped.labels[groups == 1] == classifier.infer(batch[groups == 1]).labels).all()
    unlikely = classifier.infer(batch, prior={"c03": 1e-4})
    assert unlikely.expected_counts[3] <= found.expected_counts[3]


def test_names_and_examples_are_better_than_either():
    right = {"examples": 0.0, "names": 0.0, "both": 0.0}
    for seed in range(5):
        names, X, y, batch, truth = named_problem(shots=1, seed=seed, of_names=1.2)
        right["examples"] += (BatchClassifier().fit(X, y).predict(batch) == truth).mean() / 5
        right["names"] += (BatchClassifier().add_names(names).predict(batch) == truth).mean() / 5
        right["both"] += (BatchClassifier().fit(X, y, names=names).predict(batch) == truth).mean() / 5
    assert right["both"] > right["examples"] + 0.05
    assert right["both"] >= right["names"]


def test_names_come_early_or_late_and_are_saved(tmp_path):
    names, X, y, batch, _ = named_problem(shots=4)
    at_once = BatchClassifier().fit(X, y, names=names)
    late = BatchClassifier().fit(X, y).add_names(names)
    early = BatchClassifier().add_names(names).partial_fit(X, y)
    np.testing.assert_allclose(late.predict_proba(batch), at_once.predict_proba(batch))
    np.testing.assert_allclose(early.predict_proba(batch), at_once.predict_proba(batch), atol=1e-3)
    for classifier in (at_once, BatchClassifier().add_names(names)):
        classifier.save(tmp_path / "named.safetensors")
        loaded = BatchClassifier.load(tmp_path / "named.safetensors")
        assert (loaded.predict_proba(batch) == classifier.predict_proba(batch)).all()
        more = loaded.add_names({"new": batch[0]}).remove_classes(["c05"])
        assert "new" in more.classes_
        assert "c05" not in more.classes_
        assert more.predict_proba(batch).shape == (60, 30)


def test_names_are_refused_where_they_cannot_be_used():
    _, X, y, _, _ = named_problem()
    with pytest.raises(TaskError, match="'c00' has 3 numbers, and 24 are expected"):
        BatchClassifier().fit(X, y, names={"c00": [1, 2, 3]})
    with pytest.raises(LabelError, match="kind"):
        BatchClassifier().fit(X, y, names={1: X[0]})


def test_classes_of_the_first_call_are_remembered():
    X, y, _ = toy(0)
    some = y != "bee"
    grown = BatchClassifier().partial_fit(X[some], y[some], classes=np.unique(y)).partial_fit(X[~some], y[~some])
    assert grown.classes_.tolist() == ["ant", "bee", "cat", "dog", "elk"]
    with pytest.raises(LabelError, match="label 'fly' is not among the 5 classes"):
        grown.partial_fit(X[:1], ["fly"])
    with pytest.raises(LabelError, match="label 'bee' is not among the 4 classes"):
        BatchClassifier().partial_fit(X, y, classes=["ant", "cat", "dog", "elk"])
    with pytest.raises(LabelError, match="label 'bee' is not among the 4 classes"):
        grown.fit(X[some], y[some]).partial_fit(X[~some], y[~some])  # a fit begins again


def test_sample_weights_are_refused_in_the_name_of_the_classifier():
    X, y, _ = toy(0)
    for call in (BatchClassifier().fit, BatchClassifier().partial_fit):
        with pytest.raises(OptionError, match=r"BatchClassifier does not take 'sample_weight': .* not supported"):
            call(X, y, sample_weight=np.ones(len(X)))


def test_a_prior_array_may_leave_out_new_labels_which_have_the_mean_weight():
    X, y, batch = toy(0)
    classifier = BatchClassifier().fit(X, y)
    told = {"given": {0: "fly"}, "new_classes": ["fly"]}
    without = classifier.infer(batch, prior=np.full(5, 3.0), **told)
    np.testing.assert_allclose(without.probabilities, classifier.infer(batch, **told).probabilities)
    with pytest.raises(OptionError, match=r"each of the 6 classes, .* got shape \(4,\)"):
        classifier.infer(batch, prior=np.ones(4), **told)


def test_tuples_are_labels_and_groups():
    X, y, batch = toy(0)
    labels = [(str(name), 1) for name in y]
    classifier = BatchClassifier().fit(X, labels)
    assert classifier.classes_.tolist() == sorted(set(labels))
    assert [name for name, _ in classifier.predict(batch)] == BatchClassifier().fit(X, y).predict(batch).tolist()
    assert classifier.infer(batch, given={0: ("fly", 2)}, new_classes=[("fly", 2)]).labels[0] == ("fly", 2)
    assert classifier.predict(batch, unknown=("none", 0), given={3: None})[3] == ("none", 0)
    with pytest.raises(LabelError, match="a label must be a single value"):
        BatchClassifier().fit(X, y).predict(batch, unknown=["none"])
    for groups in ([("a", 1)] * 7 + [("b", 2)] * 8, [["a", 1]] * 7 + [["b", 2]] * 8):
        found = classifier.infer(batch, groups=groups)
        assert found.groups.tolist() == [("a", 1), ("b", 2)]
        assert len(found["b", 2].labels) == 8


def test_a_label_that_numpy_would_change_is_refused():
    X, y, batch = toy(0)
    for labels in ([f"{name}\0" for name in y], np.array([f"{name}\0" for name in y], dtype=object)):
        with pytest.raises(LabelError, match="ends with a NUL character"):
            BatchClassifier().fit(X, labels)
    with pytest.raises(LabelError, match="ends with a NUL character"):
        BatchClassifier().fit(X, y).infer(batch, groups=["a", "a\0", "b"] * 5)


def test_masked_entries_are_refused():
    X, y, batch = toy(0)
    classifier = BatchClassifier().fit(np.ma.masked_array(X, mask=False), y)
    for call in (
        lambda: classifier.fit(np.ma.masked_array(X, mask=X > 1), y),
        lambda: classifier.fit(X, np.ma.masked_array(np.arange(len(y)) % 3, mask=y == "ant")),
        lambda: classifier.infer(np.ma.masked_array(batch, mask=batch > 1)),
        lambda: handful.infer_scores(np.ma.masked_array(batch, mask=batch > 1), kind="logits"),
    ):
        with pytest.raises(TaskError, match=r"has masked entries, .* fill them in or drop these rows"):
            call()


def test_what_scikit_learn_refuses_is_an_error_of_handful():
    X, y, batch = toy(0)
    classifier = BatchClassifier().fit(X, y)
    for wrong in (batch[:, :2], batch[0], batch[:0], batch * 1j, batch * np.nan, [["a"] * 6]):
        with pytest.raises(TaskError):
            classifier.infer(wrong)
    for wrong in (y[:-1], None, np.full(len(y), np.nan), [[1, 2]] * len(y)):
        with pytest.raises(LabelError):
            BatchClassifier().fit(X, wrong)


def with_an_unknown_class(seed, known):
    """Labels of four items of each of some classes and of one that the catalogue lacks; unknown ones are -1."""
    clouds = Clouds(31, 24, seed)
    y = np.arange(30).repeat(5)
    X, truth = clouds.around(y, 0.4), np.repeat([*known, 30], 4)
    batch = clouds.around(truth, 0.4)
    return BatchClassifier().fit(X, y).predict(batch, unknown=-1), np.where(truth == 30, -1, truth)


@quiet
@pytest.mark.parametrize("known", [[3, 8, 12], [3]])
@pytest.mark.parametrize("seed", range(3))
def test_a_clear_unknown_class_is_found_beside_known_ones(seed, known):
    found, truth = with_an_unknown_class(seed, known)
    assert found.tolist() == truth.tolist()


@pytest.mark.parametrize(
    ("labels", "expected"),
    [
        (np.array([0, -1, 1]), [False, True, False]),
        (np.array([0.0, -1.0, 1.0]), [False, True, False]),
        (np.array(["a", -1, "b"], dtype=object), [False, True, False]),
        (np.array(["a", "-1", "b"], dtype=object), [False, False, False]),
        (np.array([-1, -1]), [True, True]),
        (np.array([-1, 1, -1]), [True, False, True]),
    ],
)
def test_what_is_unlabelled_does_not_depend_on_the_other_labels(labels, expected):
    assert is_unlabelled(labels, -1).tolist() == expected
    assert not is_unlabelled(labels, None).any()


def test_the_mark_may_be_text():
    assert is_unlabelled(np.array(["a", "?"]), "?").tolist() == [False, True]


@pytest.mark.parametrize(("labels", "mark"), [(np.array(["a", -1]), -1), (np.array([0, 1]), "?")])
def test_a_mark_that_no_label_can_equal_is_refused(labels, mark):
    with pytest.raises(LabelError, match="unlabelled must be of the kind of the labels"):
        is_unlabelled(labels, mark)
