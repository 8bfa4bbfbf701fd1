"""What changed in a batch: items that stay, come, come back, move and go, by their contents and places.

An item is a content at a place. What has its place and content stays. Of the others, one that is gone and has the
content of a place that is new moved there; so it keeps its answer. What is left are new items and items that went.
"""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

# Bytes of the key by which copies of a catalogue know that an item is the same.
KEY_BYTES = 16


class Placed(NamedTuple):
    """A content, by the hash of its bytes, and where it was met."""

    place: str
    hash: bytes


class Changes(NamedTuple):
    """How a batch differs from before.

    Attributes
    ----------
    stay, back, moved : dict of int to str
        Items that are where they were, are there again, or have another place, with their places.
    new : list of Placed
        What was not there before.
    gone : list of int
        Items that are not there any more.
    """

    stay: dict[int, str]
    back: dict[int, str]
    moved: dict[int, str]
    new: list[Placed]
    gone: list[int]


def compare(here: Mapping[int, str], hashes: Mapping[int, bytes], listing: Sequence[Placed]) -> Changes:
    """Compare a batch with what is there now.

    Parameters
    ----------
    here
        Items that were there last, and where.
    hashes
        The contents of all items that were ever in the batch.
    listing
        What is there now; each place once.

    Examples
    --------
    >>> listing = [Placed("b.jpg", b"ant"), Placed("c.jpg", b"elk")]
    >>> compare({0: "a.jpg", 1: "c.jpg"}, {0: b"ant", 1: b"cat"}, listing)
    Changes(stay={}, back={}, moved={0: 'b.jpg'}, new=[Placed(place='c.jpg', hash=b'elk')], gone=[1])
    """
    item_at = {(place, hashes[item]): item for item, place in here.items()}
    stay: dict[int, str] = {}
    others = []
    for one in listing:
        item = item_at.get((one.place, one.hash))
        if item is None:
            others.append(one)
        else:
            stay[item] = one.place
    missing = _by_content((item for item in here if item not in stay), hashes)
    left = _by_content((item for item in hashes if item not in here), hashes)
    moved: dict[int, str] = {}
    back: dict[int, str] = {}
    new = []
    for one in others:
        if missing[one.hash]:
            moved[missing[one.hash].pop(0)] = one.place
        elif left[one.hash]:
            back[left[one.hash].pop(0)] = one.place
        else:
            new.append(one)
    gone = sorted(item for items in missing.values() for item in items)
    return Changes(stay, back, moved, new, gone)


def compare_rows(here: Mapping[int, str], hashes: Mapping[int, bytes], listing: Sequence[Placed]) -> Changes:
    """Compare a table with what is there now, where places are numbers of rows, which shift.

    Rows that a table has at both ends as before are the same rows; between them, those with the same content are the
    same in their order. So two rows with the same words stay two, and each keeps its own answer.

    Examples
    --------
    >>> listing = [Placed("row 0", b"new"), Placed("row 1", b"hi"), Placed("row 2", b"hi")]
    >>> compare_rows({7: "row 0", 8: "row 1"}, {7: b"hi", 8: b"hi"}, listing).moved
    {8: 'row 2', 7: 'row 1'}
    """
    before = sorted(here, key=lambda item: (len(here[item]), here[item]))
    places: dict[int, str] = {}
    first = 0
    least = min(len(before), len(listing))
    while first < least and hashes[before[first]] == listing[first].hash:
        places[before[first]] = listing[first].place
        first += 1
    last = 0
    while last < least - first and hashes[before[-1 - last]] == listing[-1 - last].hash:
        places[before[-1 - last]] = listing[-1 - last].place
        last += 1
    between = before[first : len(before) - last]
    # A place of its own for each, so that only the order counts.
    rest = compare(
        {item: f"before {item}" for item in between}, _left_out(hashes, places), listing[first : len(listing) - last]
    )
    places |= rest.moved
    stay = {item: place for item, place in places.items() if here[item] == place}
    moved = {item: place for item, place in places.items() if item not in stay}
    return Changes(stay, rest.back, moved, rest.new, rest.gone)


def _left_out(hashes: Mapping[int, bytes], items: Mapping[int, str]) -> dict[int, bytes]:
    return {item: content for item, content in hashes.items() if item not in items}


def _by_content(items: Iterable[int], hashes: Mapping[int, bytes]) -> defaultdict[bytes, list[int]]:
    found: defaultdict[bytes, list[int]] = defaultdict(list)
    for item in items:
        found[hashes[item]].append(item)
    return found


def item_key(batch: str, one: Placed, number: int) -> bytes:
    """Return what names an item in every copy of a catalogue: where it was met first, and what it is.

    `number` counts items that would have the same key.
    """
    digest = hashlib.sha256()
    for part in (batch.encode("utf-8", "surrogatepass"), one.place.encode("utf-8", "surrogatepass"), one.hash):
        digest.update(len(part).to_bytes(8, "big") + part)
    digest.update(number.to_bytes(8, "big"))
    return digest.digest()[:KEY_BYTES]
