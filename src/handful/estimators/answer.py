"""The result for one batch, or for every group of a table: one value with its tables.

One long file: half of it documents fields.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from dataclasses import KW_ONLY, dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from handful import plots
from handful.arguments import counted, whole
from handful.errors import LabelError, OptionError
from handful.estimators.certainty import SURE, in_doubt
from handful.estimators.coarse import Coarse
from handful.estimators.containers import FrameOf, new_frame, rows_by_group
from handful.estimators.pooling import Pooling
from handful.estimators.summary import notes_on, summary_of
from handful.estimators.unnamed_groups import UnnamedGroups
from handful.extraction.decode import picture_of
from handful.model.present_classes import PRESENT, listed_classes, presence_or_labels, present_places
from handful.plots import html
from handful.shapes import Bool, Float, Int

# Numbers of a table that are sorted at a time. [numbers; work]
SORTED_NUMBERS = 2**22
# Classes that `top` returns of each item, by default. [classes; convention]
TOP_CLASSES = 3
# Classes, and items of each, that a contact sheet has, by default. [classes, items; convention]
MOST_ON_SHEET = 8


class AnsweredItems(Protocol):
    """The items that an answer is about."""

    @property
    def alone(self) -> Int[np.ndarray, "item"]:
        """The position of the class of each item alone, without the batch."""

    def rows(self, rows: Int[np.ndarray, "some"] | slice) -> AnsweredItems:
        """Return some of the items."""


class Top(NamedTuple):
    """The k most probable classes of every item, the most probable first.

    Attributes
    ----------
    labels : ndarray [item, k]
        The classes.
    probabilities : ndarray [item, k]
        Their `probabilities`, as if every item had one of the classes.
    """

    labels: npt.NDArray[Any]
    probabilities: Float[np.ndarray, "item k"]


class LabelledItem(NamedTuple):
    """One item of an answer: what `to_frame` has as a row.

    Attributes
    ----------
    label, certainty : label, float
        Its most probable class, and the chance that this is right.
    runner_up, runner_up_certainty : label, float
        The next most probable class; None if there is only one.
    doubtful : bool
        Whether another class, or none, is nearly as likely.
    unknown, rejected : float, bool
        The chance that it belongs to none of the classes, and whether it counts as such.
    proposal : int
        The number of its group in `proposals`, from 1; 0 if it is in none.
    """

    label: Any
    certainty: float
    runner_up: Any
    runner_up_certainty: float
    doubtful: bool
    unknown: float
    rejected: bool
    proposal: int


@dataclass(frozen=True, eq=False)
class Answer:
    """The result for one batch, or for many: with groups, every group of items is a batch of its own.

    Items are in the order of the rows given, and everything is a NumPy array; `to_frame` returns a table like the one
    that was given. `found[3]` is one item, and iteration goes through all of them. With groups, everything about a
    batch has one more axis, the first, with one entry per group; `found[group]` is then the answer about a single
    group, and iteration goes through the names of the groups, as in a dict.

    Attributes
    ----------
    classes : ndarray [class]
        All classes: those of a catalogue in increasing order, those of scores in the order of their columns.
    codes : ndarray [item, 2]
        The most probable class of each item and the next, as positions in `classes` (-1 if there is no second one).
    expected_counts, presence : ndarray [class] or [group, class]
        Expected number of items of each class, `Σ_n p_nk`, and the chance that there is at least one, which assumes
        that items of one class are wrong together; NaN for the methods of `handful_fewshot`, which do not tell it. In a
        batch with unknown items, only known ones count: `Σ_n (1 - unknown_n) p_nk`.
    joint_weight : float, ndarray [group] or None
        Chance that the batch consists of few classes with about equal shares. It is the weight of the joint labels; the
        rest is the answer for each item alone. None for the methods of `handful_fewshot`.
    prior_weight : float, ndarray [group] or None
        With a prior or siblings, γ: how well the batch agrees with it, from 0 (it contradicts the prior and was
        labelled without it) to 1. Otherwise None.
    unknown : ndarray [item]
        The chance that the item belongs to none of the classes; NaN if that was not judged.
    rejected : ndarray [item]
        Items that are more likely unknown than known, if there is enough evidence that the batch has any; the farther
        the whole batch is from the catalogue, the more evidence is needed. Without it nothing is rejected, and `labels`
        are the same as if nothing could be unknown. With `expect_unknown`, as many items as are expected to be unknown,
        the most likely ones.
    unknown_interval : tuple of float, or ndarray [group, 2]
        90% interval for the share of unknown items; (0, 1) if they were not judged.
    unknown_reason : str or None
        Why unknown items could not be judged, and what to do, as a sentence; None if they were. With a reason, nothing
        is rejected, which does not mean that nothing is unknown.
    proposals : tuple of Proposal, or of such tuples
        Groups of rejected items that look like new classes, the most useful first. Items are positions within the
        batch.
    diagnostics : tuple of Diagnostic, or of such tuples
        What looks wrong, with what it means and what to do; empty for an ordinary batch.
    groups : ndarray [group] or None
        Distinct values of the column of groups, in increasing order.
    pooling : Pooling or None
        Whether groups were labelled with the help of their siblings, and what it gained.
    coarse : Coarse or None
        With `coarse`, the most probable coarse class of each item; see `sure_labels`.
    about : About or None
        Of `classify`, `rescore` and a review: the items with their names and columns, what was left out, and what they
        were compared with, see `handful.classification.About`. None for rows in memory.

    Examples
    --------
    >>> from handful.estimators import BatchClassifier
    >>> rng = np.random.default_rng(0)
    >>> centres = rng.normal(size=(20, 16))
    >>> X, y = centres.repeat(5, axis=0) + 0.7 * rng.normal(size=(100, 16)), np.arange(20).repeat(5)
    >>> batch = centres[[3] * 6 + [7] * 4] + 0.7 * rng.normal(size=(10, 16))
    >>> found = BatchClassifier().fit(X, y).infer(batch)
    >>> found
    Answer(10 items, 2 of 20 classes present, 0 items doubtful, 0 rejected)
    >>> found.present_classes.tolist(), found.expected_counts[[3, 7, 8]].round(1).tolist()
    ([3, 7], [6.0, 4.0, 0.0])
    >>> found.labels.tolist(), found[9].label, found.top(2).labels[9].tolist()
    ([3, 3, 3, 3, 3, 3, 7, 7, 7, 7], 7, [7, 14])
    >>> print(found.to_frame()[["label", "runner_up", "rejected"]].tail(1))
       label  runner_up  rejected
    9      7         14     False
    >>> print(found.summary())
    10 items, 2 of 20 classes present.
    class  expected count  presence
    3                 6.0      1.00
    7                 4.0      1.00

    Every site as a batch of its own:

    >>> found = BatchClassifier().fit(X, y).infer(batch, groups=["marsh"] * 6 + ["wood"] * 4)
    >>> {str(name): found[name].present_classes.tolist() for name in found.groups}
    {'marsh': [3], 'wood': [7]}
    >>> print(found.summary())
    2 groups, 10 items, 20 classes.
    group  items  doubtful  rejected  classes present
    marsh      6         0         0  3
    wood       4         0         0  7
    """

    classes: npt.NDArray[Any]
    codes: Int[np.ndarray, "item two"]
    expected_counts: npt.NDArray[np.float64]
    presence: npt.NDArray[np.float64]
    joint_weight: Any
    prior_weight: Any
    unknown: Float[np.ndarray, "item"]
    rejected: Bool[np.ndarray, "item"]
    unknown_interval: Any
    unknown_reason: str | None
    proposals: tuple[Any, ...]
    diagnostics: tuple[Any, ...]
    groups: npt.NDArray[Any] | None = None
    pooling: Pooling | None = None
    coarse: Coarse | None = None
    about: Any = None  # its class is in a room above; it has unknown_label, rows, columns and sentences
    # What the rest is made of.
    _: KW_ONLY
    # The chances that the two classes in `codes` are right.
    _certainties: Float[np.ndarray, "item two"]
    # `probabilities`; None if these were not kept: for a large batch and for groups of a file.
    _table: Float[np.ndarray, "item class"] | None
    # Rejected items that a person called none of these, and those that look like them; they have no label.
    _none_of_these: Bool[np.ndarray, "item"]
    # The position in `groups` of each item's.
    _group_of: Int[np.ndarray, "item"] | None = None
    # The items as they were compared, for pictures; None if they were not kept, for instance of a large batch.
    _items: AnsweredItems | None = None
    # Of a batch without a catalogue: the groups that nobody has named, see `handful.session.from_nothing`.
    _unnamed: UnnamedGroups | None = None
    # Makes a table of the kind of the rows given.
    _frame_of: FrameOf = new_frame

    def __repr__(self) -> str:
        items = counted(len(self.codes), "item")
        classes = counted(len(self.classes), "class")
        judged = f"{int(self.rejected.sum()):,} rejected" if self.unknown_reason is None else "unknown items not judged"
        doubtful = f"{counted(int(self.doubtful.sum()), 'item')} doubtful, {judged}"
        if self.groups is None:
            return f"Answer({items}, {len(self.present_classes):,} of {classes} present, {doubtful})"
        present = int((self.presence >= PRESENT).any(0).sum())
        groups = counted(len(self.groups), "group")
        return f"Answer({groups}, {items}, {present:,} of {classes} present in some group, {doubtful})"

    def __len__(self) -> int:
        return len(self.codes) if self.groups is None else len(self.groups)

    def __getitem__(self, which: Any) -> Any:
        """Return one item, or a list for a slice; with groups, the answer about one, items in the order of the rows."""
        if self.groups is not None:
            return group_at(self, place_of(self, which))
        if isinstance(which, slice):
            return [self._item(place) for place in range(len(self))[which]]
        if isinstance(which, str):
            raise LabelError(f"this answer is about one batch; it has no group {which!r}, only items by their position")
        return self._item(range(len(self))[which])

    def __iter__(self) -> Iterator[Any]:
        """Go through the items; with groups, through their names."""
        return (self._item(place) for place in range(len(self))) if self.groups is None else iter(self.groups.tolist())

    def _item(self, place: int) -> LabelledItem:
        return LabelledItem(*(self._columns[name][place : place + 1].tolist()[0] for name in LabelledItem._fields))

    def _repr_html_(self) -> str:
        how, messages = ("", None) if self.about is None else self.about.sentences(self)
        notes = notes_on(self) if self.groups is None else []
        return html.of_answer(self, notes, how, messages)

    @property
    def probabilities(self) -> Float[np.ndarray, "item class"]:
        """`p_nk`, as if every item had one of the classes; columns in the order of `classes`.

        The chance that a label is right is its `certainty`. With several classes per item, the chance of each class by
        itself.
        """
        if self._table is None:
            raise OptionError(
                "the probabilities of all classes were not kept; to_frame() has the best two of each item"
            )
        return self._table

    @property
    def labels(self) -> npt.NDArray[Any]:
        """The most probable class of each item, as one of the labels given to `fit`.

        None for rejected items that a person called none of these, and for those that look like them. With `unknown`
        of `classify`, all rejected items have that label.
        """
        if len(self.classes) == 0:  # before the first name
            return np.full(len(self.codes), None, dtype=object)
        labels = self.classes[self.codes[:, 0]]
        if self.about is None or self.about.unknown_label is None:
            return without_label(labels, self._none_of_these)
        return np.where(self.rejected, np.array(self.about.unknown_label, dtype=object), labels)

    @property
    def certainty(self) -> Float[np.ndarray, "item"]:
        """The chance that each label is right, `p (1 - unknown) (n + 1)/(n + 2)` with n examples; 1 if it was given.

        p is its entry of `probabilities`. If `unknown` was not judged, it counts as zero here. That a rejected item
        belongs to none of the classes has the chance `unknown`. See `handful.estimators.certainty`.
        """
        return self._certainties[:, 0]

    @property
    def sure_labels(self) -> npt.NDArray[Any]:
        """The finest level with a certainty of at least 0.9: label, coarse class, or None; None if rejected."""
        labels = self.labels.astype(object)
        sure = self.certainty >= SURE
        if self.coarse is not None:
            coarse = ~sure & (self.coarse.certainty >= SURE)
            labels[coarse] = self.coarse.labels[coarse]
            sure |= coarse
        labels[~sure | self.rejected] = None
        return labels

    @property
    def present_classes(self) -> npt.NDArray[Any]:
        """Classes that are more likely present than not, the largest first; with groups, in any group.

        Of a method that does not tell `presence`, those that some item has as its label.
        """
        presence = presence_or_labels(self.presence, self.codes)
        return np.asarray(self.classes[present_places(self.expected_counts, presence)])

    @property
    def alone(self) -> npt.NDArray[Any] | None:
        """The label that each item would have without the batch; None if that is not known."""
        return None if self._items is None else self.classes[self._items.alone]

    @property
    def doubtful(self) -> Bool[np.ndarray, "item"]:
        """Items with `c₁ < (1 + c₂) / 2`, for the certainty of the label and of the next most probable class.

        Another class, or none, is then nearly as likely. Rejected items are not in doubt: they look like none.
        """
        return in_doubt(self._certainties, self.rejected)

    def top(self, k: int = TOP_CLASSES) -> Top:
        """Return the k most probable classes of every item, with their probabilities.

        Parameters
        ----------
        k : int
            How many; all if the catalogue has fewer.

        Returns
        -------
        Top
            `labels` and `probabilities`, [item, k], the most probable first.
        """
        return top_of(self.probabilities, self.classes, k)

    def to_frame(self) -> Any:
        """Return one row per item, as a table.

        Returns
        -------
        DataFrame or Table
            Of polars or Arrow if the batch was; else of pandas, with the index of the batch if it had one. The columns
            are `label`, `certainty`, `runner_up`, `runner_up_certainty`, `doubtful`, `unknown`, `rejected` and
            `proposal`, after `group` if there are groups; with `coarse` also `coarse`, `coarse_certainty` and
            `sure_label`. An item that has no label because it is like none of the classes has the chance of that as
            its certainty, and its most probable class is the runner-up. Of `classify` and `rescore`, what
            `write_predictions` writes: position and name of each item and the columns of the batch stand in front.
        """
        if self.about is not None:
            return self._frame_of(self.about.columns(self))
        named = {} if self.groups is None else {"group": self.groups[self._group_of]}
        return self._frame_of(named | item_columns(self))

    def by_class(self) -> Any:
        """Return one row per class that may be present, as a table; in each group the classes with most items first.

        That is a chance of at least 0.02, and always the class with most items.

        Returns
        -------
        DataFrame or Table
            As in `to_frame`. The columns are `class`, `expected_count`, `proportion` and `presence`, after `group` if
            there are groups.
        """
        counts, presence = (np.atleast_2d(table) for table in (self.expected_counts, self.presence))
        place, code = listed_classes(counts, np.atleast_2d(presence_or_labels(self.presence, self.codes)))
        named = {} if self.groups is None else {"group": self.groups[place]}
        columns = {
            "class": self.classes[code],
            "expected_count": counts[place, code],
            "proportion": counts[place, code] / np.atleast_1d(sizes_of(self))[place],
            "presence": presence[place, code],
        }
        return self._frame_of.rows(None)(named | columns)

    def summary(self) -> str:
        """Say in plain text what was found.

        Returns
        -------
        str
            Items, the classes present with their expected counts, doubtful items, unknown ones, and diagnostics; with
            groups, one line per group.
        """
        return summary_of(self)

    def plot(self, ax: Any = None) -> Any:
        """Draw how many items each class present has, jointly and alone, how many are doubtful, and its presence.

        With groups, a heat map: the share of each class in each group, with expected numbers of items. Needs the extra
        `plots`, as all pictures do.

        Parameters
        ----------
        ax : matplotlib Axes or None
            Where to draw; by default on a new figure.

        Returns
        -------
        Axes
            The axes; `ax.figure.savefig(path)` writes the picture.
        """
        return plots.plot_classes(self, ax) if self.groups is None else plots.plot_groups(self, ax)

    def plot_map(self, ax: Any = None) -> Any:
        """Draw the items, and the examples of the classes present, in the two directions that separate these best.

        The directions are linear discriminants of the catalogue. Doubtful items are hollow, unknown ones crosses, and
        those of a proposed new class are joined. A class that looks like two, or lies apart from its examples, is worth
        a look.

        Parameters
        ----------
        ax : matplotlib Axes or None
            As in `plot`.

        Returns
        -------
        Axes
            The axes.
        """
        self._refuse_groups("answer[group].plot_map() draws one")
        return plots.plot_map(self, self._items, ax, None if self._unnamed is None else self._unnamed.group)

    def plot_items(
        self,
        images: Any = None,
        texts: Any = None,
        ax: Any = None,
        *,
        most_classes: int = MOST_ON_SHEET,
        most_items: int = MOST_ON_SHEET,
    ) -> Any:
        """Draw a contact sheet: the items of each class, the least certain first, with their certainty.

        Parameters
        ----------
        images : sequence, one per item
            Paths of image files, arrays of pixels, or images of Pillow.
        texts : sequence of str, one per item
            Texts instead of images.
        ax : matplotlib Axes or None
            Where to draw; by default on a new figure.
        most_classes, most_items : int
            How many classes, those with most items, and how many items of each.

        Returns
        -------
        Axes
            The axes.
        """
        self._refuse_groups("answer[group].plot_items() draws one")
        if (images is None) == (texts is None):
            raise OptionError("give one of images and texts, with one entry per item")
        given = images if texts is None else texts
        if len(given) != len(self):
            raise OptionError(f"there must be one image or text per item, {len(self):,}, got {len(given):,}")
        # A pandas Series is indexed by its labels.
        entries = list(given)
        if texts is not None:
            return plots.plot_texts(self, entries, most_classes, most_items, ax)
        return plots.plot_pictures(self, lambda item: picture_of(entries[item]), most_classes, most_items, ax)

    def _refuse_groups(self, instead: str) -> None:
        if self.groups is not None:
            raise OptionError(f"this answer is about {counted(len(self), 'group')}; {instead}")

    @cached_property
    def _places(self) -> dict[Any, int]:
        """Position of each group."""
        assert self.groups is not None
        return {name: place for place, name in enumerate(self.groups.tolist())}

    @cached_property
    def _rows_of(self) -> list[Int[np.ndarray, "row"]]:
        """Rows of each group; of all items without groups."""
        return [np.arange(len(self.codes))] if self._group_of is None else rows_by_group(self._group_of)

    @cached_property
    def _proposal(self) -> Int[np.ndarray, "item"]:
        """The number of the group in `proposals` that each item is in, from 1; 0 if it is in none."""
        numbers = np.zeros(len(self.codes), np.int64)
        of_groups = [self.proposals] if self.groups is None else self.proposals  # large batches have none
        for rows, proposals in zip(self._rows_of, of_groups, strict=False):
            for number, found in enumerate(proposals, start=1):
                numbers[rows[found.items]] = number
        return numbers

    @cached_property
    def _columns(self) -> dict[str, npt.NDArray[Any]]:
        """Columns with one entry per item."""
        return _columns_of(self, None if self.about is None else self.about.unknown_label)


# What the rooms above need of an answer, beside its public names.


def group_at(answer: Answer, place: int) -> Answer:
    """Return the answer about the group at this place among `groups`, without groups."""
    rows = slice(None) if len(answer._rows_of) == 1 else answer._rows_of[place]
    low, high = answer.unknown_interval[place].tolist()
    return replace(
        answer,
        codes=answer.codes[rows],
        expected_counts=answer.expected_counts[place],
        presence=answer.presence[place],
        joint_weight=None if answer.joint_weight is None else float(answer.joint_weight[place]),
        prior_weight=None if answer.prior_weight is None else float(answer.prior_weight[place]),
        unknown=answer.unknown[rows],
        rejected=answer.rejected[rows],
        unknown_interval=(low, high),
        proposals=answer.proposals[place],
        diagnostics=answer.diagnostics[place],
        groups=None,
        pooling=None,
        coarse=None if answer.coarse is None else answer.coarse.rows(rows),
        about=None if answer.about is None else answer.about.rows(rows),
        _certainties=answer._certainties[rows],
        _table=None if answer._table is None else answer._table[rows],
        _none_of_these=answer._none_of_these[rows],
        _group_of=None,
        _items=None if answer._items is None else answer._items.rows(rows),
        _frame_of=answer._frame_of.rows(rows),
    )


def place_of(answer: Answer, group: Any) -> int:
    """Return the position of a group in `groups`."""
    name = group.item() if isinstance(group, np.generic) else group
    if not isinstance(name, Hashable) or name not in answer._places:
        raise LabelError(f"there is no group {group!r}; see groups")
    return answer._places[name]


def rows_of_groups(answer: Answer) -> list[Int[np.ndarray, "row"]]:
    """Return the rows of each group; of all items without groups."""
    return answer._rows_of


def groups_of_items(answer: Answer) -> Int[np.ndarray, "item"] | None:
    """Return the position in `groups` of each item's; None without groups."""
    return answer._group_of


def sizes_of(answer: Answer) -> npt.NDArray[np.int64]:
    """Return the number of items; with groups, of each."""
    if answer.groups is None or answer._group_of is None:
        return np.array(len(answer.codes))
    return np.bincount(answer._group_of, minlength=len(answer.groups))


def item_columns(answer: Answer, unknown_label: str | None = None) -> dict[str, npt.NDArray[Any]]:
    """Return the columns of `to_frame` that have one entry per item, but `group`.

    Items without a class are rejected ones if there is an `unknown_label`, here or of `classify`; else those that a
    person called none of these, and those like them. They have this label or none, with the chance of being unknown,
    and their most probable class is the runner-up. What is not said is None, or NaN among numbers.
    """
    return answer._columns if unknown_label is None else _columns_of(answer, unknown_label)


def _columns_of(answer: Answer, unknown_label: str | None) -> dict[str, npt.NDArray[Any]]:
    first, second = (_names(answer, column) for column in answer.codes.T)
    certainty, second_certainty = answer._certainties.T
    without_class = none_of_these(answer) if unknown_label is None else answer.rejected
    labels = first
    if without_class.any():
        labels = first.astype(object)
        labels[without_class] = unknown_label
        second = np.where(without_class, first.astype(object), second)
        second_certainty = np.where(without_class, certainty, second_certainty)
        certainty = np.where(without_class, answer.unknown, certainty)
    nothing = np.full(len(labels), None)
    columns = {
        "label": labels,
        "certainty": certainty,
        "runner_up": second,
        "runner_up_certainty": np.where(second == nothing, np.nan, second_certainty),
        "doubtful": answer.doubtful,
        "unknown": answer.unknown,
        "rejected": answer.rejected if is_judged(answer) else nothing,
        "proposal": np.where(answer._proposal > 0, answer._proposal, nothing),
    }
    if answer.coarse is None:
        return columns
    sure = answer.sure_labels.astype(object)
    sure[answer.rejected] = unknown_label
    return columns | {"coarse": answer.coarse.labels, "coarse_certainty": answer.coarse.certainty, "sure_label": sure}


def _names(answer: Answer, codes: Int[np.ndarray, "item"]) -> npt.NDArray[Any]:
    """Return the classes at these positions; None at -1, where there is none."""
    if (codes >= 0).all():
        return np.asarray(answer.classes[codes])
    names = np.full(len(codes), None)
    names[codes >= 0] = answer.classes[codes[codes >= 0]]
    return names


def is_judged(answer: Answer) -> bool:
    """Return whether anything is said about unknown items, by the catalogue or by a person."""
    return bool(answer.rejected.any() or not np.isnan(answer.unknown).any())


def proposal_numbers(answer: Answer) -> Int[np.ndarray, "item"]:
    """Return the number of the group in `proposals` that each item is in, from 1; 0 if it is in none."""
    return answer._proposal


def second_certainties(answer: Answer) -> Float[np.ndarray, "item"]:
    """Return the chance that the second most probable class of each item is right."""
    return answer._certainties[:, 1]


def unnamed_groups(answer: Answer) -> UnnamedGroups | None:
    """Return the groups without a name of an answer without a catalogue; None if there is one."""
    return answer._unnamed


def compared_items(answer: Answer) -> Any:
    """Return the items as they were compared; None if they were not kept."""
    return answer._items


def kept_probabilities(answer: Answer) -> Float[np.ndarray, "item class"] | None:
    """Return the probabilities of all classes; None if they were not kept."""
    return answer._table


def none_of_these(answer: Answer) -> Bool[np.ndarray, "item"]:
    """Return the rejected items that a person called none of these, and those that look like them."""
    return answer._none_of_these


def without_label(labels: npt.NDArray[Any], none_of_these: Bool[np.ndarray, "item"]) -> npt.NDArray[Any]:
    """Return the labels, with None for some items."""
    if not none_of_these.any():
        return labels
    labels = labels.astype(object)
    labels[none_of_these] = None
    return labels


def best_two(
    table: Float[np.ndarray, "item class"],
) -> tuple[Int[np.ndarray, "item two"], Float[np.ndarray, "item two"]]:
    """Return `codes` of an answer, and the probabilities of these classes; of equal ones, the first class.

    Examples
    --------
    >>> best_two(np.array([[0.1, 0.7, 0.2]]))
    (array([[1, 2]]), array([[0.7, 0.2]]))
    """
    items = np.arange(len(table))
    first = table.argmax(1)
    best = table[items, first]
    second = np.full(len(table), -1)
    next_best = np.zeros(len(table), table.dtype)
    if table.shape[1] > 1:
        table[items, first] = -1  # and back: a copy of a large table would take its memory twice
        second = table.argmax(1)
        next_best = table[items, second]
        table[items, first] = best
    return np.column_stack([first, second]), np.column_stack([best, next_best])


def top_of(table: Float[np.ndarray, "item class"], classes: npt.NDArray[Any], k: int) -> Top:
    """Return the k most probable classes of every item, or all if there are fewer; of equal ones the first."""
    k = min(whole("k", k, least=1, error=OptionError), table.shape[1])
    # In blocks: all positions of a large table take twice its memory.
    size = max(1, SORTED_NUMBERS // table.shape[1])
    blocks = (table[at : at + size] for at in range(0, max(len(table), 1), size))
    some = np.sort(np.concatenate([np.argpartition(-block, k - 1, axis=1)[:, :k] for block in blocks]), axis=1)
    order = np.argsort(-np.take_along_axis(table, some, 1), axis=1, kind="stable")
    best = np.take_along_axis(some, order, 1)
    return Top(classes[best], np.take_along_axis(table, best, 1))
