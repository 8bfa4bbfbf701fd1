"""A catalogue: which classes are confused, and how reliable the probabilities of held-out examples are."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from handful.machine.extras import import_extra
from handful.plots.axes import BLUE, ORANGE, PLAIN, only_bars, short

if TYPE_CHECKING:
    from handful.model.left_out import LeftOutExamples

# Pairs of classes that are drawn, the fewest examples of a point of the curve, and where points may end.
MOST_PAIRS = 12
FEWEST_AT_POINT = 20
EDGES = (0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99)


class Reliability(NamedTuple):
    """Held-out examples in bins of their largest probability: its mean, the share right, and a 95% interval."""

    probability: npt.NDArray[np.float64]
    right: npt.NDArray[np.float64]
    low: npt.NDArray[np.float64]
    high: npt.NDArray[np.float64]


def reliability(left_out: LeftOutExamples) -> Reliability:
    """Compare the largest probability of held-out examples with how often that class is the right one.

    The interval is Wilson's. A bin ends at one of the `EDGES`, and has at least 20 examples if there are as many.
    """
    top = np.clip(left_out.own * np.exp(np.maximum(left_out.lead, 0)), 0, 1)
    order = np.argsort(top, kind="stable")
    cuts = list[int]()
    start = 0
    for cut in np.searchsorted(top[order], EDGES).tolist():
        if cut - start >= FEWEST_AT_POINT and len(order) - cut >= FEWEST_AT_POINT:
            cuts.append(cut)
            start = cut
    bins = np.split(order, cuts)
    right = np.array([(left_out.lead[some] <= 0).mean() for some in bins])
    n = np.array([len(some) for some in bins], float)
    z = 1.96
    middle = (right + z**2 / (2 * n)) / (1 + z**2 / n)
    half = z / (1 + z**2 / n) * np.sqrt(right * (1 - right) / n + z**2 / (4 * n**2))
    return Reliability(np.array([top[some].mean() for some in bins]), right, middle - half, middle + half)


def plot_catalogue(catalogue: Any, pairs: list[tuple[int, int, int, int]], ax: Any = None) -> Any:
    """Draw confused classes and the reliability of probabilities; see `FittedModel.plot` and `confused_pairs`."""
    if ax is None:
        pyplot = import_extra("matplotlib.pyplot", "plots")
        height = max(3.4, 1.2 + 0.3 * min(len(pairs), MOST_PAIRS))
        ax = pyplot.subplots(1, 2, figsize=(10, height), layout="constrained", width_ratios=(3, 2))[1]
    _draw_pairs(ax[0], catalogue, pairs)
    _draw_reliability(ax[1], catalogue.head.left_out)
    return ax


def _draw_pairs(ax: Any, catalogue: Any, pairs: list[tuple[int, int, int, int]]) -> None:
    shown = pairs[:MOST_PAIRS]
    more = f" ({len(shown):,} of {len(pairs):,} pairs)" if len(pairs) > len(shown) else ""
    ax.set_title(f"Confused classes{more}", fontsize="medium", loc="left")
    if not shown:
        sentence = "Held-out examples fit their own class best." if len(catalogue.head.left_out.rows) else _too_few()
        _say(ax, sentence)
        return
    names = [f"{short(catalogue.classes[j], 22)} – {short(catalogue.classes[k], 22)}" for j, k, _, _ in shown]
    places = np.arange(len(shown))
    shares = [100 * n / of for _, _, n, of in shown]
    ax.barh(places, shares, color=ORANGE, height=0.7)
    for place, share, (_, _, n, of) in zip(places, shares, shown, strict=True):
        ax.text(share, place, f" {n} of {of}", va="center", fontsize="small")
    ax.set_yticks(places, names, fontsize="small", **PLAIN)
    ax.invert_yaxis()
    ax.set_xlim(0, max(25, 1.25 * max(shares)))
    ax.set_xlabel("held-out examples that fit the other class better, %")
    only_bars(ax)


def _draw_reliability(ax: Any, left_out: LeftOutExamples) -> None:
    ax.set_title("Probabilities of held-out examples", fontsize="medium", loc="left")
    if len(left_out.rows) == 0:
        _say(ax, _too_few())
        return
    found = reliability(left_out)
    ax.plot([0, 1], [0, 1], color="0.5", linewidth=1, linestyle=":")
    errors = np.maximum([found.right - found.low, found.high - found.right], 0)
    ax.errorbar(found.probability, found.right, yerr=errors, marker="o", color=BLUE, capsize=2, linewidth=1.2)
    ax.set(xlabel="probability of the best class", ylabel="share right", xlim=(0, 1.02), ylim=(0, 1.02))
    ax.set_aspect("equal")
    ax.grid(alpha=0.25)
    ax.spines[["top", "right"]].set_visible(False)


def _too_few() -> str:
    return "Too few examples to leave any out."


def _say(ax: Any, sentence: str) -> None:
    ax.set_axis_off()
    ax.text(0, 0.9, sentence, transform=ax.transAxes, va="top")
