"""Figures as in the paper.

Colours are those of Okabe and Ito, which colour-blind readers can tell apart; marks and dashes differ too, so that a
grey print is readable. A mark is hollow where fewer than `FEW_TASKS` tasks are behind it, and the legend says so.
"""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from handful.machine.extras import import_extra
from handful.machine.outputs import written_whole
from handful_fewshot.numerics.fixed_point import Trace
from handful_fewshot.reports.summary import FEW_TASKS, Column, Result, TaskMean
from handful_fewshot.tasks import ShotsPerClass
from handful_fewshot.transforms import method_at

# An axis is logarithmic if the quotient of its ends is at least this.
WIDE = 20
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#7F7F7F")
MARKS = ("o", "s", "^", "D", "v", "P", "X", "*")
DASHES = ("-", "--", "-.", ":")
FORMATS = ("svg", "pdf", "png")
WIDTH = 3.4
HEIGHT = 2.7  # inches of one panel: a column of a two-column page
TITLE = 9  # points: fits a bank, shots and K_eff above one panel
ACROSS = 3  # panels side by side
# Inches of a letter of the legend, of the rest of an entry, and of a line.
LETTER = 0.075
ENTRY = 0.6
LINE = 0.19
FEW = f"hollow: fewer than {FEW_TASKS} tasks"


def accuracy_against_k_eff(columns: Sequence[Column]) -> Any:
    """Accuracy against K_eff, one panel per bank and number of shots, with 95% bands; None if K_eff never varies."""
    return _curves(
        columns,
        lambda column: f"{column.bank}, {_shots(column)}",
        lambda result: float(np.mean(result.cell.spec.query.possible)),  # of a range, the middle
        "number of classes present, $K_{eff}$",
    )


def accuracy_against_n_query(columns: Sequence[Column]) -> Any:
    """Accuracy against |Q|, one panel per bank, shots and K_eff, with 95% bands; None if |Q| never varies."""
    return _curves(columns, _shots_and_k_eff, lambda result: float(result.cell.spec.n_query), "size of the query, |Q|")


def accuracy_against_weight(columns: Sequence[Column]) -> Any:
    """Accuracy against λ, one panel per column of tasks, the default λ = |Q| dotted; None without two λ."""

    def weight(result: Result) -> float | None:
        value = result.cell.options.get("complexity_weight")
        return None if value is None else float(value)

    return _curves(
        columns,
        lambda column: column.title.replace("K_eff", "$K_{eff}$"),
        weight,
        "weight of the partition term, λ",
        by_method=True,
        mark_n_query=True,
    )


def best_weight_against_n_query(columns: Sequence[Column]) -> Any:
    """Draw each method's most accurate λ against |Q|, one panel per K_eff, with λ = |Q|; None without two |Q|."""
    panels: dict[str, dict[str, list[tuple[int, float, TaskMean]]]] = {}
    for column in columns:
        swept: dict[str, list[Result]] = {}
        for result in column.results:
            if "complexity_weight" in result.cell.options and len(result.tasks):
                swept.setdefault(_method(result), []).append(result)
        for method, tried in swept.items():
            if len(tried) > 1:
                best = max(tried, key=lambda result: result.estimate().mean)
                point = column.spec.n_query, float(best.cell.options["complexity_weight"]), best.estimate()
                panels.setdefault(_shots_and_k_eff(column), {}).setdefault(method, []).append(point)
    lines = {
        name: {method: points for method, points in of.items() if len({n for n, *_ in points}) > 1}
        for name, of in panels.items()
    }
    groups = {name: of for name, of in lines.items() if of}
    if not groups:
        return None
    figure, axes = _panels(len(groups))
    methods = list(dict.fromkeys(method for of in groups.values() for method in of))
    for axis, (name, of) in zip(axes, groups.items(), strict=True):
        sizes = sorted({n for points in of.values() for n, *_ in points})
        axis.plot(sizes, sizes, color="black", linewidth=1, label="λ = |Q|")
        for method, points in of.items():
            n_query, weight, estimates = zip(*sorted(points, key=lambda point: point[0]), strict=True)
            style = {**_style(methods.index(method)), "linestyle": "--"}
            axis.plot(n_query, weight, label=f"best λ, {method}", **style)
            _hollow(axis, n_query, weight, estimates, style)
        axis.set_title(name, fontsize=TITLE)
        axis.set(xlabel="size of the query, |Q|", ylabel="λ")
    return _with_legend(figure, axes)


def convergence(traces: Mapping[str, Trace]) -> Any:
    """Criterion `mean_k ‖Δw_k‖` against elapsed time for the first task of each trace, a mark every 100 iterations."""
    figure, (axis,) = _panels(1)
    for k, (name, trace) in enumerate(traces.items()):
        style = _style(k)
        axis.plot(trace.seconds.numpy(), trace.change[0].numpy(), label=name, markevery=100, **style)
    axis.set(xscale="log", yscale="log", xlabel="elapsed time on one task, s", ylabel="mean move of prototypes")
    axis.legend(frameon=False)
    return figure


def label_cost() -> Any:
    """For two classes, how many are used, as a function of one's share, and the entropy that relaxes this count."""
    figure, (axis,) = _panels(1)
    share = np.linspace(1e-9, 1 - 1e-9, 501)
    entropy = -share * np.log(share) - (1 - share) * np.log1p(-share)
    axis.plot([0, 1], [1, 1], linestyle="none", marker="o", color=COLOURS[1], label="classes used")
    axis.plot([0.0, 1.0], [2, 2], color=COLOURS[1])
    axis.plot([0, 1], [2, 2], linestyle="none", marker="o", markerfacecolor="white", color=COLOURS[1])
    axis.plot(share, entropy, color=COLOURS[0], linestyle="--", label="entropy, nats")
    axis.set(xlabel="share of the first class, $\\hat{u}_1$", ylabel="cost", ylim=(-0.1, 2.3))
    axis.legend(frameon=False, loc="center")
    return figure


def as_svg(figure: Any, name: str) -> str:
    """Return the figure as an `<svg>` element for a page, with text as text and with ids unique in the page."""
    buffer = io.StringIO()
    with import_extra("matplotlib", "plots").rc_context({"svg.fonttype": "none", "svg.hashsalt": name}):
        figure.savefig(buffer, format="svg", metadata={"Date": None})
    text = buffer.getvalue()
    return text[text.index("<svg") :]


def save(figure: Any, folder: Path, name: str) -> list[Path]:
    """Write the figure as vector graphics and as PNG."""
    paths = {kind: folder / f"{name}.{kind}" for kind in FORMATS}
    for kind, path in paths.items():
        with written_whole(path) as place:
            figure.savefig(place, dpi=200, format=kind)
    return list(paths.values())


def _curves(
    columns: Sequence[Column],
    panel: Any,
    position: Any,
    axis_name: str,
    *,
    by_method: bool = False,
    mark_n_query: bool = False,
) -> Any:
    """Draw accuracy against `position` of a result, one line per label, in panels of columns."""
    panels: dict[str, dict[str, list[tuple[float, Result]]]] = {}
    for column in columns:
        for result in column.results:
            x = position(result)
            if x is not None and len(result.tasks):
                lines = panels.setdefault(panel(column), {})
                lines.setdefault(_method(result) if by_method else result.label, []).append((x, result))
    varying = {
        name: {label: points for label, points in lines.items() if len({x for x, _ in points}) > 1}
        for name, lines in panels.items()
    }
    groups = {name: lines for name, lines in varying.items() if lines}
    if not groups:
        return None
    figure, axes = _panels(len(groups))
    labels = list(dict.fromkeys(label for lines in groups.values() for label in lines))
    for axis, (name, lines) in zip(axes, groups.items(), strict=True):
        for label, points in lines.items():
            points = sorted(points, key=lambda point: point[0])
            x = [point[0] for point in points]
            estimates = [result.estimate() for _, result in points]
            mean = 100 * np.array([e.mean for e in estimates])
            half = 100 * np.array([e.half_width if e.n > 1 else 0.0 for e in estimates])  # one task has no band
            style = _style(labels.index(label))
            axis.plot(x, mean, label=label, **style)
            _hollow(axis, x, mean, estimates, style)
            axis.fill_between(x, mean - half, mean + half, color=style["color"], alpha=0.15, linewidth=0)
            if mark_n_query:
                axis.axvline(points[0][1].cell.spec.n_query, color="black", linestyle=":", linewidth=1)
        axis.set_title(name, fontsize=TITLE)
        axis.set(xlabel=axis_name, ylabel="accuracy, %")
        if _wide([x for points in lines.values() for x, _ in points]):
            axis.set_xscale("log")
            axis.xaxis.set_major_formatter("{x:g}")
    return _with_legend(figure, axes)


def _hollow(axis: Any, x: Sequence[float], y: Any, estimates: Sequence[TaskMean], style: Mapping[str, Any]) -> None:
    """Draw the marks of few tasks again, hollow."""
    few = [k for k, estimate in enumerate(estimates) if estimate.mark]
    if few:
        drawn = {**style, "linestyle": "none", "markerfacecolor": "white", "label": f"_{FEW}"}
        axis.plot([x[k] for k in few], [y[k] for k in few], **drawn)


def _with_legend(figure: Any, axes: Sequence[Any]) -> Any:
    """Add the legend of all panels below them, in as many columns as the figure has room for."""
    handles = {label: handle for axis in axes for handle, label in zip(*axis.get_legend_handles_labels(), strict=True)}
    if any(line.get_label() == f"_{FEW}" for axis in axes for line in axis.lines):
        lines = import_extra("matplotlib.lines", "plots")
        handles[FEW] = lines.Line2D([], [], color="#7F7F7F", linestyle="none", marker="o", markerfacecolor="white")
    width, height = figure.get_size_inches()
    room = int(width / (LETTER * max(map(len, handles)) + ENTRY))
    beside = max(1, min(room, 4, len(handles)))
    figure.set_size_inches(width, height + LINE * (-(-len(handles) // beside) - 1))
    place = {"loc": "outside lower center", "ncols": beside, "columnspacing": 1.2}
    figure.legend(handles.values(), handles.keys(), frameon=False, fontsize="small", **place)
    return figure


def _panels(n: int) -> tuple[Any, list[Any]]:
    import_extra("matplotlib", "plots")
    figure_module = import_extra("matplotlib.figure", "plots")
    across = min(n, ACROSS)
    down = -(-n // across)
    figure = figure_module.Figure((WIDTH * across, HEIGHT * down + 0.5), layout="constrained")
    figure.get_layout_engine().set(h_pad=0.1)  # a title is nearer to its own panel than to the one above
    axes = figure.subplots(down, across, squeeze=False).ravel().tolist()
    for axis in axes[n:]:
        axis.remove()
    for axis in axes[:n]:
        axis.grid(alpha=0.25)
        axis.spines[["top", "right"]].set_visible(False)
    return figure, axes[:n]


def _method(result: Result) -> str:
    """Name the method at its scale, without its options."""
    return method_at(result.cell.method, result.scale)


def _wide(positions: Sequence[float]) -> bool:
    return min(positions) > 0 and max(positions) >= WIDE * min(positions)


def _style(k: int) -> dict[str, Any]:
    return {
        "color": COLOURS[k % len(COLOURS)],
        "marker": MARKS[k % len(MARKS)],
        "linestyle": DASHES[(k // len(COLOURS) + k) % len(DASHES)],
        "markersize": 4,
        "linewidth": 1.4,
    }


def _shots_and_k_eff(column: Column) -> str:
    return f"{column.bank}, {_shots(column)}, $K_{{eff}}$={column.spec.query.k_eff_text}"


def _shots(column: Column) -> str:
    """Return what the results of a panel share apart from the bank: the support, and any unknown classes."""
    support = column.spec.support
    shots = f"{support.shots}-shot" if isinstance(support, ShotsPerClass) else "fixed support"
    return f"{shots}{column.unknown}"
