"""Events: what each kind needs, and what no file can keep."""

import datetime
import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from handful.catalogue.events import ANSWERS, DEEPEST, KINDS, NEEDED, Event, EventItem, fault_of

GOOD = {str: "fox", dict: {"prior": 0.5}}


def complete(kind):
    return {name: GOOD[needed] for name, needed in NEEDED.get(kind, {}).items()}


def nested(depth):
    value = []
    for _ in range(depth - 1):
        value = [value]
    return value


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_every_kind_needs_what_it_is_about(kind):
    about = complete(kind)
    assert fault_of(kind, about) is None
    assert fault_of(kind, {**about, "sheet": None, "later": [1, {"a": True}]}) is None
    for name in about:
        without = {other: value for other, value in about.items() if other != name}
        for wrong in (without, {**about, name: 7}, {**about, name: None}, {**about, name: ["fox"]}):
            assert fault_of(kind, wrong).startswith(f"a {kind!r} needs {name!r}")


def test_kinds_that_nobody_knows_are_named():
    assert fault_of("forgotten", {}).startswith("there is no event 'forgotten'; it must be one of accepted, arrived,")
    assert ANSWERS < KINDS
    assert set(NEEDED) < KINDS


@pytest.mark.parametrize("value", [math.nan, math.inf, "\ud800", {"\udfff": 1}, {7: 1}, b"fox", {1}, nested(DEEPEST)])
def test_what_json_does_not_keep_is_refused(value):
    assert "JSON does not keep" in fault_of("open", {"note": value})
    assert "JSON does not keep" in fault_of("open", {"note": [1, {"deep": value}]})


kept = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False, allow_infinity=False), st.text()),
    lambda inside: st.one_of(st.lists(inside, max_size=3), st.dictionaries(st.text(), inside, max_size=3)),
    max_leaves=8,
)


@given(st.dictionaries(st.text(), kept, max_size=4))
def test_what_is_accepted_is_the_same_after_it_was_written(about):
    if fault_of("open", about) is None:
        assert json.loads(json.dumps(about, ensure_ascii=False, allow_nan=False).encode()) == about


def test_an_event_that_happens_now_has_a_name_and_a_time():
    items = [EventItem(3), EventItem(4, answered=False, offered="fox", risk=0.5)]
    events = [Event.made("none", {}, items, revision=4, after=["a"], person="Ana") for _ in range(2)]
    assert len({one.event for one in events}) == 2
    assert all(len(one.event) == 32 and one.after == ("a",) and one.person == "Ana" for one in events)
    assert events[0].answered == [3]
    age = datetime.datetime.now(datetime.UTC) - datetime.datetime.fromisoformat(events[0].time)
    assert abs(age) < datetime.timedelta(minutes=5)
