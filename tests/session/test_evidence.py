"""What answers are evidence of: a function of the events alone, with what was shown in them."""

import pytest

from handful.catalogue.events import Event, EventItem
from handful.session.evidence import evidence_of, looks_of
from handful.session.stopping import chance_of_slip


def event(kind, *items, label=None):
    about = {} if label is None else {"label": label}
    return Event("e", 1, (), "", "", kind, about, items)


def shown(item, offered="fox", risk=0.1, **more):
    return EventItem(item, offered=offered, risk=risk, **{"wrong": risk, "support": 0.0} | more)


def test_a_sheet_that_was_accepted_with_an_exception_is_one_look():
    (look,) = evidence_of([event("named", shown(1), shown(2), shown(3, answered=False), label="fox")]).looks
    assert (look.risks, look.wrong) == ((0.1, 0.1, 0.1), (False, False, True))
    assert not look.rejected
    found = evidence_of([event("named", shown(1), shown(2), shown(3, answered=False), label="fox")])
    assert (found.exceptions, found.n_exceptions) == ({3: "fox"}, 1)
    assert found.found_right == {"fox": look.n_right}
    assert found.slips == {}


def test_an_exception_that_was_answered_is_none_any_more_but_was_one():
    first = event("named", shown(1), shown(2), shown(3, answered=False), label="fox")
    found = evidence_of([first, event("named", shown(3, support=None, wrong=1.0), label="owl")])
    assert (found.exceptions, found.n_exceptions) == ({}, 1)
    assert len(found.looks) == 1  # that its label was wrong was known


def test_items_of_several_labels_are_a_look_for_each():
    found = looks_of(event("named", shown(1), shown(2, "owl", 0.3), shown(3, None, 0.5), label="fox"))
    assert {offered: look.wrong for offered, look in found.items()} == {"fox": (False,), "owl": (True,), None: (True,)}
    assert found[None].rejected


def test_labels_that_were_accepted_are_right_whatever_they_are():
    found = evidence_of([event("accepted", shown(1), shown(2, "owl", 0.3), shown(3, "elk", answered=False))])
    assert [look.wrong for look in found.looks] == [(False,), (False,), (True,)]
    assert (found.exceptions, found.slips) == ({3: "elk"}, {})


@pytest.mark.parametrize("kind", ["open", "bad", "renamed"])
def test_what_says_nothing_about_labels_is_no_evidence(kind):
    found = evidence_of([event(kind, shown(1), label="fox")])
    assert (found.looks, found.slips, found.exceptions) == ((), {}, {})


def test_an_item_that_had_no_label_that_could_be_right_is_no_evidence():
    assert evidence_of([event("named", shown(1, None, 1.0, support=None), label="fox")]).looks == ()


def test_an_answer_against_a_sure_label_may_be_a_slip_until_it_is_given_again():
    against = event("named", shown(1, wrong=0.001), label="owl")
    assert evidence_of([against]).slips == {1: chance_of_slip(0.001)}
    assert evidence_of([event("none", shown(1, wrong=0.001))]).slips == {1: chance_of_slip(0.001)}
    assert evidence_of([against, event("named", shown(1, "owl"), label="owl")]).slips == {}
    several = event("named", shown(1, wrong=0.001), shown(2, wrong=0.001), label="owl")
    assert evidence_of([several]).slips == {}


def test_none_of_the_classes_is_found_right_by_itself():
    found = evidence_of([event("none", shown(1, None, 0.2), shown(2, None, 0.2))])
    assert found.found_right[None] > 0
    assert found.looks[0].wrong == (False, False)
