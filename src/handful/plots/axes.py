"""Axes, colours and names that all pictures share."""

from __future__ import annotations

from typing import Any

from handful.machine.extras import import_extra
from handful.machine.untrusted import printable

# Colours of Okabe and Ito, which colour-blind readers can tell apart on white and on black.
BLUE = "#0072B2"
ORANGE = "#D55E00"
GREY = "#8C8C8C"
COLOURS = (BLUE, ORANGE, "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#B8A900")
MARKS = ("o", "s", "^", "D")
# Characters of a name that are shown.
LONGEST_NAME = 32
# Names of classes are text, not formulas.
PLAIN = {"parse_math": False}


def axes_of(ax: Any, width: float, height: float) -> Any:
    """Return the axes given, or those of a new figure of this many inches."""
    if ax is not None:
        return ax
    return import_extra("matplotlib.pyplot", "plots").subplots(figsize=(width, height), layout="constrained")[1]


def text_colour() -> str:
    """Return the colour of text in the style in use."""
    return str(import_extra("matplotlib", "plots").rcParams["text.color"])


def short(name: Any, most: int = LONGEST_NAME) -> str:
    """Return a name as one line of limited length.

    Examples
    --------
    >>> short("a name"), short("a very long name", 10)
    ('a name', 'a very lo…')
    """
    text = printable(str(name))
    return text if len(text) <= most else f"{text[: most - 1]}…"


def only_bars(ax: Any) -> None:
    """Leave the axis of numbers at the bottom, and no frame."""
    ax.spines[["top", "right", "left"]].set_visible(False)
    ax.tick_params(axis="y", length=0)
    ax.xaxis.get_major_locator().set_params(integer=True)
    ax.grid(axis="x", alpha=0.25)
    ax.set_axisbelow(True)
