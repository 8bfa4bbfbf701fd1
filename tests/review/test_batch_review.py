"""A batch under review: answers teach, undoing is exact, people's labels stay, and the catalogue is enough."""

import numpy as np
import pytest

from handful.errors import BehindError, LabelError, OptionError, StorageError
from handful.review.server import Page
from handful.session import Session
from tests.review.reviews import answer_next, examples_and_batch, full_disk, problem, say, under_review


@pytest.fixture(scope="module")
def prepared():
    return problem()


def shown(review):
    """All that a page shows, but the number of the state, and what the last step changed."""
    data = Page(review, "today").whole()
    return {name: value for name, value in data.items() if name not in ("number", "changed", "undid", "back")}


def right(review, truth):
    return np.mean([said == label for said, label in zip(review.said_by_model(), truth, strict=True)])


def test_a_few_answers_are_enough_and_undoing_them_is_exact_across_restarts(tmp_path, prepared):
    label, truth = prepared
    states = []
    with under_review(tmp_path, label) as review:
        before = right(review, truth)
        for _ in range(12):
            states.append((review.n_steps, shown(review)))
            answer_next(review, truth)
        assert right(review, truth) > max(before + 0.1, 0.9)
        last = shown(review)
    for n_steps, state in reversed(states):  # every time with a new process, as it were
        with under_review(tmp_path, label) as review:
            assert shown(review) == last
            while review.n_steps > n_steps:
                review.undo(review.number)
            last = shown(review)
            assert last == state
    with under_review(tmp_path, label) as review, pytest.raises(OptionError, match="nothing to undo"):
        review.undo(review.number)


def test_a_page_that_is_behind_is_refused_and_nothing_is_written(tmp_path, prepared):
    label, truth = prepared
    with under_review(tmp_path, label) as review:
        before = review.number
        say(review, 3, truth[3])
        for late in (
            lambda: review.decide(before, [4], "skip"),
            lambda: review.undo(before),
            lambda: review.merge(before, "kind 03", "kind 04"),
            lambda: review.remove(before, "kind 03"),
        ):
            with pytest.raises(BehindError):
                late()
        assert review.n_steps == 1


def test_of_two_who_have_one_catalogue_the_second_is_told_what_happened_and_asked_again(tmp_path, prepared):
    label, truth = prepared
    with under_review(tmp_path, label) as mine, under_review(tmp_path, label) as other:
        other.session.person = "Bob"
        before = mine.number
        say(other, [1, 2], "kind 03")
        with pytest.raises(BehindError):
            mine.decide(before, [1], "class", "kind 05")
        assert shown(mine) == shown(other)  # what the page of the first asks for next
        assert mine.session.said.given == {1: "kind 03", 2: "kind 03"}
        say(mine, 1, "kind 05")
        for review in (other, mine, other):
            review.session.refresh()
            answer_next(review, truth)
        mine.session.refresh()
        assert shown(mine) == shown(other)
        assert mine.session.said.given[1] == "kind 05"
        assert {event.person for event in mine.session.events} == {"Ada", "Bob"}


def test_one_answer_for_several_items_is_one_step(tmp_path, prepared):
    label, _ = prepared
    with under_review(tmp_path, label) as review:
        review.decide(review.number, [1], "class", "kind 20")
        before = shown(review)
        review.decide(review.number, [0, 2, 3], "class", "kind 05")
        assert review.session.said.given == {0: "kind 05", 1: "kind 20", 2: "kind 05", 3: "kind 05"}
        assert review.progress()["decisions"] == 2
        review.undo(review.number)
        assert shown(review) == before


def test_labels_of_people_are_those_of_people(tmp_path, prepared):
    label, truth = prepared
    with under_review(tmp_path, label) as review:
        item = 5
        wrong = "kind 25"
        review.decide(review.number, [item], "class", wrong)
        for _ in range(6):
            answer_next(review, truth)
        assert review.decisions[item].label == wrong
        assert review.answer.labels[item] == wrong
        assert review.decisions[item].was != wrong  # what the model said stays beside it


def test_it_ends_when_everything_was_seen_and_says_before_that_one_may_stop(tmp_path):
    label, truth = problem(shots=5, noise=0.4)
    with under_review(tmp_path, label) as review:
        stopped = None
        while answer_next(review, truth) is not None:
            found = review.progress()
            tells = " least like what you had seen held nothing new; " in found["said"]
            assert tells == (found["may_stop"] and not found["done"])
            if stopped is None and found["may_stop"]:
                stopped = found
        assert stopped["seen"] < len(truth)
        assert stopped["answers_left"] == 0
        assert found["done"]
        assert found["right"][0] > 0.97
        assert found["decisions"] < len(truth) / 2
        assert Page(review, "today").state()["ask"] is None


def test_the_session_is_the_one_that_python_has(tmp_path, prepared):
    label, truth = prepared
    classifier, batch, _ = examples_and_batch()
    alone = Session(batch, classifier)
    with under_review(tmp_path, label) as review:
        for _ in range(5):
            request = alone.ask()
            assert review.session.ask() == request
            names = {truth[item] for item in request.items}
            if len(names) > 1:
                break
            (name,) = names
            alone.answer(request.items, name, new=True)
            say(review, request.items, name)
        assert review.session.expected_right.value == pytest.approx(alone.expected_right.value, abs=1e-6)
        assert review.session.answers_left == alone.answers_left


@pytest.mark.parametrize(
    ("items", "kind", "label"),
    [
        ([], "skip", None),
        ([1, 1], "skip", None),
        ([10_000], "skip", None),
        ([-1], "skip", None),
        ([1], "perhaps", None),
        ([1], "class", "no such class"),
        ([1], "class", None),
        ([1], "new", " "),
        ([1], "new", "x" * 201),
    ],
)
def test_answers_that_say_nothing_are_refused(tmp_path, prepared, items, kind, label):
    with under_review(tmp_path, prepared[0]) as review:
        with pytest.raises((OptionError, LabelError)):
            review.decide(review.number, items, kind, label)
        assert review.n_steps == 0
        assert len(review.session.file.history.events) == 1  # the items came


def test_an_answer_that_the_disk_refuses_has_changed_nothing(tmp_path, prepared):
    with under_review(tmp_path, prepared[0]) as review:
        before = shown(review)
        with full_disk(review.session.file):
            number = fill(review)
        assert review.number == number
        while review.n_steps:
            review.undo(review.number)
        assert shown(review) == before


def fill(review):
    """Answer until the disk is full; return the number of the last state that was kept."""
    while True:
        number = review.number
        try:
            review.decide(number, list(range(60)), "class", "kind 03")
        except StorageError:
            return number


def refusing(prepared, *names):
    """A labeller for which these classes are impossible, as with candidates that lack them."""

    def label(said):
        wrong = [name for name in names if name in said.given.values()]
        if wrong:
            raise LabelError(f"{wrong[0]} is not among the candidates of this item")
        return prepared[0](said)

    label.batch = prepared[0].batch
    return label


def test_an_answer_that_labelling_refuses_is_never_kept(tmp_path, prepared):
    label = refusing(prepared, "kind 07")
    with under_review(tmp_path, label) as review:
        before = review.number
        with pytest.raises(LabelError):
            review.decide(before, [1], "class", "kind 07")
        assert (review.number, review.n_steps) == (before, 0)
        review.decide(before, [1], "class", "kind 08")
    with under_review(tmp_path, label) as review:
        assert review.session.said.given == {1: "kind 08"}
