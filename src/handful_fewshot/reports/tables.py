"""Tables of accuracy: one row per method, one column per list of tasks; as LaTeX and HTML.

Tasks with unknown classes have a table of their own, with one column per measure.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from html import escape
from typing import NamedTuple

import numpy as np

from handful_fewshot.benchmark.paper import published_accuracy, why_unpublished
from handful_fewshot.reports.summary import FEW_MARK, Column, Result, TaskMean, footnotes, paired_difference
from handful_fewshot.transforms import method_at

# Columns of the table of unknown items and where their numbers are; all are shares, shown in percent.
UNKNOWN_MEASURES = {
    "AUROC": "unknown_auroc",
    "AUPR": "unknown_aupr",
    "precision at 90% recall": "unknown_precision",
    "accuracy on known": "accuracy",
    "unknown share off by": "unknown_share_error",
    "known rejected": "known_rejected",
    "present classes: precision": "presence_precision",
    "present classes: recall": "presence_recall",
}
UNKNOWN_HEAD = ("method", "transform", "score", *UNKNOWN_MEASURES)
STATED = "its own"
BY_CONFIDENCE = "1 − highest probability"
# What stands where the plan has no such cell.
NOT_PLANNED = "not in the plan"
# Methods that minimise the same objective; runs with both on the same tasks have a table of convergence.
OPTIMISERS = ("paddle_gd", "paddle")
CONVERGENCE_HEAD = ("method", "transform", "time to convergence, s", "converged", "iterations", "accuracy, %")

LATEX_SPECIAL = {"_": r"\_", "%": r"\%", "&": r"\&", "#": r"\#", "|": r"\textbar{}", "×": r"$\times$"}


class Templates(NamedTuple):
    """How a format writes the parts of an entry: a best mean, an interval, none, the tasks, the paper's number."""

    best: str
    interval: str
    no_interval: str
    tasks: str
    published: str

    def fill(self, result: Result | None, best: bool) -> str:
        """Write an entry; a single task has no interval, which is stated, and the paper's number is not beside it."""
        if result is None:
            return NOT_PLANNED
        estimate = result.estimate().percent
        printed = published_accuracy(result.cell)
        mean = f"{estimate.mean:.1f}" if estimate.n else "failed" if result.n_failed else "not run yet"
        text = self.best.format(mean) if best else mean
        if estimate.n:
            text += self.interval.format(f"{estimate.half_width:.1f}") if estimate.has_interval else self.no_interval
        text += estimate.mark
        published = "" if printed is None or estimate.n == 1 else self.published.format(f"{printed:.1f}")
        return text + self.tasks.format(f"{estimate.n:,}") + published


LATEX = Templates(r"\textbf{{{}}}", r"$_{{\pm {}}}$", ", no interval", "", " ({})")
HTML = Templates(
    "<b>{}</b>",
    "<span class='interval'> ± {}</span>",
    "<span class='interval'>, no interval</span>",
    "<span class='count'>n = {}</span>",
    "<span class='paper'>paper {}</span>",
)


def accuracy_rows(
    columns: Sequence[Column], templates: Templates, plain: Callable[[str], str] = str
) -> list[list[str]]:
    """Return a row for each method at each scale: its name, the transforms that were applied, an entry for each column.

    Rows are in the order in which they first occur; `plain` writes texts in the format.
    """
    rows = []
    best = [column.best() for column in columns]
    for asked in dict.fromkeys(result.asked for column in columns for result in column.results):
        found = [next((one for one in column.results if one.asked == asked), None) for column in columns]
        ran = [result for result in found if result is not None]
        used: dict[tuple[str, str], dict[str, None]] = {}  # banks of each transform and scale
        for result in ran:
            used.setdefault((result.transform, result.scale), {})[result.cell.bank] = None
        several = {names: ", ".join(banks) for names, banks in used.items()} if len(used) > 1 else {}
        transforms = [f"{name} ({banks})" for (name, _), banks in several.items()] or [ran[0].transform]
        scales = [f"{scale}: {banks}" for (_, scale), banks in several.items()] or [ran[0].scale]
        label = method_at(ran[0].cell.method, "; ".join(scales), *ran[0].options)
        entries = (templates.fill(result, result in first) for result, first in zip(found, best, strict=True))
        rows.append([plain(label), plain(", ".join(transforms)), *entries])
    return rows


def accuracy_notes(columns: Sequence[Column]) -> list[str]:
    """Say once for all methods and banks which transform was replaced, and why the paper's numbers are missing."""
    labels: dict[tuple[str, str], list[str]] = {}
    unlike: dict[str, str] = {}
    alone: dict[str, None] = {}
    for result in (result for column in columns for result in column.results):
        used = result.transform
        cell = result.cell
        if used != cell.transform:
            seen = labels.setdefault((f"ran with {used} instead of {cell.transform}", cell.bank), [])
            seen += [result.variant] if result.variant not in seen else []
        if result.estimate().n == 1 and published_accuracy(cell) is not None:
            alone["The paper's numbers are not beside figures of one task, which have no interval."] = None
        if why := why_unpublished(cell):
            unlike.setdefault(cell.bank, f"The paper's numbers are not beside {cell.bank}, which {why}.")
    banks: dict[tuple[str, str], list[str]] = {}
    for (note, bank), names in labels.items():
        banks.setdefault((", ".join(names), note), []).append(bank)
    replaced = "there are no base classes apart from those of the tasks"
    return [
        *(f"{names} on {', '.join(members)} {note}: {replaced}." for (names, note), members in banks.items()),
        *unlike.values(),
        *alone,
    ]


def markdown_table(titles: Sequence[str], rows: Iterable[Iterable[object]]) -> str:
    """Render rows under titles; bars within an entry are escaped."""
    lines = ([str(entry).replace("|", "\\|") for entry in line] for line in (titles, ["---"] * len(titles), *rows))
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def accuracy_latex(columns: Sequence[Column]) -> str:
    """Render with booktabs; best and ties in bold, interval as a subscript, n below, the paper's number in brackets."""
    titles = (rf"\rotatebox{{60}}{{{_latex(column.title)}}}" for column in columns)
    numbers = [sorted(result.estimate().n for result in column.results) for column in columns]
    counts = ("--".join(f"{n:,}" for n in dict.fromkeys((few[0], few[-1]))) for few in numbers)
    head, *body, tasks = (
        " & ".join(row) + r" \\"
        for row in (
            ["Method", "Transform", *titles],
            *accuracy_rows(columns, LATEX, _latex),
            [r"\emph{tasks}", "", *counts],
        )
    )
    marked = footnotes(" ".join(body))
    caption = _latex(" ".join(["Accuracy in percent.", *marked, *accuracy_notes(columns)]))
    lines = [r"\begin{table}", r"\centering", rf"\begin{{tabular}}{{ll{'c' * len(columns)}}}", r"\toprule", head]
    lines += [r"\midrule", *body, r"\midrule", tasks, r"\bottomrule", r"\end{tabular}"]
    return "\n".join([*lines, rf"\caption{{{caption}}}", r"\end{table}", ""]).replace(FEW_MARK, r"\textdagger{}")


def _latex(text: str) -> str:
    return "".join(LATEX_SPECIAL.get(letter, letter) for letter in text)


def accuracy_html(columns: Sequence[Column]) -> str:
    """Render as an HTML table; the paper's number is below ours, and a title has one line for each of its parts.

    The transform is below the method, so that a phone shows numbers beside them.
    """
    titles = [" ".join(f"<span>{escape(part)}</span>" for part in column.title.split(", ")) for column in columns]
    head = "".join(f"<th scope='col'>{title}</th>" for title in ("method", *titles))
    body = "".join(
        f"<tr><th scope='row'>{label}<span class='count'>{transform}</span></th>"
        f"{''.join(f'<td>{entry}</td>' for entry in entries)}</tr>"
        for label, transform, *entries in accuracy_rows(columns, HTML, escape)
    )
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def unknown_rows(column: Column) -> list[tuple[str, ...]]:
    """Return a row under `UNKNOWN_HEAD` for each method, in percent with intervals; none if no task has unknown items.

    A method that does not reject has no score of its own, so one minus its highest probability is used. A measure that
    is undefined is empty.
    """
    rows = []
    for result in column.results if column.spec.unknown is not None else ():
        score = STATED if result.estimate("known_rejected").n else BY_CONFIDENCE
        measures = (result.estimate(metric).percent.text() for metric in UNKNOWN_MEASURES.values())
        rows.append((result.label, result.transform, score, *measures))
    return rows


def convergence_rows(column: Column) -> list[tuple[str, ...]]:
    """Return a row under `CONVERGENCE_HEAD` for each method, if both `OPTIMISERS` solved these tasks; else none.

    The time is that of the method alone, per task, over the tasks on which it met its criterion: for PADDLE and its
    projected gradient, prototypes that move by at most 10⁻⁶.
    """
    if not set(OPTIMISERS) <= {result.cell.method for result in column.results if len(result.tasks)}:
        return []
    rows: list[tuple[str, ...]] = []
    for result in (result for result in column.results if len(result.tasks)):
        met = result.columns["converged"].astype(bool)
        seconds = TaskMean.of(result.columns["seconds"][met].astype(np.float64))
        share = f"{met.sum():,} of {len(met):,} tasks"
        iterations = result.estimate("n_iter")
        reached, taken = (f"{estimate.rounded()}{estimate.mark}" for estimate in (seconds, iterations))
        accuracy = result.estimate().percent.text()
        rows.append((result.label, result.transform, reached or "not reached", share, taken, accuracy))
    return rows


def differences_table(column: Column) -> list[tuple[str, TaskMean]]:
    """Accuracy of the best method minus that of each other on the same tasks, in percent; ties contain zero.

    If several are best, it is the one that is most accurate on the tasks they share. If none is best there are no rows.
    A method that shares no task with the best comes last.
    """
    best = column.best()
    if not best:
        return []
    top = best[0]
    others = [other for other in column.results if other is not top]
    rows = [(f"{top.label} − {other.label}", paired_difference(top, other).percent) for other in others]
    return sorted(rows, key=lambda row: (row[1].n == 0, row[1].mean))
