"""History: the order of events, what counts, and what had been seen."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from handful.catalogue.events import Event
from handful.catalogue.history import History
from handful.errors import FileFormatError
from tests.catalogue.reference import counts, had_seen


def made(name, revision, *after, kind="open", **about):
    return Event(name, revision, after, "", "", kind, about)


@given(st.integers(0, 10**9))
def test_who_had_seen_what_is_what_a_walk_finds(seed):
    rng = random.Random(seed)
    events = [made("0", 1)]
    for number in range(1, 25):
        before = rng.sample(events[-5:], min(len(events), rng.choice((0, 1, 1, 1, 2))))
        revision = 1 + max((one.revision for one in before), default=0)
        events.append(made(f"{number}", revision, *(one.event for one in before)))
    rng.shuffle(events)
    history = History(events)
    for one in events:
        seen = had_seen(one, events)
        assert {other.event for other in events if history.had_seen(one.event, other.event)} == seen
    assert [one.revision for one in history.events] == sorted(one.revision for one in events)
    assert all(one.event in history for one in events)


@given(st.lists(st.integers(0, 30), max_size=20))
def test_what_counts_is_what_nothing_that_counts_takes_back(targets):
    events = [made("0", 1)]
    for number, target in enumerate(targets, 1):
        about = {"event": str(target % number)}
        events.append(made(str(number), number + 1, str(number - 1), kind="taken_back", **about))
    assert History(events).counted() == [one for one in events if counts(one, events)]


def test_the_next_event_comes_after_the_last():
    history = History()
    assert (history.revision, history.head) == (0, ())
    history.add(made("a", 1))
    assert (history.revision, history.head) == (1, ("a",))


@pytest.mark.parametrize(
    "events",
    [
        [made("a", 1), made("b", 2, "nothing")],
        [made("a", 1), made("a", 1)],
        [made("a", 2, "b"), made("b", 2, "a")],
        [made("a", 1, "a")],
        [made("a", 1), made("b", 1, "a")],
        [made("a", 1), made("b", 9, "a")],
        [made("a", 2**63 - 1)],
        [made("a", -1)],
        [made("a", 1), made("b", 2, "a", kind="taken_back", event="c")],
        [made("a", 1), made("b", 2, "a", kind="taken_back", event="b")],
    ],
    ids=["missing", "twice", "circle", "itself", "revision", "gap", "huge", "negative", "unknown", "back"],
)
def test_events_that_are_out_of_place_are_refused(events):
    with pytest.raises(FileFormatError, match="out of place; restore the file from a copy"):
        History(events)
