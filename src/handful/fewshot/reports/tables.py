"""Tables of accuracy: one row per method, one column per list of tasks; as Markdown, LaTeX and HTML.

Tasks with unknown classes have a table of their own, with one column per measure.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape

from handful.fewshot.methods import METHODS
from handful.fewshot.reports.published import published_accuracy
from handful.fewshot.reports.summary import Column, Estimate, Result, paired_difference

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
UNKNOWN_HEAD = ("method", "score", *UNKNOWN_MEASURES)
STATED, BY_CONFIDENCE = "its own", "1 − highest probability"

LATEX_SPECIAL = {"_": r"\_", "%": r"\%", "&": r"\&", "#": r"\#", "|": r"\textbar{}"}


@dataclass(frozen=True)
class Entry:
    """Accuracy in percent, whether it is the best or ties with it, and the paper's number if there is one.

    `note` is a remark for the reader: the rest of a sentence that starts with the method and the bank.
    """

    estimate: Estimate
    best: bool
    published: float | None
    note: str = ""

    def texts(self, bold: str, paper: str) -> tuple[str, str, str]:
        """Mean, interval (a single task has none, which is stated) and the paper's number, in these templates."""
        mean = f"{self.estimate.mean:.1f}" if self.estimate.n else "–"
        spread = f" ± {self.estimate.half_width:.1f}" if self.estimate.has_interval else ", no interval"
        published = "" if self.published is None else paper.format(f"{self.published:.1f}")
        return bold.format(mean) if self.best else mean, spread if self.estimate.n else "", published


@dataclass(frozen=True)
class Table:
    """Rows of entries under column titles; an entry is None where a method was not run on a column."""

    columns: tuple[str, ...]
    rows: tuple[tuple[str, tuple[Entry | None, ...]], ...]

    @property
    def has_published(self) -> bool:
        """Whether any entry has a published number."""
        return any(entry is not None and entry.published is not None for _, row in self.rows for entry in row)

    @property
    def notes(self) -> list[str]:
        """Remarks about single entries, each stated once for all methods and banks it applies to."""
        labels: dict[tuple[str, str], list[str]] = {}
        for label, row in self.rows:
            for title, entry in zip(self.columns, row, strict=True):
                if entry is not None and entry.note:
                    seen = labels.setdefault((entry.note, title.partition(",")[0]), [])
                    seen += [label] if label not in seen else []
        banks: dict[tuple[str, str], list[str]] = {}
        for (note, bank), names in labels.items():
            banks.setdefault((", ".join(names), note), []).append(bank)
        return [f"{names} on {', '.join(members)} {note}" for (names, note), members in banks.items()]


def accuracy_table(columns: Sequence[Column]) -> Table:
    """Put the results of all columns into one table; labels in the order in which they first occur."""
    labels = list(dict.fromkeys(result.label for column in columns for result in column.results))
    cells: dict[str, list[Entry | None]] = {label: [] for label in labels}
    for column in columns:
        by_label = {result.label: result for result in column.results}
        best = column.best()
        for label in labels:
            result = by_label.get(label)
            if result is None:
                cells[label].append(None)
                continue
            estimate = result.estimate().percent
            cells[label].append(Entry(estimate, result in best, published_accuracy(result.cell), _note(result)))
    return Table(tuple(column.title for column in columns), tuple((label, tuple(row)) for label, row in cells.items()))


def _note(result: Result) -> str:
    cell = result.cell
    if result.transform == cell.transform:
        return ""
    return (
        f"ran with {result.transform} instead of {cell.transform}: "
        "there are no base classes apart from those of the tasks"
    )


def render_markdown(table: Table) -> str:
    """Render as a table of pipes; best and ties in bold, n in brackets, the paper's number after a slash."""
    rows = ([label, *map(_markdown_entry, row)] for label, row in table.rows)
    return markdown_table(["method", *table.columns], rows) + "\n"


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
        return ""
    mean, spread, paper = entry.texts("**{}**", " / {}")
    return f"{mean}{spread} ({entry.estimate.n:,}){paper}"


def render_latex(table: Table, caption: str = "") -> str:
    """Render with booktabs; best and ties in bold, interval as a subscript, n below, the paper's number in brackets."""
    head = " & ".join(["Method", *(rf"\rotatebox{{60}}{{{_latex(title)}}}" for title in table.columns)])
    body = [" & ".join([_latex(label), *map(_latex_entry, row)]) + r" \\" for label, row in table.rows]
    tasks = " & ".join(
        [r"\emph{tasks}", *(_counts(entries) for entries in zip(*(r for _, r in table.rows), strict=True))]
    )
    lines = [r"\begin{table}", r"\centering", rf"\begin{{tabular}}{{l{'c' * len(table.columns)}}}", r"\toprule"]
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
        return "--"
    mean, spread, paper = entry.texts(r"\textbf{{{}}}", " ({})")
    if entry.estimate.has_interval:
        spread = rf"$_{{\pm {entry.estimate.half_width:.1f}}}$"
    return f"{mean.replace('–', '--')}{spread}{paper}"


def render_html(table: Table) -> str:
    """Render as an HTML table; the paper's number is below ours, and a title has one line for each of its parts."""
    titles = [[f"<span>{escape(part)}</span>" for part in title.split(", ")] for title in table.columns]
    head = "".join(f"<th scope='col'>{' '.join(parts)}</th>" for parts in titles)
    body = "".join(
        f"<tr><th scope='row'>{escape(label)}</th>{''.join(map(_html_entry, row))}</tr>" for label, row in table.rows
    )
    return f"<table><thead><tr><th scope='col'>method</th>{head}</tr></thead><tbody>{body}</tbody></table>"


def _html_entry(entry: Entry | None) -> str:
    if entry is None:
        return "<td></td>"
    mean, spread, paper = entry.texts("<b>{}</b>", "<span class='paper'>paper {}</span>")
    count = f"<span class='count'>n = {entry.estimate.n:,}</span>"
    return f"<td>{mean}<span class='interval'>{spread}</span>{count}{paper}</td>"


def unknown_rows(column: Column) -> list[tuple[str, ...]]:
    """Return a row under `UNKNOWN_HEAD` for each method, in percent with intervals; empty where a measure is undefined.

    A method that does not reject has no score of its own, so one minus its highest probability is used.
    """
    rows = []
    for result in column.results:
        score = STATED if METHODS[result.cell.method].rejects else BY_CONFIDENCE
        measures = (result.estimate(metric).percent.said() for metric in UNKNOWN_MEASURES.values())
        rows.append((result.label, score, *measures))
    return rows


def unknown_markdown(columns: Sequence[Column]) -> str:
    """Render the tables of unknown items of these columns, each under its title; empty if no task has any."""
    tables = [
        f"{column.title}\n\n{markdown_table(UNKNOWN_HEAD, unknown_rows(column))}\n"
        for column in columns
        if column.spec.unknown is not None
    ]
    return "\n".join(tables)


def differences_table(column: Column) -> list[tuple[str, Estimate]]:
    """Accuracy of the best method minus that of each other on the same tasks, in percent; ties contain zero.

    If several are best, the one with most tasks is used, then the one with the highest mean. If none is best there are
    no rows. A method that shares no task with the best comes last.
    """
    best = column.best()
    if not best:
        return []
    top = max(best, key=lambda result: (len(result.tasks), result.estimate().mean))
    others = [other for other in column.results if other is not top]
    rows = [(f"{top.label} − {other.label}", paired_difference(top, other).percent) for other in others]
    return sorted(rows, key=lambda row: (row[1].n == 0, row[1].mean))
