"""The state of a review: a function of its journal, in which every step can be taken back."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from handful.classification.corrections import read_corrections
from handful.errors import FileFormatError
from handful.review.steps import ReviewDecision, ReviewState, corrections_file, replayed
from handful.session import Step

SAID = {"class": "fox", "new": "kraken", "none": None, "bad": None, "skip": None, "clear": None}


def step(items, kind="class", label="fox", was="dog"):
    places = [items] if isinstance(items, int) else list(items)
    return {
        "step": "answer",
        "items": [[item, f"{item}.jpg", "5d41"] for item in places],
        "kind": kind,
        "labels": [label] * len(places),
        "was": [was] * len(places),
    }


steps = st.builds(
    lambda items, kind: step(sorted(items), kind, SAID[kind]),
    st.sets(st.integers(0, 5), min_size=1, max_size=3),
    st.sampled_from(list(SAID)),
)


@given(st.lists(st.one_of(steps, st.just({"step": "undo"})), max_size=12))
def test_undoing_is_exact_to_any_depth(events):
    states = [ReviewState()]
    for event in events:
        states.append(states[-1].after(event))
    assert replayed(events) == states[-1]
    assert states[-1].number == len(events)
    seen, now = [ReviewState().decisions], ReviewState()
    for event in events:
        before, now = now, now.after(event)
        if event["step"] == "undo":
            if len(seen) > 1:
                seen.pop()
        else:
            seen.append(now.decisions)
        assert now.decisions == seen[-1]
        assert before.number + 1 == now.number
    while now.steps:
        now = now.after({"step": "undo"})
        seen.pop()
        assert now.decisions == seen[-1]
    assert now.decisions == {}


def test_answers_differ_and_stay_apart():
    state = replayed([step(k, kind, label) for k, (kind, label) in enumerate(SAID.items())])
    assert {item: one.kind for item, one in state.decisions.items()} == {
        0: "class", 1: "new", 2: "none", 3: "bad", 4: "skip",
    }  # fmt: skip
    assert {item: one.label for item, one in state.decisions.items() if one.says_class} == {0: "fox", 1: "kraken"}
    assert {one.was for one in state.decisions.values()} == {"dog"}  # what the model said is kept beside them


def test_an_item_that_an_older_version_held_out_has_an_ordinary_answer():
    state = replayed([{**step(1), "how": "audit"}, {**step(2), "how": "asked"}])
    assert state.decisions == {1: ReviewDecision("class", "fox", "dog"), 2: ReviewDecision("class", "fox", "dog")}


def test_a_step_with_several_kinds_of_answers_is_one_for_each_of_them_to_a_session():
    kinds, labels = ["class", "new", "none", "bad", "class", "clear"], ["fox", "owl", None, None, "fox", None]
    state = replayed([{**step(range(6)), "kinds": kinds, "labels": labels}])
    assert state.steps[0].for_session() == [
        Step("answer", (0, 4), "fox"),
        Step("answer", (1,), "owl", True),
        Step("answer", (2,)),
        Step("discard", (3,)),
        Step("skip", (5,)),
    ]


def test_undoing_nothing_is_nothing():
    assert replayed([{"step": "undo"}]) == ReviewState(1, ())


@pytest.mark.parametrize(
    "event", [{}, {"step": "answer"}, step(1, "maybe"), {"step": "drop", "at": 3}, {**step([1, 2]), "labels": ["fox"]}]
)
def test_events_of_other_kinds_are_refused(event):
    with pytest.raises(FileFormatError, match="event 1 of the journal"):
        replayed([event])


def test_the_corrections_are_those_that_classify_reads(tmp_path):
    import json

    state = replayed(
        [
            step(0, was="fox"),
            step(1),
            step(2, "new", "kraken"),
            step(3, "none", None),
            step(4, "bad", None),
            step(5, "skip"),
        ]
    )
    items = {item: (item + 10, f"{item}.jpg", f"hash{item}") for item in state.decisions}
    file = corrections_file(state.decisions, items, ["fox", "dog"])
    assert [one["row"] for one in file["confirmed"]] == [10]
    assert [one.get("bad", False) for one in file["none_of_these"]] == [False, True]
    place = tmp_path / "c.json"
    place.write_text(json.dumps(file))
    found = {one.row: (one.label, one.new) for one in read_corrections(place)}
    assert found == {10: ("fox", False), 11: ("fox", False), 12: ("kraken", True), 13: (None, None), 14: (None, None)}
