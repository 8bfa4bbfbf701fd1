"""A result in plain text: how many items, which classes, which are doubtful, what looks wrong."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from handful.arguments import counted
from handful.estimators.certainty import SURE
from handful.machine.untrusted import printable
from handful.model.present_classes import presence_or_labels, present_places

# Entries of a list, and lines of a table. [lines; convention]
MOST_LISTED = 10
MOST_LINES = 20
# If a larger share of the items is expected to be unknown although none is rejected, a sentence says so. It is what is
# expected before a batch is seen. Of batches of seven banks in which nothing was rejected, 3 of 44 with nothing unknown
# were above it, and 12 of 27 with a half unknown. [chance; measured]
UNDECIDED = 0.17


def summary_of(answer: Any) -> str:
    """Return `Answer.summary`."""
    counts = f"{counted(len(answer.codes), 'item')}, ", counted(len(answer.classes), "class")
    if answer.groups is not None:
        return "\n".join([f"{counted(len(answer), 'group')}, {''.join(counts)}.", *_groups(answer, answer.groups)])
    present = present_places(answer.expected_counts, presence_or_labels(answer.presence, answer.codes))
    lines = [f"{counts[0]}{len(present):,} of {counts[1]} present."]
    if len(present):
        chances = ["not told" if np.isnan(chance) else f"{chance:.2f}" for chance in answer.presence[present]]
        rows = [
            [str(answer.classes[k]), f"{answer.expected_counts[k]:.1f}", chance]
            for k, chance in zip(present[:MOST_LINES], chances, strict=False)
        ]
        lines += aligned([["class", "expected count", "presence"], *rows])
    if len(present) > MOST_LINES:
        lines.append(f"And {len(present) - MOST_LINES:,} more, see by_class().")
    warnings = [f"Warning: {diagnostic.message}" for diagnostic in answer.diagnostics]
    return "\n".join([*lines, *notes_on(answer), *warnings])


def _groups(answer: Any, groups: npt.NDArray[Any]) -> list[str]:
    shown = [(str(groups[place]), answer[groups[place]]) for place in range(min(len(groups), MOST_LINES))]
    judged = answer.unknown_reason is None
    table = [
        [name, f"{len(one):,}", f"{one.doubtful.sum():,}", f"{one.rejected.sum():,}" if judged else "not judged"]
        for name, one in shown
    ]
    present = ["classes present", *(listed_in_words(one.present_classes) for _, one in shown)]
    lines = aligned([["group", "items", "doubtful", "rejected"], *table])
    lines = [f"{line}  {classes}" for line, classes in zip(lines, present, strict=True)]
    if len(groups) > MOST_LINES:
        lines.append(f"And {len(groups) - MOST_LINES:,} more groups, see by_class().")
    return lines if answer.unknown_reason is None else [*lines, answer.unknown_reason]


def notes_on(answer: Any) -> list[str]:
    """Return what there is to say about doubtful and unknown items of a batch, one sentence each."""
    lines = list[str]()
    doubtful = np.flatnonzero(answer.doubtful)
    rejected = np.flatnonzero(answer.rejected)
    if len(doubtful):
        lines.append(f"{counted(len(doubtful), 'doubtful item')}: {listed_in_words(doubtful)}.")
    low, high = answer.unknown_interval
    if len(rejected):
        look = "1 item looks" if len(rejected) == 1 else f"{len(rejected):,} items look"
        lines.append(
            f"{look} like none of the classes: {listed_in_words(rejected)}. "
            f"The share of such items is {low:.0%} to {high:.0%}."
        )
    lines.append(answer.unknown_reason or ("" if len(rejected) else undecided(float(np.mean(answer.unknown)))))
    lines += [
        f"Perhaps a new class of {proposal.size:,} items, nearest to {proposal.nearest}: "
        f"{listed_in_words(proposal.items)}."
        for proposal in answer.proposals
    ]
    return [line for line in (*lines, sure_summary(answer)) if line]


def sure_summary(answer: Any) -> str:
    """Say how many items are sure at each level; empty without coarse classes."""
    if answer.coarse is None:
        return ""
    known = ~answer.rejected
    fine = answer.certainty[known] >= SURE
    sure = fine | (answer.coarse.certainty[known] >= SURE)
    return (
        f"{int(fine.sum()):,} of {counted(int(known.sum()), 'item')} have a class with a certainty of at least "
        f"{SURE:g}, and {int((sure & ~fine).sum()):,} more a coarse class."
    )


def undecided(expected: float) -> str:
    """Say that many items may be unknown although none is rejected, about this share; empty if that is small."""
    if not expected > UNDECIDED:
        return ""
    return (
        f"About {expected:.0%} of the items may belong to none of the classes, and the batch does not tell which; a "
        "few answers do (handful review)."
    )


def listed_in_words(values: Sequence[Any] | npt.NDArray[Any]) -> str:
    """Write the first values, and how many more there are."""
    more = len(values) - MOST_LISTED
    return ", ".join(map(str, values[:MOST_LISTED])) + (f" and {more:,} more" if more > 0 else "")


def aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    """Write rows in columns, the first to the left, numbers to the right; every row stays one line."""
    columns = [[printable(cell) for cell in column] for column in zip(*rows, strict=True)]
    widths = [max(map(len, column)) for column in columns]
    first = [cell.ljust(widths[0]) for cell in columns[0]]
    others = [[cell.rjust(width) for cell in column] for column, width in zip(columns[1:], widths[1:], strict=True)]
    return ["  ".join(row) for row in zip(first, *others, strict=True)]
