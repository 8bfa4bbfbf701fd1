"""A session without a catalogue asks for names; what nobody named is never pressed into a class."""

import numpy as np
import pandas as pd
import pytest

from handful import BatchClassifier, Session
from handful.errors import LabelError, OptionError, TaskError
from handful.estimators.answer import unnamed_groups
from handful.model.settings import DEFAULT
from handful.session import similar_names
from handful.session.clusters import Tree, directions_of
from tests.session.people import finished
from tests.worlds import Clouds

NAMES = np.array(["fox", "owl", "elk", "hare", "wolf", "bear"])
SIZES = (30, 20, 14, 10, 7, 5)


@pytest.fixture(scope="module")
def world():
    """Items of six classes, the largest first, and their names."""
    clouds = Clouds(6, 24)
    truth = np.repeat(np.arange(6), SIZES)
    return clouds.around(truth, 0.5), NAMES[truth]


def said_of(session):
    answer = session.result
    unnamed = unnamed_groups(answer)
    state = unnamed.chances.tobytes(), answer.labels.tolist(), unnamed.group.tobytes()
    return *state, session.expected_right, session.ask(), session.may_stop, session.said


def test_everything_gets_its_name_in_few_decisions(world):
    batch, truth = world
    session = finished(Session(batch), truth)
    assert session.from_nothing
    assert session.is_done
    assert session.result.labels.tolist() == truth.tolist()
    assert session.n_decisions < 20
    assert session.expected_right == (1, 1, 1)
    assert session.may_stop
    items, labels = session.examples
    catalogue = BatchClassifier().fit(batch[items], labels)
    assert catalogue.classes_.tolist() == sorted(NAMES.tolist())


def test_before_the_first_name_nothing_has_a_label(world):
    batch, _ = world
    session = Session(batch)
    request = session.ask()
    assert request.asks_name
    assert request.is_sheet
    assert request.label is None
    assert request.choices == ()
    assert str(request).startswith(f"What are these {len(request.items)} items? ")
    assert session.not_named.all()
    assert session.result.labels.tolist() == [None] * len(batch)
    assert session.result.classes.tolist() == []
    assert session.expected_right.value == 0
    assert not session.may_stop
    assert session.answers_left > 0
    assert len(session.result.to_frame()) == len(batch)
    assert len(session.result.by_class()) == 0
    assert "0 of 0 classes present" in session.result.summary()
    assert sum(proposal.size for proposal in session.result.proposals) == len(batch)


def test_with_one_name_the_others_are_not_pressed_into_it(world):
    batch, truth = world
    session = Session(batch).answer([0, 1, 2], "fox", new=True)
    labels = session.result.labels
    assert (labels[truth == "fox"] == "fox").all()
    assert not (labels[truth != "fox"] == "fox").any()


def test_items_of_classes_without_a_name_are_not_named_yet():
    clouds = Clouds(12, 32, 1)
    truth = np.repeat(np.arange(12), 10)
    batch = clouds.around(truth, 0.5)
    session = Session(batch)
    for k in range(0, 12, 2):
        session.answer([10 * k, 10 * k + 1], f"class {k}", new=True)
    named = truth % 2 == 0
    assert session.not_named[~named].mean() > 0.95
    assert session.not_named[named].mean() < 0.05
    assert session.result.rejected.tolist() == session.not_named.tolist()
    assert session.expected_right.value < 0.55
    assert not session.may_stop


def test_the_state_is_a_function_of_the_steps(world):
    batch, truth = world
    session = Session(batch)
    states = [said_of(session)]
    for _ in range(4):
        request = session.ask()
        session.answer(request.items, str(truth[request.items[0]]), new=True)
        states.append(said_of(session))
    session.merge("owl", "fox")
    states.append(said_of(session))
    session.answer([0, 1], "elk", new=True)
    states.append(said_of(session))
    labeller = Session(batch).labeller
    assert (
        said_of(Session.of_batch(session.file, session.batch, labeller, session.options, from_nothing=True))
        == states[-1]
    )
    for state in states[-2::-1]:
        assert said_of(session.undo()) == state


def test_two_names_of_one_class_are_merged(world):
    batch, _ = world
    session = Session(batch).answer([0, 1], "fox", new=True).answer([2, 3], "foks", new=True)
    session.merge("foks", "fox")
    assert session.said.given == dict.fromkeys([0, 1, 2, 3], "fox")
    assert session.names == ["fox"]
    assert session.events[-1].about == {"label": "foks", "into": "fox", "batch": "batch"}
    assert set(session.undo().said.given.values()) == {"fox", "foks"}
    with pytest.raises(LabelError, match="given the label 'owl'"):
        session.merge("owl", "fox")
    with pytest.raises(LabelError, match="given the label 'red fox'"):
        session.merge("fox", "red fox")
    with pytest.raises(OptionError, match="one class already"):
        session.merge("fox", "fox")
    session.merge("fox", "red fox", new=True)
    assert session.names == ["red fox", "foks"]
    assert session.said.given[0] == "red fox"


def test_items_of_a_class_that_are_something_else_get_a_name_and_those_like_them_follow(world):
    batch, truth = world
    owls = np.flatnonzero(truth == "owl")
    session = Session(batch).answer([0, 1, 2, owls[0], owls[1]], "animal", new=True)
    session.answer(owls[:2], "owl", new=True)
    assert (session.result.labels[truth == "owl"] == "owl").all()
    assert (session.result.labels[truth == "fox"] == "animal").all()
    assert finished(session, np.where(truth == "fox", "animal", truth)).is_done


def test_items_that_get_no_name_are_right_and_those_like_them_are_not_asked_for_one(world):
    batch, truth = world
    told = np.where(truth == "bear", None, truth)
    session = Session(batch).answer(np.flatnonzero(truth == "bear")[:2], None)
    bears = np.flatnonzero(truth == "bear")
    assert session.result.rejected[bears].all()
    assert not session.not_named[bears].any()
    finished(session, told)
    assert session.result.labels.tolist() == told.tolist()
    assert session.expected_right.value > 0.99
    assert "bear" not in session.examples[1]


def test_names_that_may_occur_are_offered_and_rule_nothing_out(world):
    batch, _ = world
    session = Session(batch, candidates=["owl", "unicorn", " owl"])
    assert session.names == ["owl", "unicorn"]
    session.answer([0, 1], "fox", new=True).answer(40, "owl", new=True)
    assert session.names == ["fox", "owl", "unicorn"]
    assert session.result.classes.tolist() == ["fox", "owl"]
    with pytest.raises(LabelError, match="did you mean 'fox'"):
        session.answer(2, "foxx")
    with pytest.raises(OptionError, match="candidates as names to offer"):
        Session(batch, candidates=["owl"], prior={"owl": 2})


def test_names_may_be_numbers_but_not_both(world):
    batch, _ = world
    session = Session(batch).answer([0, 1], 7, new=True)
    assert session.result.labels[0] == 7
    with pytest.raises(LabelError, match="another kind"):
        session.answer(2, "fox", new=True)
    assert session.answer(np.int64(40), np.int64(8), new=True).names == [7, 8]


@pytest.mark.parametrize(
    ("batch", "truth"),
    [
        (np.ones((1, 3)), ["a"]),
        (np.ones((7, 3)), ["a"] * 7),
        (np.repeat(np.eye(3), [1, 6, 2], axis=0), ["a"] + ["b"] * 6 + ["c"] * 2),
        (np.eye(9), [f"class {k}" for k in range(9)]),
        (np.random.default_rng(0).normal(size=(30, 8)), ["a"] * 30),
        (np.array([[1.0, 0], [1, 0], [0, 1], [0, 1]]), ["a", "b", "a", "b"]),
    ],
    ids=["one item", "equal items", "copies", "all different", "one class", "equal items of two classes"],
)
def test_every_batch_comes_to_an_end(batch, truth):
    session = finished(Session(batch), truth)
    assert session.is_done
    assert session.result.labels.tolist() == truth
    assert np.isfinite(unnamed_groups(session.result).chances).all()


def test_skipped_and_discarded_items_are_not_asked_about_again(world):
    batch, truth = world
    session = Session(batch)
    first = session.ask()
    session.skip(first.items[:2]).discard(first.items[2])
    finished(session, truth)
    assert session.is_done
    assert session.result.rejected[first.items[2]]
    assert not session.not_named[first.items[2]]
    with pytest.raises(OptionError, match="every item was discarded"):
        Session(batch).discard(range(len(batch)))


def test_exceptions_of_a_group_count_as_wrong_until_they_are_named(world):
    batch, _ = world
    session = Session(batch)
    items = session.ask().items
    session.answer(items[:-1], "fox", new=True, wrong=items[-1:])
    assert session._state.known_wrong[items[-1]]
    assert session.ask().items == items[-1:]
    before = session.expected_right.value
    session.answer(items[-1], "wolf", new=True)
    assert session.expected_right.value > before


def test_frames_keep_their_rows_and_texts_are_refused(world):
    batch, _ = world
    frame = pd.DataFrame(batch, index=[f"photo {k}" for k in range(len(batch))])
    session = Session(frame).answer(0, "fox", new=True)
    assert session.result.to_frame().index[3] == "photo 3"
    with pytest.raises(TaskError, match="vectors"):
        Session(["a fox", "an owl"])
    with pytest.raises(OptionError, match="without a catalogue"):
        Session(batch, groups=np.zeros(len(batch)))
    with pytest.raises(OptionError, match="without a catalogue"):
        Session(batch, prior={"fox": 2})


def test_classes_of_a_fitted_catalogue_keep_their_names(world):
    batch, truth = world
    session = Session(batch, (batch[::5], truth[::5]))
    assert not session.from_nothing
    assert not session.not_named.any()
    for changes in (lambda: session.merge("fox", "owl"), lambda: session.remove("fox")):
        with pytest.raises(OptionError, match="change its examples"):
            changes()


def test_a_group_in_which_two_names_were_said_falls_apart():
    rng = np.random.default_rng(0)
    tree = Tree(directions_of(np.repeat(np.eye(3), 5, axis=0) + 0.05 * rng.normal(size=(15, 3))))
    names = np.full(15, -1)
    assert sorted(map(len, tree.parts(names))) == [5, 5, 5]
    names[[0, 1]] = [0, 1]
    parts = tree.parts(names)
    assert sum(map(len, parts)) == 15
    assert all(len(set(names[part]) - {-1}) <= 1 for part in parts)


def test_labels_are_those_of_class_means_with_every_item_left_out_of_its_own_class(world):
    batch, truth = world
    session = Session(batch)
    for name, first in zip(*np.unique(truth, return_index=True), strict=True):
        session.answer([first, first + 1], str(name), new=True)
    unnamed = unnamed_groups(session.result)
    z = unnamed.directions
    n_names = len(NAMES)
    assert unnamed.n_groups == 0
    # Clouds this far apart are their groups, so every item is in its class before it is labelled.
    codes = np.unique(truth, return_inverse=True)[1]
    means = np.stack([z[codes == k].mean(0) for k in range(n_names)])
    spread = ((z - means[codes]) ** 2).sum() / (len(z) - n_names)
    kappa = DEFAULT.nats_of_means / DEFAULT.usual_temperature
    for item in np.flatnonzero(~session.seen)[::7]:
        scores = []
        for k in range(n_names):
            others = (codes == k) & (np.arange(len(z)) != item)
            mean = z[others].mean(0)
            noise = DEFAULT.share_of_excess * spread / others.sum()
            scores.append(kappa * (z[item] @ mean - mean @ mean / 2 + noise / 2))
        assert np.allclose(unnamed.chances[item], np.exp(scores) / np.exp(scores).sum())


def test_items_are_likelier_of_one_class_in_a_batch_of_fewer_classes():
    clouds = Clouds(12, 32, 1)
    few, many = (directions_of(clouds.around(np.repeat(np.arange(k), 60 // k), 0.5)) for k in (3, 12))
    assert Tree(few).even < Tree(many).even


@pytest.mark.parametrize(
    ("name", "others", "alike"),
    [
        ("foxes", ["fox", "owl"], ["fox"]),
        ("Fox", ["fox"], ["fox"]),
        ("lynx_cat", ["Lynx cat"], ["Lynx cat"]),
        ("kangaro", ["kangaroo"], ["kangaroo"]),
        ("kagnaroo", ["kangaroo"], ["kangaroo"]),
        ("fox", ["fox"], []),
        ("cat", ["bat"], []),
        ("page 1", ["page 2"], []),
        ("berry", ["berries"], ["berries"]),
        (7, [70], []),
    ],
)
def test_names_that_look_alike_are_found(name, others, alike):
    assert similar_names(name, others) == alike
