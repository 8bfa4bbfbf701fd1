"""Reviews of version 0.5: a journal in a folder beside the labels, whose answers become events of the catalogue.

A line of the journal is a checksum of all lines up to it, and an event in JSON. Answers are taken over once: what
anybody has said about an item since then stays. The folder stays where it is. This module goes in version 0.8.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from handful.arguments import counted
from handful.catalogue.events import ANSWERS, EventItem, EventKind, Past
from handful.catalogue.file import CatalogueFile
from handful.errors import FileFormatError
from handful.items.earlier import old_file
from handful.items.given_vectors import measured_in
from handful.items.imports import IMPORT
from handful.machine.untrusted import parse_json, read_bytes
from handful.reading.class_names import plain_label
from handful.review.batch_review import BatchReview

KEPT = ".review"
JOURNAL = "journal.jsonl"
LENGTH = "journal.length"
FORMAT = "handful_review"
VERSION = 1
# Digits of a checksum, and of the hash of a content.
DIGITS = 16
# What an answer of a journal is now.
KINDS: Mapping[str, EventKind] = {
    "class": "named",
    "new": "named",
    "none": "none",
    "bad": "bad",
    "skip": "open",
    "clear": "open",
}


class Met(NamedTuple):
    """An item as a journal knows it: its name, and the first digits of the hash of its content."""

    name: str
    digits: str


@dataclass(frozen=True)
class EarlierReview:
    """What a journal has.

    Attributes
    ----------
    folder : Path
        Where it is.
    steps : list of dict
        Events that were not undone.
    items : dict of int to Met
        Items that answers were about, by their positions.
    written : frozenset of str
        Hashes of catalogues that the review wrote.
    n_lost : int
        Lines that were lost at the end.
    """

    folder: Path
    steps: list[dict[str, Any]]
    items: dict[int, Met]
    written: frozenset[str]
    n_lost: int

    def wrote(self, file: Path) -> bool:
        """Whether everything in the file of an older catalogue was said in this review."""
        return file.is_file() and hashlib.sha256(file.read_bytes()).hexdigest() in self.written


def read_review(labels: Path) -> EarlierReview | None:
    """Read the review beside a table of labels; None if there is none."""
    folder = labels.with_name(f"{labels.name}{KEPT}")
    path = folder / JOURNAL
    if not path.is_file():
        return None
    events = _events(path)
    if not events:
        return None
    try:
        return EarlierReview(
            folder,
            _in_force(events[1:]),
            {_position(at): Met(str(name), str(digits)) for event in events for at, name, digits in _answered(event)},
            frozenset(event["wrote"] for event in events if "wrote" in event),
            max(_noted_length(folder) - len(events), 0),
        )
    except (KeyError, TypeError, ValueError, IndexError) as error:
        raise _refused(path, error) from error


def _events(path: Path) -> list[dict[str, Any]]:
    """Return the events of a journal; what follows the last end of a line was never acknowledged."""
    events = []
    digest = ""
    for number, line in enumerate(read_bytes(path, FileFormatError).split(b"\n")[:-1]):
        try:
            noted, _, text = line.decode().partition(" ")
            event = parse_json(text)
            written = json.dumps(event, ensure_ascii=True, separators=(",", ":"), sort_keys=True, allow_nan=False)
            digest = hashlib.sha256(f"{digest}{written}".encode()).hexdigest()
            if noted != digest[:DIGITS] or not isinstance(event, dict):
                raise ValueError(f"checksum {noted}")
        except (ValueError, RecursionError) as error:
            raise FileFormatError(
                f"line {number + 1} of {path} is damaged; restore the file from a copy, cut it before this line, or "
                "move its folder elsewhere to begin without these answers"
            ) from error
        events.append(event)
    if events and events[0].get(FORMAT) != VERSION:
        raise FileFormatError(f"{path} is no journal of a review of version 0.5; move its folder elsewhere")
    return events


def _in_force(events: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    steps = []
    for event in events:
        what = event["step"]
        if what in ("answer", "merge", "split"):
            steps.append(event)
        elif what == "undo":
            steps = steps[:-1]
        elif what == "drop":
            del steps[event["at"]]
        elif what not in ("depends", "finished"):
            raise ValueError(f"there is no event {what!r}")
    return steps


def _answered(event: Mapping[str, Any]) -> Sequence[tuple[int, str, str]]:
    return event["items"] if event.get("step") == "answer" else ()


def _position(at: Any) -> int:
    if type(at) is not int or at < 0:
        raise ValueError(f"{at!r} is no position of an item")
    return at


def _noted_length(folder: Path) -> int:
    try:
        return int((folder / LENGTH).read_bytes()[:20])
    except (OSError, ValueError):
        return 0


def _refused(path: Path, error: Exception) -> FileFormatError:
    return FileFormatError(
        f"{path} has an event that is none of a review ({type(error).__name__}: {error}); move its folder elsewhere to "
        "begin without these answers"
    )


# -- what becomes of it ------------------------------------------------------------------------------------------------


def take_over(earlier: EarlierReview, file: CatalogueFile, batch: str, opens: Callable[[], BatchReview]) -> list[str]:
    """Append what was said in an earlier review of a batch, with its times and people; return what was done.

    It is one transaction. Items that have had an answer since keep theirs, so nothing is taken over twice.

    Parameters
    ----------
    earlier, file, batch
        The review, the catalogue, and the name of the batch, which was brought.
    opens
        Opens the batch, as it will be opened.
    """
    revision = file.revision
    found = _found(earlier, file, batch, opens)
    spoken = _spoken_of(file)
    new = {at: item for at, item in found.items() if item not in spoken}
    others = {one.label for item, one in file.said.answers.items() if item not in set(new.values())}
    try:
        past = list(_past(earlier, new, others, batch))
    except (KeyError, TypeError, ValueError) as error:
        raise _refused(earlier.folder / JOURNAL, error) from error
    n_items = len({item.item for one in past for item in one.items})
    if past:
        file.append_past([*past, *_same(earlier, file, batch, found)], revision=revision)
    return _notes(earlier, len(found), n_items)


def _notes(earlier: EarlierReview, n_found: int, n_new: int) -> list[str]:
    n_left = len(earlier.items) - n_found
    if not n_new:
        if n_found or not earlier.items:
            return []
        return [f"The review of version 0.5 in {earlier.folder} is about other items, so nothing of it was taken over."]
    said = f"The answers about {counted(n_new, 'item')} in {earlier.folder}, a review of version 0.5, were taken over"
    if n_left:
        said += f"; {counted(n_left, 'other item')} of it {'is' if n_left == 1 else 'are'} not in this batch as then"
    notes = [f"{said}. That folder is not needed any more."]
    if earlier.n_lost:
        notes.append(
            f"It had lost the last {counted(earlier.n_lost, 'line')} of its journal: give these answers again."
        )
    return notes


def _spoken_of(file: CatalogueFile) -> set[int]:
    """Return items about which somebody said something; a label that a file had is nothing of the kind."""
    events = file.history.events
    return {item for one in events if one.kind in ANSWERS and one.person != IMPORT for item in one.answered}


def _same(earlier: EarlierReview, file: CatalogueFile, batch: str, found: Mapping[int, int]) -> list[Past]:
    """Leave examples open that the review put into an older catalogue: they are items of the batch, and count once.

    Those that have the content of an item are that item already.
    """
    if file.path is None or not earlier.wrote(old_file(file.path)):
        return []
    names = {earlier.items[at].name for at in found}
    imported = {item for one in file.history.events if one.person == IMPORT for item in one.answered}
    gone = sorted(imported - set(file.said.places[batch]))
    came = {one.item: one.place or "" for event in file.history.events for one in event.items if one.place}
    same = [EventItem(item) for item in gone if came[item].rpartition("/")[2] in names or came[item] in names]
    return [Past("open", {}, same, IMPORT, "")] if same else []


def _found(earlier: EarlierReview, file: CatalogueFile, batch: str, opens: Callable[[], BatchReview]) -> dict[int, int]:
    """Return the items of the journal that are in the batch: of the same name and content, else of the same content."""
    places = file.said.places[batch]
    digits = {row.item: {row.hash.hex()[:DIGITS]} for row in file.rows(sorted(places))}
    if measured_in(file):  # measurements were known by what they are after they were scaled
        review = opens()
        for position, item in enumerate(review.session.items.tolist()):
            digits[item].add(review.batch.content(position))
    items = list(digits)
    here = {places[item]: item for item in items}
    found = {
        at: here[one.name] for at, one in earlier.items.items() if one.digits in digits.get(here.get(one.name, -1), ())
    }
    left: dict[str, list[int]] = {}
    for item in sorted(set(items) - set(found.values())):
        for one in digits[item]:
            left.setdefault(one, []).append(item)
    for at, met in sorted(earlier.items.items()):
        if at not in found and left.get(met.digits):
            found[at] = left[met.digits].pop(0)
    return found


def _past(earlier: EarlierReview, found: Mapping[int, int], others: set[str | None], batch: str) -> Iterator[Past]:
    """Yield the steps as events; `others` are classes of other items, which keep their names."""
    labels: dict[int, str | None] = {}
    for step in earlier.steps:
        who = (str(step.get("by", "")), str(step.get("at", "")))
        if step["step"] == "answer":
            for (kind, label), items in _answers(step, found).items():
                labels.update(dict.fromkeys((one.item for one in items), label))
                about = {"batch": batch} if label is None else {"batch": batch, "label": label}
                yield Past(kind, about, items, *who)
            continue
        before, *into = map(str, plain_label(tuple(step["names"])))
        mine = [EventItem(item) for item, label in labels.items() if label == before]
        if step["step"] == "split":
            mine = [EventItem(found[at]) for at in step["items"] if at in found]
            labels.update(dict.fromkeys((one.item for one in mine), None))
        elif mine:
            labels.update(dict.fromkeys((one.item for one in mine), into[0]))
        if not mine:
            continue
        if not into:
            yield Past("split", {"batch": batch, "label": before}, mine, *who)
        elif before in others:
            yield Past("named", {"batch": batch, "label": into[0]}, mine, *who)
        else:
            yield Past("renamed", {"batch": batch, "label": before, "into": into[0]}, (), *who)


def _answers(step: Mapping[str, Any], found: Mapping[int, int]) -> dict[tuple[EventKind, str | None], list[EventItem]]:
    """Return the items that were found, by what was said; one step could say several things."""
    items = step["items"]
    kinds = step["kinds"] if "kinds" in step else [step["kind"]] * len(items)  # one for all, in version 0.4
    groups: dict[tuple[EventKind, str | None], list[EventItem]] = {}
    for (at, _, _), kind, label, was in zip(items, kinds, step["labels"], step["was"], strict=True):
        said = KINDS[kind]
        name = str(plain_label(label)) if said == "named" else None
        if said == "named" and (type(label) is not str or not name):
            raise ValueError(f"a class has no name: {label!r}")
        if at in found:
            groups.setdefault((said, name), []).append(EventItem(found[at], offered=was))
    return groups
