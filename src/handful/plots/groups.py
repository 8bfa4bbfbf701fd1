"""Classes of every group as a heat map."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from handful.errors import OptionError
from handful.plots.axes import PLAIN, axes_of, short

if TYPE_CHECKING:
    from handful.estimators.answer import Answer

# Rows and columns that are drawn, and cells up to which each has its number.
MOST_GROUPS, MOST_CLASSES, MOST_NUMBERED = 60, 40, 400
# Characters of a name beside the map.
LONGEST = 24


def plot_groups(answer: Answer, ax: Any = None) -> Any:
    """Draw the share of each class in each group; see `Answer.plot_groups`."""
    if answer.groups is None:
        raise OptionError("this answer is about one batch; give groups to infer, or draw its classes with plot()")
    present = answer.presence_or_labels
    order = np.argsort(-np.where(present >= 0.5, answer.expected_counts, 0).sum(0), kind="stable")
    there = order[(present[:, order] >= 0.5).any(0)]
    classes, groups = there[:MOST_CLASSES], np.arange(min(len(answer.groups), MOST_GROUPS))
    shares = answer.class_proportions[np.ix_(groups, classes)]
    counts = answer.expected_counts[np.ix_(groups, classes)]
    ax = axes_of(ax, 2.5 + 0.38 * max(len(classes), 6), 2 + 0.3 * len(groups))
    mesh = ax.imshow(shares, cmap="Blues", vmin=0, vmax=1, aspect="auto")
    if shares.size <= MOST_NUMBERED:
        for row, column in zip(*np.nonzero(counts >= 0.5), strict=True):
            colour = "white" if shares[row, column] > 0.5 else "black"
            ax.text(column, row, f"{counts[row, column]:,.0f}", ha="center", va="center", color=colour, fontsize=8)
    ax.set_xticks(range(len(classes)), [short(answer.classes[k], LONGEST) for k in classes], **PLAIN)
    ax.tick_params(axis="x", labelrotation=90)
    ax.set_yticks(groups, [short(answer.groups[place], LONGEST) for place in groups], **PLAIN)
    ax.tick_params(length=0)
    left_out = [
        f"{n - shown:,} more {what}"
        for n, shown, what in ((len(answer.groups), len(groups), "groups"), (len(there), len(classes), "classes"))
        if n > shown
    ]
    if left_out:
        ax.set_title(f"and {' and '.join(left_out)}", fontsize="small", loc="left")
    ax.figure.colorbar(mesh, ax=ax, label="share of the group", shrink=0.8)
    return ax
