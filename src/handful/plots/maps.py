"""A map of a batch: Fisher's linear discriminants of the classes present.

The axes are the two directions v with the largest `v'S_b v / v'S_w v`. `S_w` is the covariance of the catalogue's
examples about the means of their classes (Ledoit and Wolf's estimate), so one unit of the map is about one standard
deviation of a class. `S_b` is that of the means of the classes present and of the new groups. Items of the batch play
no part in the directions, but through the means of new groups: classes that look apart on the map are apart.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from handful.errors import OptionError
from handful.model.present_classes import presence_or_labels, present_places
from handful.plots.axes import COLOURS, GREY, MARKS, axes_of, short, text_colour

Floats = npt.NDArray[np.floating[Any]]
# Classes that have a colour and a mark of their own, different in both from the next; the others are grey.
MOST_COLOURED = 2 * len(COLOURS)
# Principal directions within which discriminants are looked for, and rows that tell a covariance.
DIRECTIONS = 100
ENOUGH_ROWS = 4_096


class BatchMap(NamedTuple):
    """Places of items and examples on the map.

    Attributes
    ----------
    classes : [class]
        The classes that the axes separate, as positions in `Answer.classes`, those with most items first.
    items : [item, 2]
        Places of the items.
    examples, codes : [example, 2] and [example]
        Places of the examples of these classes, and the class of each.
    """

    classes: npt.NDArray[np.int64]
    items: Floats
    examples: Floats
    codes: npt.NDArray[np.int64]


def batch_map(
    answer: Any,
    items: Any,
    rows: Any = slice(None),
    rows_of: Any = (slice(None),),
    unnamed: npt.NDArray[np.int64] | None = None,
) -> BatchMap:
    """Return the map of the items at these rows, those of all groups on one.

    Parameters
    ----------
    answer, items
        The answer, and the items as they were compared.
    rows
        The items on the map.
    rows_of
        The rows of each group.
    unnamed
        Without a catalogue, the group without a name of each item.
    """
    if unnamed is not None:
        return _map_of_groups(answer, items, rows, unnamed)
    means = items.catalogue.head.means
    (points, codes) = items.catalogue.labelled_points
    shown = shown_classes(answer)
    of_groups = answer.proposals if answer.groups is not None else [answer.proposals]
    groups = [
        items.points[of_group][proposal.items].mean(0)[None]
        for of_group, proposals in zip(rows_of, of_groups, strict=True)
        for proposal in proposals
    ]
    project = discriminants(np.concatenate([means[shown], *groups]), points - means[codes], items.points)
    of_shown = np.isin(codes, shown)
    return BatchMap(shown, project(items.points[rows]), project(points[of_shown]), codes[of_shown])


def _map_of_groups(answer: Any, items: Any, rows: Any, unnamed: npt.NDArray[np.int64]) -> BatchMap:
    """Return the map of items without a catalogue: its axes separate those with a name, and groups without one."""
    of_item = np.where(answer.rejected, len(answer.classes) + 1 + unnamed, answer.codes[:, 0])
    _, place, sizes = np.unique(of_item, return_inverse=True, return_counts=True)
    points = items.points
    means = np.stack([points[place == k].mean(0) for k in range(len(sizes))])
    large = sizes > 1 if (sizes > 1).any() else sizes > 0
    project = discriminants(means[large], points - means[place], points)
    return BatchMap(shown_classes(answer), project(points[rows]), np.zeros((0, 2)), np.zeros(0, np.int64))


def plot_map(answer: Any, items: Any, ax: Any = None, unnamed: npt.NDArray[np.int64] | None = None) -> Any:
    """Draw the items, as they were compared, and examples of the classes present; see `Answer.plot_map`."""
    if not hasattr(items, "points"):
        raise OptionError(
            "the map needs the vectors of the items, which this answer has not kept; label them with "
            "BatchClassifier.infer"
        )
    shown, at, examples, codes = batch_map(answer, items, unnamed=unnamed)
    ax = axes_of(ax, 8, 5.5)
    classes = answer.codes[:, 0]
    named = shown[:MOST_COLOURED]
    labelled = ~answer.rejected & np.isin(classes, named)
    for number, k in enumerate(named):
        style = {"color": COLOURS[number % len(COLOURS)], "marker": MARKS[number % len(MARKS)]}
        ax.scatter(*examples[codes == k].T, s=12, alpha=0.35, linewidths=0, **style)
        chosen = labelled & (classes == k)
        name = f"{int(chosen.sum()):,}  {short(answer.classes[k])}"
        sure = at[chosen & ~answer.doubtful]
        doubtful = at[chosen & answer.doubtful]
        ax.scatter(*sure.T, s=28, label=name, **style)
        ax.scatter(*doubtful.T, s=28, facecolors="none", edgecolors=style["color"], marker=style["marker"])
    others = ~answer.rejected & ~labelled
    if others.any():
        ax.scatter(*at[others].T, s=14, color=GREY, label=f"{int(others.sum()):,}  of other classes")
    _mark_unknown(ax, answer, at)
    ax.set_aspect("equal", adjustable="datalim")
    ax.set(xlabel="first discriminant", ylabel="second discriminant")
    ax.set_title("filled: items, hollow: doubtful, small: examples", fontsize="small", loc="left")
    legend = ax.legend(loc="center left", bbox_to_anchor=(1, 0.5), frameon=False, fontsize="small")
    for text in legend.get_texts():
        text.set_parse_math(False)
    return ax


def _mark_unknown(ax: Any, answer: Any, at: Floats) -> None:
    """Cross rejected items, and join those of a new group."""
    if not answer.rejected.any():
        return
    colour = text_colour()
    label = f"{int(answer.rejected.sum()):,}  none of the classes"
    ax.scatter(*at[answer.rejected].T, s=28, marker="x", linewidths=1.2, color=colour, label=label)
    for number, proposal in enumerate(answer.proposals, start=1):
        centre = np.median(at[proposal.items], 0)
        for x, y in at[proposal.items]:
            ax.plot([centre[0], x], [centre[1], y], color=colour, linewidth=0.5, alpha=0.6, zorder=1)
        box = {"facecolor": ax.get_facecolor(), "alpha": 0.7, "linewidth": 0, "pad": 1}
        # Towards the middle, because the legend is on the right.
        side, where = ("right", -8) if centre[0] > np.mean(ax.get_xlim()) else ("left", 8)
        said = {"textcoords": "offset points", "ha": side, "fontweight": "bold", "bbox": box}
        ax.annotate(f"new group {number}", centre, (where, 8), **said)


def shown_classes(answer: Any) -> npt.NDArray[np.int64]:
    """Return the classes present, or those with most items if fewer than three are: two axes need three classes."""
    present = present_places(answer.expected_counts, presence_or_labels(answer.presence, answer.codes))
    nearest = np.argsort(-np.atleast_2d(answer.expected_counts).sum(0), kind="stable")
    others = nearest[~np.isin(nearest, present)][: max(0, 3 - len(present))]
    return np.concatenate([present, others]).astype(np.int64)


def discriminants(means: Floats, residuals: Floats, points: Floats) -> Any:
    """Return the projection on the two directions that separate the means best, by their spread within classes.

    Where the means leave a direction open, it is that in which the points vary most.

    Parameters
    ----------
    means
        Of the classes and groups to separate, [class, dim].
    residuals
        Examples about the means of their classes, [example, dim].
    points
        The items of the batch, [item, dim].

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> means = np.array([[0.0, 0.0, 0.0], [1.0, 0.0, 0.0], [0.0, 1.0, 0.0]])
    >>> project = discriminants(means, 0.1 * rng.normal(size=(300, 3)), means)
    >>> distances = np.linalg.norm(np.diff(project(means), axis=0), axis=1)
    >>> bool(((distances > 9) & (distances < 16)).all())
    True
    """
    origin = means.mean(0)
    inner, points = (some[:: 1 + len(some) // ENOUGH_ROWS].astype(np.float64) for some in (residuals, points))
    rows = np.concatenate([means - origin, inner, points - points.mean(0)]).astype(np.float64)
    basis = _principal(rows, DIRECTIONS)
    if not len(basis):  # nothing differs
        return lambda some: np.zeros((len(some), 2))
    inner = (inner[np.abs(inner).sum(1) > 0]) @ basis.T
    dim = len(basis)
    within = shrunk_covariance(inner) if len(inner) > 1 else np.zeros((dim, dim))
    within += np.eye(dim) * (1e-6 * np.trace(within) / dim or 1.0)
    values, vectors = np.linalg.eigh(within)
    whiten = basis.T @ vectors / np.sqrt(values)  # [dim, direction]
    axes = _principal((means - origin) @ whiten, 2)
    if len(axes) < 2:
        rest = (points - points.mean(0)) @ whiten
        axes = np.concatenate([axes, _principal(rest - rest @ axes.T @ axes, 2 - len(axes))])
    directions = np.zeros((2, whiten.shape[0]))
    directions[: len(axes)] = axes @ whiten.T
    return lambda some: (np.asarray(some, np.float64) - origin) @ directions.T


def shrunk_covariance(rows: Floats) -> Floats:
    """Return the covariance of rows about zero, shrunk towards a multiple of the identity (Ledoit and Wolf, 2004).

    Examples
    --------
    >>> shrunk_covariance(np.array([[2.0, 0.0], [0.0, 1.0], [-2.0, 0.0], [0.0, -1.0]])).round(3).tolist()
    [[1.292, 0.0], [0.0, 1.208]]
    """
    n_rows, dim = rows.shape
    found = rows.T @ rows / n_rows
    target = np.eye(dim) * np.trace(found) / dim
    apart = ((found - target) ** 2).sum()
    noise = (((rows**2).sum(1) ** 2).mean() - (found**2).sum()) / n_rows
    share = min(noise / apart, 1.0) if apart > 0 else 0.0
    return np.asarray((1 - share) * found + share * target)


def _principal(rows: Floats, most: int) -> Floats:
    """Return the principal directions of rows about zero, those without variance left out, as rows."""
    gram = rows.T @ rows if rows.shape[0] >= rows.shape[1] else rows @ rows.T
    values, vectors = np.linalg.eigh(gram)
    kept = np.flatnonzero(values > 1e-10 * max(values.max(initial=0), 1e-300))[::-1][:most]
    directions = vectors[:, kept].T if gram.shape[0] == rows.shape[1] else vectors[:, kept].T @ rows
    directions = directions / np.linalg.norm(directions, axis=1, keepdims=True)
    # Eigenvectors have no sign of their own: the largest entry is positive.
    largest = np.take_along_axis(directions, np.abs(directions).argmax(1)[:, None], 1)
    return np.asarray(directions * np.sign(largest))
