"""The rest, oddest first: until no odd item is of a new kind, and once more what was accepted at a glance."""

import numpy as np
import pytest

from handful import Session
from handful.catalogue.events import Event, EventItem
from handful.catalogue.history import History
from handful.catalogue.said import Said
from handful.errors import OptionError
from handful.session.oddest import Oddness, n_odd_needed, odd_looks
from tests.session.people import finished, reply
from tests.worlds import Clouds


def directions(n_items, dim=6, seed=0):
    rows = np.random.default_rng(seed).normal(size=(n_items, dim))
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def farthest_first(rows, seen, most):
    """The definition, by plain loops."""
    taken = []
    while len(taken) < most:
        left = [n for n in range(len(rows)) if n not in seen and n not in taken]
        nearest = {n: max((rows[n] @ rows[m] for m in (*seen, *taken)), default=-np.inf) for n in left}
        taken.append(min(left, key=lambda n: (nearest[n], n)))
    return taken


def test_odd_items_are_those_of_the_definition_also_when_more_were_seen_or_fewer():
    rows = directions(40)
    oddness = Oddness(rows)
    for seen in ([], [3], [3, 17, 30], [17], range(36)):
        assert oddness.first(4, seen).tolist() == farthest_first(rows, list(seen), 4)
    assert oddness.first(10, range(36)).shape == (4,)
    assert oddness.first(3, range(40)).tolist() == []


def test_a_burst_is_taken_once():
    rows = np.repeat(directions(12, 12, 1), [30, 30, *[4] * 10], axis=0)
    found = Oddness(rows).first(10, [0, 30])
    assert len({(row - 60) // 4 for row in found.tolist()}) == 10


def test_items_that_fit_their_label_least_are_those_like_items_with_another():
    rows = directions(4, 8, 2).repeat(6, axis=0) + 0.02 * directions(24, 8, 3)
    given = {row: "abcd"[row // 6] for row in range(24)} | {7: "a", 20: None}
    found = Oddness(rows).least_fitting(3, range(24), given)
    assert found[0] == 7
    assert 20 not in Oddness(rows).least_fitting(99, range(24), given)
    assert Oddness(rows).least_fitting(3, [], given).tolist() == []


@pytest.mark.parametrize(("n_unseen", "needed"), [(0, 0), (1, 1), (20, 20), (64, 36), (100, 45), (2500, 225)])
def test_how_many_odd_items_are_enough_grows_with_the_root_of_what_is_left(n_unseen, needed):
    assert n_odd_needed(n_unseen) == needed


def events_of(*said):
    """Answers in a row: a kind, items with the label they were shown with, and what else it is about."""
    found = []
    for number, (kind, items, about) in enumerate(said, start=1):
        after = (str(number - 1),) if number > 1 else ()
        some = [EventItem(item, answered=not wrong, offered=label) for item, label, wrong in items]
        found.append(Event(str(number), number, after, "", "", kind, about, some))
    return found


def looks(*said, items=range(100)):
    events = events_of(*said)
    return odd_looks(events, Said(History(events)), frozenset(items))


def sheet(*numbers, label="fox", wrong=()):
    return [(number, label, number in wrong) for number in numbers]


ODD = {"oddest": True}


def test_odd_items_count_until_one_is_of_a_new_kind():
    first = ("named", sheet(1, 2), {"label": "fox"})
    assert looks(first, ("accepted", sheet(3, 4, 5), ODD)).n_odd == 3
    assert looks(first, ("accepted", sheet(3, 4, 5), {})).n_odd == 0
    exception = ("accepted", sheet(3, 4, 5, wrong=[5]), ODD)
    assert looks(first, exception).n_odd == 3
    assert looks(first, exception, ("named", sheet(5), {"label": "owl"})).n_odd == 0
    assert looks(first, exception, ("named", sheet(5), {"label": "fox"})).n_odd == 3
    assert looks(first, exception, ("none", sheet(5), {})).n_odd == 3
    # A class of the catalogue is new as well, when an item of it is seen for the first time.
    assert looks(first, ("accepted", sheet(3, 4), ODD), ("accepted", sheet(5, label="owl"), ODD)).n_odd == 0


def test_a_new_name_of_a_known_kind_is_not_new_if_both_are_one():
    said = [
        ("named", sheet(1, 2), {"label": "fox"}),
        ("accepted", sheet(3, 4), ODD),
        ("named", sheet(5), {"label": "red fox"}),
    ]
    assert looks(*said).n_odd == 0
    assert looks(*said, ("renamed", [], {"label": "red fox", "into": "fox"})).n_odd == 2


def test_kinds_that_had_an_item_before_the_review_are_known():
    before, *events = events_of(("named", sheet(9), {"label": "owl"}), ("accepted", sheet(1, 2, label="owl"), ODD))
    said = Said(History([before, *events]))
    assert odd_looks(events, said, frozenset(range(10))).n_odd == 2
    assert odd_looks(events, said, frozenset(range(5))).n_odd == 0


def test_what_was_accepted_at_a_glance_can_be_looked_at_again_once():
    first = ("named", sheet(1, 2, 3), {"label": "fox"})
    assert looks(first).glanced == {1, 2, 3}
    assert looks(first, ("named", sheet(2), {"label": "owl"})).glanced == {1, 3}
    again = looks(first, ("accepted", sheet(1, 3, 4), ODD))
    assert (again.glanced, again.n_again, again.n_odd) == ({2, 4}, 2, 1)


# -- sessions ---------------------------------------------------------------------------------------------------------

SIZES = (30, 30, 20, 8, 4, 2, 1, 1)


@pytest.fixture(scope="module")
def world():
    clouds = Clouds(len(SIZES), 24)
    truth = np.repeat(np.arange(len(SIZES)), SIZES)
    order = np.random.default_rng(0).permutation(len(truth))
    return clouds.around(truth, 0.5)[order], np.array([f"kind {k}" for k in truth[order]])


def test_when_one_may_stop_every_kind_was_seen(world):
    batch, truth = world
    session = Session(batch)
    while not session.may_stop:
        for _ in reply(session, session.ask(), truth):
            pass
    assert {kind.label for kind in session.kinds if kind.n_seen} == set(truth)
    assert session.labels_are_good
    assert session.n_odd > 0
    assert session.answers_left == 0


def test_a_mixed_sheet_has_its_labels_together_and_is_one_decision(world):
    batch, truth = world
    session = Session(batch)
    while not (request := session.ask()).oddest:
        for _ in reply(session, request, truth):
            pass
    assert len(set(request.labels)) > 1
    runs = [label for at, label in enumerate(request.labels) if at == 0 or request.labels[at - 1] != label]
    assert len(runs) == len(set(runs))
    assert str(request).startswith(f"Are these {len(request.items)} items labelled right? {request.items[0]} ")
    right = [item for item, label in zip(request.items, request.labels, strict=True) if truth[item] == label]
    wrong = [item for item in request.items if item not in right]
    before = session.n_decisions
    session.accept(right, wrong=wrong)
    assert session.n_decisions == before + 1
    assert session.events[-1].about["oddest"]
    assert {item: session.said.given[item] for item in right} == {item: truth[item] for item in right}
    assert session.exceptions == sorted(wrong)
    assert not session.may_stop
    for place, item in enumerate(sorted(wrong)):
        asked = session.ask()
        assert (asked.items, asked.waiting) == ((item,), tuple(sorted(wrong)[place + 1 :]))
        session.answer(item, truth[item], new=True)
    session.undo()
    assert session.exceptions == sorted(wrong)[-1:]


def test_all_labels_of_a_sheet_may_be_wrong(world):
    batch, truth = world
    session = Session(batch)
    while not (request := session.ask()).oddest:
        for _ in reply(session, request, truth):
            pass
    session.accept([], wrong=request.items)
    assert session.exceptions == sorted(request.items)
    with pytest.raises(OptionError, match="right and wrong"):
        session.accept(request.items[0], wrong=request.items[:2])
    with pytest.raises(OptionError, match="one item or more"):
        session.accept([])


def test_what_has_no_name_yet_cannot_be_accepted(world):
    batch, _ = world
    session = Session(batch)
    with pytest.raises(OptionError, match="has no label yet"):
        session.accept(session.ask().items)


def test_a_slip_comes_again(world):
    batch, truth = world
    session = Session(batch)
    rare = int(np.flatnonzero(truth == "kind 6")[0])
    slips = []
    while (request := session.ask()) is not None:
        # The only item of its kind is overlooked the first time.
        for missed in reply(session, request, truth, overlooks=lambda: not slips and rare in request.items):  # noqa: B023
            slips += missed
    assert slips
    assert session.result.labels.tolist() == truth.tolist()


def test_with_a_catalogue_kinds_of_it_and_others_are_seen(world):
    batch, truth = world
    known = [k for k in range(len(SIZES)) if k not in (5, 6)]
    clouds = Clouds(len(SIZES), 24)
    of = np.repeat(known, 3)
    session = Session(batch, (clouds.around(of, 0.5), np.array([f"kind {k}" for k in of])))
    finished(session, truth)
    assert {kind.label for kind in session.kinds if kind.n_seen} == set(truth)


def test_scores_of_another_model_have_their_odd_items_too():
    from handful.estimators.items import ScoredItems

    nats = np.log(np.array([[0.9, 0.1], [0.8, 0.2], [0.1, 0.9]]))
    items = ScoredItems(nats, nats.max(1), None, np.array(["a", "b"]), several=False)
    assert np.allclose(items.vectors, np.exp(nats))
