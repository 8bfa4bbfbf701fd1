"""Tables of accuracy: one row per method, one column per list of tasks; as Markdown, LaTeX and HTML.

Tasks with unknown classes have a table of their own, with one column per measure.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from html import escape

import numpy as np

from handful.fewshot.reports.published import published_accuracy, why_unpublished
from handful.fewshot.reports.summary import Column, Estimate, paired_difference

# Columns of the table of unknown items and where their numbers are; all are shares, shown in percent.
UNKNOWN_MEASURES = {
    "AUROC": "unknown_auroc",
    "AUPR": "unknown_aupr",
    "precision at 90 % recall": "unknown_precision",
    "accuracy on known": "accuracy",
    "unknown share off by": "unknown_share_error",
    "known rejected": "known_rejected",
    "present classes: precision": "presence_precision",
    "present classes: recall": "presence_recall",
}
UNKNOWN_HEAD = ("method", "transform", "score", *UNKNOWN_MEASURES)
STATED, BY_CONFIDENCE = "its own", "1 − highest probability"
# What stands where the plan has no such cell.
NOT_PLANNED = "not in the plan"
# Methods that minimise the same objective; runs with both on the same tasks have a table of convergence.
OPTIMISERS = ("paddle_gd", "paddle")
CONVERGENCE_HEAD = ("method", "transform", "time to convergence, s", "converged", "iterations", "accuracy, %")

LATEX_SPECIAL = {"_": r"\_", "%": r"\%", "&": r"\&", "#": r"\#", "|": r"\textbar{}"}


@dataclass(frozen=True)
class Entry:
    """Accuracy in percent, whether it is the best or ties with it, and the paper's number if there is one.

    `missing` says why there is no accuracy.
    """

    estimate: Estimate
    best: bool
    published: float | None
    missing: str = ""

    def texts(self, bold: str, paper: str) -> tuple[str, str, str]:
        """Mean, interval (a single task has none, which is stated) and the paper's number, in these templates."""
        mean = self.missing or f"{self.estimate.mean:.1f}"
        spread = f" ± {self.estimate.half_width:.1f}" if self.estimate.has_interval else ", no interval"
        published = "" if self.published is None else paper.format(f"{self.published:.1f}")
        return bold.format(mean) if self.best else mean, spread if self.estimate.n else "", published


@dataclass(frozen=True)
class Row:
    """A method, the transforms that were applied, and an entry for each column: None where the plan has no cell."""

    label: str
    transform: str
    entries: tuple[Entry | None, ...]


@dataclass(frozen=True)
class Table:
    """Rows of entries under column titles, and sentences that a reader must know."""

    columns: tuple[str, ...]
    rows: tuple[Row, ...]
    notes: tuple[str, ...]

    @property
    def has_published(self) -> bool:
        """Whether any entry has a published number."""
        return any(entry is not None and entry.published is not None for row in self.rows for entry in row.entries)


def accuracy_table(columns: Sequence[Column]) -> Table:
    """Put the results of all columns into one table; labels in the order in which they first occur."""
    labels = list(dict.fromkeys(result.label for column in columns for result in column.results))
    cells: dict[str, list[Entry | None]] = {label: [] for label in labels}
    transforms: dict[str, dict[str, list[str]]] = {label: {} for label in labels}
    for column in columns:
        by_label = {result.label: result for result in column.results}
        best = column.best()
        for label in labels:
            result = by_label.get(label)
            if result is None:
                cells[label].append(None)
                continue
            estimate = result.estimate().percent
            missing = "" if estimate.n else "failed" if result.n_failed else "not run yet"
            cells[label].append(Entry(estimate, result in best, published_accuracy(result.cell), missing))
            banks = transforms[label].setdefault(result.transform, [])
            banks += [column.bank] if column.bank not in banks else []
    rows = (Row(label, _transforms(transforms[label]), tuple(row)) for label, row in cells.items())
    return Table(tuple(column.title for column in columns), tuple(rows), tuple(_notes(columns)))


def _transforms(used: Mapping[str, Sequence[str]]) -> str:
    """Name the transform of a row, or each with its banks."""
    return ", ".join(name if len(used) == 1 else f"{name} ({', '.join(banks)})" for name, banks in used.items())


def _notes(columns: Sequence[Column]) -> list[str]:
    """Say once for all methods and banks which transform was replaced, and why the paper's numbers are missing."""
    labels: dict[tuple[str, str], list[str]] = {}
    unlike: dict[str, str] = {}
    for result in (result for column in columns for result in column.results):
        used, cell = result.transform, result.cell
        if used != cell.transform:
            seen = labels.setdefault((f"ran with {used} instead of {cell.transform}", cell.bank), [])
            seen += [result.label] if result.label not in seen else []
        if why := why_unpublished(cell):
            unlike.setdefault(cell.bank, f"The paper's numbers are not beside {cell.bank}, which {why}.")
    banks: dict[tuple[str, str], list[str]] = {}
    for (note, bank), names in labels.items():
        banks.setdefault((", ".join(names), note), []).append(bank)
    replaced = "there are no base classes apart from those of the tasks"
    return [
        *(f"{names} on {', '.join(members)} {note}: {replaced}." for (names, note), members in banks.items()),
        *unlike.values(),
    ]


def render_markdown(table: Table) -> str:
    """Render as a table of pipes; best and ties in bold, n in brackets, the paper's number after a slash."""
    rows = ([row.label, row.transform, *map(_markdown_entry, row.entries)] for row in table.rows)
    return "\n\n".join([markdown_table(["method", "transform", *table.columns], rows), *table.notes]) + "\n"


def markdown_table(titles: Sequence[str], rows: Iterable[Iterable[object]]) -> str:
    r"""Render rows under titles; bars within an entry are escaped.

    Examples
    --------
    >>> print(markdown_table(["|Q|", "accuracy"], [[75, 0.5]]))
    | \|Q\| | accuracy |
    | --- | --- |
    | 75 | 0.5 |
    """
    lines = ([str(entry).replace("|", "\\|") for entry in line] for line in (titles, ["---"] * len(titles), *rows))
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _markdown_entry(entry: Entry | None) -> str:
    if entry is None:
        return NOT_PLANNED
    mean, spread, paper = entry.texts("**{}**", " / {}")
    return f"{mean}{spread} ({entry.estimate.n:,}){paper}"


def render_latex(table: Table, caption: str = "") -> str:
    """Render with booktabs; best and ties in bold, interval as a subscript, n below, the paper's number in brackets.

    The notes of the table end its caption.
    """
    caption = " ".join([*([caption] if caption else []), *table.notes])
    head = " & ".join(["Method", "Transform", *(rf"\rotatebox{{60}}{{{_latex(title)}}}" for title in table.columns)])
    rows = ([_latex(row.label), _latex(row.transform), *map(_latex_entry, row.entries)] for row in table.rows)
    body = [" & ".join(row) + r" \\" for row in rows]
    counts = (_counts(entries) for entries in zip(*(row.entries for row in table.rows), strict=True))
    tasks = " & ".join([r"\emph{tasks}", "", *counts])
    lines = [r"\begin{table}", r"\centering", rf"\begin{{tabular}}{{ll{'c' * len(table.columns)}}}", r"\toprule"]
    lines += [head + r" \\", r"\midrule", *body, r"\midrule", tasks + r" \\", r"\bottomrule", r"\end{tabular}"]
    return "\n".join([*lines, *([rf"\caption{{{_latex(caption)}}}"] if caption else []), r"\end{table}", ""])


def _counts(entries: Sequence[Entry | None]) -> str:
    """Fewest and most tasks in a column."""
    numbers = {entry.estimate.n for entry in entries if entry is not None}
    return "--".join(f"{n:,}" for n in sorted({min(numbers), max(numbers)}))


def _latex(text: str) -> str:
    return "".join(LATEX_SPECIAL.get(letter, letter) for letter in text)


def _latex_entry(entry: Entry | None) -> str:
    if entry is None:
        return NOT_PLANNED
    mean, spread, paper = entry.texts(r"\textbf{{{}}}", " ({})")
    if entry.estimate.has_interval:
        spread = rf"$_{{\pm {entry.estimate.half_width:.1f}}}$"
    return f"{mean}{spread}{paper}"


def render_html(table: Table) -> str:
    """Render as an HTML table; the paper's number is below ours, and a title has one line for each of its parts."""
    titles = [[f"<span>{escape(part)}</span>" for part in title.split(", ")] for title in table.columns]
    head = "".join(f"<th scope='col'>{' '.join(parts)}</th>" for parts in titles)
    body = "".join(
        f"<tr><th scope='row'>{escape(row.label)}</th><td>{escape(row.transform)}</td>"
        f"{''.join(map(_html_entry, row.entries))}</tr>"
        for row in table.rows
    )
    first = "<th scope='col'>method</th><th scope='col'>transform</th>"
    return f"<table><thead><tr>{first}{head}</tr></thead><tbody>{body}</tbody></table>"


def _html_entry(entry: Entry | None) -> str:
    if entry is None:
        return f"<td class='quiet'>{NOT_PLANNED}</td>"
    mean, spread, paper = entry.texts("<b>{}</b>", "<span class='paper'>paper {}</span>")
    count = f"<span class='count'>n = {entry.estimate.n:,}</span>"
    return f"<td>{mean}<span class='interval'>{spread}</span>{count}{paper}</td>"


def unknown_rows(column: Column) -> list[tuple[str, ...]]:
    """Return a row under `UNKNOWN_HEAD` for each method, in percent with intervals; none if no task has unknown items.

    A method that does not reject has no score of its own, so one minus its highest probability is used. A measure that
    is undefined is empty.
    """
    rows = []
    for result in column.results if column.spec.unknown is not None else ():
        score = STATED if result.estimate("known_rejected").n else BY_CONFIDENCE
        measures = (result.estimate(metric).percent.said() for metric in UNKNOWN_MEASURES.values())
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
        seconds = Estimate.of(result.columns["seconds"][met].astype(np.float64)).rounded() or "not reached"
        share = f"{met.sum():,} of {len(met):,} tasks"
        iterations, accuracy = result.estimate("n_iter").rounded(), result.estimate().percent.said()
        rows.append((result.label, result.transform, seconds, share, iterations, accuracy))
    return rows


def tables_markdown(
    columns: Sequence[Column], head: Sequence[str], rows_of: Callable[[Column], list[tuple[str, ...]]]
) -> str:
    """Render a table for each column that has rows, under its title; empty if none has."""
    return "\n".join(
        f"{column.title}\n\n{markdown_table(head, rows)}\n" for column in columns if (rows := rows_of(column))
    )


def differences_table(column: Column) -> list[tuple[str, Estimate]]:
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
