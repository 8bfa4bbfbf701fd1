"""Review a batch without a catalogue: what a person names is the catalogue, and Finish writes it beside the labels."""

from __future__ import annotations

import getpass
import shlex
from collections.abc import Sequence
from pathlib import Path

from handful.classification.batch import Batch
from handful.classification.unlabelled import Unlabelled
from handful.errors import OptionError
from handful.estimators import Answer
from handful.review.batch_review import BatchReview, sheet_size_of
from handful.review.depends import depends_on
from handful.review.files import Outputs, write_results
from handful.review.journal import Event, ReviewJournal, opened
from handful.review.serve import Address, serve
from handful.review.server import Finished, Page
from handful.session import FromNothing, Said
from handful.session.stopping import SURE_TO_STOP


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
    with opened(outputs.folder, {"batch": batch.fingerprint}) as journal:
        _refuse_replacing(outputs.catalogue, journal)
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
        page = Page(review, title, out=str(outputs.labels), catalogue=str(outputs.catalogue))
        return serve(page, lambda found, _: finish_unlabelled(found, unlabelled, outputs, title), where)


def _refuse_replacing(catalogue: Path, journal: ReviewJournal) -> None:
    """Refuse a catalogue that this review did not write, before anything is said."""
    if catalogue.exists() and not any(event["step"] == "finished" for event in journal.events):
        raise OptionError(
            f"{catalogue} is there already, and this review would write its catalogue there; to review the batch with "
            f"it, name it first (handful review {shlex.quote(str(catalogue))} BATCH), or name the labels otherwise "
            "(--out)"
        )


def finish_unlabelled(review: BatchReview, unlabelled: Unlabelled, outputs: Outputs, title: str) -> Finished:
    """Write the labels, what the person said, and a catalogue of the items that were named.

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
    catalogue = unlabelled.write_examples(
        items.tolist(), labels, outputs.catalogue, person=review.person, session=outputs.folder.name
    )
    review.finished()
    command = shlex.join(["handful", "review", str(catalogue), "next_batch"])
    return Finished([*map(str, written), str(catalogue)], next_batch=command)
