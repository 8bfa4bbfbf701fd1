"""classify: files to an answer, in four steps.

    inputs = read_inputs(catalogue, batch)        files to tables
    task = check(inputs, group_by="site")         whatever can be refused before the work is refused
    fitted = embed(task)                          items to vectors, examples to a fitted catalogue
    found = label_batch(fitted)                   vectors to an answer

`label_batch` can be called again and again with the same `fitted`, each time with something else that is known about
the batch: `label_batch(fitted, given={3: "dog"})`, `label_batch(fitted, expect_unknown=0.2)`. What is named replaces
what was known before, the rest stays. Items are not read or embedded again, and the catalogue is not fitted again,
unless there are labels in `given`: they are examples, and its head is updated with them.

A catalogue that is already fitted, a `FittedModel` or the path of one that was saved, is neither embedded nor fitted.

Images and sentences are embedded with one encoder for both sides. A bank records which encoder made it, so a batch of
photographs can be labelled with a bank of photographs without naming it.

Of a batch whose probabilities would be large (`dense_bytes`), the best two classes of each item are kept.
A batch with groups is many batches: each group is labelled jointly.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Unpack, cast

import numpy as np

from handful.arguments import takes
from handful.banks import FeatureBank
from handful.banks.bank import Provenance
from handful.classification.batch import Batch
from handful.classification.from_catalogue import in_order, known_vectors
from handful.classification.known import new_labels
from handful.classification.labelled import MOST_EXPLAINED, About, Shown
from handful.classification.names import with_names
from handful.classification.task import (
    GivenExamples,
    PathLike,
    Task,
    check,
    class_names_of,
    read_inputs,
    recorded_encoders,
)
from handful.estimators.answer import Answer
from handful.estimators.batches import Batches
from handful.estimators.context import Known
from handful.estimators.given import with_given
from handful.estimators.items import ModelItems
from handful.estimators.large_batch import label_large
from handful.extraction.items import CALLED, Items
from handful.extraction.options import Reading
from handful.extraction.pipeline import embed_items
from handful.fitted import FittedModel
from handful.progress import Progress, Reporter, bars
from handful.reading.class_names import similar_names
from handful.reading.registry import writer_of
from handful.reading.table import Skipped, Table, warn_of_skipped
from handful.shapes import Float

# Items beside which the page shows the nearest example.
MOST_ITEMS = 240

Listener = Callable[[Progress], None]


class ClassifyOptions(Reading, Known, total=False):
    """How both are read and embedded, and what is known about the batch."""


def divided(options: Mapping[str, Any]) -> tuple[Reading, Known]:
    """Return the options of the two kinds."""
    reading = {name: value for name, value in options.items() if name in Reading.__annotations__}
    known = {name: value for name, value in options.items() if name not in reading}
    return cast(Reading, reading), cast(Known, known)


@dataclass(frozen=True, eq=False)
class Fitted:
    """A fitted catalogue, and the vectors of the batch to label.

    Attributes
    ----------
    task : Task
        What is to be done.
    catalogue : FittedModel or None
        What the batch is compared with; its classes are positions in `classes`. None for a method of `handful_fewshot`.
    classes : tuple of str
        Names of the classes.
    examples : FeatureBank or None
        Vectors of the examples; None if the catalogue was fitted before, or there are only names.
    batch, rows : Batch, sequence of int
        The items, with their vectors, and their positions in `task.batch`.
    skipped_examples : tuple of Skipped
        As in `About`.
    shown : Shown or None
        How the examples look, in their order, if that can be shown.
    """

    task: Task
    catalogue: FittedModel | None
    classes: tuple[str, ...]
    examples: FeatureBank | None
    batch: Batch
    rows: Sequence[int]
    skipped_examples: tuple[Skipped, ...]
    shown: Shown | None = None

    @property
    def n_examples(self) -> int:
        """Number of examples, without items of the batch."""
        if self.examples is not None:
            return self.examples.n_rows
        return 0 if self.catalogue is None else int(self.catalogue.shots.sum())

    @property
    def points(self) -> Float[np.ndarray, "item dim"]:
        """Vectors of the items."""
        assert self.batch.points is not None
        return self.batch.points

    @property
    def encoder(self) -> str:
        """What made the vectors, where that is known."""
        task = self.task
        if task.network is not None:
            return str(task.network.name)
        return next(filter(None, recorded_encoders(task.inputs, task.examples, task.batch)), "")


@takes(ClassifyOptions, before="unknown")
def classify(
    catalogue: PathLike | None,
    batch: PathLike,
    *,
    names: PathLike | None = None,
    group_by: str | Sequence[str] | None = None,
    unknown: str | None = None,
    method: str | None = None,
    on_progress: Listener | None = None,
    **options: Unpack[ClassifyOptions],
) -> Answer:
    """Label every item of the batch jointly, with the classes of the catalogue.

    Of a batch with `dense_bytes` above `MOST_DENSE_BYTES`, the answer has the best two classes of each item, but not
    the probabilities of all. A batch that does not fit in memory itself is for `handful.scale`.

    Keywords have the names and the groups of `handful classify --help`:

    - *Reading*: `names`, `group_by`, and all of `Reading`;
    - *What you know*: all of `Known`, and `unknown`;
    - *How it runs*: `method`, `on_progress`.

    What the command writes are functions of the answer: `write_predictions`, `write_page`, `write_tasks`.

    Parameters
    ----------
    catalogue : path
        Labelled examples: a file or folder that `handful.read` reads, with labels; a catalogue or a fitted model. None
        if there are only names.
    batch : path
        Items to label: a file or folder that `handful.read` reads. Labels are ignored; if it is the file of the
        catalogue, its rows without a label are labelled.
    names : path, optional
        Names or descriptions of the classes, as texts or as vectors, see `handful.classification.names`. A class with a
        name needs no examples.
    group_by : str or sequence of str, optional
        Column of the batch, or several, that say which group an item belongs to. Every group is then labelled as a
        separate batch. For items known by their paths, `folder` is the folder of an item, and `folder:1` the first
        folder of its path (`folder:2` the first two).
    features, labels, text, id_column, encoder, device, missing, header_row, skip_bad : object
        How both are read and embedded, see `handful.classification.Reading`.
    prior, candidates, given, new_classes, sequence, pool, order, coarse, expect_unknown : object
        What is known about the batch, see `Known`; as files and columns, see `handful.classification.known`.
    unknown : str, optional
        The label of items that look like none of the classes, as in `BatchClassifier.predict`. By default they get the
        closest class.
    method : str, optional
        A method of `handful_fewshot` that labels the batch instead of the default, such as `paddle`. It has examples
        and no groups, is labelled in memory, and tells neither the chance that a class is present nor unknown items.
    on_progress : callable, optional
        Called with a `handful.progress.Progress` after every part of a pass, and while images or sentences are
        embedded. By default there is a bar for each, on a terminal and in a notebook, if they take long.

    Returns
    -------
    Answer
        What was found; `about` has the items.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> folder = Path(tempfile.mkdtemp())
    >>> np.savez(folder / "catalogue.npz", features=np.eye(3), labels=["cat", "dog", "fox"])
    >>> np.save(folder / "batch.npy", np.eye(3)[[1, 1, 0, 1]])
    >>> found = classify(folder / "catalogue.npz", folder / "batch.npy")
    >>> found.labels.tolist(), found.present_classes.tolist()
    (['dog', 'dog', 'cat', 'dog'], ['dog', 'cat'])
    >>> np.savez(folder / "batch.npz", features=np.eye(3)[[1, 1, 0, 1]], site=["wood", "wood", "marsh", "wood"])
    >>> found = classify(folder / "catalogue.npz", folder / "batch.npz", group_by="site")
    >>> found["wood"].labels.tolist()
    ['dog', 'dog', 'dog']
    """
    reading, known = divided(options)
    inputs = read_inputs(catalogue, batch, names=names, **reading)
    task = check(inputs, group_by=group_by, method=method, unknown=unknown, **known)
    with bars("classify", on_progress) as listener:
        fitted = embed(task, on_progress=listener)
        return label_batch(fitted, on_progress=listener)


def embed(task: Task, *, on_progress: Listener | None = None) -> Fitted:
    """Embed images and sentences, and fit the catalogue unless it is fitted.

    Parameters
    ----------
    task : Task
        From `check`.
    on_progress : callable, optional
        Called with a `handful.progress.Progress`.

    Returns
    -------
    Fitted
        What `label_batch` labels.
    """
    examples = task.examples
    shown = task.inputs.shown
    table = task.inputs.catalogue
    skipped = table.skipped if isinstance(table, Table) else ()
    if isinstance(examples, Items):
        vectors, lost = _vectors_of(examples, task, "catalogue", on_progress)
        unread = [Skipped(examples.rows[at], examples.names[at], reason) for at, reason in lost.items()]
        assert isinstance(table, Table)
        warn_of_skipped(table.where, unread, len(examples))
        skipped = (*examples.skipped, *unread)
        read = examples.take([at for at in range(len(examples)) if at not in lost])
        shown = Shown(read.source, read.names, np.array(read.class_names)[read.labels])
        made_by = Provenance(encoder=task.network.recorded)
        bank = FeatureBank.from_arrays(vectors, read.labels, read.class_names, provenance=made_by)
        examples = bank.without_empty_classes()
    batch = task.batch
    rows = cast(Sequence[int], range(len(task.batch.rows)))
    if batch.items is not None:
        batch, rows = _batch_embedded(task, batch.items, on_progress)
    own = examples if isinstance(examples, FeatureBank) else None
    if task.method is not None:
        assert own is not None
        return Fitted(task, None, tuple(own.class_names), own, batch, rows, skipped, shown)
    catalogue, classes = _fitted(examples, task)
    fitted = Fitted(task, catalogue, classes, own, batch, rows, skipped, shown)
    if fitted.points.shape[1] != catalogue.dim:
        raise catalogue.other_length(fitted.points.shape[1], "those of the batch")
    return fitted


def _vectors_of(items: Items, task: Task, side: str, listener: Listener | None) -> tuple[np.ndarray, dict[int, str]]:
    """Embed the items of one side; return their vectors, and why some have none, by their positions."""
    report = Reporter(listener).stage(f"embed the {side}", len(items), 0, CALLED[items.kind][1])
    return embed_items(items, task.network, report)


def _batch_embedded(task: Task, items: Items, on_progress: Listener | None) -> tuple[Batch, Sequence[int]]:
    """Embed the items of the batch whose contents the catalogue does not know."""
    known = {} if task.inputs.vectors is None else known_vectors(task.inputs.vectors, items)
    if not known:
        points, lost = _vectors_of(items, task, "batch", on_progress)
        return task.batch.with_points(points, lost, task.network.recorded)
    others = [at for at in range(len(items)) if at not in known]
    new: Any = ()
    unread = dict[int, str]()
    if others:
        new, lost = _vectors_of(items.take(others), task, "batch", on_progress)
        unread = {others[at]: reason for at, reason in lost.items()}
        others = [at for at in others if at not in unread]
    encoder = recorded_encoders(task.inputs, task.examples, task.batch)[0]
    return task.batch.with_points(in_order(len(items), known, others, new), unread, encoder)


def label_batch(
    fitted: Fitted,
    *,
    on_progress: Listener | None = None,
    keep: bool = False,
    left_out: Collection[int] = (),
    **changes: Unpack[Known],
) -> Answer:
    """Label the batch; call it again with something else that is known about it.

    Parameters
    ----------
    fitted : Fitted
        From `embed`.
    on_progress : callable, optional
        Called with a `handful.progress.Progress` while a large batch is labelled.
    keep : bool
        Whether the answer keeps the probabilities of all classes also where there are groups.
    left_out : collection of int
        Positions in `fitted.batch` of items that are unfit to be labelled: they have no label, and no part in others.
    **changes : object
        What is known about the batch, see `Known`, instead of what `check` was given. `given` names all labels
        that were given, also those of earlier calls.

    Returns
    -------
    Answer
        What was found; `about` has the items.
    """
    task = fitted.task.with_known(**changes) if changes else fitted.task
    if fitted.catalogue is None:
        assert fitted.examples is not None
        answer = _by_method(task.method, fitted.examples, fitted.points)
        similar = similar_names(fitted.classes, fitted.examples.class_sizes.tolist())
        return _with_about(fitted, task, answer, similar=tuple(similar), method=task.method.method)
    given, lost = task.given_to(fitted.rows)
    # A class of which no example could be read is one that a person named, if an item was given it.
    new_classes = new_labels(given, fitted.classes)
    classes = (*fitted.classes, *new_classes)
    checked = {name: k for k, name in enumerate(task.contexts.classes.tolist())}
    contexts = task.contexts.of(fitted.rows, [checked[name] for name in classes])
    labels = contexts.labels_of(given)
    points = fitted.points
    found = with_given(fitted.catalogue, points, labels, range(len(classes)))
    catalogue = found.catalogue
    contexts = contexts.with_given(found.given.of_items(len(points))).excluding(left_out)
    about: dict[str, Any] = {
        "given": labels,
        "n_named": len(new_classes),
        "similar": tuple(similar_names(classes, catalogue.shots[: len(classes)].tolist())),
        "not_applied": tuple(lost),
    }
    items = ModelItems(catalogue, points, contexts.classes)
    if task.is_large and contexts.excluded is None:
        return _with_about(fitted, task, label_large(items, contexts, on_progress), **about)
    batches = Batches(items, contexts)
    # Without groups the table is small; a copy of the batch may have room for it in any case.
    grouped = task.batch.groups is not None
    writer = writer_of(task.batch.source)
    keep = keep or not grouped or (writer is not None and writer.probabilities)
    answer = batches.answer(keep=keep, most_in_doubt=MOST_EXPLAINED if grouped else 0)
    return _with_about(fitted, task, answer, batches=batches, **about)


def _with_about(fitted: Fitted, task: Task, answer: Answer, **about: Any) -> Answer:
    """Return the answer with what it is about."""
    groups = task.batch.groups
    labelled = About(
        fitted.batch,
        fitted.n_examples + sum(k is not None for k in about.get("given", {}).values()),
        fitted.encoder,
        group_by=() if groups is None else groups.columns,
        unknown_label=task.unknown_label,
        shown=_shown(fitted, answer if groups is None else None),
        skipped_examples=fitted.skipped_examples,
        inputs=task.inputs.paths,
        **about,
    )
    return replace(answer, about=labelled)


def _fitted(examples: GivenExamples, task: Task) -> tuple[FittedModel, tuple[str, ...]]:
    """Return the catalogue of examples and names, whose classes are positions, and the names of these."""
    classes = class_names_of(examples)
    fitted = FittedModel.of_bank(examples) if isinstance(examples, FeatureBank) else None
    if isinstance(examples, FittedModel):
        fitted = examples.relabelled(np.arange(examples.n_classes))
    if task.inputs.names is not None:
        fitted, classes = with_names(fitted, classes, task.inputs.names, task.network)
    assert fitted is not None
    return fitted, classes


def _by_method(classifier: Any, examples: FeatureBank, points: Any) -> Answer:
    """Label the batch by a method of `handful_fewshot`."""
    names = np.array(examples.class_names, dtype=object)
    answer: Answer = classifier.fit(np.asarray(examples.features, np.float32), names[examples.labels]).infer(points)
    # From the order of the labels to that of the catalogue.
    order = np.argsort(names.astype(str), kind="stable")
    position = np.argsort(order)
    return replace(
        answer,
        classes=names,
        codes=np.where(answer.codes < 0, -1, order[answer.codes]),
        _table=answer.probabilities[:, position],
        expected_counts=answer.expected_counts[position],
        presence=answer.presence[position],
    )


def _shown(fitted: Fitted, answer: Answer | None) -> Shown | None:
    """Return the examples if they can be shown; with an answer, an item has the one of its label nearest to it."""
    shown = fitted.shown
    bank = fitted.examples
    if shown is None:
        return None
    if bank is not None:
        codes = bank.labels
        positions = np.arange(bank.n_rows)
    else:
        assert fitted.catalogue is not None
        examples = fitted.catalogue.examples
        codes = examples.labels
        positions = examples.positions
    nearest = {}
    for item in () if answer is None else np.argsort(answer.certainty, kind="stable")[:MOST_ITEMS].tolist():
        assert answer is not None
        rows = np.flatnonzero(codes == answer.codes[item, 0])
        if len(rows) == 0:  # a class of a person, or of a name alone, has no example to show
            continue
        points = (bank.take(rows) if bank is not None else examples.points[rows]).astype(np.float64)
        lengths = np.linalg.norm(points, axis=1).clip(min=np.finfo(float).tiny)
        nearest[item] = int(positions[rows[(points @ np.asarray(fitted.points[item], np.float64) / lengths).argmax()]])
    return replace(shown, nearest=nearest)
