"""What is known about a batch: the same arguments at every door, and candidates of single items."""

import inspect

import numpy as np
import pytest

from handful.errors import LabelError, OptionError
from handful.estimators import BatchClassifier, Known, TopScores, infer_scores
from handful.estimators.context import checked, is_by_item
from tests.worlds import Clouds

pytestmark = pytest.mark.filterwarnings("ignore::handful.errors.HandfulWarning")
N_CLASSES, N_ITEMS = 20, 24
GROUPS = np.arange(N_ITEMS) // 4
# One value for every argument; pool and order are about groups.
VALUES = {
    "prior": {3: 5.0},
    "candidates": [3, 7, 9],
    "given": {0: 7},
    "new_classes": [50],
    "sequence": np.arange(N_ITEMS) // 2,
    "pool": GROUPS % 2,
    "order": GROUPS,
    "coarse": {3: 100, 7: 100},
    "expect_unknown": 0.3,
}
ABOUT_GROUPS = ("pool", "order")
NOT_BY_SCORES = {
    "new_classes": "a new class has no scores",
    "expect_unknown": "scores do not tell which items belong to no class",
}


@pytest.fixture(scope="module")
def world():
    clouds = Clouds(N_CLASSES, 16)
    y = np.arange(N_CLASSES).repeat(5)
    classifier = BatchClassifier().fit(clouds.around(y, 0.8), y)
    truth = np.repeat([3, 7, 9], 8)
    batch = clouds.around(truth, 0.8)
    return classifier, batch, truth, batch @ clouds.centres.T


def test_there_is_a_value_for_every_argument():
    assert set(VALUES) == set(Known.__annotations__)


@pytest.mark.parametrize("name", Known.__annotations__)
def test_every_door_takes_every_argument_and_says_the_same(world, name):
    classifier, batch, _, scores = world
    needed = {"order": {"pool": VALUES["pool"]}, "new_classes": {"given": {0: 50, 1: 7}}}
    known = {name: VALUES[name], **needed.get(name, {})}
    groups = GROUPS if name in ABOUT_GROUPS else None
    found = classifier.infer(batch, groups, **known)
    np.testing.assert_array_equal(classifier.predict(batch, groups, **known), found.labels)
    np.testing.assert_array_equal(classifier.predict_proba(batch, groups, **known), found.probabilities)
    if name == "new_classes":
        assert found.labels[:2].tolist() == [50, 7]
    if name in NOT_BY_SCORES:
        with pytest.raises(OptionError, match=NOT_BY_SCORES[name]):
            infer_scores(scores, kind="similarities", groups=groups, **known)
    else:
        by_scores = infer_scores(scores, kind="similarities", groups=groups, **known)
        assert by_scores.probabilities.shape == (N_ITEMS, N_CLASSES)
        assert name != "candidates" or set(by_scores.labels.tolist()) <= {3, 7, 9}
    if name in ABOUT_GROUPS:
        assert found.pooling is not None
        assert by_scores.pooling is not None
        for door in (
            lambda: classifier.explain(batch, 0, **known),
            lambda: classifier.questions(batch, **known),
            lambda: classifier.infer(batch, **known),
        ):
            with pytest.raises(OptionError, match="pool and order need groups"):
                door()
        return
    for item, why in zip((0, 5), classifier.explain(batch, [0, 5], **known), strict=True):
        assert why.label == found.labels[item]
        assert why.certainty == pytest.approx(found.certainty[item])
    asked = [question.item for question in classifier.questions(batch, N_ITEMS, **known)]
    assert sorted(asked) == [item for item in range(N_ITEMS) if item not in known.get("given", {})]


def test_no_door_takes_an_argument_that_does_not_exist(world):
    classifier, batch, _, scores = world
    for door in (
        lambda: classifier.infer(batch, labelled={0: 3}),
        lambda: classifier.predict(batch, labelled={0: 3}),
        lambda: classifier.predict(batch, GROUPS, labelled={0: 3}),
        lambda: classifier.predict_proba(batch, labelled={0: 3}),
        lambda: classifier.explain(batch, 0, labelled={0: 3}),
        lambda: classifier.questions(batch, labelled={0: 3}),
        lambda: infer_scores(scores, kind="similarities", labelled={0: 3}),
    ):
        with pytest.raises(OptionError, match=r"no argument 'labelled'; what is known .* prior, candidates, given"):
            door()
    assert checked({"prior": None, "given": {}}) == {"given": {}}


def test_what_is_known_may_come_together(world):
    classifier, batch, _, _ = world
    found = classifier.infer(batch, GROUPS, **VALUES)
    assert set(found.labels.tolist()) <= {3, 7, 9}
    assert found.labels[:2].tolist() == [7, 7]
    assert found.prior_weight is not None


# -- candidates of single items ----------------------------------------------------------------------------------------


def test_every_item_may_have_candidates_of_its_own(world):
    classifier, batch, truth, scores = world
    before = classifier.infer(batch)
    lists = [[3, 5], {7}, None, np.array([1, 2, 3])] * 6
    for found in (
        classifier.infer(batch, candidates=lists),
        classifier.infer(batch, GROUPS, candidates=lists),
        infer_scores(scores, kind="similarities", candidates=lists),
        BatchClassifier().add_names({k: batch[k] for k in range(N_CLASSES)}).infer(batch, candidates=lists),
    ):
        allowed = [set(range(N_CLASSES)) if row is None else set(row) for row in lists]
        assert all(label in able for label, able in zip(found.labels.tolist(), allowed, strict=True))
        outside = np.array([[k not in able for k in range(N_CLASSES)] for able in allowed])
        assert (found.probabilities[outside] == 0).all()
        np.testing.assert_allclose(found.probabilities.sum(1), 1)
    own = classifier.infer(batch, candidates=[[int(k), 0] for k in truth])
    assert (own.labels == truth).mean() >= (before.labels == truth).mean()
    assert classifier.explain(batch, 1, candidates=lists).label == 7
    assert classifier.explain(batch, 1, candidates=lists).alone == 7


def test_all_classes_for_all_items_change_nothing(world):
    classifier, batch, _, _ = world
    expected = classifier.infer(batch).probabilities
    for lists in ([None] * N_ITEMS, [list(range(N_CLASSES))] * N_ITEMS):
        np.testing.assert_allclose(classifier.infer(batch, candidates=lists).probabilities, expected, atol=1e-9)


def test_tuples_are_lists_unless_classes_are_tuples(world):
    classifier, batch, _, _ = world
    assert classifier.predict(batch, candidates=[(3,), (7, 9)] * 12)[0::2].tolist() == [3] * 12
    names = np.empty(2, dtype=object)
    names[:] = [("car", 1), ("car", 2)]
    assert not is_by_item([("car", 1)], names)
    assert is_by_item([[("car", 1)], None], names)
    assert not is_by_item([3, 7], np.arange(9))
    assert not is_by_item({"wood": [3]}, np.arange(9))
    assert not is_by_item(None, np.arange(9))


def test_candidates_of_items_that_do_not_fit_are_refused(world):
    classifier, batch, _, scores = world
    with pytest.raises(OptionError, match="one list per row, 24, got 23"):
        classifier.infer(batch, candidates=[[3]] * 23)
    with pytest.raises(LabelError, match="class 99 is not in the catalogue"):
        classifier.infer(batch, candidates=[[99]] * 24)
    with pytest.raises(OptionError, match="item 0 has no candidate"):
        classifier.infer(batch, candidates=[[]] + [None] * 23)
    with pytest.raises(LabelError, match="candidates exclude"):
        classifier.infer(batch, given={1: 5}, candidates=[[3]] * 24)
    with pytest.raises(LabelError, match="candidates exclude"):
        infer_scores(scores, kind="similarities", given={1: 5}, candidates=[[3]] * 24)
    for door in (
        lambda known: classifier.infer(batch, **known),
        lambda known: infer_scores(scores, kind="similarities", **known),
    ):
        with pytest.raises(OptionError, match="prior and candidates leave no class for row 2, and for 7 more rows"):
            door({"prior": {3: 0}, "candidates": [[3, 4], None, [3]] * 8})


def test_candidates_count_more_than_what_a_model_lists():
    lists = TopScores([["ant", "bee"]] * 4, [[0.6, 0.3]] * 4)
    found = infer_scores(lists, ["ant", "bee", "cat"], kind="probabilities", candidates=[["cat"], ["bee"], None, None])
    assert found.labels.tolist() == ["cat", "bee", "ant", "ant"]
    assert found.probabilities[0].tolist() == [0, 0, 1]


def test_pool_may_be_false_without_groups():
    X, y = np.eye(4).repeat(2, axis=0), np.arange(4).repeat(2)
    classifier = BatchClassifier().fit(X, y)
    assert (classifier.predict(X, pool=False) == classifier.predict(X)).all()


@pytest.mark.parametrize("name", ["infer", "predict", "predict_proba", "explain", "questions"])
def test_what_is_known_is_in_the_signature(name):
    parameters = inspect.signature(getattr(BatchClassifier, name)).parameters
    assert list(Known.__annotations__) == [p for p in parameters if p in Known.__annotations__]
    assert all(p.kind is not p.VAR_KEYWORD for p in parameters.values())
    assert set(Known.__annotations__) < set(inspect.signature(infer_scores).parameters)


@pytest.mark.parametrize(("candidates", "item"), [([[]], 0), ([[3], ()], 1), ([None, [3], set()], 2)])
def test_an_item_with_an_empty_list_of_candidates_is_named(candidates, item):
    fitted = BatchClassifier().fit(np.eye(4), np.arange(4))
    with pytest.raises(OptionError, match=f"item {item} has no candidate"):
        fitted.infer(np.eye(4)[: len(candidates)], candidates=candidates)
