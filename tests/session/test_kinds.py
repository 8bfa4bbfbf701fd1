"""The list of kinds: a class counts as seen only if a person saw an item of it."""

import numpy as np

from handful import Session
from handful.session.kinds import kinds_of
from tests.worlds import Clouds


def test_kinds_come_with_their_items_and_those_that_were_seen_first():
    found = kinds_of([("a", False, None), ("b", True, "Ada"), ("b", True, "Bob"), ("c", True, ""), (None, True, "Ada")])
    assert [tuple(kind) for kind in found] == [("b", 2, 2, ("Ada", "Bob")), ("c", 1, 1, ()), ("a", 1, 0, ())]
    assert [str(kind) for kind in found] == [
        "b: 2 items, 2 seen by Ada and Bob",
        "c: 1 item, 1 seen",
        "a: 1 item, probable, none seen",
    ]


def test_a_class_of_the_catalogue_is_probable_until_an_item_of_it_was_seen():
    clouds = Clouds(6, 16)
    names = np.array([f"kind {k}" for k in range(6)])
    truth = np.repeat([0, 1], 8)
    session = Session(clouds.around(truth, 0.2), (clouds.examples(4, 0.2), names.repeat(4)))
    assert {kind.label: kind.n_seen for kind in session.kinds} == {"kind 0": 0, "kind 1": 0}
    session.answer([0, 1, 2], "kind 0").answer(9, None).discard(10)
    assert {kind.label: (kind.n_items, kind.n_seen) for kind in session.kinds} == {"kind 0": (8, 3), "kind 1": (6, 0)}
