"""A session at one moment: what was shown about an item is in its event, and the state follows from the events."""

import numpy as np
import pytest

from handful import Session
from handful.catalogue.file import CatalogueFile
from handful.errors import OptionError
from tests.review.reviews import examples_and_batch


@pytest.fixture
def session():
    classifier, batch, _ = examples_and_batch()
    return Session(batch, classifier)


def test_what_was_shown_is_in_the_event(session):
    item = session.ask().items[0]
    offered, certainty = session.result.labels[item], session.result.certainty[item]
    session.answer(item, "kind 03")
    (one,) = session.events[-1].items
    assert (one.item, one.answered, one.offered) == (session.items[item], True, offered)
    assert one.risk == pytest.approx(1 - certainty)
    assert one.support == 0


def test_items_that_are_left_out_of_a_sheet_that_is_accepted_are_in_its_event(session):
    while not (request := session.ask()).is_sheet or request.asks_name or len(request.items) < 3:
        session.answer(list(request.items), session.result.labels[request.items[0]] or "a new kind", new=True)
    *accepted, left_out = request.items
    session.answer(accepted, request.label, wrong=left_out)
    answered = {one.item: one.answered for one in session.events[-1].items}
    assert answered == dict.fromkeys(session.items[list(accepted)], True) | {session.items[left_out]: False}
    assert session._state.known_wrong[left_out]
    assert session._state.risk[left_out] == 1
    session.answer(left_out, "kind 20")
    assert not session._state.known_wrong[left_out]


def test_an_item_that_has_an_answer_is_no_evidence_again(session):
    session.answer(3, "kind 03").answer(3, "kind 04")
    assert session.events[-1].items[0].support is None
    assert len(session.looks) == 1


def test_a_state_is_that_of_a_session_that_is_opened_with_the_same_events(session):
    for _ in range(4):
        request = session.ask()
        session.answer(list(request.items), session.result.labels[request.items[0]] or "a new kind", new=True)
    again = Session.of_batch(session.file, session.batch, session.labeller, session.options)
    assert again.result.labels.tolist() == session.result.labels.tolist()
    np.testing.assert_array_equal(again._state.wrong, session._state.wrong)
    assert (again.ask(), again.looks) == (session.ask(), session.looks)
    assert (again.expected_right, again.answers_left) == (session.expected_right, session.answers_left)
    assert isinstance(session.file, CatalogueFile)


def test_any_earlier_answer_can_be_taken_back_and_later_ones_stay(session):
    session.answer(0, "kind 03").answer(1, "kind 04").answer(2, "kind 05")
    first = session.events[0].event
    session.take_back(first)
    assert session.said.given == {1: "kind 04", 2: "kind 05"}
    with pytest.raises(OptionError, match="not an answer of the session, or it was taken back"):
        session.take_back(first)
    alone = Session.of_batch(session.file, session.batch, session.labeller, session.options)
    assert alone.result.labels.tolist() == session.result.labels.tolist()
