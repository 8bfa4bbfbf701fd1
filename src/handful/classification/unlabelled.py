"""A batch without examples: its items, and answers about what a person named in it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from handful.classification.batch import Batch
from handful.classification.labelled import About
from handful.classification.measured import scaled
from handful.classification.task import MOST_DENSE_BYTES, dense_bytes
from handful.errors import OptionError
from handful.estimators.answer import Answer
from handful.estimators.containers import new_frame
from handful.reading.contents import Contents
from handful.reading.table import Table


@dataclass(frozen=True, eq=False)
class Unlabelled:
    """Items to name, with their vectors.

    Attributes
    ----------
    batch : Batch
        The items.
    unknown_label : str or None
        As in `About`.
    """

    batch: Batch
    unknown_label: str | None = None

    def answer(self, answer: Answer, given: Mapping[int, str | None]) -> Answer:
        """Return the answer with what it is about; `given` is what a person named, by positions."""
        names = answer.classes.tolist()
        place = {name: k for k, name in enumerate(names)}
        codes = {item: None if name is None else place[name] for item, name in given.items()}
        about = About(
            self.batch,
            sum(name is not None for name in given.values()),
            self.batch.encoder,
            unknown_label=self.unknown_label,
            given=codes,
            n_named=len(names),
        )
        return replace(answer, about=about, _frame_of=new_frame)


def unlabelled(table: Table, contents: Contents | None, *, unknown: str | None = None) -> Unlabelled:
    """Return the items of a batch whose vectors can be compared: measurements are scaled by their own spread.

    Parameters
    ----------
    table
        The vectors, and the other columns of the items.
    contents
        What a page shows of them.
    unknown
        The label of rejected items.
    """
    if table.measured:
        comparable: Table = scaled(table, table, set(), None, None)["batch"]
        table = comparable
    items = replace(Batch.of(table), contents=contents)
    assert items.points is not None
    n_items, dim = items.points.shape
    if dense_bytes(n_items, 0, 0, dim) > MOST_DENSE_BYTES:
        raise OptionError(
            f"{n_items:,} items are too many to be labelled after every answer; review a part of them, and classify "
            "the rest"
        )
    return Unlabelled(items, unknown)
