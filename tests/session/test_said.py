"""What people said about one batch, by positions: a view of what the whole catalogue says."""

from handful.catalogue.events import EventItem
from handful.catalogue.file import Arrival, CatalogueFile, ItemContent
from handful.session import BatchSaid


def catalogue(n_items):
    file = CatalogueFile.open()
    file.arrive("monday", [Arrival(str(k), ItemContent(bytes([k]), "vector")) for k in range(n_items)])
    return file


def say(file, kind, items, **about):
    return file.append(kind, about, [EventItem(item) for item in items])


def view(file, items, label=str):
    return BatchSaid.of(file.said, {item: at for at, item in enumerate(items)}, label)


def test_answers_are_by_position_and_items_of_other_batches_are_left_out():
    file = catalogue(8)
    say(file, "named", [3, 5], label="fox")
    say(file, "none", [4])
    say(file, "open", [6])
    say(file, "bad", [7])
    say(file, "named", [1], label="owl")
    found = view(file, [7, 6, 5, 4, 3])
    assert found.given == {2: "fox", 3: None, 4: "fox"}
    assert list(found.given) == [2, 3, 4]
    assert (found.skipped, found.discarded) == ({1}, {0})
    assert found.seen == {0, 1, 2, 3, 4}
    assert found.named == ("fox",)


def test_names_are_in_the_order_in_which_they_were_said_and_as_they_are_called_now():
    file = catalogue(4)
    for number, name in enumerate(["wolf", "foks", "owl"], 1):
        say(file, "named", [number], label=name)
    say(file, "renamed", [], label="foks", into="fox")
    assert view(file, [1, 2, 3, 4]).named == ("wolf", "fox", "owl")
    assert view(file, [3, 2]).named == ("fox", "owl")
    say(file, "renamed", [], label="fox", into="owl")
    assert view(file, [1, 2, 3, 4]).given == {0: "wolf", 1: "owl", 2: "owl"}


def test_labels_may_be_numbers():
    file = catalogue(2)
    say(file, "named", [1], label="7")
    found = view(file, [1, 2], int)
    assert (found.given, found.named) == ({0: 7}, (7,))
