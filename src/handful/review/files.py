"""What a finished review writes: the table of `handful export`, and what else the person wants of it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from handful.classification.files import write_tasks
from handful.classification.page import write_page
from handful.machine.command_line import typed
from handful.review.batch_review import BatchReview
from handful.review.exporting import export, export_keywords
from handful.review.item_tables import ENDINGS, kinds_beside
from handful.review.server import Finished, Wanted

PRIVATE_FILE = 0o600
# What follows the name of a batch in that of its labels, and of its folder per class.
LABELS = ".labels"
BY_CLASS = ".by_class"


@dataclass(frozen=True)
class Outputs:
    """What a finished review writes.

    Attributes
    ----------
    labels : Path
        The labels, in any table of `handful export`.
    page, tasks : Path or None
        A page about the batch, and tasks for people who label in another tool.
    """

    labels: Path
    page: Path | None = None
    tasks: Path | None = None

    @property
    def written(self) -> dict[str, Path | None]:
        """All of it, by what it is."""
        return {"labels": self.labels, "kinds": kinds_beside(self.labels), "page": self.page, "tasks": self.tasks}

    @property
    def folder(self) -> Path:
        """A folder that is not there, for a folder per class.

        Examples
        --------
        >>> print(Outputs(Path("monday.labels.csv")).folder)
        monday.by_class
        """
        name = self.labels.stem.removesuffix(LABELS) + BY_CLASS
        found = self.labels.with_name(name)
        number = 1
        while found.exists():
            number += 1
            found = self.labels.with_name(f"{name}_{number}")
        return found


def is_table(path: Path) -> bool:
    """Whether labels can be written there."""
    return path.suffix.lower() in ENDINGS


def finish(review: BatchReview, outputs: Outputs, title: str, wanted: Wanted = Wanted()) -> Finished:  # noqa: B008
    """Write what is wanted of a review, and say what comes next; the answers are in the catalogue already.

    Parameters
    ----------
    review, outputs, title
        The review, where its results go, and what the batch is called.
    wanted
        What else is wanted.
    """
    file = review.session.file
    batches = [review.session.batch]
    written = [export(file, outputs.labels, batches=batches, review=review)]
    if wanted.folder:
        written.append(export(file, outputs.folder, batches=batches, review=review))
    if wanted.keywords:
        written.append(export_keywords(file, batches=batches, review=review))
    others = []
    if outputs.tasks is not None:
        write_tasks(review.answer, outputs.tasks)
        others.append(outputs.tasks)
    if outputs.page is not None:
        write_page(review.answer, outputs.page, title=title)
        others.append(outputs.page)
    for path in (outputs.labels, kinds_beside(outputs.labels), *others):
        path.chmod(PRIVATE_FILE)
    command = "" if file.path is None else typed(["handful", "review", str(file.path), "next_batch"])
    return Finished([*map(str, written), *map(str, others)], next_batch=command)
