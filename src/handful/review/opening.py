"""Open a batch of a catalogue for a review: items with an answer in other batches are examples for this one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from handful.catalogue.events import Event
from handful.catalogue.file import CatalogueFile
from handful.classification.from_catalogue import KnownExamples, known_examples
from handful.classification.names import read_names
from handful.classification.steps import embed
from handful.classification.task import Inputs, check
from handful.classification.unlabelled import unlabelled
from handful.errors import OptionError
from handful.extraction.options import Reading
from handful.items.fitting import LABEL, table_of
from handful.items.looking_up import pictures_of, with_vectors
from handful.reading.contents import Contents
from handful.reading.table import Table
from handful.review.batch_review import BatchReview, sheet_size_of
from handful.review.labellers import FileLabeller, UnlabelledLabeller
from handful.session import Calibration, Session
from handful.session.evidence import evidence_of
from handful.session.state import SessionOptions
from handful.session.stopping import SURE_TO_STOP


@dataclass(frozen=True, eq=False)
class OpenOptions:
    """How a batch is opened.

    Attributes
    ----------
    names : Path or None
        Names of classes, which then need no examples.
    group_by : sequence of str or None
        Columns of which each value is a batch of its own.
    unknown : str or None
        The label of items that look like none of the classes.
    sure : float
        How sure a person wants to be before stopping.
    known : mapping
        What is known about the batch, as in `classify`. Where there are no examples, `candidates` are names that are
        offered, and rule nothing out.
    """

    names: Path | None = None
    group_by: Sequence[str] | None = None
    unknown: str | None = None
    sure: float = SURE_TO_STOP
    known: Mapping[str, Any] = field(default_factory=dict)


def open_batch(
    file: CatalogueFile, batch: str, options: OpenOptions | None = None, *, person: str = "", notes: Sequence[str] = ()
) -> BatchReview:
    """Return the review of a batch, from where it was left.

    Parameters
    ----------
    file, batch
        The catalogue, and the name of the batch, which was brought.
    options
        How it is opened.
    person
        Who answers.
    notes
        What the person should be told.
    """
    how = options or OpenOptions()
    items = with_vectors(file, sorted(file.said.places.get(batch, {})))
    if not items:
        raise OptionError(f"the batch {batch!r} has no item that can be labelled")
    known = known_examples(file, without_batch=batch)
    contents = pictures_of(file, items)
    table = table_of(file, items)
    alone = known is None and how.names is None
    offered = None
    labeller: FileLabeller | UnlabelledLabeller

    def refit() -> FileLabeller:
        """Fit to the examples as they are called now."""
        examples = known_examples(file, without_batch=batch)
        if examples is None and how.names is None:
            raise OptionError("a review that began with examples needs one class of them; name another one first")
        return FileLabeller(_fitted(examples, table, contents, how))

    if alone:
        offered = _offered(how)
        labeller = UnlabelledLabeller(unlabelled(table, contents, unknown=how.unknown))
    else:
        labeller = FileLabeller(_fitted(known, table, contents, how))
    session = Session.of_batch(
        file,
        batch,
        labeller,
        SessionOptions(sheet_size_of(contents), how.sure, _calibration(file, batch)),
        items=items,
        from_nothing=alone,
        offered=offered,
        person=person,
        refit=None if alone else refit,
    )
    return BatchReview(session, notes)


def _offered(how: OpenOptions) -> Sequence[str] | None:
    """Return the names that are offered without examples; refuse what else is known."""
    known = {name: value for name, value in how.known.items() if value is not None}
    candidates = known.pop("candidates", None)
    if known or how.group_by is not None:
        named = ", ".join([*known, *(["group_by"] if how.group_by is not None else [])])
        raise OptionError(f"{named}: there are no examples yet, so the items are what you name; leave it out")
    return None if candidates is None else read_names(Path(candidates)).labels


def _fitted(known: KnownExamples | None, table: Table, contents: Contents | None, how: OpenOptions) -> Any:
    """Put the batch beside the examples, or the names of classes."""
    examples, shown = (None, None) if known is None else known
    named = None if how.names is None else read_names(how.names, beside=examples is not None)
    # Tables that examples came from may have columns that look like labels, too.
    reading = Reading(labels=LABEL) if isinstance(examples, Table) else Reading()
    inputs = Inputs(examples, table, named, reading, shown=shown)
    task = check(inputs, group_by=how.group_by, unknown=how.unknown, **how.known)
    fitted = embed(task)
    return replace(fitted, batch=replace(fitted.batch, contents=contents))


def _calibration(file: CatalogueFile, batch: str) -> Calibration:
    """Return what the answers about other batches taught about certainties, in the order of their first answers."""
    events: dict[str, list[Event]] = {}
    for event in file.history.counted():
        of = event.about.get("batch")
        if of is not None and of != batch:
            events.setdefault(of, []).append(event)
    calibration = Calibration()
    for some in events.values():
        calibration = calibration.after(evidence_of(some).looks)
    return calibration
