"""Review rows in memory: `Session.review` opens the page, and the session has what was said there."""

from __future__ import annotations

import hashlib
import io
import sys
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from handful.classification.batch import HASH_DIGITS, Batch
from handful.classification.labelled import About
from handful.classification.unlabelled import Unlabelled
from handful.errors import LabelError, OptionError
from handful.estimators import Answer, BatchClassifier
from handful.estimators.batches import Batches
from handful.estimators.checks import checked_features
from handful.estimators.containers import frame_of, labels_of
from handful.estimators.context import BatchContexts
from handful.estimators.given import with_given
from handful.estimators.items import CatalogueItems
from handful.fitted.labels import distinct, same_kind
from handful.machine.extras import import_extra
from handful.reading.contents import Contents, FolderFiles
from handful.review.batch_review import BatchReview, sheet_size_of
from handful.review.depends import ANSWERS, depends_on
from handful.review.journal import Event, opened
from handful.review.serve import Address, serve
from handful.review.server import Finished, Page
from handful.review.steps import ReviewKind
from handful.review.unlabelled import UnlabelledLabeller
from handful.session import FromNothing, Said, Session, Step
from handful.session.labelling import MemoryLabeller
from handful.shapes import Float


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
        self.named = {str(label): label for label in catalogue.classes.tolist()}
        self.classes = catalogue.classes
        if len(self.named) < len(catalogue.classes):
            raise LabelError("two classes have the same name on a page; give them labels that differ as text")
        self.batch = _batch(self.features, contents)

    @property
    def depends(self) -> Event:
        """What the labels depend on beside the answers."""
        return depends_on(self.catalogue, list(self.named), self.known)

    def in_memory(self, step: Step) -> Step:
        """Return a step as the session takes it: with the label that the name of a class stands for."""
        return step if step.label is None else step._replace(label=self._label(step.label))

    def _label(self, name: str) -> Any:
        return self.named[name] if name in self.named else self._new_label(name)

    def _new_label(self, name: str) -> Any:
        """Return the label of a new class; refuse what `fit` could not take beside the other classes."""
        kind = self.classes.dtype.kind
        if kind == "b":
            raise LabelError("the classes are True and False, so there can be no third one; say none of these")
        if kind not in "iufmM":
            distinct(np.concatenate([self.classes, same_kind(labels_of([name]), self.classes)]))
            return name
        called = "dates" if kind in "mM" else "numbers"
        try:
            label = self.classes.dtype.type(name)
        except (ValueError, OverflowError):
            raise LabelError(f"the classes are {called}, and {name!r} is none; give the new class one") from None
        if str(label) in self.named:
            raise LabelError(f"{name!r} is the class {str(label)!r}; choose that one")
        if kind == "f" and not float(label).is_integer():
            raise LabelError(f"the classes are whole numbers, and {name!r} is none; give the new class one")
        if str(label) != name:
            raise LabelError(f"the classes are {called}; write {str(label)!r} instead of {name!r}, or another one")
        return label.item() if kind in "iuf" else label

    def __call__(self, said: Said) -> Answer:
        """Label the batch."""
        given = said.given
        new = dict.fromkeys(name for name in given.values() if name is not None and name not in self.named)
        names = [*self.named, *new]
        codes = {name: k for k, name in enumerate(names)}
        by_code = {item: None if name is None else codes[name] for item, name in given.items()}
        features = self.features
        found = with_given(self.catalogue, features.__getitem__, len(features), by_code, range(len(names)))
        catalogue = found.catalogue
        codes_of = found.given.of_items(len(features))
        labels, called = np.empty((2, len(names)), dtype=object)
        labels[:] = [self._label(name) for name in names]
        called[:] = names
        known: Any = self.known
        contexts = BatchContexts(known, labels, len(features), None, codes_of, new=found.new)
        contexts = contexts.excluding(said.discarded)
        batches = Batches(CatalogueItems(catalogue, features, called), contexts)
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
    folder: Any = None,
    where: Address | None = None,
) -> None:
    """Open the page of a session in memory, wait until it is finished, and give the session what was said.

    Parameters
    ----------
    session
        The session; what was said before is in the review, too.
    images, texts
        What the page shows: paths, arrays or Pillow images; or sentences.
    folder
        Where the answers are kept; a review that was interrupted goes on there. By default they are kept no longer than
        this call takes.
    where
        Where the page is served.
    """
    if images is not None and texts is not None:
        raise OptionError("the page shows images or texts, not both; leave one out")
    where = where or Address(announce=lambda address: _announce(address))
    with ExitStack() as stack:
        work = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="handful-")))
        contents = _contents(images, texts, work, len(session.seen))
        label = _labeller(session, contents)
        place = work / "review" if folder is None else Path(folder)
        journal = stack.enter_context(opened(place, {"batch": label.batch.fingerprint}))
        under_review = BatchReview(
            journal,
            label,
            depends=label.depends,
            sure=session.options.sure,
            sheet_size=sheet_size_of(contents),
            calibration=session.options.first_calibration,
            from_nothing=session.from_nothing,
            candidates=session.offered,
        )
        under_review.take_over(_said_before(session))

        def end(found: BatchReview, _: bool) -> Finished:
            """Give the session what was said before the page is told that it is done, so that nothing is lost."""
            while session.steps:
                session.undo()
            for step in found.session.steps:
                session.take(label.in_memory(step))
            return Finished(["the answer"])

        if serve(Page(under_review, "Review"), end, where) is None:
            end(under_review, False)


class UnlabelledInMemory(UnlabelledLabeller):
    """Labels rows in memory by the names that a person gave."""

    def __init__(self, session: Session, contents: Contents | None) -> None:
        assert isinstance(session.labeller, FromNothing)
        self.from_nothing = session.labeller
        self.unlabelled = Unlabelled(_batch(session.labeller.features, contents), "")

    def in_memory(self, step: Step) -> Step:
        """Return a step as the session takes it."""
        return step


def _labeller(session: Session, contents: Contents | None) -> PageLabeller | UnlabelledInMemory:
    labeller = session.labeller
    if session.from_nothing:
        wrong = next((name for name in session.names if not isinstance(name, str)), None)
        if wrong is not None:
            raise LabelError(f"names on a page are texts, and {wrong!r} was said; answer with texts")
        return UnlabelledInMemory(session, contents)
    if not isinstance(labeller, MemoryLabeller):
        raise OptionError("the page shows a session about rows in memory; review files with handful review")
    if labeller.groups is not None:
        raise OptionError("the page shows one batch; make a session of each group, or review files with --group-by")
    return PageLabeller(labeller.classifier, labeller.X, contents, labeller.known)


def _said_before(session: Session) -> dict[int, tuple[ReviewKind, str | None]]:
    """Return what was said in the session: the kind of each answer, and the name of the class."""
    labeller = session.labeller
    known = set(map(str, labeller.catalogue.classes.tolist())) if isinstance(labeller, MemoryLabeller) else set[str]()
    said = session.said
    found: dict[int, tuple[ReviewKind, str | None]] = dict.fromkeys(said.skipped, ("skip", None))
    found |= dict.fromkeys(said.discarded, ("bad", None))
    for item, label in said.given.items():
        name = None if label is None else str(label)
        found[item] = ("none" if name is None else "class" if name in known else "new", name)
    return dict(sorted(found.items()))


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
    return Batch(range(len(names)), names, contents, (), content=_hash_of(features), points=features)


def _hash_of(rows: Float[np.ndarray, "item dim"]) -> Any:
    def content(item: int) -> str:
        return hashlib.sha256(np.ascontiguousarray(rows[item], np.float32).data).hexdigest()[:HASH_DIGITS]

    return content
