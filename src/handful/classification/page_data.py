"""What the page of a batch works with: one list per property of the items, as JSON that no name can break out of."""

from __future__ import annotations

import base64
import io
import json
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

import numpy as np

from handful.classification.labelled import (
    MOST_EXPLAINED,
    Shown,
    about_of,
    class_names,
    common_names,
    group_names,
    n_groups,
    suspects,
)
from handful.estimators.answer import (
    Answer,
    compared_items,
    groups_of_items,
    rows_of_groups,
    second_certainties,
    unnamed_groups,
)
from handful.estimators.why import Explanation, NearExample, explained, questions_of
from handful.extraction.decode import decode_image
from handful.model.questions import Question
from handful.plots.maps import batch_map
from handful.reading.contents import Contents, Unreadable, pick
from handful.shapes import Int

# Pixels of the longer side of an example: sharp at half that size.
SMALL = 128
MOST_LETTERS = 600
# Examples of a class that some item has as its label or runner-up, and of any other class.
OF_CLASS = 6
OF_OTHERS = 1
# Examples on a page; each picture takes about 4 kB.
MOST_EXAMPLES = 1200


def chosen_examples(
    shown: Shown, class_names: Sequence[str], occurring: Collection[int], also: Sequence[int]
) -> list[int]:
    """Return rows of the examples to show: those in `also`, then the first ones of the classes that occur, then others.

    `occurring` are positions in the class names. No row occurs twice, and there are at most `MOST_EXAMPLES`.
    """
    by_class: dict[str, list[int]] = {}
    for row, name in enumerate(shown.classes.tolist()):
        by_class.setdefault(name, []).append(row)
    chosen = dict.fromkeys(also)
    ordered = sorted(range(len(class_names)), key=lambda k: k not in occurring)
    for k in ordered:
        most = OF_CLASS if k in occurring else OF_OTHERS
        chosen.update(dict.fromkeys(by_class.get(class_names[k], [])[:most]))
    return list(chosen)[:MOST_EXAMPLES]


def pictures(source: Contents, positions: Sequence[int], size: int) -> list[str | None]:
    """Return small pictures of the images at these positions, in base64; None if one cannot be read."""
    contents = pick(source, positions)
    return [thumbnail(content, size) if isinstance(content, bytes) else None for content in contents]


def thumbnail(content: bytes, size: int) -> str | None:
    """Return a JPEG in base64, its longer side no longer than `size` pixels; None if it cannot be read."""
    image = decode_image(content)
    if isinstance(image, Unreadable):  # it was readable when its features were made
        return None
    image.thumbnail((size, size))
    stream = io.BytesIO()
    image.save(stream, "JPEG", quality=75, optimize=True)
    return base64.b64encode(stream.getvalue()).decode()


def shortened(text: str) -> str:
    """Cut a long text."""
    return text if len(text) <= MOST_LETTERS else f"{text[:MOST_LETTERS]}…"


def rounded(numbers: np.ndarray, digits: int = 4) -> list[float]:
    """Return the numbers with few digits: they take most of the space of a page without pictures."""
    return np.round(np.asarray(numbers, np.float64), digits).tolist()  # type: ignore[no-any-return]


# Items on a page, the least certain ones and those like none of the classes first; and items that have a picture.
MOST_ON_PAGE = 20_000
MOST_PICTURES = 5_000
# Pixels of the longer side of a picture, for up to that many pictures: a page of 5,000 takes about 20 MB.
SIZES = ((300, 240), (1500, 160), (MOST_PICTURES, 104))
# Examples on the map.
MOST_ON_MAP = 1_000
# Columns of a row that nothing else shows. [columns; convention]
MOST_VALUES = 12
# Items to look at first.
N_QUESTIONS = 10
# A class is listed if its chance of being present is at least this, or if it is expected to hold this many items.
LEAST_CHANCE = 0.05
LEAST_COUNT = 0.5
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


def page_data(answer: Answer, title: str) -> dict[str, Any]:
    """Return what the page shows: columns of items, classes, groups, proposals and examples."""
    about = about_of(answer)
    on_page = items_on_page(answer)
    data = item_data(answer, on_page, title) | label_data(answer, on_page)
    data["map"] = map_data(answer, on_page)
    position = {item: at for at, item in enumerate(on_page.tolist())}
    if about.batch.contents is not None and data["texts"] is None:
        data["pictures"] = _pictures(answer, on_page.tolist())
    near: dict[int, tuple[NearExample, ...]] = {}
    if about.batches is not None:
        first = [position[one.item] for one in best_questions(answer, N_QUESTIONS) if one.item in position]
        data["first"] += [item for item in first if item not in data["first"]]
        for at, (explanation, numbers) in explanations(answer, position).items():
            data["why"][at] = numbers
            near[at] = explanation.nearest
    at_row = dict[int, int]()
    shown = about.shown
    if shown is not None:
        # Corrected items of the batch are examples too, with positions after those of the catalogue.
        asked = [one.position for i in data["first"] for one in near.get(i, ()) if one.position < len(shown.names)]
        nearest = {position[item]: row for item, row in shown.nearest.items() if item in position}
        data["examples"], at_row = example_data(answer, data, [*asked, *nearest.values()], pictures)
        data["nearest"] = {item: at_row[row] for item, row in nearest.items() if row in at_row}
    for i, examples_near in near.items():
        data["why"][i] += [[at_row.get(one.position, -1), one.label, round(one.distance, 3)] for one in examples_near]
    return data


def items_on_page(answer: Answer) -> Int[np.ndarray, "some"]:
    """Return the items on a page: rejected ones and the least certain first, if there are too many."""
    return np.sort(np.lexsort((answer.certainty, ~answer.rejected))[:MOST_ON_PAGE])


def item_data(answer: Answer, on_page: Int[np.ndarray, "some"], title: str) -> dict[str, Any]:
    """Return what the items are, which no label changes."""
    about = about_of(answer)
    batch = about.batch
    items = on_page.tolist()
    texts = batch.contents if isinstance(batch.contents, tuple) else None
    group_of = groups_of_items(answer)
    return {
        "title": title,
        "names": [batch.names[i] for i in items],
        "texts": _values(answer, items) if texts is None else [shortened(texts[i]) for i in items],
        "pictures": None,
        "left_out": len(batch.names) - len(items),
        "groups": group_names(answer) if about.group_by else None,
        "group": None if group_of is None else group_of[on_page].tolist(),
    }


def _values(answer: Answer, items: Sequence[int]) -> list[str] | None:
    """Return the measurements of rows that nothing else shows; None if there are none."""
    batch = about_of(answer).batch
    columns = [(name, values) for name, values in batch.columns.by_name.items() if _is_measured(values)][:MOST_VALUES]
    if batch.contents is not None or not columns:
        return None
    return [
        shortened(" · ".join([batch.names[i], *(f"{name} {_short(values[i])}" for name, values in columns)]))
        for i in items
    ]


def _is_measured(values: Any) -> bool:
    return isinstance(values, np.ndarray) and values.ndim == 1 and values.dtype.kind == "f"


def _short(value: float) -> str:
    return f"{value:.4g}"


def map_data(answer: Answer, on_page: Int[np.ndarray, "some"]) -> dict[str, Any] | None:
    """Return the places of items and examples on the map of `Answer.plot_map`, one unit wide; None without vectors."""
    unnamed = unnamed_groups(answer)
    if unnamed is not None:
        found = batch_map(answer, compared_items(answer), on_page, unnamed=unnamed.group)
    else:
        batches = about_of(answer).batches
        if batches is None:
            return None
        found = batch_map(answer, batches.items, on_page, rows_of_groups(answer))
    some = slice(None, None, 1 + len(found.codes) // MOST_ON_MAP)
    wide = float(np.ptp(found.items, axis=0).max()) or 1.0
    return {
        "items": rounded(found.items / wide),
        "examples": rounded(found.examples[some] / wide),
        "codes": found.codes[some].tolist(),
    }


def label_data(answer: Answer, on_page: Int[np.ndarray, "some"]) -> dict[str, Any]:
    """Return what the answer says about the items, which changes with every labelling."""
    about = about_of(answer)
    position = {item: at for at, item in enumerate(on_page.tolist())}
    names = class_names(answer)
    data: dict[str, Any] = {
        "classes": list(names),
        # Files have the names above, and these are shown.
        "called": list(common_names(answer)),
        "n_known": len(names) - about.n_named,
        "label": answer.codes[on_page, 0].tolist(),
        "certainty": rounded(answer.certainty[on_page]),
        "second": answer.codes[on_page, 1].tolist(),
        "second_certainty": rounded(second_certainties(answer)[on_page]),
        # Where unknown items cannot be judged, those that a person called so have a chance.
        "unknown": rounded(np.nan_to_num(answer.unknown[on_page]), 3),
        "rejected": answer.rejected[on_page].astype(int).tolist(),
        "doubtful": answer.doubtful[on_page].astype(int).tolist(),
        "coarse": None if answer.coarse is None else answer.coarse.labels[on_page].tolist(),
        "coarse_certainty": None if answer.coarse is None else rounded(answer.coarse.certainty[on_page]),
        "from_nothing": unnamed_groups(answer) is not None,
        "not_named": _not_named(answer, on_page),
        "given": [
            [position[item], None if k is None else names[k]] for item, k in about.given.items() if item in position
        ],
        "first": [position[item] for item in suspects(answer) if item in position],
        "why": {},
        "nearest": {},
        "examples": [],
        **(_of_groups(answer) if about.group_by else _of_batch(answer)),
    }
    # Items of a proposal are given as positions in the batch; the page counts its own.
    numbers = np.zeros(len(on_page), np.int64)
    for number, proposal in enumerate(data["proposals"], start=1):
        proposal["items"] = [position[i] for i in proposal["items"] if i in position]
        numbers[proposal["items"]] = number
    data["proposal"] = numbers.tolist()
    return data


def _not_named(answer: Answer, on_page: Int[np.ndarray, "some"]) -> list[int]:
    """Return the items, as places on the page, that are like nothing named so far; none if there is a catalogue."""
    unnamed = unnamed_groups(answer)
    if unnamed is None:
        return []
    is_open = unnamed.not_named
    is_open[list(about_of(answer).given)] = False
    return np.flatnonzero(is_open[on_page]).tolist()


def best_questions(answer: Answer, n: int) -> list[Question]:
    """Return the questions about all groups that are worth most; of many groups, about those with most doubt."""
    batches = about_of(answer).batches
    if batches is None:
        return []
    found = [
        one._replace(item=int(batches.rows_of[group][one.item]))
        for group, of_group in ([(0, answer)] if answer.groups is None else batches.in_doubt.items())
        for one in questions_of(batches, group, of_group, n)
    ]
    return sorted(found, key=lambda one: -one.worth)[:n]


def explanations(answer: Answer, position: Mapping[int, int]) -> dict[int, tuple[Explanation, list[Any]]]:
    """Return why items have their labels, by their positions on the page: the explanation, and its numbers.

    `position` has the items that may be explained, as positions in the batch. Of many groups, those with most doubt are
    explained, `MOST_EXPLAINED` items in all.
    """
    batches = about_of(answer).batches
    codes = {name: k for k, name in enumerate(class_names(answer))}
    why: dict[int, tuple[Explanation, list[Any]]] = {}
    if batches is None:
        return why
    for group, found in [(0, answer)] if answer.groups is None else batches.in_doubt.items():
        items = batches.rows_of[group].tolist()
        wanted = [at for at, item in enumerate(items) if item in position]
        wanted.sort(key=lambda at: answer.certainty[items[at]])
        for one in explained(batches, group, found, wanted[:MOST_EXPLAINED]):
            evidence = (one.from_item, one.from_batch, one.others_of_label, one.others_of_rival)
            numbers = [round(number, 2) for number in (one.alone_certainty, *evidence)]
            rival = -1 if one.rival is None else codes[one.rival]
            why[position[items[one.item]]] = (one, [codes[one.alone], rival, *numbers, one.n_items])
    return why


def _pictures(answer: Answer, items: list[int]) -> list[str | None]:
    """Return a picture of each of the items, least certain first if there are too many."""
    about = about_of(answer)
    assert about.batch.contents is not None
    by_doubt = np.argsort(answer.certainty[items], kind="stable")[:MOST_PICTURES]
    size = next(pixels for most, pixels in SIZES if len(by_doubt) <= most)
    drawn: list[str | None] = [None] * len(items)
    positions = np.sort(by_doubt).tolist()
    for at, picture in zip(
        positions, pictures(about.batch.contents, [items[at] for at in positions], size), strict=True
    ):
        drawn[at] = picture
    return drawn


def example_data(
    answer: Answer,
    data: dict[str, Any],
    also: Sequence[int],
    draw: Callable[[Contents, Sequence[int], int], list[str | None]],
) -> tuple[list[list[Any]], dict[int, int]]:
    """Return the examples that the page shows, and where each row of the catalogue is among them.

    `also` are rows that are shown in any case, and `draw` makes pictures of them.
    """
    shown = about_of(answer).shown
    assert shown is not None
    occurring = set(data["label"]) | set(data["second"])
    names = class_names(answer)
    codes = {name: k for k, name in enumerate(names)}
    occurring |= {codes[proposal["nearest"]] for proposal in data["proposals"]}
    rows = chosen_examples(shown, names, occurring, list(dict.fromkeys(also)))
    contents: list[str | None]
    if isinstance(shown.contents, tuple):
        contents = [shortened(shown.contents[row]) for row in rows]
    else:
        contents = draw(shown.contents, rows, SMALL)
    examples = [
        [codes.get(str(shown.classes[row]), -1), content, shown.names[row]]
        for row, content in zip(rows, contents, strict=True)
    ]
    return examples, {row: number for number, row in enumerate(rows)}


def _of_batch(answer: Answer) -> dict[str, Any]:
    proposals = answer.proposals
    called = "New group"
    if unnamed_groups(answer) is not None:  # every item without a name is in a group, often alone
        proposals = tuple(proposal for proposal in proposals if proposal.size > 1)
        called = "Group"
    return {
        "present": _present(answer.expected_counts, answer.presence),
        "proposals": [
            {
                "name": f"{called} {number}",
                "group": None,
                "items": proposal.items.tolist(),
                "cohesion": round(float(proposal.cohesion), 4),
                "nearest": None if proposal.nearest is None else str(proposal.nearest),
            }
            for number, proposal in enumerate(proposals, start=1)
        ],
    }


def _of_groups(answer: Answer) -> dict[str, Any]:
    """Return the same for many batches; a proposal belongs to one of them, and the whole table has counts only."""
    of_groups = range(n_groups(answer))
    names = group_names(answer)
    counts = answer.expected_counts.sum(0)
    return {
        "present": [[k, count, None] for k, count, _ in _present(counts, (counts >= LEAST_COUNT).astype(float))],
        "present_by_group": [_present(answer.expected_counts[group], answer.presence[group]) for group in of_groups],
        "warnings": [[diagnostic.message for diagnostic in found] for found in answer.diagnostics],
        "proposals": [
            {
                "name": f"{names[group]}: new group {number}",
                "group": group,
                "items": rows_of_groups(answer)[group][proposal.items].tolist(),
                "cohesion": round(float(proposal.cohesion), 4),
                "nearest": str(proposal.nearest),
            }
            for group, found in enumerate(answer.proposals)
            for number, proposal in enumerate(found, start=1)
        ],
    }


def _present(counts: np.ndarray, presence: np.ndarray) -> list[list[Any]]:
    """Return class, expected count and chance of presence, None if it is not estimated; the largest first."""
    listed = np.flatnonzero((presence >= LEAST_CHANCE) | (counts >= LEAST_COUNT))
    listed = listed[np.argsort(-counts[listed], kind="stable")]
    rows = zip(listed.tolist(), rounded(counts[listed], 2), rounded(presence[listed]), strict=True)
    return [[k, count, None if np.isnan(chance) else chance] for k, count, chance in rows]
