"""Review a batch without a catalogue: what a person names is the catalogue, and Finish writes it beside the labels."""

from __future__ import annotations

import getpass
import hashlib
import shlex
import tempfile
from collections.abc import Sequence
from pathlib import Path

from handful.classification.batch import Batch
from handful.classification.unlabelled import Unlabelled
from handful.errors import OptionError
from handful.estimators import Answer
from handful.machine.lock import only_changer
from handful.machine.outputs import linked_file, written_whole
from handful.review.batch_review import BatchReview, sheet_size_of
from handful.review.depends import depends_on
from handful.review.files import Outputs, adding, write_results
from handful.review.journal import Event, ReviewJournal, opened
from handful.review.serve import Address, serve
from handful.review.server import Finished, Page
from handful.session import FromNothing, Said
from handful.session.stopping import SURE_TO_STOP

# Where an event of the journal has the hash of a catalogue that the review wrote.
WRITTEN = "wrote"


class UnlabelledLabeller:
    """Labels the items of a batch by the names that a person gave, without embedding anything a second time.

    Parameters
    ----------
    unlabelled : Unlabelled
        From `handful.classification.unlabelled.read_unlabelled`.
    """

    def __init__(self, unlabelled: Unlabelled) -> None:
        self.unlabelled = unlabelled
        self.from_nothing = FromNothing(unlabelled.batch.points)

    @property
    def batch(self) -> Batch:
        """The items."""
        return self.unlabelled.batch

    @property
    def depends(self) -> Event:
        """What the labels depend on beside the answers: nothing."""
        return depends_on(None, (), {})

    def __call__(self, said: Said) -> Answer:
        """Label the batch."""
        return self.unlabelled.answer(self.from_nothing(said), said.given)


def review_unlabelled(
    unlabelled: Unlabelled,
    outputs: Outputs,
    title: str,
    where: Address,
    *,
    sure: float = SURE_TO_STOP,
    candidates: Sequence[str] | None = None,
) -> Finished | None:
    """Serve the review of a batch without a catalogue; None if it was interrupted before the end.

    Parameters
    ----------
    unlabelled, outputs, title
        The batch, where results go, and what the batch is called.
    where, sure
        Where the page is served, and how sure a person wants to be before stopping, as in `Session`.
    candidates
        Names that are offered.
    """
    labeller = UnlabelledLabeller(unlabelled)
    batch = unlabelled.batch
    examples = unlabelled.examples_file(outputs.catalogue)
    if not outputs.is_begun:
        _refuse_replacing(examples)
    with opened(outputs.folder, {"batch": batch.fingerprint}) as journal:
        keeps = not _is_own(examples, journal)
        review = BatchReview(
            journal,
            labeller,
            depends=labeller.depends,
            person=getpass.getuser(),
            sure=sure,
            sheet_size=sheet_size_of(batch.contents),
            from_nothing=True,
            candidates=candidates,
        )
        if keeps:
            review.notes.append(_kept(examples))
        page = Page(review, title, out=str(outputs.labels), catalogue="" if keeps else str(examples))
        return serve(page, lambda found, _: finish_unlabelled(found, unlabelled, outputs, title), where)


def _is_own(file: Path, journal: ReviewJournal) -> bool:
    """Whether a file is as this review wrote it, or is not there: then nothing that was learned elsewhere is in it."""
    try:
        return _digest(file) in {event.get(WRITTEN) for event in journal.events}
    except FileNotFoundError:
        return True
    except OSError:  # a folder, or a file that may not be read
        return False


def _digest(file: Path) -> str:
    with file.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def _refuse_replacing(examples: Path) -> None:
    """Refuse a catalogue that is there before the review is begun."""
    if examples.exists():
        raise OptionError(
            f"{examples} is there already, and this review would write its catalogue there; to review the batch with "
            f"it, name it first (handful review {shlex.quote(str(examples))} BATCH), or name the labels otherwise "
            "(--out)"
        )


def _kept(examples: Path) -> str:
    """Return what a person should know if Finish may not write the catalogue."""
    return (
        f"{examples} is not as this review wrote it, so Finish leaves it as it is. For a catalogue of this review "
        "alone, move that file elsewhere, and run the same command again."
    )


def finish_unlabelled(review: BatchReview, unlabelled: Unlabelled, outputs: Outputs, title: str) -> Finished:
    """Write the labels, what the person said, and a catalogue of the items that were named.

    A catalogue that others have changed since, or that another review wrote, stays as it is, and that is said.

    Parameters
    ----------
    review, unlabelled
        The review, and the batch.
    outputs, title
        Where results go, and what the batch is called.
    """
    written = write_results(review, outputs, title)
    items, labels = review.session.examples
    if not labels:
        return Finished([str(path) for path in written], notes=["Nothing was named, so there is no catalogue."])
    out = unlabelled.examples_file(outputs.catalogue)
    with tempfile.TemporaryDirectory(prefix="handful-") as work, only_changer(out, OptionError):
        if not _is_own(out, review.journal):
            batch = unlabelled.paths["batch"]
            command = "" if unlabelled.measured else adding(out, outputs.corrections, batch)
            return Finished([str(path) for path in written], command, notes=[_kept(out)])
        said = {"person": review.person, "session": outputs.folder.name}
        made = unlabelled.write_examples(items.tolist(), labels, out, Path(work), **said)
        with written_whole(linked_file(out)) as whole:
            whole.write_bytes(made.read_bytes())
            # Noted before the file is there: a process that is killed in between may write it again.
            review.finished(**{WRITTEN: _digest(whole)})
    command = shlex.join(["handful", "review", str(out), "next_batch"])
    return Finished([*map(str, written), str(out)], next_batch=command)
