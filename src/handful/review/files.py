"""What a finished review writes: the labels, with what people said in columns of their own, a page, and tasks."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from handful.classification.files import write_predictions, write_tasks
from handful.classification.labelled import NONE, about_of
from handful.classification.page import write_page
from handful.estimators import Answer
from handful.reading.table import Columns
from handful.review.batch_review import BatchReview
from handful.review.server import Finished

# Columns of the labels: what a person said about an item, who and when, and what the model said then.
PERSON = "person"
BY = "said_by"
AT = "said_at"
MODEL = "model"
# What the model says about an item that is like nothing named so far, in a review without examples.
NOT_NAMED = "not named yet"
PRIVATE_FILE = 0o600


@dataclass(frozen=True)
class Outputs:
    """What a finished review writes.

    Attributes
    ----------
    labels : Path
        The labels, in any format of `write_predictions`.
    page, tasks : Path or None
        A page about the batch, and tasks for people who label in another tool.
    """

    labels: Path
    page: Path | None = None
    tasks: Path | None = None

    @property
    def written(self) -> dict[str, Path | None]:
        """All of it, by what it is."""
        return {"labels": self.labels, "page": self.page, "tasks": self.tasks}


def finish(review: BatchReview, outputs: Outputs, title: str) -> Finished:
    """Write what is wanted of a review, and say what comes next; the answers are in the catalogue already.

    Parameters
    ----------
    review, outputs, title
        The review, where its results go, and what the batch is called.
    """
    written = write_results(review, outputs, title)
    catalogue = review.session.file.path
    command = "" if catalogue is None else shlex.join(["handful", "review", str(catalogue), "next_batch"])
    return Finished([str(path) for path in written], next_batch=command)


def write_results(review: BatchReview, outputs: Outputs, title: str) -> list[Path]:
    """Write the labels, and the page and the tasks if they are wanted; return the files."""
    found = with_people(review, review.answer)
    write_predictions(found, outputs.labels)
    written = [outputs.labels]
    if outputs.tasks is not None:
        write_tasks(found, outputs.tasks)
        written.append(outputs.tasks)
    if outputs.page is not None:
        write_page(found, outputs.page, title=title)
        written.append(outputs.page)
    for path in written:
        if path.is_file():
            path.chmod(PRIVATE_FILE)
    return written


def with_people(review: BatchReview, answer: Answer) -> Answer:
    """Add columns: what a person said about each item, who and when, and what the model said then, or says."""
    none = NOT_NAMED if review.session.from_nothing else NONE
    model: list[str | None] = [label or none for label in review.said_by_model()]
    person: list[str | None] = [None] * len(model)
    by: list[str | None] = [None] * len(model)
    at: list[str | None] = [None] * len(model)
    events = {event.event: event for event in review.session.file.history.events}
    said = review.session.file.said.answers
    for position, one in review.decisions.items():
        model[position] = one.was or none
        person[position] = one.label or {"none": NONE, "bad": "bad item", "skip": "passed"}[one.kind]
        event = events[said[int(review.session.items[position])].event]
        by[position] = event.person
        at[position] = event.time
    about = about_of(answer)
    added: Mapping[str, list[str | None]] = {PERSON: person, BY: by, AT: at, MODEL: model}
    columns = Columns({**about.batch.columns.by_name, **added})
    return replace(answer, about=replace(about, batch=replace(about.batch, columns=columns)))
