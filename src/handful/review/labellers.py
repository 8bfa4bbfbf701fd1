"""What labels the items of a batch of a catalogue again and again: with examples of other batches, or without any."""

from __future__ import annotations

from typing import Any

from handful.classification.steps import Fitted, label_batch
from handful.classification.unlabelled import Unlabelled
from handful.errors import OptionError
from handful.estimators import Answer
from handful.session import BatchSaid, FromNothing


class FileLabeller:
    """Labels items by examples, without reading, embedding or fitting anything a second time.

    Parameters
    ----------
    fitted : Fitted
        From `handful.classification.steps.embed`.
    """

    def __init__(self, fitted: Fitted) -> None:
        if fitted.catalogue is None:
            raise OptionError("a method of the few-shot literature cannot use answers; leave --method out")
        if fitted.task.is_large:
            raise OptionError("this batch is too large to be labelled after every answer; review it in groups or parts")
        self.fitted = fitted

    def __call__(self, said: BatchSaid) -> Answer:
        """Label the batch."""
        rows = self.fitted.batch.rows
        given = said.given
        new = [name for name in given.values() if name is not None and name not in self.fitted.task.classes]
        known: Any = {"given": {rows[item]: name for item, name in given.items()} or None, "new_classes": new or None}
        return label_batch(self.fitted, keep=True, left_out=said.discarded, **known)


class UnlabelledLabeller:
    """Labels items by the names that a person gave, without any example.

    Parameters
    ----------
    unlabelled : Unlabelled
        The items, with their vectors.
    from_nothing : FromNothing, optional
        What labels their vectors, if it is there already.
    """

    def __init__(self, unlabelled: Unlabelled, from_nothing: FromNothing | None = None) -> None:
        assert unlabelled.batch.points is not None
        self.unlabelled = unlabelled
        self.from_nothing = from_nothing or FromNothing(unlabelled.batch.points)

    def __call__(self, said: BatchSaid) -> Answer:
        """Label the batch."""
        return self.unlabelled.answer(self.from_nothing(said), said.given)
