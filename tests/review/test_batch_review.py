"""A batch under review: answers teach, undoing is exact, people's labels stay, and the journal is enough."""

import numpy as np
import pytest

from handful.errors import LabelError, OptionError
from handful.review.batch_review import BehindError
from handful.review.server import Page
from tests.review.reviews import answer_next, kind_of, problem, under_review


@pytest.fixture(scope="module")
def prepared():
    return problem()


def shown(review):
    """All that a page shows, but the number of the state, and what the last step changed."""
    data = Page(review, "today").whole()
    return {name: value for name, value in data.items() if name not in ("number", "changed", "undid", "back")}


def right(review, truth):
    return np.mean([review.said_by_model(item) == label for item, label in enumerate(truth)])


def test_a_few_answers_are_enough_and_undoing_them_is_exact_across_restarts(tmp_path, prepared):
    label, truth = prepared
    states = []
    with under_review(tmp_path, label) as review:
        before = right(review, truth)
        for _ in range(14):
            states.append(shown(review))
            answer_next(review, truth)
        assert right(review, truth) > max(before + 0.1, 0.9)
        last = shown(review)
    for undone in range(1, 15):  # every time with a new process, as it were
        with under_review(tmp_path, label) as review:
            assert shown(review) == (last if undone == 1 else states[-undone + 1])
            review.undo(review.state.number)
            assert shown(review) == states[-undone]
    with under_review(tmp_path, label) as review, pytest.raises(OptionError, match="nothing to undo"):
        review.undo(review.state.number)


def test_a_page_that_is_behind_is_refused_and_nothing_is_written(tmp_path, prepared):
    label, truth = prepared
    with under_review(tmp_path, label) as review:
        review.decide(0, [3], kind_of(review, truth[3]), [truth[3]])
        for late in (lambda: review.decide(0, [4], "skip", [None]), lambda: review.undo(0)):
            with pytest.raises(BehindError):
                late()
        assert len(review.journal.events) == 1


def test_a_group_never_touches_what_a_person_said_and_is_one_step(tmp_path, prepared):
    label, _ = prepared
    with under_review(tmp_path, label) as review:
        review.decide(0, [1], "class", ["kind 20"])
        review.decide(1, [2], "skip", [None])
        before = shown(review)
        review.decide(2, [0, 1, 2, 3], "class", ["kind 05"] * 4, "group")
        assert review.state.given() == {0: "kind 05", 1: "kind 20", 3: "kind 05"}
        review.undo(3)
        assert shown(review) == before


def test_labels_of_people_are_those_of_people(tmp_path, prepared):
    label, truth = prepared
    with under_review(tmp_path, label) as review:
        item = 5
        wrong = "kind 25"
        review.decide(0, [item], "class", [wrong])
        for _ in range(6):
            answer_next(review, truth)
        assert review.state.decisions[item].label == wrong
        assert review.classified.answer.labels[item] == wrong
        assert review.state.decisions[item].was != wrong  # what the model said stays beside it


def test_audited_items_judge_every_later_labelling(tmp_path, prepared):
    label, truth = prepared
    with under_review(tmp_path, label) as review:
        while review.state.n_audits < 4:
            answer_next(review, truth)
        audited = [item for item, one in review.state.decisions.items() if one.how == "audit"]
        found = review.audit()
        assert found.n_audited == 4
        assert found.n_wrong == sum(review.said_by_model(item) != truth[item] for item in audited)
        assert not set(audited) & set(review.classified.given)
        assert set(audited) <= set(review.labelled(review.state.given(audited=True)).given)


def test_it_ends_by_saying_that_one_may_stop(tmp_path, prepared):
    label, truth = prepared
    with under_review(tmp_path, label, most_wrong=0.1) as review:
        n = 0
        while answer_next(review, truth) is not None:
            n += 1
        assert review.audit().may_stop
        assert n < len(truth)
        assert "You may stop" in Page(review, "today").state()["progress"]["said"]


@pytest.mark.parametrize(
    ("items", "kind", "labels", "how"),
    [
        ([], "skip", [], "chosen"),
        ([1, 1], "skip", [None] * 2, "chosen"),
        ([10_000], "skip", [None], "chosen"),
        ([-1], "skip", [None], "chosen"),
        ([1], "perhaps", [None], "chosen"),
        ([1], "skip", [None], "guessed"),
        ([1], "class", ["no such class"], "chosen"),
        ([1], "class", [None], "chosen"),
        ([1], "new", [" "], "chosen"),
        ([1], "new", ["x" * 201], "chosen"),
    ],
)
def test_answers_that_say_nothing_are_refused(tmp_path, prepared, items, kind, labels, how):
    with under_review(tmp_path, prepared[0]) as review:
        with pytest.raises(OptionError):
            review.decide(0, items, kind, labels, how)
        assert review.journal.events == []


def test_an_answer_that_cannot_be_used_is_taken_back(tmp_path, prepared):
    def label(given):
        if "kind 07" in given.values():
            raise LabelError("kind 07 is not among the candidates of this item")
        return prepared[0](given)

    label.batch = prepared[0].batch
    with under_review(tmp_path, label) as review:
        with pytest.raises(LabelError):
            review.decide(0, [1], "class", ["kind 07"])
        assert review.state.steps == ()
        review.decide(review.state.number, [1], "class", ["kind 08"])
    with under_review(tmp_path, label) as review:
        assert review.state.given() == {1: "kind 08"}
