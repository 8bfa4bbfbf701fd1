"""Contact sheets: the items of each class, the least certain first."""

from __future__ import annotations

import textwrap
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from handful.plots.axes import GREY, ORANGE, PLAIN, axes_of, short

# Characters of a line of text.
LINE = 90


class SheetRow(NamedTuple):
    """The items of one class that are shown, the least certain first, and how many it has."""

    name: str
    items: list[int]
    n_items: int


def rows_of_items(answer: Any, most_classes: int, most_items: int) -> list[SheetRow]:
    """Return the items of the classes with most labels, the least certain first; then those of no class."""
    known = np.flatnonzero(~answer.rejected)
    codes = answer.codes[known, 0]
    counts = np.bincount(codes, minlength=len(answer.classes))
    rows = []
    for k in np.argsort(-counts, kind="stable")[:most_classes]:
        items = known[codes == k]
        if len(items):
            items = items[np.argsort(answer.certainty[items], kind="stable")]
            rows.append(SheetRow(str(answer.classes[k]), items[:most_items].tolist(), len(items)))
    rejected = np.flatnonzero(answer.rejected)
    if len(rejected):
        rejected = rejected[np.argsort(-answer.unknown[rejected], kind="stable")]
        rows.append(SheetRow("none of the classes", rejected[:most_items].tolist(), len(rejected)))
    return rows


def _chance(answer: Any, item: int) -> float:
    return float(answer.unknown[item] if answer.rejected[item] else answer.certainty[item])


def plot_pictures(answer: Any, picture: Callable[[int], Any], most_classes: int, most_items: int, ax: Any) -> Any:
    """Draw a row of pictures per class; `picture` returns the pixels of an item, or a sentence why there are none."""
    rows = rows_of_items(answer, most_classes, most_items)
    columns = max(len(row.items) for row in rows)
    ax = axes_of(ax, 2 + 1.1 * columns, 0.4 + 1.35 * len(rows))
    for top, row in enumerate(rows):
        for left, item in enumerate(row.items):
            shown = picture(item)
            if isinstance(shown, str):
                ax.text(
                    left + 0.5, top + 0.45, "\n".join(textwrap.wrap(shown, 16)[:4]), ha="center", fontsize=6, **PLAIN
                )
            else:
                height, width = np.asarray(shown).shape[:2]
                scale = 0.4 / max(height, width)
                x = left + 0.5
                y = top + 0.43
                across = scale * width
                up = scale * height
                ax.imshow(shown, extent=(x - across, x + across, y + up, y - up), cmap="gray", aspect="auto")
            colour = ORANGE if answer.doubtful[item] else None
            ax.text(left + 0.5, top + 0.92, f"{_chance(answer, item):.2f}", ha="center", fontsize=8, color=colour)
    names = ["\n".join([*textwrap.wrap(short(row.name), 18), f"{row.n_items:,}"]) for row in rows]
    ax.set_yticks(np.arange(len(rows)) + 0.45, names, **PLAIN)
    ax.set_xticks([])
    ax.tick_params(length=0)
    ax.spines[:].set_visible(False)
    ax.set(xlim=(0, columns), ylim=(len(rows), 0))
    ax.set_aspect("equal")
    ax.set_title("least certain first; orange: doubtful", fontsize="small", loc="left")
    return ax


def plot_texts(answer: Any, texts: Any, most_classes: int, most_items: int, ax: Any) -> Any:
    """Write the texts of each class below its name."""
    rows = rows_of_items(answer, most_classes, most_items)
    n_lines = sum(1 + len(row.items) for row in rows)
    ax = axes_of(ax, 9, 0.3 + 0.24 * n_lines)
    line = 0
    for row in rows:
        name = f"{short(row.name)}  ({row.n_items:,})"
        ax.text(0, line + 0.5, name, va="center", fontweight="bold", **PLAIN)
        line += 1
        for item in row.items:
            colour = ORANGE if answer.doubtful[item] else GREY
            ax.text(0.05, line + 0.5, f"{_chance(answer, item):.2f}", va="center", ha="right", color=colour)
            ax.text(0.06, line + 0.5, short(texts[item], LINE), va="center", fontsize="small", **PLAIN)
            line += 1
    ax.set(xlim=(0, 1), ylim=(n_lines, 0))
    ax.set_axis_off()
    return ax
