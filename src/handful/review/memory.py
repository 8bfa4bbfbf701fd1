"""Review rows in memory: `Session.review` opens the page, and the session has what was said there."""

from __future__ import annotations

import io
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from handful.classification.batch import Batch
from handful.classification.labelled import About
from handful.classification.unlabelled import Unlabelled
from handful.errors import LabelError, OptionError
from handful.estimators import Answer, BatchClassifier
from handful.estimators.batches import Batches
from handful.estimators.checks import checked_features
from handful.estimators.containers import frame_of
from handful.estimators.context import BatchContexts
from handful.estimators.given import with_given
from handful.estimators.items import ModelItems
from handful.machine.extras import import_extra
from handful.reading.contents import Contents, FolderFiles
from handful.review.batch_review import BatchReview, sheet_size_of
from handful.review.labellers import UnlabelledLabeller
from handful.review.serve import Address, serve
from handful.review.server import Finished, Page
from handful.session import BatchSaid, FromNothing, Session
from handful.session.labelling import MemoryLabeller
from handful.session.labels import LabelNames
from handful.shapes import Float

# What a person says about a batch is in the catalogue as answers.
ANSWERS = ("given", "new_classes")


class PageLabeller:
    """Labels rows in memory with a classifier; classes are known by their names, as on the page.

    Parameters
    ----------
    classifier : BatchClassifier
        The fitted classifier.
    X : [row, feature]
        The items.
    contents : tuple of str, or files
        What the page shows of them; None for vectors alone.
    known : mapping
        What is known about the batch, as in `infer`, without groups and labels given.
    """

    def __init__(
        self,
        classifier: BatchClassifier,
        X: Any,
        contents: Contents | None = None,
        known: Mapping[str, Any] | None = None,
    ) -> None:
        self.known = {name: value for name, value in (known or {}).items() if name not in ANSWERS}
        self.frame_of = frame_of(X)
        catalogue = classifier._current()
        self.catalogue = catalogue.relabelled(np.arange(catalogue.n_classes))
        self.features = checked_features(classifier, X, reset=False)
        self.labels = LabelNames(catalogue.classes)
        if not self.labels.are_distinct:
            raise LabelError("two classes have the same name on a page; give them labels that differ as text")
        self.batch = _batch(self.features, contents)

    def __call__(self, said: BatchSaid) -> Answer:
        """Label the batch."""
        given = said.given
        known = list(map(str, self.labels.classes.tolist()))
        new = dict.fromkeys(name for name in given.values() if name is not None and name not in known)
        names = [*known, *new]
        codes = {name: k for k, name in enumerate(names)}
        by_code = {item: None if name is None else codes[name] for item, name in given.items()}
        features = self.features
        found = with_given(self.catalogue, features, by_code, range(len(names)))
        catalogue = found.catalogue
        codes_of = found.given.of_items(len(features))
        labels, called = np.empty((2, len(names)), dtype=object)
        labels[:] = [self.labels.label(name) for name in names]
        called[:] = names
        about_batch: Any = self.known
        contexts = BatchContexts(about_batch, labels, len(features), None, codes_of, new=found.new)
        contexts = contexts.excluding(said.discarded)
        batches = Batches(ModelItems(catalogue, features, called), contexts)
        about = About(
            self.batch,
            int(catalogue.shots.sum()),
            "",
            given=by_code,
            n_named=len(new),
            batches=batches,
        )
        return replace(batches.answer(self.frame_of), about=about)


def review(
    session: Session,
    *,
    images: Sequence[Any] | None = None,
    texts: Sequence[str] | None = None,
    where: Address | None = None,
) -> None:
    """Open the page of a session in memory, and wait until it is finished.

    The page is a session of the same catalogue, which knows classes by their names.

    Parameters
    ----------
    session
        The session; what was said before is on the page, too.
    images, texts
        What the page shows: paths, arrays or Pillow images; or sentences.
    where
        Where the page is served.
    """
    if images is not None and texts is not None:
        raise OptionError("the page shows images or texts, not both; leave one out")
    with tempfile.TemporaryDirectory(prefix="handful-") as work:
        contents = _contents(images, texts, Path(work), len(session.seen))
        on_page = Session.of_batch(
            session.file,
            session.batch,
            _labeller(session, contents),
            session.options._replace(sheet_size=sheet_size_of(contents)),
            items=session.items.tolist(),
            from_nothing=session.from_nothing,
            offered=session.offered,
        )
        try:
            serve(
                Page(BatchReview(on_page), "Review"),
                lambda found, wanted: Finished(["the answer"]),
                where or Address(announce=_announce),
            )
        finally:
            session.refresh()


def _labeller(session: Session, contents: Contents | None) -> PageLabeller | UnlabelledLabeller:
    labeller = session.labeller
    if isinstance(labeller, FromNothing):
        wrong = next((name for name in session.names if not isinstance(name, str)), None)
        if wrong is not None:
            raise LabelError(f"names on a page are texts, and {wrong!r} was said; answer with texts")
        return UnlabelledLabeller(Unlabelled(_batch(labeller.features, contents)), labeller)
    if not isinstance(labeller, MemoryLabeller):
        raise OptionError("the page shows a session about rows in memory; review files with handful review")
    if labeller.groups is not None:
        raise OptionError("the page shows one batch; make a session of each group, or review files with --group-by")
    return PageLabeller(labeller.classifier, labeller.X, contents, labeller.known)


def _announce(address: str) -> None:
    sys.stdout.write(f"Review at {address}\n")
    sys.stdout.flush()


def _contents(
    images: Sequence[Any] | None, texts: Sequence[str] | None, work: Path, n_items: int
) -> FolderFiles | tuple[str, ...] | None:
    """Return what the page shows; images in memory become files."""
    given = texts if images is None else images
    if given is None:
        return None
    if len(given) != n_items:
        raise OptionError(f"the batch has {n_items:,} rows; give as many images or texts, not {len(given):,}")
    if images is None:
        return tuple(map(str, given))
    if all(isinstance(one, (str, Path)) for one in given):
        return FolderFiles(Path.cwd(), tuple(map(str, given)))
    image = import_extra("PIL.Image", "images")
    names = list[str]()
    for at, one in enumerate(given):
        stream = io.BytesIO()
        (image.fromarray(np.asarray(one)) if not hasattr(one, "save") else one).convert("RGB").save(stream, "PNG")
        names.append(f"{at}.png")
        (work / names[-1]).write_bytes(stream.getvalue())
    return FolderFiles(work, tuple(names))


def _batch(features: Float[np.ndarray, "item dim"], contents: Contents | None) -> Batch:
    names = tuple(f"item {row}" for row in range(len(features)))
    return Batch(range(len(names)), names, contents, (), points=features)
