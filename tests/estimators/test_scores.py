"""Labels from scores alone: every kind and container, what is known beside the scores, and scores of poor quality."""

import warnings

import numpy as np
import pytest

import handful
from handful.errors import LabelError, OptionError, OverturnedScoresWarning, TaskError
from handful.estimators import Answer
from tests.optional import optional

torch = optional("torch")

N_CLASSES = 60


def made_up(present=(3, 7), n_items=40, lead=2.5, seed=0):
    rng = np.random.default_rng(seed)
    truth = np.repeat(present, n_items // len(present))
    logits = rng.normal(size=(len(truth), N_CLASSES))
    logits[np.arange(len(truth)), truth] += lead
    return logits, truth


def softmax(logits):
    e = np.exp(logits - logits.max(1, keepdims=True))
    return e / e.sum(1, keepdims=True)


def top(values, m):
    best = np.argsort(-values, 1)[:, :m]
    return handful.TopScores(best.tolist(), np.take_along_axis(values, best, 1).tolist())


def certain(found):
    """Classes that are certainly present: a class is at least as likely present as one item is likely of it."""
    return sorted(found.classes[found.presence > 0.9].tolist())


def test_labels_and_present_classes_of_one_batch():
    logits, truth = made_up()
    found = handful.infer_scores(logits, kind="logits")
    assert isinstance(found, Answer)
    assert certain(found) == [3, 7]
    assert (found.labels == truth).mean() > (logits.argmax(1) == truth).mean() + 0.2
    assert found.probabilities.shape == logits.shape
    np.testing.assert_allclose(found.probabilities.sum(1), 1)
    np.testing.assert_allclose(found.expected_counts, found.probabilities.sum(0))
    assert np.isnan(found.unknown).all()
    assert not found.rejected.any()
    assert found.proposals == ()
    assert np.isnan(found.unknown).all()
    assert found.unknown_interval == (0, 1)


@pytest.mark.filterwarnings("ignore::handful.errors.OverturnedScoresWarning")
@pytest.mark.parametrize("factor", [0.2, 0.5, 2, 5])
def test_a_factor_and_an_offset_per_item_change_nothing(factor):
    logits, _ = made_up()
    expected = handful.infer_scores(logits, kind="logits").probabilities
    offsets = np.arange(len(logits))[:, None]
    for kind, values in (
        ("logits", factor * logits + offsets),
        ("similarities", factor * logits - offsets),
        ("probabilities", softmax(factor * logits)),
        ("sigmoid", 1 / (1 + np.exp(-factor * logits))),
    ):
        np.testing.assert_allclose(handful.infer_scores(values, kind=kind).probabilities, expected, atol=1e-6)


def test_a_list_of_the_best_loses_little():
    logits, truth = made_up()
    whole = handful.infer_scores(logits, kind="logits")
    best = handful.infer_scores(top(softmax(logits), 10), np.arange(N_CLASSES), kind="probabilities")
    assert sorted(best.present_classes.tolist()) == sorted(whole.present_classes.tolist())
    assert (best.labels == truth).mean() >= (whole.labels == truth).mean() - 0.1
    listed = handful.infer_scores(top(softmax(logits), 1), kind="probabilities")
    assert set(listed.labels.tolist()) <= set(logits.argmax(1).tolist())


def test_what_the_model_does_not_list_is_no_label_unless_the_user_says_so():
    logits, _ = made_up(lead=1.0)
    lists = top(softmax(logits), 3)
    found = handful.infer_scores(lists, np.arange(N_CLASSES), kind="probabilities")
    assert all(label in listed for label, listed in zip(found.labels.tolist(), lists.classes, strict=True))
    any_class = handful.infer_scores(lists, np.arange(N_CLASSES), kind="probabilities", unlisted=True)
    assert (any_class.probabilities > 0).all()
    rounded = np.round(softmax(4 * logits), 2)
    rounded[5] = 0
    found = handful.infer_scores(rounded, kind="probabilities")
    assert (rounded[np.arange(40), found.labels] > 0)[np.arange(40) != 5].all()
    assert np.isfinite(found.probabilities).all()


def test_groups_are_batches_of_their_own_that_share_a_scale():
    parts = [made_up((3, 7), seed=1), made_up((11, 12, 13, 14), seed=2), made_up((20,), 10, seed=3)]
    logits, truth = (np.concatenate(of_all) for of_all in zip(*parts, strict=True))
    group = np.repeat(["a", "b", "c"], [40, 40, 10])
    order = np.random.default_rng(0).permutation(90)
    found = handful.infer_scores(logits[order], kind="logits", groups=group[order])
    assert found.groups.tolist() == ["a", "b", "c"]
    assert {name: certain(found[name]) for name in "abc"} == {
        "a": [3, 7],
        "b": [11, 12, 13, 14],
        "c": [20],
    }
    assert (found.labels == truth[order]).mean() > 0.8
    alone = handful.infer_scores(logits[:40], kind="logits")
    np.testing.assert_allclose(found["a"].expected_counts, alone.expected_counts, atol=1.5)


@pytest.mark.parametrize("family", ["numpy", "torch", "pandas", "polars", "pyarrow"])
def test_scores_of_every_container_have_the_same_answer(family):
    logits, _truth = made_up((3, 7), 20)
    names = [f"class {k}" for k in range(N_CLASSES)]
    classes = None
    if family == "numpy":
        given, classes = logits.tolist(), names
    elif family == "torch":
        given, classes = torch.from_numpy(logits).float(), names
    elif family == "pandas":
        given = pytest.importorskip("pandas").DataFrame(logits, columns=names, index=np.arange(20) + 100)
    elif family == "polars":
        given = pytest.importorskip("polars").DataFrame(logits, schema=names)
    else:
        given = pytest.importorskip("pyarrow").Table.from_arrays(list(logits.T.copy()), names=names)
    found = handful.infer_scores(given, classes, kind="logits")
    expected = handful.infer_scores(logits, names, kind="logits")
    assert found.labels.tolist() == expected.labels.tolist()
    assert found.present_classes.tolist() == expected.present_classes.tolist()
    assert {"class 3", "class 7"} <= set(found.present_classes.tolist())
    assert type(found.probabilities) is np.ndarray
    np.testing.assert_allclose(found.probabilities, expected.probabilities, atol=1e-3 if family == "torch" else 1e-9)
    assert found.classes.tolist() == names
    if family == "pandas":
        assert found.to_frame().index.tolist() == list(range(100, 120))
    if family in ("polars", "pyarrow"):
        assert type(found.to_frame()).__module__.startswith(family)


def test_columns_keep_their_order_whatever_their_names():
    logits, _ = made_up()
    names = np.array([f"{k}" for k in np.random.default_rng(0).permutation(N_CLASSES)])
    found = handful.infer_scores(logits, names, kind="logits", candidates=names[:40].tolist())
    assert certain(found) == sorted(names[[3, 7]].tolist())
    assert (found.probabilities[:, 40:] == 0).all()
    weights = np.where(np.arange(N_CLASSES) < 40, 1.0, 0.0)
    same = handful.infer_scores(logits, names, kind="logits", prior=weights)
    np.testing.assert_allclose(same.probabilities, found.probabilities)
    dropped = handful.infer_scores(logits[:, :40], names[:40], kind="logits")
    np.testing.assert_allclose(found.probabilities[:, :40], dropped.probabilities, atol=1e-6)


def test_a_prior_speaks_where_the_scores_do_not():
    logits = np.zeros((3, 4))
    logits[:, :2] = 1.0
    found = handful.infer_scores(logits, ["a", "b", "c", "d"], kind="logits", prior={"b": 50})
    assert found.labels.tolist() == ["b"] * 3
    assert found.prior_weight is not None


def test_the_classes_a_model_prefers():
    logits, _ = made_up()
    weights = np.linspace(1, 30, N_CLASSES)
    expected = handful.infer_scores(logits, kind="logits").probabilities
    found = handful.infer_scores(softmax(logits + np.log(weights)), kind="probabilities", model_prior=weights)
    np.testing.assert_allclose(found.probabilities, expected, atol=1e-6)


def test_labelled_items_set_the_scale_and_keep_their_label():
    logits, truth = made_up()
    found = handful.infer_scores(logits, kind="logits", given={0: 50, 1: 50, 2: 50})
    assert found.labels[:3].tolist() == [50] * 3
    assert 50 in found.present_classes
    # Right labels of sure items: the scores are more reliable than they look.
    sharp, truth = made_up(lead=8.0)
    few = handful.infer_scores(sharp, kind="logits")
    many = handful.infer_scores(sharp, kind="logits", given=dict(enumerate(truth[:20].tolist())))
    assert many.probabilities[20:].max(1).mean() > few.probabilities[20:].max(1).mean()


@pytest.mark.filterwarnings("ignore::handful.errors.OverturnedScoresWarning")
@pytest.mark.parametrize("sharpness", [1, 5, 20, 60])
@pytest.mark.parametrize("precision", [np.float16, np.float32, 3, 6])
def test_rounded_probabilities_never_fall_below_the_best_scores(sharpness, precision):
    """Softmax of float16 and of a few decimals: most are zero, some are equal."""
    logits, truth = made_up((1, 2, 3, 4, 5, 6, 8, 9), 80, lead=4.0)
    p = softmax(sharpness * logits)
    p = np.round(p, precision) if isinstance(precision, int) else p.astype(precision)
    found = handful.infer_scores(p, kind="probabilities")
    assert (found.labels == truth).mean() >= (p.argmax(1) == truth).mean() - 0.02
    assert np.isfinite(found.probabilities).all()


def test_scores_of_nothing():
    one = handful.infer_scores(np.zeros((5, 1)), ["only"], kind="logits")
    assert one.labels.tolist() == ["only"] * 5
    assert one.present_classes.tolist() == ["only"]
    single = handful.infer_scores(np.array([[0.2, 0.5, 0.3]]), kind="probabilities")
    assert single.labels.tolist() == [1]
    empty = handful.infer_scores(np.zeros((4, 3)), kind="probabilities")
    np.testing.assert_allclose(empty.probabilities, 1 / 3)
    lists = handful.infer_scores(handful.TopScores([["a"], []], [[0.4], []]), ["a", "b"], kind="sigmoid")
    assert lists.labels[0] == "a"
    assert np.isfinite(lists.probabilities).all()
    silent = np.zeros((6, 40))
    silent[0, 5] = 1.0
    assert handful.infer_scores(silent, kind="sigmoid").labels[0] == 5


def test_many_classes():
    rng = np.random.default_rng(0)
    truth = np.repeat([17, 4000, 6000], 10)
    logits = rng.normal(-8, 1.5, size=(30, 6522)).astype(np.float32)
    logits[np.arange(30), truth] += 8
    found = handful.infer_scores(1 / (1 + np.exp(-logits)), kind="sigmoid")
    assert (logits.argmax(1) == truth).mean() < 0.95
    assert (found.labels == truth).all()
    assert sorted(found.present_classes.tolist()) == [17, 4000, 6000]


SIX = [3, 7, 11, 20, 30, 40]


def wrong(found, truth, threshold=0.5):
    """Share of the classes that items hold or are said to hold, but not both."""
    return ((np.asarray(found) >= threshold) ^ truth).sum() / truth.sum()


def mixed(seed=0, n_items=60, lead=3.0):
    """Sigmoids of one class against the rest: items of two classes out of six, and some of none."""
    rng = np.random.default_rng(seed)
    truth = np.zeros((n_items, N_CLASSES), bool)
    for item in range(n_items - 6):
        truth[item, rng.choice(SIX, 2, replace=False)] = True
    return 1 / (1 + np.exp(-(rng.normal(-5, 1, truth.shape) + lead * truth))), truth


def test_items_that_hold_several_classes_or_none():
    sigmoids, truth = mixed()
    found = handful.infer_scores(sigmoids, kind="sigmoid", several=True)
    assert set(found.present_classes.tolist()) <= set(SIX)
    assert len(found.present_classes) >= 5
    # The level of the sigmoids is not known, but the answer is about as good as at the best of all thresholds.
    assert wrong(sigmoids, truth) > 0.9
    assert wrong(found.probabilities, truth) < min(wrong(sigmoids, truth, t) for t in np.unique(sigmoids)) + 0.05
    np.testing.assert_allclose(found.expected_counts, found.probabilities.sum(0))
    np.testing.assert_allclose(found.expected_counts, found.probabilities.sum(0))
    np.testing.assert_allclose(found.unknown, np.prod(1 - found.probabilities, 1), atol=1e-9)
    assert found.unknown[54:].mean() > 3 * found.unknown[:54].mean()
    np.testing.assert_array_equal(found.rejected, found.unknown > 0.5)
    assert truth[np.arange(54), found.labels[:54]].mean() > 0.9


def test_the_level_and_scale_of_sigmoids_do_not_matter():
    sigmoids, _ = mixed()
    expected = handful.infer_scores(sigmoids, kind="sigmoid", several=True).probabilities
    logits = np.log(sigmoids / (1 - sigmoids))
    found = handful.infer_scores(1 / (1 + np.exp(-(0.4 * logits + 1))), kind="sigmoid", several=True)
    np.testing.assert_allclose(found.probabilities, expected, atol=1e-5)


def test_several_classes_in_groups():
    (first, truth), (second, _) = mixed(0), mixed(1, 40)
    group = np.repeat(["a", "b"], [60, 40])
    found = handful.infer_scores(np.concatenate([first, second]), kind="sigmoid", several=True, groups=group)
    assert wrong(found["a"].probabilities, truth) < 0.6
    np.testing.assert_allclose(found["a"].probabilities, found.probabilities[:60])


@pytest.mark.parametrize(
    ("scores", "kind", "more", "error", "words"),
    [
        (np.ones((2, 3)), "scores", {}, OptionError, "kind must be one of logits"),
        (np.ones(3), "logits", {}, TaskError, "axes"),
        (np.ones((0, 3)), "logits", {}, TaskError, "at least one item"),
        (np.array([[1.0, np.nan]]), "logits", {}, TaskError, "TopScores"),
        (np.array([[1.0, -np.inf]]), "logits", {}, TaskError, "candidates"),
        ([["a", "b"]], "logits", {}, TaskError, "numbers"),
        (np.array([[0.5, 1.2]]), "probabilities", {}, TaskError, "between 0 and 1"),
        (np.array([[-0.5, 0.2]]), "sigmoid", {}, TaskError, "between 0 and 1"),
        (np.array([[0.9, 0.9]]), "probabilities", {}, TaskError, "sigmoid"),
        (np.ones((2, 3)), "logits", {"classes": ["a", "b"]}, TaskError, "3 columns"),
        (np.ones((2, 3)), "logits", {"classes": ["a", "b", "a"]}, LabelError, "distinct"),
        (np.ones((2, 3)), "logits", {"several": True}, OptionError, "sigmoid"),
        (np.ones((2, 3)), "sigmoid", {"several": True, "given": {0: 1}}, OptionError, "no given labels"),
        (np.ones((2, 3)), "logits", {"given": {0: 999}}, LabelError, "not in the catalogue"),
        (np.ones((2, 3)), "logits", {"given": {2: 1}}, LabelError, "row 2, but the batch has rows 0 to 1"),
        (np.ones((2, 3)), "logits", {"given": {0: None}}, OptionError, "leave out items that were given None"),
        (np.ones((2, 3)), "logits", {"candidates": 7}, OptionError, "candidates must be a list of classes, got 7"),
        (np.ones((2, 3)), "logits", {"model_prior": [0, 1, 2]}, OptionError, "positive"),
        (np.ones((2, 3)), "similarities", {"model_prior": [1, 1, 2]}, OptionError, "similarities"),
        (np.ones((2, 3)), "logits", {"groups": [1]}, TaskError, "one entry per row"),
        (handful.TopScores([["a"]], [[0.5, 0.1]]), "sigmoid", {}, TaskError, "differ in length"),
        (handful.TopScores([["a", "a"]], [[0.5, 0.1]]), "sigmoid", {}, TaskError, "twice"),
        (handful.TopScores([["a"]], [[np.nan]]), "sigmoid", {}, TaskError, "NaN"),
        (handful.TopScores([["c"]], [[0.1]]), "sigmoid", {"classes": ["a"]}, LabelError, "'c'"),
    ],
)
def test_refusals_are_sentences(scores, kind, more, error, words):
    with pytest.raises(error, match=words):
        handful.infer_scores(scores, kind=kind, **more)


def too_sure():
    """Probabilities of a model that is sure of half-wrong classes."""
    logits, _ = made_up()
    return softmax(20 * logits)


def quietly(values, **known):
    with warnings.catch_warnings(action="ignore", category=OverturnedScoresWarning):
        return handful.infer_scores(values, **{"kind": "probabilities"} | known)


def test_high_scores_that_were_overturned_are_counted():
    values = too_sure()
    high = values.max(1) >= 0.9
    with pytest.warns(
        OverturnedScoresWarning, match=f"of {high.sum()} items with a score of 0.9 or more for one class"
    ):
        found = handful.infer_scores(values, kind="probabilities")
    lost = np.flatnonzero(high & (found.labels != values.argmax(1)))
    assert 5 < len(lost) < high.sum()
    (said,) = found.diagnostics
    assert (said.name, said.value, said.threshold) == ("overturned_scores", len(lost), 0)
    assert said.items == tuple(sorted(lost.tolist(), key=lambda item: -values[item].max()))
    assert said.message.startswith(f"{len(lost)} of {high.sum()} items")
    assert said.message in found.summary()


def test_each_group_has_its_own_high_scores():
    values = too_sure()
    groups = np.array(["a", "b"])[np.arange(40) % 2]
    values[groups == "b"] *= 0.89
    found = handful.infer_scores(values, kind="probabilities", groups=groups)
    of_a, of_b = found.diagnostics
    own = values[groups == "a"]
    assert of_b == ()
    assert sorted(of_a[0].items) == np.flatnonzero((own.max(1) >= 0.9) & (found["a"].labels != own.argmax(1))).tolist()
    assert found["a"].diagnostics == of_a


def test_what_is_no_high_score_or_was_decided_by_people_is_not_counted():
    values = too_sure()
    (said,) = quietly(values).diagnostics
    assert quietly(np.log(values + 1e-9), kind="logits").diagnostics == ()
    assert quietly(values, kind="sigmoid", several=True).diagnostics == ()
    assert quietly(0.89 * values).diagnostics == ()
    first = said.items[0]
    (fewer,) = quietly(values, given={first: 3}).diagnostics
    assert first not in fewer.items
    own = int(values[first].argmax())
    (fewer,) = quietly(values, candidates=[k for k in range(N_CLASSES) if k != own]).diagnostics
    assert first not in fewer.items
