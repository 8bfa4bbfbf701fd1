"""What `classify` is asked for: files to tables, and whatever can be refused before items are embedded."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Unpack, cast

import numpy as np

from handful.arguments import some_of
from handful.banks import FeatureBank
from handful.catalogue.file import is_catalogue_file
from handful.classification.batch import Batch
from handful.classification.files import asked_columns, paths_read
from handful.classification.from_catalogue import examples_at
from handful.classification.known import (
    coarse_column,
    columns_named,
    new_labels,
    read_known,
)
from handful.classification.labelled import Shown
from handful.classification.measured import scaled
from handful.classification.names import NamedClasses, read_names
from handful.errors import BankError, HandfulError, OptionError
from handful.estimators.context import BatchContexts, Known
from handful.extensions import method_classifier
from handful.extraction.items import Items, list_items
from handful.extraction.options import Reading, asked_of, load_network
from handful.fitted import FittedModel, load_model
from handful.fitted.files import is_model_path
from handful.reading.class_names import is_missing
from handful.reading.labels import label_column, labelled, parted, with_labels, without_labels
from handful.reading.read import in_hand, kind_of, read_input, refuse_useless
from handful.reading.registry import candidate_rule
from handful.reading.table import Skipped, Table

# A batch is large when its `dense_bytes` are more: labels with all probabilities hold several such copies at once.
MOST_DENSE_BYTES = 2**28

PathLike = str | os.PathLike[str]
# Vectors or contents of the examples, or a fitted catalogue; None if there are only names.
GivenExamples = FeatureBank | Items | FittedModel | None


class CandidatesByRule(list[list[str] | None]):
    """Classes that each item can have, by a rule of a field; None means all, and an empty list that it has none."""


@dataclass(frozen=True, eq=False)
class Inputs:
    """What was read.

    Attributes
    ----------
    catalogue : Table, FittedModel or None
        Labelled examples, or a fitted catalogue; None if there are only names.
    batch : Table
        Items to label.
    names : NamedClasses or None
        Names of classes.
    reading : Reading
        How they were read, and how items are embedded.
    paths : mapping of str to Path
        The files and folders, by what they are.
    shown : Shown or None
        What the examples look like, in their order, if that is known from elsewhere.
    vectors : Path or None
        The catalogue that has vectors of contents.
    """

    catalogue: Table | FittedModel | None
    batch: Table
    names: NamedClasses | None = None
    reading: Reading = field(default_factory=Reading)
    paths: Mapping[str, Path] = field(default_factory=dict)
    shown: Shown | None = None
    vectors: Path | None = None

    @property
    def labels(self) -> str | None:
        """Column of the labels, if the caller named it."""
        return self.reading.get("labels")


@dataclass(frozen=True, eq=False)
class Task:
    """What is to be done; whatever could be refused was refused.

    Attributes
    ----------
    inputs : Inputs
        What was read.
    examples : FeatureBank, Items, FittedModel or None
        Vectors or contents of the examples, or a fitted catalogue; None if there are only names.
    batch : Batch
        The items to label.
    classes : tuple of str
        Classes of examples and names.
    known : Known
        What is known about the batch, as the caller gave it.
    contexts : BatchContexts
        The same in the form of the model; its classes include new ones of `given`.
    given : mapping
        Labels that a person gave, by positions in the batch.
    network : Encoder or None
        What embeds images or sentences; None if both sides are vectors.
    method : classifier or None
        Of `handful_fewshot`; None for the default.
    is_large : bool
        Whether the probabilities of all classes would take much memory.
    unknown_label : str or None
        As in `About`.
    """

    inputs: Inputs
    examples: GivenExamples
    batch: Batch
    classes: tuple[str, ...]
    known: Known
    contexts: BatchContexts
    given: Mapping[int, str | None]
    network: Any
    method: Any
    is_large: bool
    unknown_label: str | None

    def with_known(self, **changes: Unpack[Known]) -> Task:
        """Return the same task with something else that is known about the batch, checked."""
        known = cast(Known, {**self.known, **changes})
        contexts, given = _engine_terms(known, self.batch, self.classes)
        return replace(self, known=known, contexts=contexts, given=given)

    def given_to(self, rows: Sequence[int]) -> tuple[dict[int, str | None], list[Skipped]]:
        """Return the labels given to the items at these positions, and what was not applied to others."""
        batch = self.batch
        position = {item: at for at, item in enumerate(rows)}
        lost = [item for item in self.given if item not in position]
        return (
            {position[item]: label for item, label in self.given.items() if item in position},
            [Skipped(batch.rows[item], batch.names[item], "it could not be read") for item in lost],
        )


def dense_bytes(n_items: int, n_classes: int, n_examples: int, dim: int) -> int:
    """`4 (|Q| K + (|Q| + |S|) d)`: one copy of assignments and features in single precision."""
    return 4 * (n_items * n_classes + (n_items + n_examples) * dim)


def read_inputs(
    catalogue: PathLike | None,
    batch: PathLike,
    *,
    names: PathLike | None = None,
    **reading: Unpack[Reading],
) -> Inputs:
    """Read the files; the arguments are those of `classify`."""
    asked = asked_of(reading)
    for one in (catalogue, batch):
        if one is not None and in_hand(one):
            raise OptionError(
                f"classify takes paths, got {type(one).__name__}; for a frame there is handful.label, for vectors "
                "handful.BatchClassifier"
            )
    if catalogue is None and names is None:
        raise OptionError("give a catalogue of examples, names of the classes, or both; got neither")
    paths = paths_read({}, catalogue=catalogue, batch=batch, names=names)
    if asked.skip_bad and not any(kind_of(path).rows for path in paths.values()):
        raise OptionError("no input is a table, so none has rows that cannot be read; leave skip_bad out")
    named = None if names is None else read_names(Path(names), beside=catalogue is not None, **reading)
    refuse_useless([one for one in (catalogue, batch) if one is not None], asked)
    examples: Table | FittedModel | None = None
    shown = vectors = None
    if catalogue is not None and is_catalogue_file(catalogue):
        examples, shown = examples_at(Path(catalogue))
        vectors = Path(catalogue)
    elif catalogue is not None:
        examples = load_model(catalogue) if is_model_path(catalogue) else read_input(catalogue, asked)
    items = read_input(batch, asked)
    given = {"catalogue": catalogue, "batch": batch}
    tables = {name: one for name, one in (("catalogue", examples), ("batch", items)) if isinstance(one, Table)}
    takers = [name for name, one in tables.items() if one.vectors is not None and kind_of(given[name]).columns]
    if asked.features is not None and not takers and (named is None or named.vectors is None):
        columns = {one.where: list(one.columns) for one in tables.values() if one.columns}
        there = "; ".join(f"{where} has {some_of(names)}" for where, names in columns.items()) or "none has columns"
        raise OptionError(f"no input has a column {asked.features!r} for the features: {there}; leave it out")
    with_texts = any(one.text for one in tables.values()) or (named is not None and named.texts is not None)
    if asked.text is not None and not with_texts:
        raise OptionError(f"no table has texts in a column {asked.text!r}; leave it out")
    return Inputs(examples, items, named, reading, paths, shown, vectors)


def check(
    inputs: Inputs,
    *,
    group_by: str | Sequence[str] | None = None,
    method: str | None = None,
    unknown: str | None = None,
    **known: Unpack[Known],
) -> Task:
    """Check everything that can be refused before items are embedded; the arguments are those of `classify`."""
    id_column = inputs.reading.get("id_column")
    encoder = inputs.reading.get("encoder")
    by = () if group_by is None else asked_columns(group_by)
    classifier = None
    if method is not None:
        others = {"names": inputs.names, "group_by": group_by, "unknown": unknown}
        classifier = _method(method, {**known, **others})
    paths = {**inputs.paths, **paths_read(known, encoder=encoder)}
    beside = {*by, *columns_named(known), inputs.labels, id_column}
    missing = inputs.reading.get("missing")
    features = inputs.reading.get("features")
    inputs = replace(inputs, **scaled(inputs.catalogue, inputs.batch, beside, missing, features))
    inputs = _apart(inputs)
    batch = Batch.of(inputs.batch, group_by=by, columns=columns_named(known), id_column=id_column)
    known = _by_catalogue(known, inputs, batch)
    table, examples = _examples(inputs.catalogue, inputs.labels)
    inputs = replace(inputs, catalogue=table, paths=paths)
    if classifier is not None and isinstance(examples, FittedModel):
        raise OptionError("a method needs the examples themselves; give the folder or table that the catalogue is of")
    named = () if inputs.names is None else inputs.names.labels
    classes = tuple(dict.fromkeys((*class_names_of(examples), *named)))
    terms = _engine_terms(known, batch, classes)
    network = _encoder(inputs, examples, batch)
    task = Task(inputs, examples, batch, classes, known, *terms, network, classifier, False, unknown)
    return replace(task, is_large=_is_large(task))


def _examples(
    table: Table | FittedModel | None, labels: str | None
) -> tuple[Table | FittedModel | None, GivenExamples]:
    """Return the rows that have a label, and their vectors or contents; a fitted catalogue is both."""
    if not isinstance(table, Table):
        return table, table
    if table.vectors is None:
        return table, list_items(table, labels=labels)
    table = with_labels(table, labels)
    bank = labelled(table).without_empty_classes()
    _refuse_equal_names(bank.class_names)
    return table, bank


def class_names_of(examples: GivenExamples) -> tuple[str, ...]:
    """Return the names of the classes that have examples."""
    if isinstance(examples, FittedModel):
        return tuple(map(str, examples.classes.tolist()))
    return () if examples is None else tuple(examples.class_names)


def _apart(inputs: Inputs) -> Inputs:
    """Return examples and batch apart where one file has both: its rows with a label, and those without.

    A table in which every row has a label is labelled as a whole, as if it had none.
    """
    first, second = (inputs.paths.get(name) for name in ("catalogue", "batch"))
    if first is None or second is None or first.resolve() != second.resolve():
        return inputs
    if not isinstance(inputs.catalogue, Table) or (inputs.labels is None and inputs.batch.classes is not None):
        return inputs
    column = label_column(inputs.catalogue, inputs.labels)
    has_all = not any(is_missing(label, inputs.batch.no_label) for label in inputs.batch.values(column))
    if has_all and not kind_of(second).holds_both:
        return inputs
    examples, _ = parted(inputs.catalogue, column)
    return replace(inputs, catalogue=examples, batch=without_labels(inputs.batch, column))


def _by_catalogue(known: Known, inputs: Inputs, batch: Batch) -> Known:
    """Replace what columns of the catalogue stand for: coarse classes, and candidates by a rule."""
    table = inputs.catalogue
    known = known.copy()
    if isinstance(table, FittedModel):
        table = _table_of(table)
    if (found := candidate_rule(known.get("candidates"))) is not None:
        rule, value = found
        if not isinstance(table, Table) or batch.points is None:
            raise OptionError(
                f"candidates by {known['candidates']} need a catalogue of examples and a batch of vectors"
            )
        known["candidates"] = CandidatesByRule(rule(table, inputs.labels, batch.columns.by_name, value))
    if isinstance(table, Table) and known.get("coarse") in list(table.columns):
        known["coarse"] = coarse_column(table, inputs.labels, known["coarse"])
    return known


def _table_of(catalogue: FittedModel) -> Table:
    """Return the examples of a catalogue as a table of what is recorded about them."""
    positions = catalogue.examples.positions.tolist()
    columns = {name: [of.get(at) for at in positions] for name, of in catalogue.record.columns.items()}
    return Table("the catalogue", len(positions), columns=columns, classes=catalogue.examples.labels.tolist())


def _engine_terms(known: Known, batch: Batch, classes: Sequence[str]) -> tuple[BatchContexts, Mapping[int, str | None]]:
    """Read and check what is known; return it for the model, and the labels of a person."""
    impossible = without_candidates(known)
    n_items = len(batch.rows)
    groups = batch.groups
    if impossible:
        known = cast(Known, {**known, "candidates": [names or None for names in known["candidates"]]})
    about = read_known(known, batch, classes)
    given = about.get("given") or {}
    known_classes = len(classes)
    classes = (*classes, *new_labels(given, classes))
    new = np.arange(len(classes)) >= known_classes
    codes = None
    if given:
        position = {name: k for k, name in enumerate(classes)}
        codes = np.full(n_items, -1)
        # Which class without a name an item has is found out when it is compared.
        codes[list(given)] = [len(classes) if name is None else position[name] for name in given.values()]
    left_out = {*impossible} - given.keys()
    of_items = None if groups is None else groups.of_items
    names = np.array(classes, dtype=object)
    contexts = BatchContexts(about, names, n_items, of_items, codes, new=new)
    return contexts.excluding(left_out), given


def without_candidates(known: Known) -> list[int]:
    """Return the items that belong to no class, by the rule of candidates."""
    candidates = known.get("candidates")
    if not isinstance(candidates, CandidatesByRule):
        return []
    return [item for item, names in enumerate(candidates) if names == []]


def _is_large(task: Task) -> bool:
    """Whether the probabilities of all classes would take much memory; refuse what needs them."""
    examples = task.examples
    n_items = len(task.batch.rows)
    n_classes = len(task.contexts.classes)
    n_examples = 0 if examples is None or isinstance(examples, FittedModel) else len(examples.labels)
    dim = task.network.dim if task.batch.points is None else task.batch.points.shape[1]
    size = dense_bytes(n_items, n_classes, n_examples, dim)
    if task.batch.groups is not None or size <= MOST_DENSE_BYTES:
        return False
    if task.method is not None:
        raise OptionError(
            f"a batch of {n_items:,} items and {n_classes:,} classes is too large for a method; leave the "
            "method out, or label smaller batches"
        )
    unfit = [name for name in ("sequence", "pool", "order", "coarse") if task.known.get(name)]
    if task.contexts.allowed is not None:
        unfit.append("candidates of single items")
    if unfit:
        raise OptionError(
            f"a batch of {n_items:,} items and {n_classes:,} classes is too large for {', '.join(unfit)}; leave "
            "it out, or label the batch in groups"
        )
    return True


def _method(name: str, others: Mapping[str, Any]) -> Any:
    """Return the classifier of a method; refuse what only the default can use."""
    classifier = method_classifier(name)
    classifier.check()
    if unfit := [option for option, value in others.items() if value is not None]:
        raise OptionError(f"the method {name!r} labels one batch with examples alone; leave out {', '.join(unfit)}")
    return classifier


def recorded_encoders(inputs: Inputs, examples: GivenExamples, batch: Batch) -> tuple[str, str]:
    """Return the encoders that made the vectors of catalogue and batch, as far as the files say."""
    first = "" if inputs.names is None else inputs.names.made_by
    if isinstance(examples, FeatureBank):
        first = examples.provenance.encoder
    elif isinstance(examples, FittedModel):
        first = examples.record.encoder
    return first, batch.encoder


def _encoder(inputs: Inputs, examples: GivenExamples, batch: Batch) -> Any:
    """Return the encoder for the items, or None if there are none; refuse two sides that do not fit together."""
    asked = inputs.reading.get("encoder")
    device = inputs.reading.get("device", "cpu")
    recorded = recorded_encoders(inputs, examples, batch)
    items = batch.items
    of_texts = inputs.names is not None and inputs.names.texts is not None
    kinds = {one.kind for one in (examples, items) if isinstance(one, Items)}
    # With neither side a bank, both are embedded with the usual encoder.
    usual = items is not None and (isinstance(examples, Items) or (of_texts and examples is None))
    if of_texts and not kinds and (asked or any(recorded)):
        kinds = {"text"}  # for the names alone
    if all(recorded) and not _same_encoder(*recorded):
        raise BankError(
            f"the catalogue was made by {recorded[0]}, the batch by {recorded[1]}; make both with the same encoder"
        )
    if not kinds:
        if asked is not None:
            raise OptionError("an encoder is for images and sentences, but both sides are features; leave it out")
        if device != "cpu":
            raise OptionError(f"device {device!r} is for an encoder, but both sides are features; leave it out")
        return None
    if len(kinds) > 1:
        raise OptionError("catalogue and batch must both be images or both be sentences")
    made_by, _, weights = next(filter(None, recorded), "").partition(", weights ")
    if asked is None and not made_by and not usual:
        raise OptionError(
            "which encoder made the features is not recorded; name it with `encoder`: the items need the same one"
        )
    (kind,) = kinds
    network = load_network(kind, asked or made_by, device)
    if weights and not network.has_weights(weights):
        raise BankError(
            f"encoder {network.name} has weights {network.weights_hash[:12]}…, but the given features were made by "
            f"{made_by} with weights {weights[:12]}…; use that one, or make the features again"
        )
    return network


def _same_encoder(first: str, second: str) -> bool:
    """Whether two records name one encoder; a catalogue knows its numbers, and a bank its numbers and layers."""
    if first == second:
        return True
    name, _, weights = first.partition(", weights ")
    other, _, others = second.partition(", weights ")
    if name != other or not weights or not others:
        return False
    try:
        network = load_network("image", name, "cpu")
    except (HandfulError, ImportError):
        return False
    return bool(network.has_weights(weights) and network.has_weights(others))


def _refuse_equal_names(names: Sequence[str]) -> None:
    """Refuse a catalogue with repeated class names, which would make answers ambiguous."""
    if len(set(names)) != len(names):
        repeated = next(name for k, name in enumerate(names) if name in names[:k])
        raise BankError(
            f"the catalogue has more than one class named {repeated!r}, and labels are given by name; rename one"
        )
