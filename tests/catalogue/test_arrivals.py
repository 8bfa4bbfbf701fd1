"""Arrivals: an item is a content at a place, and keeps its name when the place changes."""

import hashlib
import random

from hypothesis import given
from hypothesis import strategies as st

from handful.catalogue.arrivals import KEY_BYTES, Placed, compare, compare_rows, item_key
from handful.catalogue.file import Arrival, CatalogueFile, ItemContent
from tests.catalogue.people import items_of, photograph, photographs


def content(text):
    return ItemContent(hashlib.sha256(text.encode()).digest(), "text", text)


def table(*texts):
    return [Arrival(str(row), content(text)) for row, text in enumerate(texts)]


contents = st.sampled_from([b"a", b"b", b"c", b"d"])


@given(
    st.dictionaries(st.integers(0, 9), contents, max_size=10),
    st.sets(st.integers(0, 9)),
    st.dictionaries(st.sampled_from("pqrstuvwxyz"), contents, max_size=8),
    st.randoms(use_true_random=False),
)
def test_every_place_gets_one_item_and_no_item_is_at_two_places(hashes, present, listed, rng):
    here = {item: place for item, place in zip(sorted(hashes), "pqrstuvwxyz", strict=False) if item in present}
    listing = [Placed(place, one) for place, one in listed.items()]
    rng.shuffle(listing)
    found = compare(here, hashes, listing)
    placed = [*found.stay.items(), *found.back.items(), *found.moved.items()]
    assert sorted([place for _, place in placed] + [one.place for one in found.new]) == sorted(listed)
    items = [item for item, _ in placed] + found.gone
    assert len(items) == len(set(items))
    assert {*found.stay, *found.moved, *found.gone} == set(here)
    assert not set(found.back) & set(here)
    assert all(hashes[item] == listed[place] for item, place in placed)
    assert all(here[item] == place for item, place in found.stay.items())
    assert set(found.new) <= set(listing)
    # Nothing is new that was there, and nothing is gone that is there.
    assert not {one.hash for one in found.new} & {hashes[item] for item in found.gone}


def test_of_300_photographs_each_is_what_became_of_it():
    rng = random.Random(0)
    names = [f"{k:03d}" for k in range(300)]
    rng.shuffle(names)
    removed, renamed, edited, same = names[:10], names[10:30], names[30:35], names[35:]
    with CatalogueFile.open() as catalogue:
        catalogue.arrive("monday", [photograph(name) for name in sorted(names)])
        item_of = {place: item for item, place in catalogue.said.places["monday"].items()}
        keys = dict(catalogue.keys())
        catalogue.append("named", {"label": "fox"}, items_of(*item_of.values()))
        arrivals = [photograph(name) for name in same]
        arrivals += [photograph(name, f"sub/{name}.jpg") for name in renamed]
        arrivals += [photograph(f"{name} edited", f"{name}.jpg") for name in edited]
        arrivals += [photograph(f"added {k}") for k in range(30)]
        rng.shuffle(arrivals)
        found = catalogue.arrive("monday", arrivals)
        assert found.stay == {item_of[f"{name}.jpg"]: f"{name}.jpg" for name in same}
        assert found.moved == {item_of[f"{name}.jpg"]: f"sub/{name}.jpg" for name in renamed}
        assert {one.place for one in found.new} == {
            *(f"{name}.jpg" for name in edited),
            *(f"added {k}.jpg" for k in range(30)),
        }
        assert found.gone == sorted(item_of[f"{name}.jpg"] for name in [*removed, *edited])
        assert found.back == {}
        assert keys.items() <= dict(catalogue.keys()).items()
        assert len(catalogue.said.places["monday"]) == 320
        assert len(catalogue.said.answers) == 300  # also those of items that went
        # What went comes back, and what was edited is undone: with their answers.
        found = catalogue.arrive("monday", [*arrivals, *(photograph(name) for name in removed)])
        assert found.back == {item_of[f"{name}.jpg"]: f"{name}.jpg" for name in removed}
        assert not found.new


def test_nothing_is_written_when_nothing_changed():
    with CatalogueFile.open() as catalogue:
        catalogue.arrive("monday", photographs(3))
        before = catalogue.revision
        catalogue.arrive("monday", photographs(3)[::-1])
        assert catalogue.revision == before


def test_of_two_with_the_same_words_each_keeps_its_text_when_rows_come_above():
    with CatalogueFile.open() as catalogue:
        catalogue.arrive("monday", table("hi", "hello", "hi", "bye"))
        before = catalogue.said.places["monday"]
        texts = {row.item: row.text for row in catalogue.rows(list(before))}
        found = catalogue.arrive("monday", table("new", "hi", "hello", "hi", "bye", "hi"))
        assert [one.place for one in found.new] in (["0", "5"], ["0", "1"], ["0", "3"])
        assert not found.gone
        after = catalogue.said.places["monday"]
        rows = {row.item: row.text for row in catalogue.rows(list(after))}
        assert {item: rows[item] for item in texts} == texts
        assert [rows[item] for item in sorted(after, key=lambda one: after[one])] == [
            "new", "hi", "hello", "hi", "bye", "hi",
        ]  # fmt: skip


def test_two_messages_with_the_same_words_are_two_items_with_one_vector():
    with CatalogueFile.open() as catalogue:
        catalogue.arrive("monday", table("hi", "hi"))
        first, second = catalogue.rows([1, 2])
        assert first.content == second.content
        assert catalogue.keys()[0] != catalogue.keys()[1]


def test_a_photograph_that_came_back_elsewhere_and_came_again_has_a_key_of_its_own():
    with CatalogueFile.open() as catalogue:
        catalogue.arrive("monday", [photograph("a")])
        catalogue.arrive("monday", [photograph("a", "b.jpg")])
        found = catalogue.arrive("monday", [photograph("a", "b.jpg"), photograph("a", "a.jpg")])
        assert [one.place for one in found.new] == ["a.jpg"]
        assert len(set(dict(catalogue.keys()).values())) == 2


def test_a_key_depends_on_all_that_it_names():
    keys = {
        item_key(batch, Placed(place, hash_), number)
        for batch in ("a", "ab", "a\udcff")
        for place in ("", "b", "bc", "\udcff")
        for hash_ in (b"", b"c")
        for number in (0, 1)
    }
    assert len(keys) == 3 * 4 * 2 * 2
    assert {len(key) for key in keys} == {KEY_BYTES}


def rows(words):
    return [Placed(f"row {row}", word.encode()) for row, word in enumerate(words)]


@given(st.text("abc", max_size=15), st.text("abc", max_size=15), st.text("abc", max_size=4))
def test_every_row_gets_one_item_and_no_item_is_in_two_rows(before, after, gone):
    here = {item: f"row {item}" for item in range(len(before))}
    hashes = {item: word.encode() for item, word in enumerate(before + gone)}
    listing = rows(after)
    found = compare_rows(here, hashes, listing)
    placed = {**found.stay, **found.back, **found.moved}
    assert sorted([*placed.values(), *(one.place for one in found.new)]) == sorted(one.place for one in listing)
    assert len(placed) == len(found.stay) + len(found.back) + len(found.moved)
    assert {*found.stay, *found.moved, *found.gone} == set(here)
    assert not set(found.gone) & set(placed)
    at = {one.place: one.hash for one in listing}
    assert all(hashes[item] == at[place] for item, place in placed.items())


@given(st.text("ab", min_size=1, max_size=12), st.integers(1, 4), st.integers(0, 12))
def test_rows_of_new_words_leave_every_other_row_with_its_own_item(before, n_come, at):
    at = min(at, len(before))
    here = {item: f"row {item}" for item in range(len(before))}
    hashes = {item: word.encode() for item, word in enumerate(before)}
    found = compare_rows(here, hashes, rows(before[:at] + "c" * n_come + before[at:]))
    shifted = {item: f"row {item if item < at else item + n_come}" for item in here}
    assert {**found.stay, **found.moved} == shifted
    assert [one.place for one in found.new] == [f"row {row}" for row in range(at, at + n_come)]
    assert not found.gone
