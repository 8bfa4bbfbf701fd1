"""Items whose class a person gave: their label is fixed, they are examples, and the rest of the batch gains."""

import numpy as np
import pytest

from handful.errors import LabelError, OptionError
from handful.estimators import BatchClassifier
from handful.estimators.answer import none_of_these
from handful.estimators.given import with_given
from handful.fitted import FittedModel
from tests.doors import DOORS, Room
from tests.optional import optional
from tests.worlds import Clouds

pd = optional("pandas")


@pytest.fixture(scope="module")
def shifted():
    """A batch from elsewhere: its items lie between the classes of the catalogue."""
    rng = np.random.default_rng(1)
    clouds = Clouds(30, 16, rng)
    X, y = clouds.examples(3, 0.8), np.arange(30).repeat(3)
    truth = np.repeat(np.arange(8), 25)
    own = clouds.examples(1, 0.8, 8)
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
    assert classifier.model_.n_examples == 90


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
    assert float(found.unknown[4]) == pytest.approx(1)
    # In a batch from elsewhere, one example of a class without a name takes few items or none.
    rejected = found.rejected & ~before.rejected
    assert rejected.sum() <= 25
    assert (found.labels == before.labels).mean() > 0.85


def test_nothing_given_changes_nothing(shifted):
    classifier, batch, _ = shifted
    assert (classifier.infer(batch, given={}).probabilities == classifier.infer(batch).probabilities).all()


def test_a_group_alone_has_the_same_answer_as_beside_others(shifted):
    classifier, batch, _truth = shifted
    both = classifier.infer(batch, groups=np.arange(200) // 125, given={3: 5})
    alone = classifier.infer(batch[:125], given={3: 5})
    assert np.allclose(both.probabilities[:125], alone.probabilities, atol=1e-6)


def test_items_that_are_given_are_examples_of_their_class():
    catalogue, batch = FittedModel.of(np.eye(3), np.array([0, 1, 2])), np.eye(3)
    found = with_given(catalogue, batch, {1: 3}, [3])
    assert found.catalogue.n_classes == 4
    assert found.given.of_items(3).tolist() == [-1, 3, -1]
    nothing = with_given(catalogue, batch, {})
    assert nothing.catalogue is catalogue
    assert nothing.given.of_items(3) is None


def test_items_that_are_none_of_the_classes_are_examples_of_classes_without_a_name():
    catalogue, batch = FittedModel.of(np.eye(3), np.array(["a", "b", "c"])), np.eye(3)
    found = with_given(catalogue, batch, {0: None, 2: None, 1: "b"})
    assert found.classes.tolist() == ["a", "b", "c"]
    assert found.catalogue.n_unnamed == 2  # three examples do not tell which items belong together
    assert found.catalogue.n_classes == 5
    assert found.given.of_items(3).tolist() == [3, 1, 4]


@pytest.fixture(scope="module")
def open_batch():
    """A batch of two known and two unknown classes, twelve items each."""
    clouds = Clouds(32, 24)
    X, y = clouds.examples(5, 0.5, 30), np.arange(30).repeat(5)
    truth = np.repeat([3, 7, 30, 31], 12)
    return BatchClassifier().fit(X, y), clouds.around(truth, 0.5), truth


def test_none_of_these_takes_items_that_look_alike_and_no_others(open_batch):
    classifier, batch, truth = open_batch
    found = classifier.infer(batch, given={25: None, 26: None, 40: None})
    assert (none_of_these(found) == (truth >= 30)).mean() > 0.95
    assert (found.rejected >= none_of_these(found)).all()
    assert all(label is None for label in found.labels[none_of_these(found)])
    assert (found.labels[:24] == truth[:24]).mean() > 0.95
    first, second = found.proposals[:2]
    assert set(truth[first.items]) == {30}
    assert set(truth[second.items]) == {31}
    numbers = found.to_frame()["proposal"].to_numpy()
    assert set(truth[numbers == 1]) == {30}
    assert set(truth[numbers == 2]) == {31}
    assert all(number is None for number in numbers[~found.rejected])
    frame = found.to_frame()[none_of_these(found)]
    np.testing.assert_array_equal(frame["certainty"], found.unknown[none_of_these(found)])
    np.testing.assert_array_equal(frame["runner_up"], found.classes[found.codes[none_of_these(found), 0]])
    by_group = classifier.infer(batch, given={25: None, 26: None, 40: None}, groups=["first"] * 36 + ["second"] * 12)
    assert by_group.to_frame()["proposal"][25] == by_group["first"].to_frame()["proposal"][25] == 1
    assert by_group.to_frame()["proposal"][40] == by_group["second"].to_frame()["proposal"][4] == 1
    assert found.classes.tolist() == list(range(30))
    assert found.probabilities.shape == (48, 30)


def test_none_of_these_at_every_door(open_batch, tmp_path):
    classifier, batch, _ = open_batch
    given = {25: None, 26: None, 40: None, 0: 3}
    found = classifier.infer(batch, given=given)
    room = Room.of(classifier, batch, tmp_path)
    for name, door in DOORS.items():
        again = door(room, {"given": given})
        assert again.codes[:, 0].tolist() == found.codes[:, 0].tolist(), name
        assert none_of_these(again).tolist() == none_of_these(found).tolist(), name
        assert again.rejected.tolist() == found.rejected.tolist(), name
    assert classifier.predict(batch, given=given).tolist() == found.labels.tolist()
    assert classifier.predict(batch, np.zeros(48, int), given=given).tolist() == found.labels.tolist()
    assert (classifier.predict(batch, given=given, unknown=-1) == -1).tolist() == found.rejected.tolist()
    sequence = classifier.infer(batch, sequence=np.arange(48) // 2, given={25: None})
    assert (none_of_these(sequence).reshape(-1, 2).all(1) == none_of_these(sequence).reshape(-1, 2).any(1)).all()
    assert none_of_these(sequence)[24]
    questions = classifier.questions(batch, 3, given=given)
    assert not {question.item for question in questions} & set(given)
    assert classifier.explain(batch, 25, given=given).rejected


def test_what_rules_classes_out_leaves_classes_without_a_name(open_batch):
    classifier, batch, truth = open_batch
    for known in ({"candidates": [3, 7, 9]}, {"prior": {3: 5.0, 7: 5.0}}, {"candidates": [[3, 7, 9]] * 48}):
        found = classifier.infer(batch, given={25: None, 40: None}, **known)
        assert (none_of_these(found) == (truth >= 30)).mean() > 0.9
        assert (found.labels[:24] == truth[:24]).mean() > 0.9


def test_none_of_these_in_a_batch_without_unknown_items_is_a_contradiction(open_batch):
    classifier, batch, _ = open_batch
    with pytest.raises(OptionError, match="row 25 belongs to none of the classes, and expect_unknown=0"):
        classifier.infer(batch, given={25: None}, expect_unknown=0)
    groups = np.arange(48) // 24
    said = {0: False, 1: 0.5}
    assert classifier.infer(batch, groups, given={25: None}, expect_unknown=said).rejected[25]
    with pytest.raises(OptionError, match="row 3 belongs to none"):
        classifier.infer(batch, groups, given={3: None}, expect_unknown=said)


def test_labels_of_known_items_do_not_hide_unknown_ones(open_batch):
    classifier, batch, truth = open_batch
    before = classifier.infer(batch)
    after = classifier.infer(batch, given={row: int(truth[row]) for row in range(0, 24, 3)})
    assert before.rejected[24:].sum() > 12
    assert after.rejected[24:].sum() >= before.rejected[24:].sum() - 1


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({3: "C2"}, r"row 3 was given the label 'C2', which is none of the 5 classes \(did you mean 'c2'\?\)"),
        ({3: "zebra"}, "row 3 was given the label 'zebra', which is none of the 5 classes; correct it"),
        ({3: ""}, "row 3 was given the label ''; give a class, or None"),
        ({3: " \n"}, "give a class, or None"),
        ({3: float("nan")}, "row 3 was given the label nan"),
        (lambda: {3: pd.NA}, "row 3 was given the label <NA>"),
        ({3: 2}, "convert them first"),
        ({6: "c2"}, "rows 0 to 5"),
        ({-1: "c2"}, "rows 0 to 5"),
        ({"3": "c2"}, "given must map positions of rows"),
        ({True: "c2"}, "given must map positions of rows"),
        (["c2"], "given must map positions of rows"),
        (lambda: pd.Series({3: "c2"}), "given must map positions of rows"),
    ],
)
def test_labels_that_are_no_class_are_refused(given, said):
    given = given() if callable(given) else given
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
    assert classifier.infer(batch, new_classes=[]).classes.tolist() == [*range(30)]
    with pytest.raises(OptionError, match="no label is given; leave it out"):
        classifier.infer(batch, new_classes=[77])
