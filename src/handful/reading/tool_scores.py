"""Scores that another tool wrote: for every item some classes with a score each, and a way back into its file."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from handful.errors import FileFormatError
from handful.reading.class_names import plain_label
from handful.reading.table import Skipped


class ItemLabel(NamedTuple):
    """The two most likely classes of an item, and how certain each is; the second is None if there is none."""

    label: str
    certainty: float
    runner_up: str | None
    runner_up_certainty: float | None


@dataclass(frozen=True, eq=False)
class ToolScores:
    """Items with the scores of another model.

    Attributes
    ----------
    kind : str
        "probabilities" or "sigmoid", see `handful.infer_scores`.
    names : tuple of str
        What an item is called.
    files : tuple of str
        The image or recording that it belongs to.
    classes, scores : sequence of sequences
        Classes of each item that have a score, and these scores.
    write : callable
        Write one answer per item into a file of the same format: `write(answers, path)`.
    columns : mapping of str to list
        What else the file says about each item.
    skipped : tuple of Skipped
        Items for which the tool has no scores.
    rows : sequence of int or None
        Positions of the items in the file; None if they are all that it has.
    """

    kind: str
    names: tuple[str, ...]
    files: tuple[str, ...]
    classes: Sequence[Sequence[str]]
    scores: Sequence[Sequence[float]]
    write: Callable[[Sequence[ItemLabel], Path], None]
    columns: Mapping[str, list[Any]] = field(default_factory=dict)
    skipped: tuple[Skipped, ...] = ()
    rows: Sequence[int] | None = None


def checked_scores(classes: Any, scores: Any, where: str) -> tuple[list[str], list[float]]:
    """Return classes and scores of an item; refuse lists that do not belong together, and scores outside 0 … 1."""
    if not isinstance(classes, list) or not isinstance(scores, list) or len(classes) != len(scores):
        raise FileFormatError(f"{where} must have one score for each of its classes; write the file again")
    classes = [plain_label(name) for name in classes]
    if not all(isinstance(name, str) and name for name in classes) or len(set(classes)) != len(classes):
        raise FileFormatError(f"{where} must name each of its classes once, as text; write the file again")
    if not all(isinstance(s, (int, float)) and not isinstance(s, bool) and 0 <= s <= 1 for s in scores):
        raise FileFormatError(f"{where} must have scores between 0 and 1, got {scores!r:.80}; write the file again")
    return classes, [float(score) for score in scores]
