"""Many batches in one table: every group of its items is one joint batch, all against one catalogue.

Items stay in the order of the table. What a group is labelled does not depend on the other groups, so groups are
labelled a portion at a time, and no table of items and classes is held for all of them.

One long file: it is one value and what makes it.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from handful.banks.carried import Carried
from handful.catalogue import Catalogue
from handful.classification.grouping import Grouping, Key
from handful.classification.predictions import (
    PREDICTION_TYPES,
    TABLE_ENDINGS,
    Answers,
    Batch,
    Classified,
    Shown,
    Unknown,
    column_types,
    in_front,
    predicted,
    rejected_of,
    runs_of,
    write_back,
    write_table,
)
from handful.classification.second_look import SecondLook
from handful.errors import LabelError, OptionError
from handful.estimators import Diagnostic, Proposal
from handful.estimators.answer import LEAST_LISTED, PRESENT, counted, undecided
from handful.estimators.batches import CatalogueItems, answered
from handful.estimators.context import Known
from handful.reading.cells import is_h5ad
from handful.reading.contents import pick
from handful.shapes import Bool, Float, Int

# Columns of the table of groups, after those that name the group; types as Arrow names them.
GROUP_TYPES = {
    "items": "int64",
    "unknown_items": "int64",
    "joint_weight": "float64",
    "class": "string",
    "expected_count": "float64",
    "presence": "float64",
}
# Numbers (scores and features) of the groups that are labelled at once.
PORTION_NUMBERS = 2**26


def asked_columns(group_by: str | Sequence[str]) -> tuple[str, ...]:
    """Return the names of the columns to group by; refuse none, one that occurs twice, and names of new columns."""
    names = (group_by,) if isinstance(group_by, str) else tuple(group_by)
    if not names or len(set(names)) != len(names):
        raise OptionError(f"group by one column or several different ones, got {', '.join(names) or 'none'}")
    for name in names:
        if name in PREDICTION_TYPES or name in GROUP_TYPES:
            raise OptionError(f"the answers have a column {name!r} of their own; rename the column to group by")
    return names


class UnknownByGroup(NamedTuple):
    """Items that look like none of the classes: chances, rejected items, intervals and proposals, see `Unknown`."""

    chances: Float[np.ndarray, "item"]
    rejected: Bool[np.ndarray, "item"]
    intervals: Float[np.ndarray, "group 2"]
    proposals: tuple[tuple[Proposal, ...], ...]  # items are positions within the group


@dataclass(frozen=True, eq=False)
class ClassifiedGroups:
    """Many labelled batches: every group of items is one.

    Attributes
    ----------
    batch : Batch
        The items of all groups, in the order of the table.
    grouping : Grouping
        Names of the columns that name a group, distinct groups in increasing order, and group of each item.
    answers : Answers
        Labels of all items, with probabilities.
    expected_counts, presence : Float[ndarray, "group class"]
        As in `Classified`, one row per group.
    joint_weight : Float[ndarray, "group"]
        As in `Classified`.
    diagnostics : tuple of tuple of Diagnostic
        What looks wrong, one entry per group.
    class_names, n_examples, backbone, unknown_label, shown, given, n_named, look, unknown_reason
        As in `Classified`.
    unknown : UnknownByGroup or None
        Items that look like none of the classes; None if the catalogue cannot tell.

    `found[group]` is the `Classified` of one group.
    """

    batch: Batch
    grouping: Grouping
    answers: Answers
    expected_counts: Float[np.ndarray, "group class"]
    presence: Float[np.ndarray, "group class"]
    joint_weight: Float[np.ndarray, "group"]
    diagnostics: tuple[tuple[Diagnostic, ...], ...]
    class_names: tuple[str, ...]
    n_examples: int
    backbone: str
    unknown: UnknownByGroup | None = None
    unknown_label: str | None = None
    shown: Shown | None = None
    given: Mapping[int, int | None] = field(default_factory=dict)
    n_named: int = 0
    look: SecondLook | None = None
    unknown_reason: str | None = None

    def __len__(self) -> int:
        """Return the number of groups."""
        return len(self.grouping.groups)

    def __getitem__(self, group: Any) -> Classified:
        """Return the answers about one group: a value of the column, or a tuple of values of several columns."""
        key = group if isinstance(group, tuple) else (group,)
        if key not in self._places:
            raise LabelError(f"there is no group {group!r}; see grouping.groups for those that there are")
        return self.at(self._places[key])

    @cached_property
    def _places(self) -> dict[Key, int]:
        return {key: place for place, key in enumerate(self.grouping.groups)}

    @cached_property
    def _items_by_group(self) -> list[Int[np.ndarray, "item"]]:
        order = np.argsort(self.grouping.group_of, kind="stable")
        return np.split(order, np.cumsum(self.sizes)[:-1])

    @property
    def rejected(self) -> Bool[np.ndarray, "item"]:
        """Items that count as unknown."""
        return rejected_of(self)

    @property
    def sizes(self) -> Int[np.ndarray, "group"]:
        """Number of items of each group."""
        return np.bincount(self.grouping.group_of, minlength=len(self))

    @property
    def doubtful(self) -> Bool[np.ndarray, "item"]:
        """Items in doubt between two classes, see `Classified`."""
        doubtful: Bool[np.ndarray, "item"] = self.answers.doubtful & ~self.rejected
        return doubtful

    @property
    def doubtful_items(self) -> Int[np.ndarray, "group"]:
        """Number of items of each group that are in doubt."""
        return np.bincount(self.grouping.group_of[self.doubtful], minlength=len(self))

    @property
    def unknown_items(self) -> Int[np.ndarray, "group"]:
        """Number of rejected items of each group; 0 if the catalogue cannot tell, see `unknown`."""
        return np.bincount(self.grouping.group_of[self.rejected], minlength=len(self))

    def items_of(self, place: int) -> Int[np.ndarray, "item"]:
        """Return the positions in the batch of the items of a group."""
        return self._items_by_group[place]

    def name(self, place: int) -> str:
        """Return what a group is called: the values of its columns."""
        return ", ".join(map(str, self.grouping.groups[place]))

    def present(self, place: int) -> list[int]:
        """Positions in `class_names` of the classes present in a group, the largest first."""
        order = np.argsort(-self.expected_counts[place], kind="stable")
        return order[self.presence[place][order] >= PRESENT].tolist()  # type: ignore[no-any-return]

    def at(self, place: int) -> Classified:
        """Return the answers about the group at this place among `grouping.groups`."""
        items = self.items_of(place)
        positions, batch, unknown = items.tolist(), self.batch, None
        if self.unknown is not None:
            low, high = self.unknown.intervals[place].tolist()
            unknown = Unknown(
                self.unknown.chances[items], self.unknown.rejected[items], (low, high), self.unknown.proposals[place]
            )
        return Classified(
            Batch(
                [batch.rows[i] for i in positions],
                tuple(batch.names[i] for i in positions),
                None if batch.contents is None else pick(batch.contents, positions),
                (),
                batch.carried.of_items(positions),
            ),
            self.answers.of_items(items),
            self.expected_counts[place],
            self.presence[place],
            float(self.joint_weight[place]),
            self.diagnostics[place],
            self.class_names,
            self.n_examples,
            self.backbone,
            streamed=False,
            unknown=unknown,
            unknown_label=self.unknown_label,
            shown=self.shown,
            unknown_reason=self.unknown_reason,
        )

    def predictions(self, items: Sequence[int] | None = None) -> dict[str, list[Any]]:
        """Return what `Classified.predictions` does, with the columns of the group in front of the label.

        Proposed classes are numbered within each group.
        """
        chosen = range(len(self.batch.rows)) if items is None else items
        columns = predicted(self, self._proposals, chosen)
        keys = [self.grouping.groups[place] for place in self.grouping.group_of[np.asarray(chosen, int)].tolist()]
        named = {name: [key[k] for key in keys] for k, name in enumerate(self.grouping.columns)}
        return in_front(columns) | named | columns

    @cached_property
    def _proposals(self) -> Int[np.ndarray, "item"]:
        numbers = np.zeros(len(self.batch.rows), np.int64)
        for place, proposals in enumerate(() if self.unknown is None else self.unknown.proposals):
            for number, proposal in enumerate(proposals, start=1):
                numbers[self._items_by_group[place][proposal.items]] = number
        return numbers

    def group_table(self) -> dict[str, list[Any]]:
        """Return one entry per group and class that may be present.

        That is a chance of at least 0.02, and always the class with most items. Columns are those of the group, its
        number of items and of items that look like none of the classes (None if the catalogue cannot tell), the weight
        of the joint answer, and name, expected count and presence of the class, the largest class first.
        """
        listed = self.presence >= LEAST_LISTED
        listed[np.arange(len(self)), self.expected_counts.argmax(-1)] = True
        place, k = np.nonzero(listed)
        order = np.lexsort((-self.expected_counts[place, k], place))
        place, k = place[order], k[order]
        keys = [self.grouping.groups[at] for at in place.tolist()]
        unknown: list[Any] = [None] * len(place) if self.unknown is None else self.unknown_items[place].tolist()
        columns = (
            self.sizes[place].tolist(),
            unknown,
            self.joint_weight[place].tolist(),
            [self.class_names[code] for code in k.tolist()],
            self.expected_counts[place, k].tolist(),
            self.presence[place, k].tolist(),
        )
        named = {name: [key[at] for key in keys] for at, name in enumerate(self.grouping.columns)}
        return named | dict(zip(GROUP_TYPES, columns, strict=True))

    @property
    def unknown_said(self) -> str:
        """How many items are unknown, or why that was not judged, in one sentence; empty if none are."""
        n, groups = int(self.unknown_items.sum()), int((self.unknown_items > 0).sum())
        look = "1 item looks" if n == 1 else f"{n:,} items look"
        classes, all_groups = counted(len(self.class_names), "class"), counted(len(self), "group")
        found = f"{look} like none of your {classes}, in {groups:,} of {all_groups}." if n else ""
        if n == 0 and self.unknown is not None and self.unknown_reason is None:
            found = undecided(float(self.unknown.intervals[:, 1].max(initial=0)))
            found = f"In some of the {all_groups}: {found}" if found and len(self) > 1 else found
        return " ".join(filter(None, (found, self.unknown_reason)))


def label_by_group(
    catalogue: Catalogue,
    points: Float[np.ndarray, "item dim"],
    batch: Batch,
    grouping: Grouping,
    class_names: tuple[str, ...],
    n_examples: int,
    backbone: str,
    shown: Shown | None,
    given: Int[np.ndarray, "item"] | None,
    n_named: int,
    weights: Float[np.ndarray, "class"] | None,
    unknown_label: str | None,
) -> ClassifiedGroups:
    """Label every group jointly; classes of the catalogue are positions in `class_names`, and so are given ones."""
    n_items, n_groups, n_classes = len(points), len(grouping.groups), len(class_names)
    answers, in_order = list[Answers](), list[Int[np.ndarray, "item"]]()
    counts, presence = np.empty((n_groups, n_classes)), np.empty((n_groups, n_classes))
    joint_weight, diagnostics = np.empty(n_groups), list[tuple[Diagnostic, ...]]()
    unknown = UnknownByGroup(np.empty(n_items), np.empty(n_items, bool), np.empty((n_groups, 2)), ())
    proposals = list[tuple[Proposal, ...]]()
    sizes = np.bincount(grouping.group_of, minlength=n_groups)
    known = Known() if weights is None else Known(prior=weights)
    for start, stop in _portions(sizes, n_classes + points.shape[1]):
        rows = np.flatnonzero((grouping.group_of >= start) & (grouping.group_of < stop))
        features = np.array(points[rows], np.float32)
        items = CatalogueItems(catalogue, features, None if given is None else given[rows])
        found = answered(items, grouping.group_of[rows], known)
        answers.append(Answers.of(found.probabilities, keep=batch.source is not None))
        in_order.append(rows)
        unknown.chances[rows], unknown.rejected[rows] = found.unknown, found.rejected
        counts[start:stop], presence[start:stop] = found.expected_counts, found.presence
        joint_weight[start:stop], unknown.intervals[start:stop] = found.joint_weight, found.unknown_interval
        diagnostics += found.diagnostics
        for of_group in found.proposals:
            proposals.append(tuple(replace(new, nearest=class_names[int(new.nearest)]) for new in of_group))
    return ClassifiedGroups(
        batch,
        grouping,
        Answers.joined(answers).of_items(np.argsort(np.concatenate(in_order))),
        counts,
        presence,
        joint_weight,
        tuple(diagnostics),
        class_names,
        n_examples,
        backbone,
        # Where unknown items cannot be judged, there are those that a person called so.
        unknown._replace(proposals=tuple(proposals))
        if unknown.rejected.any() or not np.isnan(unknown.chances).any()
        else None,
        unknown_label,
        shown,
        {} if given is None else class_given(given),
        n_named,
        SecondLook(catalogue, points, given, known),
        catalogue.unknown_reason,
    )


def class_given(codes: Int[np.ndarray, "item"]) -> dict[int, int | None]:
    """Return positions of items to positions of classes, or None, of items that a person spoke about."""
    return {item: int(codes[item]) if codes[item] >= 0 else None for item in np.flatnonzero(codes != -1).tolist()}


def _portions(sizes: Int[np.ndarray, "group"], numbers: int) -> Iterator[tuple[int, int]]:
    """Cut the groups into runs of at most `PORTION_NUMBERS` numbers, `numbers` per item, or of a single group."""
    ends, start = np.cumsum(sizes), 0
    while start < len(sizes):
        before = int(ends[start] - sizes[start])
        stop = max(start + 1, int(np.searchsorted(ends, before + PORTION_NUMBERS // numbers, side="right")))
        yield start, stop
        start = stop


def group_table_path(path: str | os.PathLike[str]) -> Path:
    """Return where the table of groups is written: `labels.groups.csv` beside `labels.csv` and `labels.h5ad`."""
    final = Path(path)
    ending = final.suffix if final.suffix.lower() in TABLE_ENDINGS else ".csv"
    return final.with_name(f"{final.stem}.groups{ending}")


def write_groups(classified: ClassifiedGroups, path: str | os.PathLike[str]) -> None:
    """Write the predictions, and beside them the table of groups, as Parquet or CSV, by the ending of the path.

    Predictions of cells can go into a copy of their `.h5ad` file, see `write_predictions`. Each file appears complete
    or not at all.

    Examples
    --------
    >>> import tempfile
    >>> from handful.classification import classify
    >>> folder = Path(tempfile.mkdtemp())
    >>> np.savez(folder / "catalogue.npz", features=np.eye(3), labels=["cat", "dog", "fox"])
    >>> np.savez(folder / "batch.npz", features=np.eye(3)[[1, 1, 0, 1]], site=["wood", "wood", "marsh", "wood"])
    >>> found = classify(folder / "catalogue.npz", folder / "batch.npz", group_by="site")
    >>> write_groups(found, folder / "labels.csv")
    >>> [row.split(",")[:4] for row in (folder / "labels.csv").read_text().splitlines()[1:3]]
    [['0', 'row 0', 'wood', 'dog'], ['1', 'row 1', 'wood', 'dog']]
    >>> (folder / "labels.groups.csv").read_text().splitlines()[0]
    'site,items,unknown_items,joint_weight,class,expected_count,presence'
    """
    if is_h5ad(Path(path)):
        write_back(classified, classified.grouping.columns, path)
    else:
        write_table(
            path,
            in_front(PREDICTION_TYPES)
            | _key_types(classified.grouping, Path(path))
            | column_types(classified.batch, Path(path)),
            map(classified.predictions, runs_of(len(classified.batch.rows))),
        )
    write_group_table(classified, path)


def write_group_table(classified: ClassifiedGroups, path: str | os.PathLike[str]) -> None:
    """Write the table of groups beside the file of predictions at `path`."""
    beside = group_table_path(path)
    write_table(beside, _key_types(classified.grouping, beside) | GROUP_TYPES, [classified.group_table()])


def _key_types(grouping: Grouping, path: Path) -> dict[str, Any]:
    """Return the Arrow types of the columns of the group; a CSV file needs none."""
    if path.suffix.lower() == ".csv":
        return dict.fromkeys(grouping.columns)
    return Carried({name: [key[k] for key in grouping.groups] for k, name in enumerate(grouping.columns)}).types()
