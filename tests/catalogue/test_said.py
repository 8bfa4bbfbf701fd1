"""What people said is what the reference interpreter says, on random histories, in every order of joining.

`HANDFUL_HISTORIES=2000 python -m pytest tests/catalogue/test_said.py` draws as many in place of 40.
"""

import itertools
import os
import random

import pytest

from handful.catalogue.events import Event, EventItem
from handful.catalogue.file import CatalogueFile
from handful.catalogue.history import History
from handful.catalogue.join import join
from handful.catalogue.said import Said, examples_of
from tests.catalogue.people import by_key, copied, items_of, joined_in_order, photographs, says_something
from tests.catalogue.reference import reference, state_of

N_HISTORIES = int(os.environ.get("HANDFUL_HISTORIES", "40"))


def lived(seed, folder):
    """Two or three copies that people worked on, some of which were joined in between."""
    rng = random.Random(seed)
    first = CatalogueFile.open(folder / "0.handful")
    first.arrive("monday", photographs(5))
    for _ in range(rng.randint(0, 8)):
        says_something(first, rng)
    copies = [first, *(copied(first, folder / f"{k}.handful") for k in range(1, rng.randint(2, 3)))]
    for _ in range(rng.randint(1, 3)):
        for one in copies:
            for _ in range(rng.randint(0, 6)):
                says_something(one, rng)
        if rng.random() < 0.6:
            join(*rng.sample(copies, 2))
    return copies


@pytest.mark.parametrize("part", range(10))
def test_random_histories_say_what_the_reference_says(part, tmp_path):
    n_events = 0
    for seed in range(part, N_HISTORIES, 10):
        folder = tmp_path / str(seed)
        folder.mkdir()
        copies = lived(seed, folder)
        for one in copies:
            assert state_of(one.said) == reference(one.history.events), seed
            with CatalogueFile.open(one.path) as again:
                assert state_of(again.said) == state_of(one.said), seed
                assert again.history.events == one.history.events
        orders = list(itertools.permutations(copies))
        states = [joined_in_order(list(order), folder / f"{k}.joined") for k, order in enumerate(orders)]
        assert all(state == states[0] for state in states), seed
        for one, other in itertools.pairwise([*copies, *copies]):
            join(one, other)
            assert state_of(one.said) == reference(one.history.events), seed
        assert [by_key(one) for one in (copies[-1], copies[0])] == [states[0]] * 2
        n_events += len(one.history.events)
        for one in copies:
            one.close()
    assert n_events > N_HISTORIES


def made(number, kind, *items, after=None, **about):
    before = (str(number - 1),) if number > 1 else ()
    revision = number if after is None else 1 + int(after[0])
    return Event(str(number), revision, before if after is None else after, "", "", kind, about, items_of(*items))


def said_by(*events):
    return Said(History(events))


def test_the_last_word_counts_and_what_was_only_shown_has_no_answer():
    answer = Event("2", 2, ("1",), "", "", "none", {}, [EventItem(1), EventItem(2, answered=False)])
    said = said_by(made(1, "named", 1, 2, label="fox"), answer)
    assert {item: (one.kind, one.label) for item, one in said.answers.items()} == {
        1: ("none", None),
        2: ("named", "fox"),
    }
    assert examples_of(said, [1, 2, 3]) == {2: "fox"}


def test_a_taking_back_is_taken_back():
    events = [made(1, "named", 1, label="fox"), made(2, "named", 1, label="owl"), made(3, "taken_back", event="2")]
    assert said_by(*events).answers[1].label == "fox"
    events.append(made(4, "taken_back", event="3"))
    assert said_by(*events).answers[1].label == "owl"
    events.append(made(5, "taken_back", event="4"))
    assert said_by(*events).answers[1].label == "fox"


def test_a_renaming_is_of_answers_before_it_and_of_those_that_had_not_seen_it():
    events = [made(1, "named", 1, label="fox"), made(2, "renamed", label="fox", into="red fox")]
    later = made(3, "named", 2, label="fox")  # somebody knows that there is another fox now
    elsewhere = made(4, "named", 3, label="fox", after=("1",))
    labels = {item: one.label for item, one in said_by(*events, later, elsewhere).answers.items()}
    assert labels == {1: "red fox", 2: "fox", 3: "red fox"}


def test_names_that_are_exchanged_and_a_class_that_is_given_up():
    events = [made(1, "named", 1, label="a"), made(2, "named", 2, label="b"), made(3, "renamed", label="a", into="c")]
    events += [made(4, "renamed", label="b", into="a"), made(5, "renamed", label="c", into="b")]
    assert said_by(*events).classes == ("b", "a")
    events += [made(6, "removed", label="a"), made(7, "named", 3, label="a")]
    assert {item: one.label for item, one in said_by(*events).answers.items()} == {1: "b", 3: "a"}


def test_two_people_who_agree_dispute_nothing():
    events = [made(1, "arrived", 1, batch="monday"), made(2, "named", 1, label="fox")]
    events.append(made(3, "named", 1, label="fox", after=("1",)))
    said = said_by(*events)
    assert not said.disputed
    assert said.answers[1].label == "fox"
    assert len(said.all_answers[1]) == 2


def test_one_event_more_says_what_all_of_them_say():
    history = History()
    said = Said(history)
    events = [made(1, "named", 1, 2, label="fox"), made(2, "named", 2, label="owl"), made(3, "taken_back", event="1")]
    for event in events:
        history.add(event)
        said = said.with_event(event)
        assert state_of(said) == reference(history.events)
