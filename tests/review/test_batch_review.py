"""A batch under review: answers teach, undoing is exact, people's labels stay, and the journal is enough."""

import numpy as np
import pytest

from handful.errors import FileFormatError, LabelError, OptionError
from handful.review.batch_review import BehindError
from handful.review.depends import depends_on
from handful.review.journal import JOURNAL_FILE, opened
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


def refusing(prepared, *names):
    """A labeller for which these classes are impossible, as with candidates that lack them."""

    def label(given):
        wrong = [name for name in names if name in given.values()]
        if wrong:
            raise LabelError(f"{wrong[0]} is not among the candidates of this item")
        return prepared[0](given)

    label.batch = prepared[0].batch
    return label


def test_an_answer_that_labelling_refuses_is_never_journaled(tmp_path, prepared):
    label = refusing(prepared, "kind 07")
    with under_review(tmp_path, label) as review:
        with pytest.raises(LabelError):
            review.decide(0, [1], "class", ["kind 07"])
        assert review.state.steps == ()
        assert review.journal.events == []
        assert review.notes == []
        review.decide(review.state.number, [1], "class", ["kind 08"])
    with under_review(tmp_path, label) as review:
        assert review.state.given() == {1: "kind 08"}


def written_by_an_older_version(folder, label, *said):
    """Make the journal of version 0.4.0, which wrote an answer down before it labelled with it."""
    with opened(folder, {"batch": label.batch.fingerprint}) as journal:
        for item, name in said:
            place = [item, label.batch.names[item], label.batch.content(item)]
            journal.append(
                {
                    "step": "answer",
                    "items": [place],
                    "kind": "class",
                    "labels": [name],
                    "was": ["kind 00"],
                    "how": "asked",
                }
            )


def test_a_journal_that_ends_with_a_refused_answer_opens_again(tmp_path, prepared):
    written_by_an_older_version(tmp_path, prepared[0], (1, "kind 03"), (2, "kind 04"), (5, "kind 07"))
    label = refusing(prepared, "kind 07")
    for start in range(2):  # it is taken back once, and stays so
        with under_review(tmp_path, label) as review:
            assert review.state.given() == {1: "kind 03", 2: "kind 04"}
            assert [("kind 07" in note, "item 5" in note) for note in review.notes] == [(True, True)] * (1 - start)
            assert Page(review, "today").whole()["notes"] == review.notes
    with under_review(tmp_path, label) as review:
        review.undo(review.state.number)
        review.decide(review.state.number, [3], "class", ["kind 05"])
        assert review.state.given() == {1: "kind 03", 3: "kind 05"}


def test_all_answers_that_other_candidates_lack_are_taken_back_and_no_others(tmp_path, prepared):
    names = ["kind 03", "kind 07", "kind 04", "kind 09", "kind 07", "kind 05"]
    written_by_an_older_version(tmp_path, prepared[0], *enumerate(names))
    with under_review(tmp_path, refusing(prepared, "kind 07", "kind 09")) as review:
        assert review.state.given() == {0: "kind 03", 2: "kind 04", 5: "kind 05"}
        assert len(review.notes) == 3
        while review.state.steps:
            review.undo(review.state.number)


def test_an_undo_that_leads_to_a_refused_answer_goes_on_to_the_one_before(tmp_path, prepared):
    """Item 1 was called kind 07 and then kind 08: only the first is refused, and it comes back by an undo."""
    written_by_an_older_version(tmp_path, prepared[0], (0, "kind 03"), (1, "kind 07"), (1, "kind 08"))
    with under_review(tmp_path, refusing(prepared, "kind 07")) as review:
        assert review.state.given() == {0: "kind 03", 1: "kind 08"}
        review.undo(review.state.number)
        assert review.state.given() == {0: "kind 03"}
        assert "kind 07" in review.notes[-1]


@pytest.mark.parametrize(
    "change", [{"items": [[999, "a", "b"]]}, {"items": [["0", "a", "b"]]}, {"labels": [["fox"]]}, {"was": [3]}]
)
def test_a_journal_that_is_whole_but_says_nonsense_is_refused_with_a_sentence(tmp_path, prepared, change):
    label = prepared[0]
    event = {"step": "answer", "items": [[1, "a", "b"]], "kind": "class", "labels": ["kind 03"], "was": [None]}
    with opened(tmp_path, {"batch": label.batch.fingerprint}) as journal:
        journal.append({**event, "how": "asked", **change})
    with pytest.raises(FileFormatError, match="event 1 of the journal"), under_review(tmp_path, label):
        pass


def test_a_lost_tail_of_the_journal_is_said(tmp_path, prepared):
    label, _ = prepared
    with under_review(tmp_path, label) as review:
        for item in range(3):
            review.decide(item, [item], "class", ["kind 03"])
    path = tmp_path / JOURNAL_FILE
    path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:-2]))
    with under_review(tmp_path, label) as review:
        assert review.state.given() == {0: "kind 03"}
        assert "has lost its last 2 lines" in review.notes[0]


def test_what_labels_depend_on_is_in_the_journal_and_other_options_are_refused(tmp_path, prepared):
    label = prepared[0]
    (tmp_path / "some.txt").write_text("kind 03")

    def depends(**known):
        return depends_on(label.catalogue, list(label.named), known)

    with under_review(tmp_path, label, depends=depends(candidates=tmp_path / "some.txt", prior=None)) as review:
        review.decide(0, [1], "class", ["kind 03"])
    (tmp_path / "same.txt").write_text("kind 03")
    with under_review(tmp_path, label, depends=depends(candidates=str(tmp_path / "same.txt"))) as review:
        assert review.notes == []
    (tmp_path / "same.txt").write_text("kind 04")
    for other, said in (
        ({}, r"candidates was .*some\.txt, and is not given now"),
        ({"candidates": tmp_path / "same.txt"}, r"candidates was .*some\.txt, and is .*same\.txt now"),
        ({"candidates": tmp_path / "some.txt", "expect_unknown": 0.2}, "expect_unknown is 0.2 now"),
    ):
        with (
            pytest.raises(OptionError, match=said + ".*Run it with those"),
            under_review(tmp_path, label, depends=depends(**other)),
        ):
            pass
    more = depends_on(label.catalogue, [*label.named, "kind 99"], {"candidates": tmp_path / "some.txt"})
    for start in range(2):
        with under_review(tmp_path, label, depends=more) as review:
            assert ["30 classes" in note and "31 classes" in note for note in review.notes] == [True] * (1 - start)
            assert review.state.given() == {1: "kind 03"}
