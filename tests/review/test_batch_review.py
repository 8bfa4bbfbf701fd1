"""A batch under review: answers teach, undoing is exact, people's labels stay, and the journal is enough."""

import numpy as np
import pytest

from handful.errors import FileFormatError, LabelError, OptionError, StorageError
from handful.review.batch_review import BehindError
from handful.review.depends import depends_on
from handful.review.journal import JOURNAL_FILE, opened
from handful.review.server import Page
from handful.session import Session
from tests.review.reviews import answer_next, problem, say, under_review


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
            states.append((len(review.state.steps), shown(review)))
            answer_next(review, truth)
        assert right(review, truth) > max(before + 0.1, 0.9)
        last = shown(review)
    for n_steps, state in reversed(states):  # every time with a new process, as it were
        with under_review(tmp_path, label) as review:
            assert shown(review) == last
            while len(review.state.steps) > n_steps:
                review.undo(review.state.number)
            last = shown(review)
            assert last == state
    with under_review(tmp_path, label) as review, pytest.raises(OptionError, match="nothing to undo"):
        review.undo(review.state.number)


def test_a_page_that_is_behind_is_refused_and_nothing_is_written(tmp_path, prepared):
    label, truth = prepared
    with under_review(tmp_path, label) as review:
        say(review, 3, truth[3])
        for late in (lambda: review.decide(0, [4], "skip"), lambda: review.undo(0)):
            with pytest.raises(BehindError):
                late()
        assert len(review.journal.events) == 1


def test_one_answer_for_several_items_is_one_step(tmp_path, prepared):
    label, _ = prepared
    with under_review(tmp_path, label) as review:
        review.decide(0, [1], "class", "kind 20")
        before = shown(review)
        review.decide(1, [0, 2, 3], "class", "kind 05")
        assert review.session.said.given == {0: "kind 05", 1: "kind 20", 2: "kind 05", 3: "kind 05"}
        assert review.progress()["decisions"] == 2
        review.undo(2)
        assert shown(review) == before


def test_labels_of_people_are_those_of_people(tmp_path, prepared):
    label, truth = prepared
    with under_review(tmp_path, label) as review:
        item = 5
        wrong = "kind 25"
        review.decide(0, [item], "class", wrong)
        for _ in range(6):
            answer_next(review, truth)
        assert review.state.decisions[item].label == wrong
        assert review.answer.labels[item] == wrong
        assert review.state.decisions[item].was != wrong  # what the model said stays beside it


def test_it_ends_when_everything_was_seen_and_says_before_that_one_may_stop(tmp_path, prepared):
    label, truth = prepared
    with under_review(tmp_path, label) as review:
        stopped = None
        while answer_next(review, truth) is not None:
            found = review.progress()
            warns = found["said"].endswith(
                " A class with one or two items may still be missed, in your catalogue or not."
            )
            assert warns == (found["may_stop"] and not found["done"])
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
    alone = Session.of(label)
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
        assert review.session.expected_right == alone.expected_right
        assert review.session.answers_left == alone.answers_left


def test_a_journal_with_items_that_an_older_version_held_out_opens_with_ordinary_answers(tmp_path, prepared):
    label, _ = prepared
    with opened(tmp_path, {"batch": label.batch.fingerprint}) as journal:
        for item, how in enumerate(["audit", "asked", "group", "audit"]):
            place = [item, label.batch.names[item], label.batch.content(item)]
            event = {"step": "answer", "items": [place], "kind": "class", "labels": ["kind 03"], "was": [None]}
            journal.append({**event, "how": how})
    with under_review(tmp_path, label) as review:
        assert review.session.said.given == dict.fromkeys(range(4), "kind 03")
        assert review.progress()["seen"] == 4


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
            review.decide(0, items, kind, label)
        assert review.journal.events == []


def test_an_answer_that_the_disk_refuses_has_changed_nothing(tmp_path, prepared, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    with under_review(tmp_path, prepared[0]) as review:
        before = shown(review)
        with monkeypatch.context() as patch:
            patch.setattr("handful.review.journal._write_all", full)
            with pytest.raises(StorageError):
                review.decide(0, [1], "class", "kind 03")
        assert shown(review) == before


def refusing(prepared, *names):
    """A labeller for which these classes are impossible, as with candidates that lack them."""

    def label(said):
        wrong = [name for name in names if name in said.given.values()]
        if wrong:
            raise LabelError(f"{wrong[0]} is not among the candidates of this item")
        return prepared[0](said)

    label.batch = prepared[0].batch
    return label


def test_an_answer_that_labelling_refuses_is_never_journaled(tmp_path, prepared):
    label = refusing(prepared, "kind 07")
    with under_review(tmp_path, label) as review:
        with pytest.raises(LabelError):
            review.decide(0, [1], "class", "kind 07")
        assert review.state.steps == ()
        assert review.journal.events == []
        assert review.notes == []
        review.decide(review.state.number, [1], "class", "kind 08")
    with under_review(tmp_path, label) as review:
        assert review.session.said.given == {1: "kind 08"}


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
            assert review.session.said.given == {1: "kind 03", 2: "kind 04"}
            assert [("kind 07" in note, "item 5" in note) for note in review.notes] == [(True, True)] * (1 - start)
            assert Page(review, "today").whole()["notes"] == review.notes
    with under_review(tmp_path, label) as review:
        review.undo(review.state.number)
        review.decide(review.state.number, [3], "class", "kind 05")
        assert review.session.said.given == {1: "kind 03", 3: "kind 05"}


def test_all_answers_that_other_candidates_lack_are_taken_back_and_no_others(tmp_path, prepared):
    names = ["kind 03", "kind 07", "kind 04", "kind 09", "kind 07", "kind 05"]
    written_by_an_older_version(tmp_path, prepared[0], *enumerate(names))
    with under_review(tmp_path, refusing(prepared, "kind 07", "kind 09")) as review:
        assert review.session.said.given == {0: "kind 03", 2: "kind 04", 5: "kind 05"}
        assert len(review.notes) == 3
        while review.state.steps:
            review.undo(review.state.number)


def test_an_undo_that_leads_to_a_refused_answer_goes_on_to_the_one_before(tmp_path, prepared):
    """Item 1 was called kind 07 and then kind 08: the first is refused, and must not come back by an undo."""
    written_by_an_older_version(tmp_path, prepared[0], (0, "kind 03"), (1, "kind 07"), (1, "kind 08"))
    with under_review(tmp_path, refusing(prepared, "kind 07")) as review:
        assert review.session.said.given == {0: "kind 03", 1: "kind 08"}
        assert "kind 07" in review.notes[-1]
        review.undo(review.state.number)
        assert review.session.said.given == {0: "kind 03"}


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
            review.decide(item, [item], "class", "kind 03")
    path = tmp_path / JOURNAL_FILE
    path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:-2]))
    with under_review(tmp_path, label) as review:
        assert review.session.said.given == {0: "kind 03"}
        assert "has lost its last 2 lines" in review.notes[0]


def test_what_labels_depend_on_is_in_the_journal_and_other_options_are_refused(tmp_path, prepared):
    label = prepared[0]
    (tmp_path / "some.txt").write_text("kind 03")

    def depends(**known):
        return depends_on(label.catalogue, list(label.named), known)

    with under_review(tmp_path, label, depends=depends(candidates=tmp_path / "some.txt", prior=None)) as review:
        review.decide(0, [1], "class", "kind 03")
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
            assert review.session.said.given == {1: "kind 03"}
