"""The classes of a batch: how many items each has jointly, alone and in doubt, and its presence; those of groups."""

from __future__ import annotations

from collections import Counter
from typing import Any, NamedTuple

import numpy as np

from handful.model.present_classes import PRESENT, presence_or_labels, present_places
from handful.plots.axes import BLUE, GREY, ORANGE, PLAIN, axes_of, only_bars, short

# Classes that have a bar of their own.
MOST_BARS = 20


class Bar(NamedTuple):
    """One row of the picture; `presence` is empty for rows of several classes, and the sum of many is not drawn."""

    name: str
    items: int
    doubtful: int
    alone: int | None
    expected: float | None
    presence: str
    drawn: bool = True


def bars_of(answer: Any, most: int = MOST_BARS) -> list[Bar]:
    """Return the rows: the classes present, the largest first; what is left; items of no class."""
    n_classes = len(answer.classes)
    known = ~answer.rejected
    items, doubtful = (
        np.bincount(answer.codes[chosen, 0], minlength=n_classes) for chosen in (known, answer.doubtful & known)
    )
    own = answer.alone
    counts_alone = Counter(() if own is None else own.tolist())
    alone = None if own is None else np.array([counts_alone[name] for name in answer.classes.tolist()])
    present = present_places(answer.expected_counts, presence_or_labels(answer.presence, answer.codes))

    def bar(name: str, places: Any, presence: str = "") -> Bar:
        counts = None if alone is None else int(alone[places].sum())
        expected = float(answer.expected_counts[places].sum())
        return Bar(name, int(items[places].sum()), int(doubtful[places].sum()), counts, expected, presence)

    bars = [bar(short(answer.classes[k]), [k], chance_said(answer.presence[k])) for k in present[:most]]
    absent = np.setdiff1d(np.flatnonzero((items if alone is None else items + alone) > 0), present)
    if len(absent):
        bars.append(bar("1 absent class" if len(absent) == 1 else f"{len(absent):,} absent classes", absent))
    if len(present) > most:  # it would dwarf the others
        bars.insert(most, bar(f"{len(present) - most:,} more classes", present[most:])._replace(drawn=False))
    if answer.rejected.any():
        bars.append(Bar("none of the classes", int(answer.rejected.sum()), 0, None, None, ""))
    return bars


def chance_said(chance: float) -> str:
    """Write a chance; a method may not tell it."""
    return "–" if np.isnan(chance) else f"{chance:.2f}"


def plot_classes(answer: Any, ax: Any = None) -> Any:
    """Draw a bar per class; see `Answer.plot`."""
    bars = bars_of(answer)
    ax = axes_of(ax, 7, 1.3 + 0.28 * len(bars))
    places = np.arange(len(bars))
    items, doubtful = np.array([[bar.items, bar.doubtful] if bar.drawn else [0, 0] for bar in bars], float).T
    colours = [GREY if bar.expected is None or not bar.presence else BLUE for bar in bars]
    ax.barh(places, items - doubtful, color=colours, height=0.7, label="jointly")
    if doubtful.any():
        colour = {"facecolor": "none", "edgecolor": BLUE, "hatch": "////", "linewidth": 0.8}
        some = np.flatnonzero(doubtful)
        ax.barh(some, doubtful[some], left=(items - doubtful)[some], height=0.7, label="of these, doubtful", **colour)
    alone = [(place, bar.alone) for place, bar in enumerate(bars) if bar.drawn and bar.alone is not None]
    if alone:
        rows, counts = zip(*alone, strict=True)
        ax.plot(counts, rows, linestyle="none", marker="D", markersize=5, color=ORANGE, label="each alone")
    names = [bar.name if bar.drawn else f"{bar.name}, {bar.items:,} items" for bar in bars]
    ax.set_yticks(places, names, **PLAIN)
    ax.set_ylim(len(bars) - 0.4, -1.4)
    ax.set_xlim(left=0)
    ax.set_xlabel("items")
    only_bars(ax)
    # A second axis, for which layouts leave room, and letters of one width, which stay in columns.
    columns = [("" if bar.expected is None else f"{bar.expected:,.1f}", bar.presence) for bar in bars]
    labels = [f"{expected:>8}  {presence:>8}" for expected, presence in [("expected", "presence"), *columns]]
    beside = ax.secondary_yaxis("right")
    beside.set_yticks(np.arange(-1, len(bars)), labels)
    beside.tick_params(length=0, labelsize="small", labelfontfamily="monospace")
    beside.spines[:].set_visible(False)
    ax.legend(loc="lower left", bbox_to_anchor=(0, 1), ncols=3, frameon=False, fontsize="small", borderpad=0)
    return ax


# Rows and columns that are drawn, and cells up to which each has its number.
MOST_GROUPS = 60
MOST_CLASSES = 40
MOST_NUMBERED = 400
# Characters of a name beside the map.
LONGEST = 24


def plot_groups(answer: Any, ax: Any = None) -> Any:
    """Draw the share of each class in each group; see `Answer.plot`."""
    assert answer.groups is not None
    present = answer.presence
    order = np.argsort(-np.where(present >= PRESENT, answer.expected_counts, 0).sum(0), kind="stable")
    there = order[(present[:, order] >= PRESENT).any(0)]
    classes = there[:MOST_CLASSES]
    groups = np.arange(min(len(answer.groups), MOST_GROUPS))
    counts = answer.expected_counts[np.ix_(groups, classes)]
    shares = counts / np.array([len(answer[answer.groups[place]]) for place in groups])[:, None]
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
