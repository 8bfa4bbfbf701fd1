"""One row per item of a batch: what people said about it, who and when, and what the model says."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from handful.catalogue.file import CatalogueFile
from handful.catalogue.said import ItemAnswer
from handful.classification.labelled import NONE
from handful.items.looking_up import with_vectors
from handful.review.batch_review import BatchReview
from handful.review.opening import open_batch

# What a row says about an answer that names no class.
BAD = "bad item"
PASSED = "passed"
# What the model says about an item that is like nothing named so far, in a review without examples.
NOT_NAMED = "not named yet"
# Between two answers that disagree.
OR = " or "


class SaidRow(NamedTuple):
    """An item, and what was said about it.

    Attributes
    ----------
    item, batch, place : int, str, str
        Its number, its batch, and where it is there.
    person, said_by, said_at : str or None
        What people said, who, and when; several answers that disagree are all there.
    model, certainty : str or None, float or None
        What the model says, or said when a person answered, and the chance that this is right.
    text : str or None
        What it is, if it is a text.
    columns : mapping
        The other columns of its row.
    named : str or None
        The class that people agree on.
    """

    item: int
    batch: str
    place: str
    person: str | None
    said_by: str | None
    said_at: str | None
    model: str | None
    certainty: float | None
    text: str | None
    columns: Mapping[str, Any]
    named: str | None


def item_rows(file: CatalogueFile, batch: str, review: BatchReview | None = None) -> list[SaidRow]:
    """Return the items of a batch that are there now; it is labelled if nobody has answered about some of them.

    Parameters
    ----------
    file, batch
        The catalogue, and the name of the batch.
    review
        Its review, if one is open: then the labels are those that it shows.
    """
    places = dict(sorted(file.said.places.get(batch, {}).items()))
    said = file.said.all_answers
    events = {event.event: event for event in file.history.events}
    shown = {(event.event, one.item): one for event in file.history.events for one in event.items if one.answered}
    by_model = _by_model(file, batch, review) if any(item not in said for item in places) else {}
    rows = []
    for row in file.rows(list(places)):
        answers = said.get(row.item, ())
        label, certainty = by_model.get(row.item, (None, None))
        if answers:
            offered = shown.get((answers[-1].event, row.item))
            label = certainty = None
            if offered is not None and offered.risk is not None:
                label = offered.offered or NONE
                certainty = 1 - offered.risk
        rows.append(
            SaidRow(
                row.item,
                batch,
                places[row.item],
                _joined([_words(one) for one in answers]),
                _joined([events[one.event].person for one in answers]),
                max((events[one.event].time for one in answers), default=None),
                label,
                certainty,
                row.text,
                row.columns or {},
                file.said.answers[row.item].label if row.item in file.said.answers else None,
            )
        )
    return rows


def label_of(row: SaidRow) -> str | None:
    """Return the label of an item: the class that people named, and what the model says if nobody did."""
    if row.named is not None or row.person not in (None, PASSED):
        return row.named
    return None if row.model in (NONE, NOT_NAMED) else row.model


def _by_model(
    file: CatalogueFile, batch: str, review: BatchReview | None
) -> dict[int, tuple[str | None, float | None]]:
    if not with_vectors(file, list(file.said.places[batch])):
        return {}
    review = review or open_batch(file, batch)
    none = NOT_NAMED if review.session.from_nothing else NONE
    labels = review.said_by_model()
    certainty = review.answer.certainty.tolist()
    items = review.session.items.tolist()
    if review.session.from_nothing and not review.new_classes:
        return {}  # nothing was named yet
    return {item: (label or none, chance) for item, label, chance in zip(items, labels, certainty, strict=True)}


def _words(answer: ItemAnswer) -> str:
    return answer.label or {"none": NONE, "bad": BAD}.get(answer.kind, PASSED)


def _joined(words: list[str]) -> str | None:
    found = list(dict.fromkeys(filter(None, words)))
    return OR.join(found) or None
