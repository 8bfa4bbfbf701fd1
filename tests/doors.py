"""Every door that labels a batch of vectors, in one table: a test over doors goes through all of them.

A door takes a `Room` and what is known about the batch, and returns the answer about the batch.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple
from unittest import mock

import numpy as np

from handful import Session, classify
from handful.classification import task
from handful.estimators import Answer, BatchClassifier

GROUP = "wood"


class Room(NamedTuple):
    """A fitted classifier and a batch, in memory and as the files `c.safetensors` and `b.npz` of a folder."""

    classifier: BatchClassifier
    batch: np.ndarray
    folder: Path

    @classmethod
    def of(cls, classifier: BatchClassifier, batch: np.ndarray, folder: Path) -> Room:
        """Write the files."""
        batch = batch.astype(np.float32)
        classifier.save(folder / "c.safetensors")
        np.savez(folder / "b.npz", features=batch, site=[GROUP] * len(batch))
        return cls(classifier, batch, folder)

    @property
    def files(self) -> tuple[Path, Path]:
        """The catalogue and the batch."""
        return self.folder / "c.safetensors", self.folder / "b.npz"


def _one_of_two_groups(room: Room, known: Mapping[str, Any]) -> Answer:
    """The batch beside a few items of another group; what is known about items holds for its own, which come first."""
    others = room.batch[:9]
    groups = np.repeat([GROUP, "marsh"], [len(room.batch), len(others)])
    return room.classifier.infer(np.concatenate([room.batch, others]), groups, **known)[GROUP]


def _as_large(room: Room, known: Mapping[str, Any]) -> Answer:
    """The batch as if its probabilities took much memory."""
    with mock.patch.object(task, "MOST_DENSE_BYTES", 0):
        return classify(*room.files, **known)


DOORS: dict[str, Callable[[Room, Mapping[str, Any]], Answer]] = {
    "infer": lambda room, known: room.classifier.infer(room.batch, **known),
    "one of two groups": _one_of_two_groups,
    "session": lambda room, known: Session(room.batch, room.classifier, **known).result,
    "classify": lambda room, known: classify(*room.files, **known),
    "classify by groups": lambda room, known: classify(*room.files, group_by="site", **known)[GROUP],
    "classify, large": _as_large,
}
