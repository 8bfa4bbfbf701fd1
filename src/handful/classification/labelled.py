"""What an answer about files is about: the items, with their names and columns, and what they were compared with.

`Answer.about` has it. What page, terminal and files say are functions of the answer.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from handful.arguments import counted, some_of
from handful.classification.batch import Batch
from handful.errors import OptionError
from handful.estimators.answer import (
    Answer,
    groups_of_items,
    is_judged,
    item_columns,
    rows_of_groups,
    sizes_of,
    unnamed_groups,
)
from handful.estimators.batches import Batches
from handful.estimators.diagnostics import Diagnostic
from handful.estimators.summary import undecided
from handful.model.present_classes import listed_classes, presence_or_labels, present_places
from handful.reading.class_lists import common_names as names_of_species
from handful.reading.class_names import NO_CLASS, SimilarNames, similar_summary
from handful.reading.contents import Contents
from handful.reading.table import Columns, Skipped
from handful.shapes import Int

# What an item is called that looks like no class.
NONE = NO_CLASS[0]
# What a message says about labels given to items that could not be read.
NOT_APPLIED = "could not be applied"
# Items whose labels a page explains.
MOST_EXPLAINED = 5_000
# Encoder of answers that come from scores.
BY_SCORES = "scores of another model"
# Columns of the predictions and of the table of groups, with their types as Arrow names them.
PREDICTION_TYPES = {
    "row": "int64",
    "item": "string",
    "label": "string",
    "certainty": "float64",
    "runner_up": "string",
    "runner_up_certainty": "float64",
    "doubtful": "bool",
    "unknown": "float64",
    "rejected": "bool",
    "proposal": "int64",
}
# More columns of predictions, with coarse classes.
COARSE_TYPES = {"coarse": "string", "coarse_certainty": "float64", "sure_label": "string"}
GROUP_TYPES = {
    "items": "int64",
    "unknown_items": "int64",
    "joint_weight": "float64",
    "class": "string",
    "expected_count": "float64",
    "presence": "float64",
}


@dataclass(frozen=True, eq=False)
class Shown:
    """Images or sentences of the catalogue, to be shown beside items.

    Attributes
    ----------
    contents, names, classes : Contents, tuple of str, ndarray of str
        The examples, not yet read, their names, and the class name of each.
    nearest : mapping
        Of the items listed on the page, the nearest example that has the item's label: positions in the batch to
        positions in `contents`.
    """

    contents: Contents
    names: tuple[str, ...]
    classes: npt.NDArray[np.str_]
    nearest: Mapping[int, int] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class About:
    """What an answer of `classify` or `rescore` is about.

    Attributes
    ----------
    batch : Batch
        The items, with their names and columns; `batch.skipped` are those that were left out.
    n_examples : int
        Rows of the catalogue.
    encoder : str
        What made the features, where that is known.
    group_by : tuple of str
        Names of the columns that name a group; empty for a single batch.
    unknown_label : str or None
        The label of rejected items; None if they have that of the least bad class.
    shown : Shown or None
        What the catalogue was made of, if that can be shown.
    given : mapping
        Items whose class a person gave, as positions in the batch, to positions in the classes, or to None if the
        person said none of these.
    n_named : int
        Classes that a person named, and the catalogue did not have; they are the last ones.
    skipped_examples : tuple of Skipped
        Items of the catalogue that were left out.
    similar : tuple of SimilarNames
        Classes with names that look alike, with their numbers of examples; of scores, of items that list them.
    not_applied : tuple of Skipped
        What a person said about items that could not be read, each with the reason.
    batches : Batches or None
        The items beside the catalogue, for questions and explanations on the page; None if the batch was large, or
        labelled by scores or by a method of `handful_fewshot`.
    inputs : mapping of str to Path
        The files and folders that were read, by what they are, which no output may overwrite.
    method : str or None
        The method of `handful_fewshot` that labelled the batch; None for the default.
    """

    batch: Batch
    n_examples: int
    encoder: str
    group_by: tuple[str, ...] = ()
    unknown_label: str | None = None
    shown: Shown | None = None
    given: Mapping[int, int | None] = field(default_factory=dict)
    n_named: int = 0
    skipped_examples: tuple[Skipped, ...] = ()
    similar: tuple[SimilarNames, ...] = ()
    not_applied: tuple[Skipped, ...] = ()
    batches: Batches | None = None
    inputs: Mapping[str, Path] = field(default_factory=dict)
    method: str | None = None

    def rows(self, rows: Int[np.ndarray, "some"] | slice) -> About:
        """Return what the answer about one group, with these rows, is about."""
        items = np.arange(len(self.batch.rows))[rows].tolist()
        return About(
            self.batch.take(items),
            self.n_examples,
            self.encoder,
            unknown_label=self.unknown_label,
            shown=self.shown,
            inputs=self.inputs,
        )

    def columns(self, answer: Answer) -> dict[str, npt.NDArray[Any]]:
        """Return the columns of `Answer.to_frame`: the predictions, one row per item."""
        columns = dict[str, npt.NDArray[Any]]()
        for name, values in predictions(answer).items():
            columns[name] = np.empty(len(values), dtype=object)
            columns[name][:] = values
            if not any(value is None or isinstance(value, (list, tuple, dict)) for value in values):
                columns[name] = np.array(values)
        return columns

    def sentences(self, answer: Answer) -> tuple[str, list[str]]:
        """Say how the items were labelled, and what looks wrong."""
        how = ". ".join(filter(None, (how_labelled(answer), columns_summary(answer).removesuffix("."))))
        return how, messages(answer)


def about_of(answer: Answer) -> About:
    """Return what the answer is about; refuse one about rows in memory, of which nothing else is known."""
    if not isinstance(answer.about, About):
        raise OptionError(
            "this answer is about rows in memory, without names; write found.to_frame(), or label files with "
            "handful.classify"
        )
    return answer.about


def column_types(answer: Answer) -> dict[str, str]:
    """Return the types of the columns of predictions, those of the batch apart."""
    return PREDICTION_TYPES | ({} if answer.coarse is None else COARSE_TYPES)


def n_groups(answer: Answer) -> int:
    """Return the number of batches that were labelled."""
    return 1 if answer.groups is None else len(answer.groups)


def class_names(answer: Answer) -> tuple[str, ...]:
    """Return the name of each class."""
    return tuple(answer.classes.tolist())


def common_names(answer: Answer) -> tuple[str, ...]:
    """Return what page and terminal call each class: of species that another model scored, the common name."""
    names = class_names(answer)
    return names_of_species(names) if about_of(answer).encoder == BY_SCORES else names


def rejected_items(answer: Answer) -> Int[np.ndarray, "group"]:
    """Return the number of rejected items of each group."""
    return _counted(answer, answer.rejected)


def doubtful_items(answer: Answer) -> Int[np.ndarray, "group"]:
    """Return the number of items of each group that are in doubt between two classes."""
    return _counted(answer, answer.doubtful)


def _counted(answer: Answer, chosen: npt.NDArray[np.bool_]) -> Int[np.ndarray, "group"]:
    of_items = groups_of_items(answer)
    if of_items is None:
        return np.array([chosen.sum()])
    return np.bincount(of_items[chosen], minlength=n_groups(answer))


def label_counts(answer: Answer) -> Int[np.ndarray, "class"]:
    """Return how many items have each class as their label; rejected ones count at the end, as one more class."""
    n_classes = len(answer.classes)
    codes = np.where(answer.rejected, n_classes, answer.codes[:, 0])
    return np.bincount(codes, minlength=n_classes + 1)


def group_names(answer: Answer) -> list[str]:
    """Return what each group is called: the values of its columns."""
    return [", ".join(map(str, key)) for key in _keys(answer)]


def present_codes(answer: Answer, group: int = 0) -> list[int]:
    """Return the positions of the classes present in a group, the largest first."""
    told = presence_or_labels(answer.presence, answer.codes)
    counts, presence = (np.atleast_2d(table)[group] for table in (answer.expected_counts, told))
    return present_places(counts, presence).tolist()  # type: ignore[no-any-return]


def how_labelled(answer: Answer) -> str:
    """Say how the items were labelled, and with what, in words."""
    known = about_of(answer)
    n_items = len(known.batch.rows)
    n_classes = counted(len(answer.classes), "class")
    made_by = f"; features of {known.encoder.partition(', weights ')[0]}" if known.encoder else ""
    if unnamed_groups(answer) is not None:
        return f"{counted(n_items, 'item')} without examples, named by a person{made_by}"
    if known.encoder == BY_SCORES:
        with_what = f" by the scores of {n_classes}"
    elif known.n_examples == 0:
        with_what = f" by the names of {n_classes}{made_by}"
    else:
        with_what = f", with a catalogue of {n_classes} and {counted(known.n_examples, 'example')}{made_by}"
    if known.method is not None:
        labelled = f"labelled by {known.method}"
    elif known.group_by:
        labelled = "each group labelled as one batch"
    elif n_items == 1:
        labelled = "labelled on its own (one item is not a batch to learn from)"
    else:
        labelled = "labelled jointly" if answer.joint_weight else "each labelled alone"
    return f"{counted(n_items, 'item')}, {labelled}{with_what}"


def columns_summary(answer: Answer) -> str:
    """Say which columns of the batch are the features, and which stay beside the labels; empty if it has no such."""
    batch = about_of(answer).batch
    if not batch.features:
        return ""
    used = {*batch.features, *about_of(answer).group_by}
    others = [name for name in batch.columns.by_name if name not in used]
    numbers = [f"{name} ({batch.not_measured[name]})" for name in others if name in batch.not_measured]
    kept = [*numbers, *(name for name in others if name not in batch.not_measured)]
    beside = f" Kept next to the labels, and not features: {some_of(kept)}." if kept else ""
    return f"Features: {some_of(batch.features)}.{beside}"


def unknown_summary(answer: Answer) -> str:
    """Say how many items are unknown, or why that was not judged, in one sentence; empty if none are."""
    n = int(answer.rejected.sum())
    summary = ""
    if n:
        look = "1 item looks" if n == 1 else f"{n:,} items look"
        summary = f"{look} like none of your {counted(len(answer.classes), 'class')}{_where(answer, n)}."
    elif is_judged(answer) and answer.unknown_reason is None:
        summary = undecided(float(answer.unknown.mean()))
        if summary and n_groups(answer) > 1:
            summary = f"In some of the {n_groups(answer):,} groups: {summary}"
    return " ".join(filter(None, (summary, answer.unknown_reason)))


def _where(answer: Answer, n: int) -> str:
    """Say into which groups the rejected items fall, as the end of a sentence."""
    if about_of(answer).group_by:
        return f", in {int((rejected_items(answer) > 0).sum()):,} of {counted(n_groups(answer), 'group')}"
    if not answer.proposals:
        return ""
    in_groups = sum(proposal.size for proposal in answer.proposals)
    fall = "they fall" if in_groups == n else f"{in_groups:,} of them fall"
    return f"; {fall} into {counted(len(answer.proposals), 'group')}"


def messages(answer: Answer) -> list[str]:
    """Say what looks wrong, one message for each kind of diagnostic, with the groups that it is about."""
    return [*_diagnostics(answer), *filter(None, [similar_summary(about_of(answer).similar)])]


def _diagnostics(answer: Answer) -> list[str]:
    if not about_of(answer).group_by:
        return [diagnostic.message for diagnostic in answer.diagnostics]
    names = group_names(answer)
    of_kind: dict[str, list[tuple[int, Diagnostic]]] = {}
    for group, of_group in enumerate(answer.diagnostics):
        for diagnostic in of_group:
            of_kind.setdefault(diagnostic.name, []).append((group, diagnostic))
    sentences = []
    for pairs in of_kind.values():
        group, most = max(pairs, key=lambda pair: len(pair[1].items))
        n_items = sum(len(diagnostic.items) for _, diagnostic in pairs)
        same = len({diagnostic.message for _, diagnostic in pairs}) == 1
        if len(pairs) == 1:
            sentences.append(f"{names[group]}: {most.message}")
        elif len(pairs) == len(names) and same and not n_items:
            sentences.append(most.message)
        else:
            where = f"{len(pairs):,} of {len(names):,} groups, for example {names[group]}: {most.message}"
            sentences.append(f"{counted(n_items, 'item')} in {where}" if n_items else where)
    return sentences


def suspects(answer: Answer) -> list[int]:
    """Return the items that a diagnostic is about, as positions in the batch."""
    of_groups = answer.diagnostics if about_of(answer).group_by else [answer.diagnostics]
    pairs = zip(rows_of_groups(answer), of_groups, strict=True)
    return [int(rows[item]) for rows, found in pairs for diagnostic in found for item in diagnostic.items]


def predictions(
    answer: Answer, items: Sequence[int] | None = None, *, unknown_label: str | None = None
) -> dict[str, list[Any]]:
    """Return one entry per item: its row and name, its label and the next most likely one, with their certainty.

    Also the chance that it is unknown, whether it is rejected (its label is then the least bad one), and the number
    of the proposed class, from 1 in each group, if it is in one. The columns of the group and those of the batch
    stand between name and label, under their own names, or as `given_label` where these are taken. With an
    `unknown_label`, here or of the answer, a rejected item has this label, its certainty is the chance of being
    unknown, and the most likely class is the next. Without one, that is so for items that a person called none of the
    classes and for those like them, and they have no label.

    `items` are positions in the batch; by default all.
    """
    batch = about_of(answer).batch
    positions = np.arange(len(batch.rows)) if items is None else np.asarray(items, dtype=np.int64)
    chosen = positions.tolist()
    said = item_columns(answer, unknown_label)
    ours = {
        "row": [batch.rows[i] for i in chosen],
        "item": [batch.names[i] for i in chosen],
        **{name: _or_none(values[positions]) for name, values in said.items()},
    }
    columns = batch.columns.of_items(chosen).beside(column_types(answer)).values()
    groups = groups_of_items(answer)
    of_group = [] if groups is None else groups[positions].tolist()
    return in_front(ours) | _keys_of(answer, of_group) | columns | ours


def _or_none(values: npt.NDArray[Any]) -> list[Any]:
    """Return entries as a file has them: None instead of NaN."""
    return [None if value != value else value for value in values.tolist()]


def group_table(answer: Answer) -> dict[str, list[Any]]:
    """Return one entry per group and class that may be present.

    That is a chance of at least 0.02, and always the class with most items. Columns are those of the group, its
    number of items and of items that look like none of the classes (None if the catalogue cannot tell), the weight
    of the joint labels, and name, expected count and presence of the class, the largest class first.
    """
    group_of_row, k = listed_classes(answer.expected_counts, answer.presence)
    columns = (
        sizes_of(answer)[group_of_row].tolist(),
        rejected_items(answer)[group_of_row].tolist() if is_judged(answer) else [None] * len(group_of_row),
        answer.joint_weight[group_of_row].tolist(),
        answer.classes[k].tolist(),
        answer.expected_counts[group_of_row, k].tolist(),
        answer.presence[group_of_row, k].tolist(),
    )
    return _keys_of(answer, group_of_row.tolist()) | dict(zip(GROUP_TYPES, columns, strict=True))


def key_columns(answer: Answer) -> Columns:
    """Return the columns that name groups, one entry per group."""
    return Columns(_keys_of(answer, range(n_groups(answer))))


def _keys(answer: Answer) -> list[tuple[Any, ...]]:
    """Return the values of each group, one per column."""
    groups = [] if answer.groups is None else answer.groups.tolist()
    return [(group,) for group in groups] if len(about_of(answer).group_by) == 1 else groups


def _keys_of(answer: Answer, groups: Sequence[int]) -> dict[str, list[Any]]:
    """Return the columns that name groups, for these groups."""
    keys = _keys(answer)
    return {name: [keys[group][column] for group in groups] for column, name in enumerate(about_of(answer).group_by)}


def in_front(columns: Mapping[str, Any]) -> dict[str, Any]:
    """Return the columns that come first: position and name of the item."""
    return {name: columns[name] for name in ("row", "item")}
