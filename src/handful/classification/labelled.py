"""A labelled batch: its items beside the answer about them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from handful.arguments import counted, some_of
from handful.classification.batch import Batch
from handful.estimators.answer import Answer, listed_classes, present_places
from handful.estimators.batches import Batches
from handful.estimators.containers import FrameOf, new_frame
from handful.estimators.diagnostics import Diagnostic
from handful.estimators.summary import undecided
from handful.plots import html
from handful.reading.class_lists import common_names
from handful.reading.class_names import SimilarNames, similar_summary
from handful.reading.contents import Contents
from handful.reading.table import Columns, Skipped
from handful.session import PartlyNamed
from handful.shapes import Int

# What an item is called that looks like no class.
NONE = "none of these"
# What a message says about corrections of items that are not in the batch.
NOT_APPLIED = "could not be applied"
# Items whose labels a page explains.
MOST_EXPLAINED = 5_000
# Backbone of answers that come from scores.
BY_SCORES = "scores of another model"
# Columns of the predictions and of the table of groups, with their types as Arrow names them.
PREDICTION_TYPES = {
    "row": "int64",
    "item": "string",
    "label": "string",
    "certainty": "float64",
    "runner_up": "string",
    "runner_up_certainty": "float64",
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
class Classified:
    """A labelled batch, or many: with `group_by` every group of items is a batch of its own.

    Attributes
    ----------
    batch : Batch
        The items.
    answer : Answer
        What was found; its classes are names, and its groups are values of the columns `group_by`.
    n_examples : int
        Rows of the catalogue.
    backbone : str
        What made the features, where that is known.
    group_by : tuple of str
        Names of the columns that name a group; empty for a single batch.
    streamed : bool
        Whether the batch was too large to be labelled in memory. It then has no proposals.
    unknown_label : str or None
        The label of rejected items in the predictions; None if they have that of the least bad class.
    shown : Shown or None
        What the catalogue was made of, if that can be shown.
    given : mapping
        Items whose class a person gave, as positions in the batch, to positions in `class_names`, or to None if the
        person said none of these.
    n_named : int
        Classes that a person named, and the catalogue did not have; they are the last ones of `class_names`.
    skipped_examples : tuple of Skipped
        Items of the catalogue that were left out; `batch.skipped` are those of the batch.
    similar : tuple of SimilarNames
        Classes with names that look alike, with their numbers of examples; of scores, of items that list them.
    not_applied : tuple of Skipped
        What a person said about items that are not in the batch, or not as they were then, each with the reason.
    batches : Batches or None
        The items beside the catalogue, for questions and explanations on the page; None if they were streamed, or
        labelled by scores or by a method of `handful.fewshot`.
    inputs : mapping of str to Path
        The files and folders that were read, by what they are, which no output may overwrite.
    method : str or None
        The method of `handful.fewshot` that labelled the batch; None for the default.
    frame_of : FrameOf
        Makes tables of the kind of the batch, if that was a frame.

    `found[group]` is the `Classified` of one group.
    """

    batch: Batch
    answer: Answer
    n_examples: int
    backbone: str
    group_by: tuple[str, ...] = ()
    streamed: bool = False
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
    frame_of: FrameOf = new_frame

    def __getitem__(self, group: Any) -> Any:
        """Return one group: a value of the column, or a tuple of values of several; without groups, one item."""
        return self.answer[group] if self.answer.groups is None else self._at(self.answer.place(group))

    def __len__(self) -> int:
        return len(self.answer)

    def __iter__(self) -> Iterator[Any]:
        """Go through the items, or the names of the groups, as `Answer` does."""
        return iter(self.answer)

    def __repr__(self) -> str:
        return repr(self.answer).replace("Answer", "Classified", 1)

    def _repr_html_(self) -> str:
        how = ". ".join(filter(None, (self.how, self.columns_summary.removesuffix("."))))
        return html.of_answer(self.answer, how, self.messages())

    def to_frame(self) -> Any:
        """Return the predictions as a frame of the kind of the batch, else of pandas; one row per item."""
        columns = dict[str, npt.NDArray[Any]]()
        for name, values in self.predictions().items():
            columns[name] = np.empty(len(values), dtype=object)
            columns[name][:] = values
            if not any(value is None or isinstance(value, (list, tuple, dict)) for value in values):
                columns[name] = np.array(values)
        return self.frame_of(columns)

    def _at(self, group: int) -> Classified:
        items = self.answer.rows_of[group].tolist()
        return Classified(
            self.batch.take(items),
            self.answer.at(group),
            self.n_examples,
            self.backbone,
            unknown_label=self.unknown_label,
            shown=self.shown,
            inputs=self.inputs,
            frame_of=self.frame_of.rows(self.answer.rows_of[group]),
        )

    @property
    def types(self) -> dict[str, str]:
        """Types of the columns of predictions, those of the batch apart."""
        return PREDICTION_TYPES | ({} if self.answer.coarse is None else COARSE_TYPES)

    @property
    def n_groups(self) -> int:
        """Number of batches that were labelled."""
        return 1 if self.answer.groups is None else len(self.answer.groups)

    @cached_property
    def class_names(self) -> tuple[str, ...]:
        """Name of each class."""
        return tuple(self.answer.classes.tolist())

    @cached_property
    def common_names(self) -> tuple[str, ...]:
        """What each class is called on page and terminal: of species that another model scored, the common name."""
        return common_names(self.class_names) if self.backbone == BY_SCORES else self.class_names

    @property
    def judged(self) -> bool:
        """Whether anything is said about unknown items, by the catalogue or by a person."""
        return bool(self.answer.rejected.any() or not np.isnan(self.answer.unknown).any())

    @property
    def rejected_items(self) -> Int[np.ndarray, "group"]:
        """Number of rejected items of each group."""
        return self._count(self.answer.rejected)

    @property
    def doubtful_items(self) -> Int[np.ndarray, "group"]:
        """Number of items of each group that are in doubt between two classes."""
        return self._count(self.answer.doubtful)

    def _count(self, chosen: npt.NDArray[np.bool_]) -> Int[np.ndarray, "group"]:
        if self.answer.group_of is None:
            return np.array([chosen.sum()])
        return np.bincount(self.answer.group_of[chosen], minlength=self.n_groups)

    def label_counts(self) -> Int[np.ndarray, "class"]:
        """Return how many items have each class as their label; rejected ones count at the end, as one more class."""
        n_classes = len(self.class_names)
        codes = np.where(self.answer.rejected, n_classes, self.answer.codes[:, 0])
        return np.bincount(codes, minlength=n_classes + 1)

    def name(self, group: int) -> str:
        """Return what a group is called: the values of its columns."""
        return ", ".join(map(str, self._keys[group]))

    def present(self, group: int = 0) -> list[int]:
        """Return the positions in `class_names` of the classes present in a group, the largest first."""
        counts, presence = (
            np.atleast_2d(table)[group] for table in (self.answer.expected_counts, self.answer.presence_or_labels)
        )
        return present_places(counts, presence).tolist()  # type: ignore[no-any-return]

    @property
    def how(self) -> str:
        """How the items were labelled, and with what, in words."""
        n_items = len(self.batch.rows)
        n_classes = counted(len(self.class_names), "class")
        made_by = f"; features of {self.backbone.partition(', weights ')[0]}" if self.backbone else ""
        if isinstance(self.answer, PartlyNamed):
            return f"{counted(n_items, 'item')} without a catalogue, which get the names that a person gives{made_by}"
        if self.backbone == BY_SCORES:
            with_what = f" by the scores of {n_classes}"
        elif self.n_examples == 0:
            with_what = f" by the names of {n_classes}{made_by}"
        else:
            with_what = f", with a catalogue of {n_classes} and {counted(self.n_examples, 'example')}{made_by}"
        if self.method is not None:
            labelled = f"labelled by {self.method}"
        elif self.group_by:
            labelled = "each group labelled as one batch"
        elif n_items == 1:
            labelled = "labelled on its own (one item is no batch to learn from)"
        else:
            labelled = "labelled jointly" if self.answer.joint_weight else "each labelled alone"
        return f"{counted(n_items, 'item')}, {labelled}{with_what}"

    @property
    def columns_summary(self) -> str:
        """Which columns of the batch are the features, and which stay beside the labels; empty if it has no such."""
        batch = self.batch
        if not batch.features:
            return ""
        used = {*batch.features, *self.group_by}
        others = [name for name in batch.columns.by_name if name not in used]
        numbers = [f"{name} ({batch.not_measured[name]})" for name in others if name in batch.not_measured]
        kept = [*numbers, *(name for name in others if name not in batch.not_measured)]
        beside = f" Kept beside the labels, and no features: {some_of(kept)}." if kept else ""
        return f"Features: {some_of(batch.features)}.{beside}"

    @property
    def unknown_summary(self) -> str:
        """How many items are unknown, or why that was not judged, in one sentence; empty if none are."""
        answer = self.answer
        n = int(self.answer.rejected.sum())
        summary = ""
        if n:
            look = "1 item looks" if n == 1 else f"{n:,} items look"
            summary = f"{look} like none of your {counted(len(self.class_names), 'class')}{self._where(n)}."
        elif self.judged and answer.unknown_reason is None:
            summary = undecided(float(answer.unknown.mean()))
            if summary and self.n_groups > 1:
                summary = f"In some of the {self.n_groups:,} groups: {summary}"
        return " ".join(filter(None, (summary, answer.unknown_reason)))

    def _where(self, n: int) -> str:
        """Say into which groups the rejected items fall, as the end of a sentence."""
        if self.group_by:
            return f", in {int((self.rejected_items > 0).sum()):,} of {counted(self.n_groups, 'group')}"
        proposals = self.answer.proposals
        if not proposals:
            return ""
        in_groups = sum(proposal.size for proposal in proposals)
        fall = "they fall" if in_groups == n else f"{in_groups:,} of them fall"
        return f"; {fall} into {counted(len(proposals), 'group')}"

    def messages(self) -> list[str]:
        """Return what looks wrong, one message for each kind of diagnostic, with the groups that it is about."""
        return [*self._diagnostics(), *filter(None, [similar_summary(self.similar)])]

    def _diagnostics(self) -> list[str]:
        if not self.group_by:
            return [diagnostic.message for diagnostic in self.answer.diagnostics]
        about: dict[str, list[tuple[int, Diagnostic]]] = {}
        for group, of_group in enumerate(self.answer.diagnostics):
            for diagnostic in of_group:
                about.setdefault(diagnostic.name, []).append((group, diagnostic))
        sentences = []
        for pairs in about.values():
            group, most = max(pairs, key=lambda pair: len(pair[1].items))
            n_items = sum(len(diagnostic.items) for _, diagnostic in pairs)
            if len(pairs) == 1:
                sentences.append(f"{self.name(group)}: {most.message}")
            elif (
                len(pairs) == self.n_groups
                and len({diagnostic.message for _, diagnostic in pairs}) == 1
                and not n_items
            ):
                sentences.append(most.message)
            else:
                where = f"{len(pairs):,} of {self.n_groups:,} groups, for example {self.name(group)}: {most.message}"
                sentences.append(f"{counted(n_items, 'item')} in {where}" if n_items else where)
        return sentences

    @property
    def suspects(self) -> list[int]:
        """Items that a diagnostic is about, as positions in the batch."""
        of_groups = self.answer.diagnostics if self.group_by else [self.answer.diagnostics]
        pairs = zip(self.answer.rows_of, of_groups, strict=True)
        return [int(rows[item]) for rows, found in pairs for diagnostic in found for item in diagnostic.items]

    def predictions(self, items: Sequence[int] | None = None) -> dict[str, list[Any]]:
        """Return one entry per item: its row and name, its label and the next most likely one, with their certainty.

        Also the chance that it is unknown, whether it is rejected (its label is then the least bad one), and the number
        of the proposed class, from 1 in each group, if it is in one. The columns of the group and those of the batch
        stand between name and label, under their own names, or as `given_label` where these are taken. With an
        `unknown_label`, a rejected item has this label, its certainty is the chance of being unknown, and the most
        likely class is the next. Without one, that is so for items that a person called none of the classes and for
        those like them, and they have no label.

        `items` are positions in the batch; by default all.
        """
        positions = np.arange(len(self.batch.rows)) if items is None else np.asarray(items, dtype=np.int64)
        answer = self.answer
        chosen = positions.tolist()
        names = [*self.class_names, None]  # where there is no second class its position is -1
        labels, others = ([names[k] for k in column] for column in answer.codes[positions].T.tolist())
        certain, less_certain = answer.certainties[positions].T.tolist()
        less_certain = [None if name is None else p for name, p in zip(others, less_certain, strict=True)]
        rejected = np.flatnonzero(answer.rejected[positions]).tolist()
        without_class = answer.rejected if self.unknown_label is not None else answer.none_of_these
        for i in np.flatnonzero(without_class[positions]).tolist():
            others[i] = labels[i]
            less_certain[i] = certain[i]
            labels[i] = self.unknown_label
            certain[i] = float(answer.unknown[positions[i]])
        ours = {
            "row": [self.batch.rows[i] for i in chosen],
            "item": [self.batch.names[i] for i in chosen],
            "label": labels,
            "certainty": certain,
            "runner_up": others,
            "runner_up_certainty": less_certain,
            "unknown": answer.unknown[positions].tolist() if self.judged else [None] * len(positions),
            "rejected": answer.rejected[positions].tolist() if self.judged else [None] * len(positions),
            "proposal": [number or None for number in answer.proposal[positions].tolist()],
        }
        if answer.coarse is not None:
            sure = answer.sure_labels[positions]
            sure[rejected] = self.unknown_label
            coarse = answer.coarse.rows(positions)
            ours |= dict(
                zip(COARSE_TYPES, (coarse.labels.tolist(), coarse.certainty.tolist(), sure.tolist()), strict=True)
            )
        columns = self.batch.columns.of_items(chosen).beside(self.types).values()
        of_group = [] if answer.group_of is None else answer.group_of[positions].tolist()
        return in_front(ours) | self._keys_of(of_group) | columns | ours

    def group_table(self) -> dict[str, list[Any]]:
        """Return one entry per group and class that may be present.

        That is a chance of at least 0.02, and always the class with most items. Columns are those of the group, its
        number of items and of items that look like none of the classes (None if the catalogue cannot tell), the weight
        of the joint answer, and name, expected count and presence of the class, the largest class first.
        """
        answer = self.answer
        group_of_row, k = listed_classes(answer.expected_counts, answer.presence)
        columns = (
            answer.sizes[group_of_row].tolist(),
            self.rejected_items[group_of_row].tolist() if self.judged else [None] * len(group_of_row),
            answer.joint_weight[group_of_row].tolist(),
            [self.class_names[code] for code in k.tolist()],
            answer.expected_counts[group_of_row, k].tolist(),
            answer.presence[group_of_row, k].tolist(),
        )
        return self._keys_of(group_of_row.tolist()) | dict(zip(GROUP_TYPES, columns, strict=True))

    @cached_property
    def _keys(self) -> list[tuple[Any, ...]]:
        """The values of each group, one per column."""
        groups = [] if self.answer.groups is None else self.answer.groups.tolist()
        return [(group,) for group in groups] if len(self.group_by) == 1 else groups

    def _keys_of(self, groups: Sequence[int]) -> dict[str, list[Any]]:
        """Return the columns that name groups, for these groups."""
        return {name: [self._keys[group][column] for group in groups] for column, name in enumerate(self.group_by)}

    def key_columns(self) -> Columns:
        """Return the columns that name groups, one entry per group."""
        return Columns(self._keys_of(range(self.n_groups)))


def in_front(columns: Mapping[str, Any]) -> dict[str, Any]:
    """Return the columns that come first: position and name of the item."""
    return {name: columns[name] for name in ("row", "item")}
