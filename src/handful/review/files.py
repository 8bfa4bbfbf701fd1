"""Review a batch of files: what labels it again and again, and what is written when a person has finished."""

from __future__ import annotations

import getpass
import json
import shlex
import tempfile
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from glob import escape
from pathlib import Path
from typing import Any

from handful.classification.building import add_to_catalogue
from handful.classification.files import write_predictions, write_tasks
from handful.classification.known import bad_items
from handful.classification.label import Fitted, label
from handful.classification.labelled import NONE, about_of
from handful.classification.page import write_page
from handful.errors import HandfulError, OptionError
from handful.estimators import Answer
from handful.fitted import Catalogue
from handful.fitted.changes import change
from handful.fitted.files import is_catalogue, load_catalogue
from handful.machine.outputs import written_whole
from handful.reading.table import Columns
from handful.review.batch_review import BatchReview, sheet_size_of
from handful.review.depends import depends_on
from handful.review.journal import JOURNAL_FILE, PRIVATE_FILE, Event, opened, write_private
from handful.review.serve import Address, serve
from handful.review.server import Finished, Page
from handful.review.steps import ReviewKind
from handful.session import Calibration, Said
from handful.session.stopping import SURE_TO_STOP, Look

# Ending of the folder in which a review is kept, after the name of its labels.
KEPT = ".review"
# Columns of the labels: what a person said about an item, and what the model said before.
PERSON = "person"
MODEL = "model"
# What the model says about an item that is like nothing named so far, in a review without a catalogue.
NOT_NAMED = "not named yet"


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

    def __post_init__(self) -> None:
        """Refuse labels beside those of another review of the same stem: their answers would be one file."""
        for other in sorted(self.folder.parent.glob(f"{escape(self.labels.stem)}.*{KEPT}")):
            labels = other.with_name(other.name.removesuffix(KEPT))
            if other != self.folder and labels.stem == self.labels.stem and _is_begun(other):
                raise OptionError(
                    f"{self.labels} and the review in {other} would write answers to one file, "
                    f"{self.corrections.name}; go on with that review (--out {shlex.quote(str(labels))}), name the "
                    "labels otherwise (--out), or give that folder another name"
                )

    @property
    def is_begun(self) -> bool:
        """Whether the review has been begun."""
        return _is_begun(self.folder)

    @property
    def corrections(self) -> Path:
        """What the person said, as `classify` takes it."""
        return self.labels.with_name(f"{self.labels.stem}.corrections.json")

    @property
    def written(self) -> dict[str, Path | None]:
        """All of it, by what it is."""
        paths = {"labels": self.labels, "corrections": self.corrections, "review": self.folder}
        return {**paths, "page": self.page, "tasks": self.tasks}

    @property
    def catalogue(self) -> Path:
        """What a review without a catalogue makes of the names: `photos.handful` beside `photos.labels.csv`."""
        return self.labels.with_name(f"{self.labels.stem.removesuffix('.labels')}.handful")

    @property
    def folder(self) -> Path:
        """Where the review is kept."""
        return self.labels.with_name(f"{self.labels.name}{KEPT}")


def _is_begun(folder: Path) -> bool:
    return (folder / JOURNAL_FILE).is_file()


class FileLabeller:
    """Labels the items of files again, without reading, embedding or fitting anything a second time.

    Parameters
    ----------
    fitted : Fitted
        From `handful.classification.label.embed`.
    """

    def __init__(self, fitted: Fitted) -> None:
        if fitted.catalogue is None:
            raise OptionError("a method of the few-shot literature cannot use answers; leave --method out")
        if fitted.task.streams:
            raise OptionError("this batch is too large to be labelled after every answer; review it in groups or parts")
        self.fitted = fitted

    @property
    def depends(self) -> Event:
        """What the labels depend on beside the answers."""
        fitted = self.fitted
        groups = self.fitted.task.batch.groups
        assert fitted.catalogue is not None
        by = () if groups is None else groups.columns
        return depends_on(fitted.catalogue, fitted.classes, fitted.task.known, by)

    def __call__(self, said: Said) -> Answer:
        """Label the batch."""
        rows = self.fitted.batch.rows
        given = said.given
        new = [name for name in given.values() if name is not None and name not in self.fitted.task.classes]
        known: Any = {"given": {rows[item]: name for item, name in given.items()} or None, "new_classes": new or None}
        return label(self.fitted, keep=True, left_out=said.discarded, **known)


def review_files(
    fitted: Fitted, outputs: Outputs, title: str, where: Address, *, sure: float = SURE_TO_STOP
) -> Finished | None:
    """Serve the review of a batch, from where it was left; None if it was interrupted before the end.

    Parameters
    ----------
    fitted, outputs, title
        The batch beside its catalogue, where results go, and what the batch is called.
    where, sure
        Where the page is served, and how sure a person wants to be before stopping, as in `Session`.
    """
    labeller = FileLabeller(fitted)
    batch = fitted.batch
    catalogue = fitted.task.inputs.paths.get("catalogue")
    examples = fitted.task.inputs.catalogue
    grows = isinstance(examples, Catalogue)  # a file that examples can be added to
    with opened(outputs.folder, {"batch": batch.fingerprint}) as journal:
        review = BatchReview(
            journal,
            labeller,
            depends=labeller.depends,
            person=getpass.getuser(),
            sure=sure,
            sheet_size=sheet_size_of(batch.contents),
            calibration=Calibration(examples.record.calibration) if isinstance(examples, Catalogue) else None,
        )
        review.take_over(_given_before(fitted))
        page = Page(review, title, out=str(outputs.labels), can_add=grows)

        def end(found: BatchReview, add: bool) -> Finished:
            names = fitted.task.inputs.names
            by_name = () if names is None else names.labels
            return finish(found, outputs, title, catalogue, add=add and grows, by_name=by_name)

        return serve(page, end, where)


def _given_before(fitted: Fitted) -> dict[int, tuple[ReviewKind, str | None]]:
    """Return what a person said before, in `given`: the kind of each answer, and the class."""
    labels, _ = fitted.task.given_to(fitted.rows)
    found: dict[int, tuple[ReviewKind, str | None]] = {
        item: ("none" if name is None else "class" if name in fitted.classes else "new", name)
        for item, name in labels.items()
    }
    place = {item: at for at, item in enumerate(fitted.rows)}
    bad = bad_items(fitted.task.known, fitted.task.batch)
    return {**found, **{place[item]: ("bad", None) for item in bad if item in place}}


def finish(
    review: BatchReview,
    outputs: Outputs,
    title: str,
    catalogue: Path | None = None,
    *,
    add: bool = False,
    by_name: Collection[str] = (),
) -> Finished:
    """Write the labels, what the person said, and what the answers taught about certainties.

    Parameters
    ----------
    review, outputs, title
        The review, where its results go, and what the batch is called.
    catalogue, add
        A catalogue that what was confirmed can be added to, and whether to do that; otherwise the command is returned.
    by_name
        Classes that need no examples, because their names are given.
    """
    written = write_results(review, outputs, title)
    batch = about_of(review.answer).inputs.get("batch")
    command = ""
    notes = list[str]()
    if catalogue is not None and batch is not None and review.confirmed():
        gone = _gone(review, catalogue, by_name)
        if gone:
            notes.append(
                f"The catalogue has no class {' and no class '.join(map(repr, sorted(gone)))} any more: it was renamed "
                "or removed since. Items with this label were not added to it; your answers are in the labels."
            )
        if add and len(gone) < len({one.label for one in review.confirmed().values()}):
            _add(review, outputs, catalogue, batch, gone)
            written.append(catalogue)
        elif not add:
            command = adding(catalogue, outputs.corrections, batch)
    if catalogue is not None and is_catalogue(catalogue) and review.finished():
        notes += _keep_calibration(review.session.looks, catalogue)
    return Finished([str(path) for path in written], command, notes=notes)


def write_results(review: BatchReview, outputs: Outputs, title: str) -> list[Path]:
    """Write the labels and what the person said, and the page and the tasks if they are wanted; return the files."""
    found = with_people(review, review.answer)
    write_predictions(found, outputs.labels)
    written = [outputs.labels, outputs.corrections]
    with written_whole(outputs.corrections) as place:
        write_private(place, json.dumps(review.corrections(), indent=1))
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


def _gone(review: BatchReview, catalogue: Path, by_name: Collection[str]) -> set[str]:
    """Return the classes of answers that the catalogue had when they were given, and does not have any more."""
    if not is_catalogue(catalogue):
        return set()
    there = set(map(str, load_catalogue(catalogue).classes.tolist()))
    new = {
        str(label)
        for step in review.state.steps
        for kind, label in zip(step.kinds, step.labels, strict=True)
        if kind == "new"
    }
    said = {str(one.label) for one in review.confirmed().values()}
    return said - there - new - set(by_name)


def _keep_calibration(looks: Sequence[Look], catalogue: Path) -> list[str]:
    """Add what the answers taught about certainties to the catalogue; return what went wrong, as sentences.

    Another review may have ended since this one was begun: what it taught stays.
    """

    def edit(before: Catalogue) -> Catalogue:
        calibration = Calibration(before.record.calibration).after(looks)
        return before.with_record(replace(before.record, calibration=calibration.rows))

    try:
        change(catalogue, edit)
    except HandfulError as error:
        return [f"What this review taught about certainties could not be kept for the next batch: {error}."]
    return []


def _add(review: BatchReview, outputs: Outputs, catalogue: Path, batch: Path, gone: set[str]) -> None:
    """Add what a person confirmed to the catalogue, without classes that it does not have any more."""
    with tempfile.TemporaryDirectory(prefix="handful-") as work:
        said = Path(work) / outputs.corrections.name
        write_private(said, json.dumps(review.corrections(without=gone)))
        add_to_catalogue(catalogue, said, batch, person=review.person, session=outputs.folder.name)


def adding(catalogue: Path, corrections: Path, batch: Path) -> str:
    """Return the command that adds what was confirmed; examples that are no catalogue file become one first."""
    file = _from_here(catalogue)
    build = ""
    if not is_catalogue(catalogue):
        file = f"{catalogue.stem}.handful"
        build = shlex.join(["handful", "catalogue", "build", _from_here(catalogue), "--out", file]) + " && "
    return build + shlex.join(["handful", "catalogue", "add", file, "--from", str(corrections), _from_here(batch)])


def _from_here(path: Path) -> str:
    """Return a path as a person in the current folder writes it: short where it lies below."""
    here = Path.cwd()
    return str(path.relative_to(here) if path.is_relative_to(here) else path)


def with_people(review: BatchReview, answer: Answer) -> Answer:
    """Add two columns: what a person said about each item, and what the model said before, or says."""
    none = NOT_NAMED if review.session.from_nothing else NONE
    said = [label or none for label in review.said_by_model()]
    person: list[str | None] = [None] * len(said)
    for item, one in review.state.decisions.items():
        said[item] = one.was or none
        person[item] = one.label or {"none": NONE, "bad": "bad item", "skip": "passed"}.get(one.kind)
    about = about_of(answer)
    columns = Columns({**about.batch.columns.by_name, PERSON: person, MODEL: said})
    return replace(answer, about=replace(about, batch=replace(about.batch, columns=columns)))
