"""classify: from a catalogue and a batch, each vectors, images or sentences, to a label for every item of the batch.

Images and sentences are embedded first, with one backbone for both sides. A bank records which backbone made it, so a
batch of photographs can be labelled with a bank of photographs without naming it.

A batch whose dense arrays would be large (`dense_bytes`) is streamed by `handful.large`; any other is solved in memory.
A batch with groups is many batches: each group is labelled jointly, in memory.

One long file: it is one function, and everything that can be refused is refused before items are embedded.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Unpack

import numpy as np

from handful import large
from handful.banks import FeatureBank
from handful.banks.class_names import similar_names
from handful.catalogue import Catalogue
from handful.classification.grouping import Grouping
from handful.classification.known import KnownFiles, coarse_column, columns_named, given_labels, known_of
from handful.classification.labelled import HASH_DIGITS, MOST_EXPLAINED, Batch, Classified, Shown
from handful.classification.names import NamedClasses, read_names, with_names
from handful.classification.paths import paths_read
from handful.classification.spectra import by_precursor, is_mgf
from handful.classification.tables import asked_columns
from handful.classification.voices import with_segments
from handful.engine.model import NO_CLASS
from handful.errors import BankError, OptionError
from handful.estimators.answer import Answer
from handful.estimators.batches import Batches, CatalogueItems
from handful.estimators.context import BatchContexts
from handful.estimators.given import with_given
from handful.estimators.unknown_share import UnknownShare
from handful.extraction.extract import extract, skipped_items
from handful.extraction.items import Items, Kind, list_items
from handful.machine.extras import import_extra
from handful.machine.outputs import refuse_overwriting
from handful.machine.threads import available_cores
from handful.reading.cells import is_h5ad
from handful.reading.choose import Vectors, labelled, unlabelled, with_labels, without_labels
from handful.reading.read import has_columns, may_have_bad_rows, may_hold_pickles, read
from handful.reading.skipped import Skipped, warn_of_skipped
from handful.runs import Executor, Progress, in_process

# Default backbones, if neither the caller nor a bank names one: both come inside packages and download nothing.
USUAL_BACKBONES: dict[Kind, str] = {"image": "efficientnet-lite0", "text": "minilm"}
EXTRAS: dict[Kind, str] = {"image": "images", "text": "text"}
# A batch is streamed when `dense_bytes` is larger. Labelling in memory holds several such copies at once.
MOST_DENSE_BYTES = 2**28
# Items beside which the page shows the nearest example.
MOST_ITEMS = 240


def dense_bytes(n_items: int, n_classes: int, n_examples: int, dim: int) -> int:
    """`4 (|Q| K + (|Q| + |S|) d)`: one copy of assignments and features in single precision."""
    return 4 * (n_items * n_classes + (n_items + n_examples) * dim)


def classify(
    catalogue: str | os.PathLike[str] | None,
    batch: str | os.PathLike[str],
    *,
    names: str | os.PathLike[str] | None = None,
    segments: str | os.PathLike[str] | None = None,
    precursor: float | None = None,
    group_by: str | Sequence[str] | None = None,
    backbone: str | None = None,
    features: str | None = None,
    labels: str | None = None,
    text: str | None = None,
    id_column: str | None = None,
    method: str | None = None,
    unknown: str | None = None,
    trust_pickle: bool = False,
    skip_bad: bool = False,
    device: str = "cpu",
    folder: str | os.PathLike[str] | None = None,
    executor: Executor | None = None,
    on_progress: Callable[[Progress], None] | None = None,
    **known: Unpack[KnownFiles],
) -> Classified:
    """Label every item of the batch jointly, with the classes of the catalogue.

    Batches with `dense_bytes` above `MOST_DENSE_BYTES` are streamed, unless they have groups.

    Parameters
    ----------
    catalogue : path
        Labelled examples: anything that `handful.read` reads, with labels. None if there are only names.
    batch : path
        Items to label: anything that `handful.read` reads; labels are ignored.
    names : path, optional
        Names or descriptions of the classes, as texts or as vectors, see `handful.classification.names`. A class with a
        name needs no examples.
    segments : path, optional
        Output of a diarisation tool for a batch of voices, `.rttm`: its lines are the items, in order. They have the
        columns `file`, `start`, `end`, `speaker` and `channel`.
    precursor : float, optional
        For mass spectra: only compounds of the catalogue with a precursor this close, in Da, are candidates of a
        spectrum. A spectrum without candidates belongs to no class. Both sides need a column `precursor_mz`.
    group_by : str or sequence of str, optional
        Column of the batch, or several, that say which group an item belongs to. Every group is then labelled as a
        separate batch. For items known by their paths, `folder` is the folder of an item, and `folder:1` the first
        folder of its path (`folder:2` the first two).
    backbone : str, optional
        A name as in `load_backbone`. By default the one that made the features of the other side; if neither side has
        features, `efficientnet-lite0` for images and `minilm` for sentences.
    features, labels : str, optional
        Names of the columns of vectors and labels, if they cannot be detected. For one column per dimension, `features`
        is the prefix of their names.
    text : str, optional
        Column of the sentences, by default `text`. With `features`, it is what a page shows.
    id_column : str, optional
        Column of the batch that identifies an item; by default one with a usual name, such as `id`.
    method : str, optional
        A method of `handful.fewshot` that labels the batch instead of the default, such as `paddle`. It has examples
        and no groups, is labelled in memory, and tells neither the chance that a class is present nor unknown items.
    unknown : str, optional
        The label of items that look like none of the classes, as in `BatchClassifier.predict`. By default they get the
        closest class.
    trust_pickle, skip_bad : bool
        Whether to open pickles, and to leave out any number of rows that cannot be read, see `handful.read`.
    device : str
        Where the backbone runs.
    folder : path, optional
        Where a streamed batch keeps its answers. Called again with the same folder, an interrupted run
        resumes. By default a temporary folder.
    executor : callable, optional
        What runs the streaming, see `handful.large.solve`. A batch with an executor is streamed, whatever its size. By
        default this process streams batches that are large.
    on_progress : callable, optional
        Called with a `handful.runs.Progress` after every part of a pass, and while images or sentences are embedded.
    **known : object
        What is known about the batch: `prior`, `candidates`, `given`, `new_classes`, `sequence`, `pool`, `order`,
        `coarse` and `expect_unknown`, see `KnownFiles`.

    Returns
    -------
    Classified
        The items, and the answer about them.

    Examples
    --------
    >>> folder = Path(tempfile.mkdtemp())
    >>> np.savez(folder / "catalogue.npz", features=np.eye(3), labels=["cat", "dog", "fox"])
    >>> np.save(folder / "batch.npy", np.eye(3)[[1, 1, 0, 1]])
    >>> found = classify(folder / "catalogue.npz", folder / "batch.npy")
    >>> found.predictions()["label"], found.answer.present_classes.tolist()
    (['dog', 'dog', 'cat', 'dog'], ['dog', 'cat'])
    >>> np.savez(folder / "batch.npz", features=np.eye(3)[[1, 1, 0, 1]], site=["wood", "wood", "marsh", "wood"])
    >>> found = classify(folder / "catalogue.npz", folder / "batch.npz", group_by="site")
    >>> found["wood"].predictions()["label"]
    ['dog', 'dog', 'dog']
    """
    catalogue, batch = None if catalogue is None else Path(catalogue), Path(batch)
    if catalogue is None and names is None:
        raise OptionError("give a catalogue of examples, names of the classes, or both; got neither")
    inputs = paths_read(known, catalogue=catalogue, batch=batch, names=names, segments=segments, backbone=backbone)
    refuse_overwriting(inputs, {"unfinished run": folder})
    named: NamedClasses | None = None
    if names is not None:
        beside = catalogue is not None
        named = read_names(
            Path(names), features, labels, text=text, beside=beside, trust_pickle=trust_pickle, skip_bad=skip_bad
        )
    if skip_bad and not any(may_have_bad_rows(Path(path)) for path in (catalogue, batch, names) if path is not None):
        raise OptionError("no input is a table, so none has rows that cannot be read; leave skip_bad out")
    by = () if group_by is None else asked_columns(group_by)
    by_method = (
        None
        if method is None
        else _method(
            method,
            {
                **known,
                "names": names,
                "group_by": group_by,
                "unknown": unknown,
                "precursor": precursor,
                "executor": executor,
            },
        )
    )
    columns = tuple(dict.fromkeys((*by, *columns_named(known))))
    items: dict[str, Items] = {}
    bank = vectors = None
    left_out: tuple[Skipped, ...] = ()
    sides = [path for path in (catalogue, batch) if path is not None]
    named_columns: dict[str, Any] = {"features": features, "text": text}
    tables = {
        path: read(
            path,
            trust_pickle=trust_pickle,
            skip_bad=skip_bad and may_have_bad_rows(path),
            **(named_columns if has_columns(path) else {}),
        )
        for path in sides
    }
    if segments is not None:
        if tables[batch].vectors is None:
            raise OptionError(f"segments need vectors of voices, and {batch} has none; leave segments out")
        tables[batch] = with_segments(tables[batch], Path(segments))
    takers = [path for path in sides if tables[path].vectors is not None and has_columns(path)]
    if features is not None and not takers and (named is None or named.vectors is None):
        raise OptionError(f"no input is a table of vectors, so none has a column {features!r}; leave it out")
    if text is not None and not any(tables[path].text for path in sides) and (named is None or named.texts is None):
        raise OptionError(f"no table has texts in a column {text!r}; leave it out")
    if trust_pickle and not any(map(may_hold_pickles, [*sides, *([] if names is None else [Path(names)])])):
        raise OptionError("no input file can contain a pickle; leave trust_pickle out")
    if catalogue is not None and tables[catalogue].vectors is None:
        items["catalogue"] = list_items(tables[catalogue], labels=labels)
        left_out = items["catalogue"].skipped
    elif catalogue is not None:
        examples_given = with_labels(tables[catalogue], labels)
        bank, left_out = labelled(examples_given), examples_given.skipped
    if tables[batch].vectors is None:
        items["batch"] = list_items(tables[batch], labelled=False, groups=columns, id_column=id_column)
    else:
        # In one file with the catalogue, the batch is the cells without a label.
        same = is_h5ad(batch) and catalogue is not None and catalogue.resolve() == batch.resolve()
        left = without_labels(tables[batch], labels) if same else tables[batch]
        vectors = unlabelled(left, groups=columns, id_column=id_column)
    no_candidate = list[int]()
    if precursor is not None:
        if catalogue is None or vectors is None or known.get("candidates") is not None:
            raise OptionError(
                "candidates by precursor need a catalogue and a batch of vectors, and no other candidates"
            )
        near = by_precursor(tables[catalogue], labels, vectors.columns.by_name, precursor)
        no_candidate = [item for item, found in enumerate(near) if found == []]
        known["candidates"] = [found or None for found in near]
    if catalogue is not None and known.get("coarse") in list(tables[catalogue].columns):
        known["coarse"] = coarse_column(tables[catalogue], labels, known["coarse"])
    listed = bank or items.get("catalogue")
    classes = tuple(dict.fromkeys((*(listed.class_names if listed else ()), *(named.labels if named else ()))))
    of_batch = vectors or items["batch"]
    whole = _of_vectors(vectors, batch) if vectors else _of_items(items["batch"])
    grouping = Grouping.of({name: of_batch.groups[name] for name in by}, str(batch)) if by else None
    # Refused before the work, which would be lost.
    given = given_labels(known, whole, classes)
    classes = (*classes, *given.new_classes(set(classes)))
    contexts = _contexts(known, whole, classes, grouping, {**dict.fromkeys(no_candidate), **given.labels})
    first = bank.provenance.backbone if bank else "" if named is None else named.made_by
    recorded = (first, vectors.backbone if vectors else "")
    of_texts = named is not None and named.texts is not None
    kinds = {one.kind for one in items.values()}
    if of_texts and not kinds and (backbone or any(recorded)):
        kinds = {"text"}  # for the names alone
    network = _backbone(backbone, kinds, recorded, len(items) == 2 or (of_texts and bank is None), device)
    n_items, dim = vectors.features.shape if vectors else (len(items["batch"]), network.dim)
    size = dense_bytes(n_items, len(classes), len(listed.labels) if listed else 0, dim)
    streams = grouping is None and (executor is not None or size > MOST_DENSE_BYTES)
    unfit = [name for name in ("sequence", "pool", "order", "coarse") if known.get(name)]
    if contexts.allowed is not None:
        unfit.append("candidates of single items")
    if streams and by_method is not None:
        raise OptionError(
            f"a batch of {n_items:,} items and {len(classes):,} classes is streamed, which only the default can "
            "do; leave the method out, or label smaller batches"
        )
    if streams and unfit:
        raise OptionError(
            f"a batch of {n_items:,} items is streamed, without {', '.join(unfit)}; leave it out, or label it in groups"
        )

    with tempfile.TemporaryDirectory(prefix="handful-") as work:
        embedded = {}
        for side, found in items.items():
            workers = in_process(available_cores())
            embedded[side] = extract(
                found,
                network,
                Path(work) / side,
                dtype="float32",
                executor=workers,
                on_progress=_embedding(side, on_progress),
            )
        if "catalogue" in items:
            left_out = _readable(items["catalogue"], embedded["catalogue"]).skipped
            unread = skipped_items(embedded["catalogue"])
            warn_of_skipped(str(catalogue), unread, len(items["catalogue"]))
        examples = embedded.get("catalogue") if bank is None else bank
        made_by = network.name if network else next(filter(None, recorded), "")
        if vectors is None:
            ready, points = _readable(items["batch"], embedded["batch"]), embedded["batch"].features
            kept: Sequence[int] = _kept(items["batch"], embedded["batch"])
        else:
            ready, points, kept = whole, vectors.features, range(n_items)
        fitted: Catalogue | None = None
        class_names: tuple[str, ...] = ()
        n_examples = 0
        if examples is not None:
            examples = examples.classes(np.flatnonzero(examples.class_sizes)) if 0 in examples.class_sizes else examples
            _refuse_equal_names(examples.class_names)
        if by_method is not None and examples is not None:
            answer = _by_method(by_method, examples, points)
            return Classified(
                ready,
                answer,
                examples.n_rows,
                made_by,
                shown=_shown(items, embedded, answer, points),
                skipped_examples=left_out,
                similar=tuple(similar_names(examples.class_names, examples.class_sizes.tolist())),
                inputs=inputs,
                method=method,
            )
        if examples is not None:
            fitted, class_names = Catalogue.of_bank(examples), tuple(examples.class_names)
            n_examples = examples.n_rows
        if named is not None:
            fitted, class_names = with_names(fitted, class_names, named, network)
        assert fitted is not None
        if points.shape[1] != fitted.dim:
            raise BankError(
                f"vectors of the catalogue have {fitted.dim} numbers, those of the batch {points.shape[1]}; "
                "both must come from the same backbone"
            )
        given = given.of_items(whole, kept)
        # A class of which no example could be read is one that a person named, if an item was given it.
        new_classes = given.new_classes(set(class_names))
        class_names = (*class_names, *new_classes)
        codes = {name: k for k, name in enumerate(class_names)}
        by_code = {item: None if label is None else codes[label] for item, label in given.labels.items()}
        places = {name: k for k, name in enumerate(classes)}
        contexts = contexts.of(kept, [places[name] for name in class_names])
        fitted, _, codes_of = with_given(
            fitted, points, {**dict.fromkeys(no_candidate), **by_code}, range(len(class_names))
        )
        about: dict[str, Any] = {
            "n_examples": n_examples + sum(k is not None for k in by_code.values()),
            "backbone": made_by,
            "unknown_label": unknown,
            "given": by_code,
            "n_named": len(new_classes),
            "skipped_examples": left_out,
            "similar": tuple(similar_names(class_names, fitted.shots.tolist())),
            "not_applied": given.not_applied,
            "inputs": inputs,
        }
        if streams:
            place = Path(work) / "run" if folder is None else Path(folder)
            run = large.solve(
                fitted,
                points,
                place,
                prior=None if contexts.prior is None else np.exp(contexts.prior.log_shares[0]),
                given=by_code,
                expect_unknown=None if contexts.unknown_share is None else UnknownShare(*contexts.unknown_share[0]),
                executor=executor,
                on_progress=on_progress,
            )
            answer = run.answer(contexts.classes)
            return Classified(ready, answer, streamed=True, shown=_shown(items, embedded, answer, points), **about)
        batches = Batches(CatalogueItems(fitted, points, codes_of, contexts.classes), contexts)
        # Without groups the table is small; a file of cells has room for it in any case.
        answer = batches.answer(
            keep=grouping is None or is_h5ad(batch), most_in_doubt=0 if grouping is None else MOST_EXPLAINED
        )
        shown = _shown(items, embedded, answer if grouping is None else None, points)
        return Classified(ready, answer, group_by=by, shown=shown, batches=batches, **about)


def _method(name: str, others: Mapping[str, Any]) -> Any:
    """Return the classifier of a method; refuse what only the default can use."""
    classifier = import_extra("handful.fewshot", "fewshot").MethodClassifier(name)
    classifier.check()
    if unfit := [option for option, value in others.items() if value is not None]:
        raise OptionError(f"the method {name!r} labels one batch with examples alone; leave out {', '.join(unfit)}")
    return classifier


def _by_method(classifier: Any, examples: FeatureBank, points: Any) -> Answer:
    """Label the batch by a method of `handful.fewshot`."""
    names = np.array(examples.class_names, dtype=object)
    answer: Answer = classifier.fit(np.asarray(examples.features, np.float32), names[examples.labels]).infer(points)
    # From the order of the labels to that of the catalogue.
    order = np.argsort(names.astype(str), kind="stable")
    place = np.argsort(order)
    return replace(
        answer,
        classes=names,
        codes=np.where(answer.codes < 0, -1, order[answer.codes]),
        table=answer.probabilities[:, place],
        expected_counts=answer.expected_counts[place],
        presence=answer.presence[place],
    )


def _contexts(
    known: KnownFiles,
    batch: Batch,
    class_names: Sequence[str],
    grouping: Grouping | None,
    given: Mapping[int, str | None],
) -> BatchContexts:
    """Read and check what is known about the items; their names are a column too."""
    column = grouping.columns[0] if grouping is not None and len(grouping.columns) == 1 else ""
    columns = {"item": list(batch.names), **batch.columns.by_name}
    about = known_of(known, columns, class_names, None if grouping is None else grouping.names, column)
    classes = np.empty(len(class_names), dtype=object)
    classes[:] = class_names
    codes = None
    if given:
        places, codes = {name: k for k, name in enumerate(class_names)}, np.full(len(batch.rows), -1)
        codes[list(given)] = [NO_CLASS if label is None else places[label] for label in given.values()]
    groups = None if grouping is None else grouping.names[grouping.group_of]
    return BatchContexts(about, classes, len(batch.rows), groups, codes)


def _embedding(side: str, listener: Callable[[Progress], None] | None) -> Callable[[Progress], None] | None:
    """Return what names the side in the reports of an extraction."""
    return None if listener is None else lambda progress: listener(replace(progress, stage=f"embed the {side}"))


def _shown(
    items: Mapping[str, Items], embedded: Mapping[str, FeatureBank], answer: Answer | None, points: Any
) -> Shown | None:
    """Return the examples if they can be shown; with an answer, an item has the one of its label nearest to it."""
    if "catalogue" not in items:
        return None
    bank, catalogue = embedded["catalogue"], _readable(items["catalogue"], embedded["catalogue"])
    assert catalogue.contents is not None
    # A class of which no example could be read has no place among the answers.
    codes = np.cumsum(bank.class_sizes > 0) - 1
    own, nearest = codes[bank.labels], {}
    for item in () if answer is None else np.argsort(answer.certainty, kind="stable")[:MOST_ITEMS].tolist():
        assert answer is not None
        rows = np.flatnonzero(own == answer.codes[item, 0])
        if len(rows) == 0:  # a class of a person, or of a name alone, has no example to show
            continue
        examples = bank.take(rows).astype(np.float64)
        lengths = np.linalg.norm(examples, axis=1).clip(min=np.finfo(float).tiny)
        nearest[item] = int(rows[(examples @ np.asarray(points[item], np.float64) / lengths).argmax()])
    return Shown(catalogue.contents, catalogue.names, np.array(bank.class_names)[bank.labels], nearest)


def _backbone(asked: str | None, kinds: set[Kind], recorded: tuple[str, str], both: bool, device: str) -> Any:
    """Return the backbone for the items, or None if there are none; refuse two sides that do not fit together."""
    if all(recorded) and recorded[0] != recorded[1]:
        raise BankError(
            f"the catalogue was made by {recorded[0]}, the batch by {recorded[1]}; make both with the same backbone"
        )
    if not kinds:
        if asked is not None:
            raise OptionError("a backbone is for images and sentences, but both sides are features; leave it out")
        if device != "cpu":
            raise OptionError(f"device {device!r} is for a backbone, but both sides are features; leave it out")
        return None
    if len(kinds) > 1:
        raise OptionError("catalogue and batch must both be images or both be sentences")
    made_by, _, weights = next(filter(None, recorded), "").partition(", weights ")
    if asked is None and not made_by and not both:
        raise OptionError(
            "which backbone made the features is not recorded; name it with `backbone`: the items need the same one"
        )
    (kind,) = kinds
    backbones = import_extra("handful.extraction.backbones", EXTRAS[kind])  # with torch, which vectors do not need
    network = backbones.load_backbone(asked or made_by or USUAL_BACKBONES[kind], device=device)
    if weights and weights != network.weights_hash:
        raise BankError(
            f"backbone {network.name} has weights {network.weights_hash[:12]}…, but the given features were made by "
            f"{made_by} with weights {weights[:12]}…; use that one, or make the features again"
        )
    return network


def _refuse_equal_names(names: Sequence[str]) -> None:
    """Refuse a catalogue with repeated class names, which would make answers ambiguous."""
    if len(set(names)) != len(names):
        repeated = next(name for k, name in enumerate(names) if name in names[:k])
        raise BankError(
            f"the catalogue has more than one class named {repeated!r}, and labels are given by name; rename one"
        )


def _of_vectors(vectors: Vectors, path: Path) -> Batch:
    source = path if is_h5ad(path) or is_mgf(path) else None

    def content(item: int) -> str:
        """Hash the text of an item; its vector, where it has none."""
        said = vectors.texts[item].encode("utf-8", "surrogatepass") if vectors.texts else None
        vector = np.ascontiguousarray(vectors.features[item], np.float32)
        return hashlib.sha256(vector.data if said is None else said).hexdigest()[:HASH_DIGITS]

    return Batch(vectors.rows, vectors.names, vectors.texts, vectors.skipped, vectors.columns, source, content)


def _of_items(items: Items) -> Batch:
    def content(item: int) -> str:
        return items.hashes[item][:HASH_DIGITS]

    return Batch(items.rows, items.names, items.source, items.skipped, items.columns, content=content)


def _kept(items: Items, bank: FeatureBank) -> list[int]:
    """Return the items that have a vector."""
    lost = {item.row for item in skipped_items(bank)}
    rows = [row for row in range(len(items)) if row not in lost]
    if len(rows) != bank.n_rows:
        raise BankError(f"{bank.n_rows} vectors for {len(rows)} of {len(items)} items; extract their features again")
    return rows


def _readable(items: Items, bank: FeatureBank) -> Batch:
    """Leave out the items that could not be read."""
    skipped = [replace(item, row=items.rows[item.row]) for item in skipped_items(bank)]
    return replace(_of_items(items).of_items(_kept(items, bank)), skipped=(*items.skipped, *skipped))
