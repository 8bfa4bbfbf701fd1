"""A session asks until everything has been seen; its state is a function of what was said."""

import numpy as np
import pytest

from handful import BatchClassifier, Session
from handful.errors import LabelError, OptionError
from handful.model.questions import SameClass
from handful.session.requests import Sheet, next_request, question_worth
from tests.session.people import finished, reply
from tests.worlds import Clouds

NAMES = np.array(["fox", "owl", "elk", "hare", *(f"bird {k:02}" for k in range(16))])


@pytest.fixture(scope="module")
def world():
    """Examples of all classes but the fox, and a batch of foxes, owls, elks and hares, with its truth."""
    clouds = Clouds(20, 16)
    of = np.repeat(np.arange(1, 20), 3)
    examples = clouds.around(of, 0.6)
    truth = np.repeat([0, 1, 2, 3], 9)
    batch = clouds.around(truth, 0.6)
    return BatchClassifier().fit(examples, NAMES[of]), batch, NAMES[truth]


def said_of(session):
    answer = session.result
    return (
        answer.probabilities.tobytes(),
        answer.rejected.tobytes(),
        session.expected_right,
        session.ask(),
        session.may_stop,
    )


def test_everything_is_seen_in_fewer_decisions_than_items(world):
    classifier, batch, truth = world
    session = finished(Session(batch, classifier), truth)
    assert session.is_done
    assert session.ask() is None
    assert session.seen.all()
    assert session.result.labels.tolist() == truth.tolist()
    assert session.n_decisions < 14
    assert session.expected_right.value > 0.97
    assert session.may_stop
    assert session.answers_left == 0


def test_none_of_these_is_seen_as_well(world):
    classifier, batch, truth = world
    session = finished(Session(batch, classifier), truth, unnamed={"fox"})
    assert session.is_done
    assert session.result.rejected.tolist() == (truth == "fox").tolist()
    known = truth != "fox"
    assert session.result.labels[known].tolist() == truth[known].tolist()


def test_the_state_is_a_function_of_the_steps(world):
    classifier, batch, truth = world
    session = Session(batch, classifier)
    states = [said_of(session)]
    for _ in range(3):
        list(reply(session, session.ask(), truth))
        states.append(said_of(session))
    labeller = Session(batch, classifier).labeller
    again = Session.of_batch(session.file, session.batch, labeller, session.options)
    assert said_of(again) == states[-1]
    assert again.calibration == session.calibration
    while session.events:
        session.undo()
    assert said_of(session) == states[0]
    with pytest.raises(OptionError, match="nothing to undo"):
        session.undo()


def test_the_last_word_about_an_item_counts(world):
    classifier, batch, _ = world
    session = Session(batch, classifier).answer([9, 10], "owl").answer(9, "elk").skip(10)
    assert session.said.given == {9: "elk"}
    assert session.seen.sum() == 2
    assert session.result.labels[9] == "elk"


def test_an_answer_that_is_refused_changes_nothing(world):
    classifier, batch, _ = world
    session = Session(batch, classifier, candidates=["owl", "elk"])
    before = said_of(session)
    with pytest.raises(LabelError, match="exclude"):
        session.answer(0, "hare")
    with pytest.raises(LabelError, match="did you mean 'owl'"):
        session.answer(0, "owll")
    with pytest.raises(LabelError, match="not a class"):
        session.answer(0, float("nan"))
    with pytest.raises(LabelError, match="another kind"):
        session.answer(0, 7, new=True)
    for items in (36, -1, [], [1, 1], 0.5, "1", True):
        with pytest.raises(OptionError):
            session.answer(items, "owl")
    assert said_of(session) == before
    assert session.events == []


def test_discarded_items_have_no_part_in_anything(world):
    classifier, batch, truth = world
    spoiled = batch.copy()
    spoiled[5] = 100 * batch[30]
    discarded = Session(spoiled, classifier).discard(5)
    without = Session(np.delete(batch, 5, axis=0), classifier)
    rest = np.arange(36) != 5
    np.testing.assert_array_equal(discarded.result.probabilities[rest], without.result.probabilities)
    np.testing.assert_array_equal(discarded.result.rejected[rest], without.result.rejected)
    assert discarded.result.rejected[5]
    assert discarded.expected_right == without.expected_right
    assert all(5 not in request.items for request in [discarded.ask()])
    assert finished(discarded, truth).result.labels[rest].tolist() == truth[rest].tolist()
    with pytest.raises(OptionError, match="every item was discarded"):
        Session(batch, classifier).discard(range(36))


def test_skipped_items_are_seen_and_left_open(world):
    classifier, batch, _ = world
    session = Session(batch, classifier)
    (item, *_) = session.ask().items
    session.skip(item)
    assert session.seen[item]
    assert item not in session.ask().items
    assert session.result.probabilities.tobytes() == Session(batch, classifier).result.probabilities.tobytes()
    while (request := session.ask()) is not None:
        session.skip(request.items)
    assert session.is_done
    assert not session.may_stop


def test_examples_classifiers_and_files_begin_the_same_session(world, tmp_path):
    classifier, batch, _ = world
    file = tmp_path / "animals.model"
    classifier.save(file)
    assert said_of(Session(batch, file)) == said_of(Session(batch, classifier))
    examples = batch[9:], NAMES[np.repeat([1, 2, 3], 9)]
    assert Session(batch, examples).classes.tolist() == ["elk", "hare", "owl"]
    with pytest.raises(OptionError, match="a session needs a catalogue"):
        Session(batch, "animals.csv")
    with pytest.raises(OptionError, match="got dict"):
        Session(batch, {})


def test_what_is_known_in_advance_counts(world):
    classifier, batch, truth = world
    sequence = np.repeat(np.arange(12), 3)
    session = Session(batch, classifier, sequence=sequence, expect_unknown=0.25)
    expected = classifier.infer(batch, sequence=sequence, expect_unknown=0.25)
    assert session.result.probabilities.tobytes() == expected.probabilities.tobytes()
    session.answer(27, "hare")
    assert session.result.labels[27:30].tolist() == ["hare"] * 3
    given = Session(batch, classifier, given={0: "fox"}, new_classes=["fox"])
    assert given.result.labels[0] == "fox"
    assert given.seen.tolist() == [True] + [False] * 35
    assert given.answer(1, "fox").said.given == {0: "fox", 1: "fox"}
    by_group = Session(batch, classifier, groups=truth)
    assert finished(by_group, truth).result.labels.tolist() == truth.tolist()


def test_a_sheet_shows_at_most_so_many_items_of_one_label_until_labels_are_good(world):
    classifier, batch, truth = world
    session = Session(batch, classifier, sheet_size=4)
    while (request := session.ask()) is not None:
        assert len(request.items) <= 4
        labels = tuple(None if session.result.rejected[i] else session.result.labels[i] for i in request.items)
        assert labels == request.labels
        assert request.oddest or len(set(labels)) == 1
        assert set(request.choices) <= {*session.classes.tolist(), *session.said.named}
        list(reply(session, request, truth))


def test_exceptions_of_a_sheet_count_as_wrong_until_they_are_corrected(world):
    classifier, batch, truth = world
    session = Session(batch, classifier)
    while not (request := session.ask()).is_sheet:
        list(reply(session, request, truth))
    before = session.expected_right.value
    session.answer(request.items[:-1], request.label, wrong=request.items[-1])
    left = session._state
    assert left.risk[request.items[-1]] == 1
    assert left.evidence.looks[-1].wrong[-1]
    assert session.expected_right.low < 1
    session.answer(request.items[-1], request.label)
    assert session.expected_right.value > before
    assert len(session.looks) == len(left.evidence.looks)


def test_more_proof_can_be_asked_for(world):
    classifier, batch, truth = world

    def decisions(sure):
        session = Session(batch, classifier, sure=sure)
        while not session.may_stop:
            list(reply(session, session.ask(), truth))
        return session.n_decisions

    assert decisions(0.5) <= decisions(0.9) <= decisions(0.999)
    with pytest.raises(OptionError, match="between 0 and 1"):
        Session(batch, classifier, sure=95)


def test_about_how_many_answers_are_left_falls_to_none(world):
    classifier, batch, truth = world
    session = Session(batch, classifier)
    left = [session.answers_left]
    while not session.may_stop:
        list(reply(session, session.ask(), truth))
        left.append(session.answers_left)
    assert left[0] > 0
    assert left[-1] == 0
    assert all(n > 0 for n in left[:-1])
    assert left[0] <= 3 * session.n_decisions + 3


def test_a_sheet_offers_its_label_first_and_then_the_class_that_is_alike():
    rng = np.random.default_rng(1)
    clouds = Clouds(12, 16, rng)
    clouds.centres[1] = clouds.centres[0] + 0.05 * rng.normal(size=16)
    names = np.array(["balance", "bill_balance", *(f"class {k}" for k in range(10))])
    examples = clouds.examples(3, 0.3)
    batch = clouds.around([0] * 12, 0.3)
    session = Session(batch, (examples, names.repeat(3)), sheet_size=12)
    label = session.result.labels[0]
    items = np.flatnonzero(session.result.labels == label)
    sheet = next_request(session.result, np.zeros(12), [Sheet(items, label, 1.0)])
    assert sheet.is_sheet
    assert sheet.choices[0] == label
    assert set(sheet.choices[:2]) == {"balance", "bill_balance"}
    while (request := session.ask()) is not None:
        session.answer(request.items, "balance")
    assert session.n_decisions < 6
    assert set(session.result.labels) == {"balance"}


def test_what_was_said_about_one_group_of_rejected_items_says_nothing_about_another():
    clouds = Clouds(32, 24)
    examples = clouds.examples(5, 0.5, 30)
    truth = np.repeat([3, 7, 30, 31], 12)
    batch = clouds.around(truth, 0.5)
    session = Session(batch, (examples, np.arange(30).repeat(5))).answer([24, 25, 26], None)
    state = session._state
    first, second = (state.open & session.result.rejected & (truth == k) for k in (30, 31))
    assert second.sum() > 6
    assert (state.unseen.found_right[first] == 2).all()
    assert (state.unseen.found_right[second] == 0).all()
    assert state.wrong[second].min() > state.wrong[first].max()
    assert not session.may_stop


def test_after_every_step_the_labels_are_those_of_a_labelling_from_the_start(world):
    catalogue, batch, truth = world
    session = Session(batch, catalogue)
    steps = 0
    while steps < 8 and (request := session.ask()) is not None:
        item = request.items[0]
        if steps % 3 == 1:
            session.skip(item)
        else:
            session.answer(item, truth[item], new=True)
        steps += 1
        fresh = Session(batch, catalogue)
        fresh_labels = fresh.labeller(session.said)
        np.testing.assert_array_equal(session.result.probabilities, fresh_labels.probabilities)
        np.testing.assert_array_equal(session.result.rejected, fresh_labels.rejected)
        np.testing.assert_array_equal(session.result.unknown, fresh_labels.unknown)


def test_an_item_that_is_left_open_does_not_label_the_batch_again(world):
    catalogue, batch, _ = world
    session = Session(batch, catalogue)
    before = session.result
    assert session.skip(3).result is before


def test_the_worth_of_a_question_is_that_of_all_pairs():
    rng = np.random.default_rng(0)
    directions = rng.normal(size=(150, 4))
    directions /= np.linalg.norm(directions, axis=1, keepdims=True)
    answered = np.arange(150) % 10 == 0
    wrong = np.where(answered, 0, rng.random(150))
    same = 1 / (1 + np.exp(3 - 8 * (directions @ directions.T)))
    np.fill_diagonal(same, 1)
    gains = np.maximum(same - same[answered].max(0), 0)
    np.fill_diagonal(gains, 1)
    found = question_worth(wrong, SameClass(directions @ directions.T, -3.0, 8.0), answered)
    assert np.allclose(found, gains @ wrong)


def test_any_answer_can_be_taken_back_and_what_followed_stays(world):
    classifier, batch, truth = world
    session = Session(batch, classifier)
    for item in (0, 9, 20):
        session.answer(item, str(truth[item]), new=True)
    session.take_back(session.events[1].event)
    without = Session(batch, classifier)
    for item in (0, 20):
        without.answer(item, str(truth[item]), new=True)
    assert session.said == without.said
    assert session.result.probabilities.tobytes() == without.result.probabilities.tobytes()
    assert session.n_decisions == 2
    with pytest.raises(OptionError, match="taken back"):
        session.take_back("0" * 32)


def test_a_session_that_goes_on_labels_once(world):
    classifier, batch, truth = world
    session = Session(batch, classifier)
    for _ in range(4):
        list(reply(session, session.ask(), truth))
    calls = []

    class Counted:
        def __call__(self, said):
            calls.append(said)
            return session.labeller(said)

    again = Session.of_batch(session.file, session.batch, Counted(), session.options)
    assert said_of(again) == said_of(session)
    assert len(calls) == 2  # with nothing said, and with everything
