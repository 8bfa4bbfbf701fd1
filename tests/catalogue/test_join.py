"""Joining: two copies become one, whoever joins which, and what people disagree about is asked."""

import random
import sqlite3
import threading

import numpy as np
import pytest

from handful.catalogue.file import CatalogueFile
from handful.catalogue.join import Joined, join
from handful.catalogue.vectors import GIVEN, EncoderId
from handful.errors import FileFormatError, HandfulError
from tests.catalogue.people import by_key, copied, items_of, photograph, photographs, says_something
from tests.catalogue.reference import reference, state_of

ENCODER = EncoderId("minilm", "1", "5d41")


@pytest.fixture
def two(tmp_path):
    """A catalogue and its copy."""
    with CatalogueFile.open(tmp_path / "mine.handful") as mine:
        mine.arrive("monday", photographs(5))
        mine.append("named", {"label": "fox"}, items_of(1), person="Ana")
        with copied(mine, tmp_path / "yours.handful") as yours:
            yield mine, yours


@pytest.mark.parametrize("seed", range(5))
def test_both_directions_say_the_same_and_twice_is_once(two, seed):
    mine, yours = two
    rng = random.Random(seed)
    for one in (mine, yours):
        for _ in range(12):
            says_something(one, rng)
    join(mine, yours)
    assert by_key(mine) != by_key(yours)
    join(yours, mine)
    assert by_key(mine) == by_key(yours)
    assert [event.event for event in mine.history.events] == [event.event for event in yours.history.events]
    assert state_of(mine.said) == reference(mine.history.events)
    assert join(mine, yours) == join(yours, mine) == Joined(0, 0, ())


def test_joined_separately_in_both_directions_they_say_the_same(two, tmp_path):
    mine, yours = two
    mine.append("named", {"label": "wolf"}, items_of(2))
    yours.append("named", {"label": "bear"}, items_of(2))
    with copied(yours, tmp_path / "before.handful") as before:
        join(yours, mine)
        join(mine, before)
        assert by_key(mine) == by_key(yours)
        join(mine, yours)
        assert by_key(mine) == by_key(yours)


def test_what_is_disputed_is_listed_and_one_answer_settles_it(two):
    mine, yours = two
    mine.append("named", {"label": "wolf"}, items_of(1, 2, 3))
    yours.append("named", {"label": "bear"}, items_of(2))
    yours.append("named", {"label": "wolf"}, items_of(3))  # they agree
    yours.append("bad", {}, items_of(4))
    found = join(mine, yours)
    assert found == Joined(3, 0, (2,))
    assert {one.label for one in mine.said.disputed[2]} == {"wolf", "bear"}
    assert sorted(mine.said.answers) == [1, 3, 4]
    assert mine.history.events[-1].kind == "joined"
    mine.append("named", {"label": "bear"}, items_of(2))
    assert not mine.said.disputed
    assert mine.said.answers[2].label == "bear"
    join(yours, mine)
    assert by_key(mine) == by_key(yours)
    assert not yours.said.disputed


def test_a_copy_that_is_only_behind_or_ahead_needs_no_event(two):
    mine, yours = two
    yours.append("named", {"label": "owl"}, items_of(2))
    assert join(yours, mine) == Joined(0, 0, ())
    assert join(mine, yours) == Joined(1, 0, ())
    assert mine.history.events == yours.history.events


def test_items_and_vectors_come_along(two):
    mine, yours = two
    vectors = np.random.default_rng(0).normal(size=(4, 6)).astype(np.float32)
    mine.put_vectors(ENCODER, [1], vectors[:1])
    mine.arrive("tuesday", [photograph("mine")])
    yours.arrive("tuesday", [photograph("yours"), photograph("3", "again.jpg")])
    yours.put_vectors(ENCODER, [1, 2], vectors[1:3])
    yours.put_vectors(GIVEN, [6], vectors[3:])
    assert join(mine, yours).n_items == 2
    assert sorted(mine.said.places["tuesday"].values()) == ["again.jpg", "mine.jpg", "yours.jpg"]
    by_place = {place: item for item, place in mine.said.places["tuesday"].items()}
    again, third = (mine.rows([item])[0] for item in (by_place["again.jpg"], 4))
    assert again.content == third.content
    assert np.allclose(mine.vectors(ENCODER, [1])[1], vectors[0], atol=1e-3)  # what was there stays
    assert np.allclose(mine.vectors(ENCODER, [2])[2], vectors[2], atol=1e-3)
    given = mine.rows([by_place["yours.jpg"]])[0].content
    assert (mine.vectors(GIVEN, [given])[given] == vectors[3]).all()


def test_catalogues_that_never_were_one_are_joined_by_what_they_hold():
    mine = CatalogueFile.open()
    yours = CatalogueFile.open()
    for one, names in ((mine, "abc"), (yours, "cd")):
        one.arrive("monday", [photograph(name) for name in names])
        one.append("named", {"label": "fox"}, items_of(1))
    assert join(mine, yours).n_items == 1
    assert join(mine, mine) == Joined(0, 0, ())
    assert sorted(mine.said.answers) == [1, 3]


def test_one_who_has_the_file_open_sees_what_was_joined_before_what_was_read(two, tmp_path):
    mine, yours = two
    with CatalogueFile.open(mine.path) as watching:
        for _ in range(3):
            mine.append("named", {"label": "wolf"}, items_of(2))
        yours.append("named", {"label": "bear"}, items_of(2))
        watching.refresh()
        join(mine, yours)
        watching.refresh()
        assert state_of(watching.said) == state_of(mine.said) == reference(mine.history.events)
        assert list(watching.said.disputed) == [2]


def test_what_another_process_says_during_a_join_is_not_missed(two, monkeypatch):
    mine, yours = two
    yours.append("named", {"label": "bear"}, items_of(2))
    other = CatalogueFile.open(mine.path)
    original = mine.refresh
    threads = []

    def refreshed():
        found = original()
        if not threads:  # says it as soon as it may
            said = threading.Thread(target=lambda: other.append("named", {"label": "wolf"}, items_of(2)))
            threads.append(said)
            said.start()
            said.join(0.3)
        return found

    monkeypatch.setattr(mine, "refresh", refreshed)
    join(mine, yours)
    threads[0].join()
    mine.refresh()
    assert state_of(mine.said) == reference(mine.history.events)
    (one,) = mine.said.all_answers[2]  # who said "wolf" had seen what was joined
    assert one.label == "wolf"
    other.close()


@pytest.mark.parametrize(
    ("statement", "sentence"),
    [
        ("UPDATE vectors SET numbers = x'00'", "the size of its encoder"),
        ("UPDATE vectors SET numbers = zeroblob(12)", "the size of its encoder"),
        ("UPDATE encoders SET dim = 7; UPDATE vectors SET numbers = zeroblob(18)", "other lengths"),
        ("UPDATE encoders SET bits = 32; UPDATE vectors SET numbers = zeroblob(24)", "16 bits, not of 32"),
    ],
)
def test_a_damaged_copy_changes_nothing(two, statement, sentence, tmp_path):
    mine, yours = two
    mine.put_vectors(ENCODER, [1], np.ones((1, 6)))
    yours.put_vectors(ENCODER, [2], np.ones((1, 6)))
    yours.append("named", {"label": "bear"}, items_of(2))
    before = by_key(mine)
    connection = sqlite3.connect(yours.path)
    connection.executescript(statement)
    connection.close()
    with CatalogueFile.open(yours.path) as copy, pytest.raises(HandfulError, match=sentence):
        join(mine, copy)
    assert by_key(mine) == before
    assert list(mine.vectors(ENCODER, [1, 2])) == [1]
    with CatalogueFile.open(mine.path) as again:
        assert by_key(again) == before


def test_a_copy_that_gave_an_event_another_number_is_refused(two):
    _, yours = two
    yours.append("named", {"label": "bear"}, items_of(2))
    connection = sqlite3.connect(yours.path)
    connection.execute("UPDATE events SET revision = 7 WHERE revision = 3")
    connection.commit()
    connection.close()
    with pytest.raises(FileFormatError, match="out of place"):
        CatalogueFile.open(yours.path)
