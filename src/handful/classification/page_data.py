"""What the page of a batch works with: one list per property of the items, as JSON that no name can break out of."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import numpy as np

from handful.classification.examples import SMALL, chosen_examples, pictures, rounded, shortened
from handful.classification.labelled import MOST_EXPLAINED, Classified, Shown
from handful.estimators.batches import Batches
from handful.estimators.why import NearExample, explained, questions_of
from handful.shapes import Int

# Items on a page, the least certain ones and those like none of the classes first; and items that have a picture.
MOST_ON_PAGE, MOST_PICTURES = 20_000, 5_000
# Pixels of the longer side of a picture, for up to that many pictures: a page of 5,000 takes about 20 MB.
SIZES = ((300, 240), (1500, 160), (MOST_PICTURES, 104))
# Items to look at first.
N_QUESTIONS = 10
# A class is listed if its chance of being present is at least this, or if it is expected to hold this many items.
LEAST_CHANCE, LEAST_COUNT = 0.05, 0.5
# Characters that end a script, or a line of one, are written as escapes.
ESCAPES = {ord(letter): f"\\u{ord(letter):04x}" for letter in "<>&\u2028\u2029"}


def embedded(data: dict[str, Any]) -> str:
    r"""Return JSON that is safe inside a script element, for any text in it.

    Examples
    --------
    >>> print(embedded({"name": "</script>"}))
    {"name":"\u003c/script\u003e"}
    """
    return json.dumps(data, ensure_ascii=False, separators=(",", ":"), allow_nan=False).translate(ESCAPES)


def page_data(classified: Classified, title: str) -> dict[str, Any]:
    """Return what the page shows: columns of items, classes, groups, proposals and examples."""
    answer, batch, n_items = classified.answer, classified.batch, len(classified.batch.rows)
    on_page = np.sort(np.lexsort((answer.certainty, ~answer.rejected))[:MOST_ON_PAGE])
    place = {item: at for at, item in enumerate(on_page.tolist())}
    items = on_page.tolist()
    texts = batch.contents if isinstance(batch.contents, tuple) else None
    data: dict[str, Any] = {
        "title": title,
        "batch": batch.fingerprint,
        "classes": list(classified.class_names),
        # Corrections are saved with the names above, and these are shown.
        "called": list(classified.common_names),
        "n_known": len(classified.class_names) - classified.n_named,
        "rows": [batch.rows[i] for i in items],
        "names": [batch.names[i] for i in items],
        "contents": [batch.content(i) for i in items],
        "texts": None if texts is None else [shortened(texts[i]) for i in items],
        "pictures": None,
        "label": answer.codes[on_page, 0].tolist(),
        "certainty": rounded(answer.certainty[on_page]),
        "second": answer.codes[on_page, 1].tolist(),
        "second_certainty": rounded(answer.certainties[on_page, 1]),
        # Where unknown items cannot be judged, those that a person called so have a chance.
        "unknown": rounded(np.nan_to_num(answer.unknown[on_page]), 3),
        "rejected": answer.rejected[on_page].astype(int).tolist(),
        "doubtful": answer.doubtful[on_page].astype(int).tolist(),
        "coarse": None if answer.coarse is None else answer.coarse.labels[on_page].tolist(),
        "coarse_certainty": None if answer.coarse is None else rounded(answer.coarse.certainty[on_page]),
        "left_out": n_items - len(items),
        "given": [
            [batch.rows[item], None if k is None else classified.class_names[k]] for item, k in classified.given.items()
        ],
        "first": [place[item] for item in classified.suspects if item in place],
        "why": {},
        "nearest": {},
        "examples": [],
        "groups": None,
        "group": None,
    }
    if batch.contents is not None and texts is None:
        data["pictures"] = _pictures(classified, items)
    data |= _of_groups(classified, on_page) if classified.group_by else _of_batch(classified)
    # Items of a proposal are given as positions in the batch; the page counts its own.
    numbers = np.zeros(len(items), np.int64)
    for number, proposal in enumerate(data["proposals"], start=1):
        proposal["items"] = [place[i] for i in proposal["items"] if i in place]
        numbers[proposal["items"]] = number
    data["proposal"] = numbers.tolist()
    near: dict[int, tuple[NearExample, ...]] = {}
    if classified.batches is not None:
        first, data["why"], near = _explanations(classified, classified.batches, place)
        data["first"] += [item for item in first if item not in data["first"]]
    occurring = set(data["label"]) | set(data["second"])
    occurring |= {classified.class_names.index(proposal["nearest"]) for proposal in data["proposals"]}
    at: dict[int, int] = {}
    if classified.shown is not None:
        shown = classified.shown
        # Corrected items of the batch are examples too, with positions after those of the catalogue.
        asked = [one.position for i in data["first"] for one in near.get(i, ()) if one.position < len(shown.names)]
        examples, at = _examples(shown, classified.class_names, occurring, place, asked)
        data |= examples
    for i, examples_near in near.items():
        data["why"][i] += [[at.get(one.position, -1), one.label, round(one.distance, 3)] for one in examples_near]
    return data


def _explanations(
    classified: Classified, batches: Batches, place: dict[int, int]
) -> tuple[list[int], dict[int, list[Any]], dict[int, tuple[NearExample, ...]]]:
    """Return items to look at first, why items have their labels, and examples near them; items as on the page.

    Of many groups, those with most doubt are explained, `MOST_EXPLAINED` items in all.
    """
    answer, codes = classified.answer, {name: k for k, name in enumerate(classified.class_names)}
    first: list[tuple[float, int]] = []
    why: dict[int, list[Any]] = {}
    near: dict[int, tuple[NearExample, ...]] = {}
    for group, found in [(0, answer)] if answer.groups is None else batches.in_doubt.items():
        items = batches.rows_of[group]
        by_doubt = np.argsort(answer.certainty[items], kind="stable")[:MOST_EXPLAINED]
        places = [place.get(item) for item in items.tolist()]
        questions = questions_of(batches, group, found, N_QUESTIONS)
        first += [(one.worth, at) for one in questions if (at := places[one.item]) is not None]
        for said in explained(batches, group, found, by_doubt.tolist()):
            item = places[said.item]
            if item is None:
                continue
            evidence = (said.from_item, said.from_batch, said.others_of_label, said.others_of_rival)
            numbers = [round(number, 2) for number in (said.alone_certainty, *evidence)]
            why[item] = [codes[said.alone], -1 if said.rival is None else codes[said.rival], *numbers, said.n_items]
            near[item] = said.nearest
    first.sort(key=lambda pair: -pair[0])
    return [item for _, item in first[:N_QUESTIONS]], why, near


def _pictures(classified: Classified, items: list[int]) -> list[str | None]:
    """Return a picture of each of the items, least certain first if there are too many."""
    assert classified.batch.contents is not None
    by_doubt = np.argsort(classified.answer.certainty[items], kind="stable")[:MOST_PICTURES]
    size = next(pixels for most, pixels in SIZES if len(by_doubt) <= most)
    drawn: list[str | None] = [None] * len(items)
    places = np.sort(by_doubt).tolist()
    for at, picture in zip(
        places, pictures(classified.batch.contents, [items[at] for at in places], size), strict=True
    ):
        drawn[at] = picture
    return drawn


def _examples(
    shown: Shown, class_names: tuple[str, ...], occurring: set[int], place: dict[int, int], asked: Sequence[int]
) -> tuple[dict[str, Any], dict[int, int]]:
    """Return the examples that the page shows, and where each row of the catalogue is among them."""
    nearest = {place[item]: row for item, row in shown.nearest.items() if item in place}
    rows = chosen_examples(shown, class_names, occurring, list(dict.fromkeys([*asked, *nearest.values()])))
    at = {row: number for number, row in enumerate(rows)}
    codes = {name: k for k, name in enumerate(class_names)}
    contents: list[str | None]
    if isinstance(shown.contents, tuple):
        contents = [shortened(shown.contents[row]) for row in rows]
    else:
        contents = pictures(shown.contents, rows, SMALL)
    return {
        "examples": [
            [codes.get(str(shown.classes[row]), -1), content, shown.names[row]]
            for row, content in zip(rows, contents, strict=True)
        ],
        "nearest": {item: at[row] for item, row in nearest.items() if row in at},
    }, at


def _of_batch(classified: Classified) -> dict[str, Any]:
    answer = classified.answer
    return {
        "present": _present(answer.expected_counts, answer.presence),
        "proposals": [
            {
                "name": f"New group {number}",
                "group": None,
                "items": proposal.items.tolist(),
                "cohesion": round(float(proposal.cohesion), 4),
                "nearest": str(proposal.nearest),
            }
            for number, proposal in enumerate(answer.proposals, start=1)
        ],
    }


def _of_groups(classified: Classified, on_page: Int[np.ndarray, "item"]) -> dict[str, Any]:
    """Return the same for many batches; a proposal belongs to one of them, and the whole table has counts only."""
    answer, of_groups = classified.answer, range(classified.n_groups)
    counts = answer.expected_counts.sum(0)
    assert answer.group_of is not None
    return {
        "groups": [classified.name(place) for place in of_groups],
        "group": answer.group_of[on_page].tolist(),
        "present": [[k, count, None] for k, count, _ in _present(counts, (counts >= LEAST_COUNT).astype(float))],
        "present_by_group": [_present(answer.expected_counts[place], answer.presence[place]) for place in of_groups],
        "warnings": [[diagnostic.message for diagnostic in found] for found in answer.diagnostics],
        "proposals": [
            {
                "name": f"{classified.name(place)}: new group {number}",
                "group": place,
                "items": answer.rows_of[place][proposal.items].tolist(),
                "cohesion": round(float(proposal.cohesion), 4),
                "nearest": str(proposal.nearest),
            }
            for place, found in enumerate(answer.proposals)
            for number, proposal in enumerate(found, start=1)
        ],
    }


def _present(counts: np.ndarray, presence: np.ndarray) -> list[list[Any]]:
    """Return class, expected count and chance of presence, None if it is not told; the largest first."""
    listed = np.flatnonzero((presence >= LEAST_CHANCE) | (counts >= LEAST_COUNT))
    listed = listed[np.argsort(-counts[listed], kind="stable")]
    told = zip(listed.tolist(), rounded(counts[listed], 2), rounded(presence[listed]), strict=True)
    return [[k, count, None if np.isnan(chance) else chance] for k, count, chance in told]
