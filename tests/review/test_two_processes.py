"""Two processes at one catalogue: no answer is lost, and who is behind is told what was said since."""

import threading
from urllib.error import HTTPError

import numpy as np
import pytest

from handful.catalogue.file import CatalogueFile
from tests.review.reviews import Visitor
from tests.worlds import Clouds

BATCH, EACH = 60, 15


@pytest.fixture
def two(tmp_path, start_review):
    np.savez(tmp_path / "batch.npz", features=Clouds(3, 8, apart=2).around(np.repeat([0, 1, 2], BATCH // 3)))
    # One after the other: the first makes the catalogue.
    return [Visitor(start_review(tmp_path, "batch.npz").address) for _ in range(2)]


def said_in(state):
    return {item: label for item, _, label, _ in state["decisions"]}


def answer(visitor, number, item, label):
    return visitor.post("decide", number=number, items=[item], said="new", label=label)


def test_the_second_answer_is_refused_and_then_told_what_happened_since(two):
    one, other = two
    number = one.get("state")["number"]
    assert other.get("state")["number"] == number
    answer(one, number, 3, "ant")
    with pytest.raises(HTTPError, match="409"):
        answer(other, number, 3, "bee")
    assert other.get("number") == one.get("number")
    state = other.get("state")
    assert said_in(state) == {3: "ant"}
    answer(other, state["number"], 3, "bee")
    assert one.get("number")["number"] == number + 2  # a window that comes to the front asks this
    assert said_in(one.get("state")) == {3: "bee"}


def answer_all(visitor, items, label):
    """Answer about items one after the other; look at what is new when an answer is refused."""
    number = visitor.get("number")["number"]
    for item in items:
        while True:
            try:
                number = answer(visitor, number, item, label)["number"]
                break
            except HTTPError:  # the other one was faster
                number = visitor.get("number")["number"]


def test_answers_of_two_processes_at_once_are_all_there(two, tmp_path):
    names = ("ant", "bee")
    threads = [
        threading.Thread(target=answer_all, args=(visitor, range(k, 2 * EACH, 2), names[k]), daemon=True)
        for k, visitor in enumerate(two)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(300)
    wanted = {item: names[item % 2] for item in range(2 * EACH)}
    assert [said_in(visitor.get("state")) for visitor in two] == [wanted, wanted]
    with CatalogueFile.open(tmp_path / "batch.handful") as file:
        assert len([event for event in file.history.events if event.kind == "named"]) == 2 * EACH
