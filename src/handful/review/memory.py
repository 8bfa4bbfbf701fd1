"""Review rows in memory: `BatchClassifier.review` opens the page, and returns what it led to."""

from __future__ import annotations

import hashlib
import io
import sys
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, NamedTuple, cast

import numpy as np

from handful.catalogue.labels import distinct, same_kind
from handful.classification.batch import HASH_DIGITS, Batch
from handful.classification.labelled import Classified
from handful.errors import LabelError, OptionError
from handful.estimators import Answer, BatchClassifier
from handful.estimators.batches import Batches
from handful.estimators.containers import frame_of, labels_of
from handful.estimators.context import BatchContexts, Known
from handful.estimators.given import new_class_names, no_such_class, rows_given, with_given
from handful.estimators.items import CatalogueItems
from handful.machine.extras import import_extra
from handful.reading.class_names import is_missing
from handful.reading.contents import FolderFiles, Source
from handful.review.batch_review import BatchReview, sheet_size_of
from handful.review.depends import ANSWERS, depends_on
from handful.review.journal import Event, opened
from handful.review.serve import Address, serve
from handful.review.server import Finished, Page
from handful.review.steps import Kind
from handful.session import Calibration, Said
from handful.session.labelling import MemoryLabeller as SessionLabeller
from handful.session.stopping import SURE_TO_STOP
from handful.shapes import Float


class Reviewed(NamedTuple):
    """What a review in memory led to.

    Attributes
    ----------
    answer : Answer
        The labels of the whole batch, with what the person said.
    given : dict
        What the person said: positions of items to labels, None for none of the classes.
    """

    answer: Answer
    given: dict[int, Any]


class MemoryLabeller:
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
        contents: Source | None = None,
        known: Mapping[str, Any] | None = None,
    ) -> None:
        self.known = {name: value for name, value in (known or {}).items() if name not in ANSWERS}
        self.frame_of = frame_of(X)
        items = classifier._items(X, {})
        self.catalogue = items.catalogue.relabelled(np.arange(items.catalogue.n_classes))
        self.features = items.features
        self.named = {str(label): label for label in items.classes.tolist()}
        self.classes = items.classes
        if len(self.named) < len(items.classes):
            raise LabelError("two classes have the same name on a page; give them labels that differ as text")
        names = tuple(f"item {row}" for row in range(len(self.features)))
        self.batch = Batch(range(len(names)), names, contents, (), content=_hash_of(self.features))

    @property
    def depends(self) -> Event:
        """What the labels depend on beside the answers."""
        return depends_on(self.catalogue, list(self.named), self.known)

    def labels(self, given: Mapping[int, str | None]) -> dict[int, Any]:
        """Return the labels that names of classes stand for; a new class has its name, or the number it says."""
        return {item: None if name is None else self._label(name) for item, name in given.items()}

    def new_labels(self, given: Mapping[int, str | None]) -> tuple[Any, ...]:
        """Return those labels that the catalogue does not have."""
        names = dict.fromkeys(name for name in given.values() if name is not None and name not in self.named)
        return tuple(map(self._label, names))

    def _label(self, name: str) -> Any:
        return self.named[name] if name in self.named else self._new_label(name)

    def _new_label(self, name: str) -> Any:
        """Return the label of a new class; refuse what `fit` could not take beside the other classes."""
        kind = self.classes.dtype.kind
        if is_missing(name):
            raise LabelError(f"{name!r} says that a label is missing; give the new class another name")
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

    def __call__(self, said: Said) -> Classified:
        """Label the batch."""
        given = said.given
        new = dict.fromkeys(name for name in given.values() if name is not None and name not in self.named)
        names = [*self.named, *new]
        codes = {name: k for k, name in enumerate(names)}
        by_code = {item: None if name is None else codes[name] for item, name in given.items()}
        features = self.features
        found = with_given(self.catalogue, features.__getitem__, len(features), by_code, range(len(names)))
        catalogue = found.catalogue
        codes_of = found.of_items(len(features))
        labels, called = np.empty((2, len(names)), dtype=object)
        labels[:] = [self._label(name) for name in names]
        called[:] = names
        known: Any = self.known
        contexts = BatchContexts(known, labels, len(features), None, codes_of, new=found.new)
        contexts = contexts.excluding(said.discarded)
        batches = Batches(CatalogueItems(catalogue, features, codes_of, called), contexts)
        return Classified(
            self.batch,
            batches.answer(self.frame_of),
            int(catalogue.shots.sum()),
            "",
            given=by_code,
            n_named=len(new),
            batches=batches,
        )


def review(
    classifier: BatchClassifier,
    X: Any,
    *,
    images: Sequence[Any] | None = None,
    texts: Sequence[str] | None = None,
    folder: Any = None,
    where: Address | None = None,
    sure: float = SURE_TO_STOP,
    known: Mapping[str, Any] | None = None,
) -> Reviewed:
    """Open the page of a batch in memory, wait until it is finished, and return what it led to.

    Parameters
    ----------
    classifier, X
        The fitted classifier, and the items.
    images, texts
        What the page shows: paths, arrays or Pillow images; or sentences.
    folder
        Where the answers are kept; a review that was interrupted goes on there. By default they are kept no longer than
        this call takes.
    where, sure
        Where the page is served, and how sure a person wants to be before stopping, as in `Session`.
    known
        What is known about the batch, as in `infer`.
    """
    if images is not None and texts is not None:
        raise OptionError("the page shows images or texts, not both; leave one out")
    where = where or Address(announce=lambda address: _announce(address))
    with ExitStack() as stack:
        work = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="handful-")))
        contents = _contents(images, texts, work, len(X))
        label = MemoryLabeller(classifier, X, contents, known)
        place = work / "review" if folder is None else Path(folder)
        journal = stack.enter_context(opened(place, {"batch": label.batch.fingerprint}))
        under_review = BatchReview(
            journal,
            label,
            depends=label.depends,
            sure=sure,
            sheet_size=sheet_size_of(contents),
            calibration=Calibration(label.catalogue.record.calibration),
        )
        under_review.take_over(_given_before(known or {}, label))
        found = list[Reviewed]()

        def end(review: BatchReview, add: bool) -> Finished:
            """Label the batch before the page is told that it is done, so that nothing is lost if that fails."""
            said = review.session.said
            labels = Said(label.labels(said.given), said.skipped, said.discarded, label.new_labels(said.given))
            whole = SessionLabeller(classifier, X, None, cast(Known, label.known))
            found.append(Reviewed(whole(labels), labels.given))
            return Finished(["the answer"])

        if serve(Page(under_review, "Review", out="this notebook"), end, where) is None:
            end(under_review, False)
        return found[-1]


def _given_before(known: Mapping[str, Any], label: MemoryLabeller) -> dict[int, tuple[Kind, str | None]]:
    """Return what a person said before, in `given`: the kind of each answer, and the name of the class."""
    given = known.get("given") or {}
    new = list(map(str, new_class_names(known.get("new_classes"))))
    found = dict[int, tuple[Kind, str | None]]()
    for row in rows_given(given, len(label.features)):
        name = None if given[row] is None else str(given[row])
        if name is not None and name not in label.named and name not in new:
            raise no_such_class(f"row {row}", given[row], [*label.named, *new])
        found[int(row)] = ("none" if name is None else "class" if name in label.named else "new", name)
    return found


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


def _hash_of(rows: Float[np.ndarray, "item dim"]) -> Any:
    def content(item: int) -> str:
        return hashlib.sha256(np.ascontiguousarray(rows[item], np.float32).data).hexdigest()[:HASH_DIGITS]

    return content
