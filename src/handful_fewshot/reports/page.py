"""One page about a run: tables, differences, figures, the plan, versions and hashes."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any, TypeAlias

from handful import FeatureBank
from handful.machine.outputs import refuse_overwriting, written_whole
from handful_fewshot.benchmark.journal import Journal, banks_at
from handful_fewshot.benchmark.paper import source_of_numbers
from handful_fewshot.benchmark.run import Material, trace_of
from handful_fewshot.numerics.fixed_point import Trace
from handful_fewshot.reports import plots, summary, tables, tuning
from handful_fewshot.reports.as_csv import csv_text, differences, measures
from handful_fewshot.reports.summary import LEAST_TASKS, Column, MeanEstimate, Result
from handful_fewshot.transforms import method_at

FindBank: TypeAlias = Callable[[str], FeatureBank | None]

STYLE = """
:root { --ink: #1b1f24; --quiet: #59636e; --rule: #d1d9e0; --soft: #f6f8fa; --accent: #0072b2; --paper: #fff;
  --of-paper: #a04000 }
@media (prefers-color-scheme: dark) { :root { --ink: #e6edf3; --quiet: #9aa4ae; --rule: #3a424b; --soft: #1c2128;
  --accent: #58a6d6; --paper: #12161b; --of-paper: #ff9d5c } }
* { box-sizing: border-box }
body { margin: 0 auto; max-width: 84rem; padding: 1.5rem 1rem 4rem; color: var(--ink); background: var(--paper);
  font: 16px/1.5 system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", sans-serif }
h1 { font-size: 1.7rem; margin: 0 0 .2rem } h2 { font-size: 1.25rem; margin: 2.4rem 0 .6rem }
h3 { font-size: 1rem; margin: 1.4rem 0 .4rem; overflow-wrap: anywhere }
p { max-width: 46rem; margin: .4rem 0 } .quiet { color: var(--quiet) }
.wide { overflow-x: auto; width: fit-content; max-width: 100%; margin: .6rem 0; border: 1px solid var(--rule);
  border-radius: 6px }
table { border-collapse: collapse; font-size: .9rem; font-variant-numeric: tabular-nums }
th, td { padding: .4rem .7rem; text-align: left; vertical-align: top; border-bottom: 1px solid var(--rule) }
tbody tr:last-child > * { border-bottom: 0 } thead th { background: var(--soft); font-weight: 600 }
/* Tables of many columns: smaller, so that they fit a screen of 1280 pixels; on a phone they scroll. */
table:has(thead th:nth-child(8)) { font-size: .8rem }
table:has(thead th:nth-child(8)) :is(th, td) { padding: .3rem .3rem }
td { white-space: nowrap } tbody th { font-weight: 500; position: sticky; left: 0; background: var(--paper) }
@media (min-width: 900px) { td:last-child:not(:nth-child(-n + 8)) { white-space: normal; overflow-wrap: anywhere } }
thead th span { display: block; white-space: nowrap }
tbody tr.group > th { background: var(--soft); font-weight: 600; white-space: nowrap }
tr.group > th > span { position: sticky; left: .7rem }
td b { color: var(--accent) } .interval { color: var(--quiet) }
.count, .paper { display: block; font-size: .8rem; color: var(--quiet) } .paper { color: var(--of-paper) }
.figures { display: flex; flex-wrap: wrap; align-items: flex-start; gap: 1rem 2rem; margin: 1rem 0 }
figure { margin: 0; flex: 0 1 auto; max-width: 100%; display: table }
figure svg { max-width: 100%; height: auto; display: block; background: #fff; border-radius: 6px }
figcaption { color: var(--quiet); font-size: .9rem; display: table-caption; caption-side: bottom }
details { margin: .6rem 0 } summary { cursor: pointer } code { font-size: .85em; overflow-wrap: anywhere }
@media print { .wide { overflow: visible; border: 0 } details > * { display: block } }
"""


# Tables that a run may have besides that of accuracy: title, explanation, head and rows.
MORE_TABLES: Sequence[tuple[str, str, Sequence[str], Callable[[Column], list[tuple[str, ...]]]]] = (
    (
        "Unknown items",
        "Some classes of these tasks have no examples; accuracy is that on the items of the other classes. All in "
        "percent, mean ± 95% interval. Unknown items are ranked by what the method says; if it cannot reject, by one "
        "minus its highest probability.",
        tables.UNKNOWN_HEAD,
        tables.unknown_rows,
    ),
    (
        "Time to convergence",
        "Seconds of the method per task, on one thread, over the tasks on which it converged (for paddle and "
        "paddle_gd: prototypes moved by at most 10⁻⁶). Methods without such a criterion never do.",
        tables.CONVERGENCE_HEAD,
        tables.convergence_rows,
    ),
)


def write_report(journal: Journal, out: str | os.PathLike[str], find_bank: FindBank | None = None) -> Path:
    """Write `index.html`, which needs no other file; beside it figures, all numbers as CSV, and accuracy as LaTeX.

    Parameters
    ----------
    journal : Journal
        The run; it need not be complete.
    out : path
        Folder, created if it does not exist; files of an earlier report are replaced. It must be outside of the run.
    find_bank : callable, optional
        Returns the bank of a given name, or None; for instance `banks.get` of a mapping. The convergence figure needs a
        task to be solved again, and is left out if its bank is not found.

    Returns
    -------
    Path
        Where `index.html` is.
    """
    folder = Path(out)
    refuse_overwriting({"run": journal.folder, **banks_at(journal.bank_places)}, {"report": folder})
    outcomes = summary.results(journal)
    columns = summary.columns_of(outcomes)
    texts = {"accuracy.tex": tables.accuracy_latex(columns)}
    texts |= {"measures.csv": csv_text(measures(outcomes)), "differences.csv": csv_text(differences(columns))}
    chosen = tuning.choices(journal)
    if chosen:
        texts["tuned.toml"] = tuning.tuned_plan(chosen, journal.bank_places)
    figures = _figures(columns, find_bank)
    for name, (figure, _) in figures.items():
        plots.save(figure, folder, name)
    page = folder / "index.html"
    texts[page.name] = _page(journal, outcomes, columns, figures, chosen)
    for name, text in texts.items():
        with written_whole(folder / name) as place:
            place.write_text(text, encoding="utf-8")
    return page


# What the figures show for which a run may have the cells.
CAPTIONS = {
    plots.accuracy_against_k_eff: (
        "Accuracy against the number of classes that occur in a batch, K_eff; bands are 95% intervals."
    ),
    plots.accuracy_against_n_query: "Accuracy against the number of items of a batch, |Q|; bands are 95% intervals.",
    plots.accuracy_against_weight: "Accuracy against λ, the weight of the partition term; the dotted line is λ = |Q|.",
    plots.best_weight_against_n_query: "The most accurate λ against the number of items of a batch, |Q|.",
}
CONVERGENCE = (
    "How far prototypes still move, against time, on the first task both solved; a mark every 100 iterations. Solved "
    "again on one thread when this page was made."
)
CHOSEN = (
    "The options that are most accurate on the validation tasks, beside the published ones; mean ± 95% interval. The "
    "file tuned.toml is a plan that tests both on the test classes."
)
LABEL_COST = (
    "Why paddle uses few classes and soft_kmeans many: paddle has a partition term, the entropy of class shares. It is "
    "a smooth substitute for the number of classes used; here for two classes."
)


def _figures(columns: Sequence[Column], find_bank: FindBank | None) -> dict[str, tuple[Any, str]]:
    """Draw the figures of the paper for which this run has the cells; by name, with their captions."""
    figures = {draw.__name__: (draw(columns), caption) for draw, caption in CAPTIONS.items()}
    traces = {} if find_bank is None else _traces(_first_with(columns, tables.OPTIMISERS), find_bank)
    if traces:
        figures["convergence"] = plots.convergence(traces), CONVERGENCE
    if _first_with(columns, ("soft_kmeans", "paddle")):
        figures["label_cost"] = plots.label_cost(), LABEL_COST
    return {name: (figure, caption) for name, (figure, caption) in figures.items() if figure is not None}


def _first_with(columns: Sequence[Column], methods: Sequence[str]) -> list[Result]:
    """Results of these methods in the first column that has all of them with default options; else none."""
    for column in columns:
        members = {result.cell.method: result for result in column.results if not result.cell.options}
        if all(method in members for method in methods):
            return [members[method] for method in methods]
    return []


def _traces(members: Sequence[Result], find_bank: FindBank) -> dict[str, Trace]:
    """Traces of the first task that all solved, by method; none if the run's bank is not found."""
    solved = set.intersection(*(set(result.tasks.tolist()) for result in members)) if members else set()
    if not solved:
        return {}
    cells = [result.cell for result in members]
    wanted = {name: find_bank(name) for cell in cells for name in (cell.bank, cell.support_bank) if name}
    banks = {name: bank for name, bank in wanted.items() if bank is not None}
    if len(banks) < len(wanted) or any(cell.bound(banks).bank_hash != cell.bank_hash for cell in cells):
        return {}
    return {r.label: trace_of(r.cell, Material.of(r.cell, banks), min(solved)) for r in members}


def _page(
    journal: Journal,
    outcomes: Sequence[Result],
    columns: Sequence[Column],
    figures: Mapping[str, tuple[Any, str]],
    chosen: Sequence[tuning.Choice],
) -> str:
    table = tables.accuracy_html(columns)
    n_rows = sum(len(result.tasks) for result in outcomes)
    n_failed = sum(result.n_failed for result in outcomes)
    explained = (
        "Accuracy in percent, mean over n tasks ± 95% interval (Student's t); one task has none. "
        f"Blue: no other entry in its column is ahead by more than an interval, on at least {LEAST_TASKS} tasks that "
        "both have."
    )
    paper = f" In red, the paper's numbers: {source_of_numbers()}" if "class='paper'" in table else ""
    parts = [
        f"<h1>{escape(journal.folder.name)}</h1>",
        f"<p class='quiet'>{len(outcomes)} cells, {n_rows:,} tasks solved, {n_failed:,} failed</p>",
        f"<h2>Accuracy</h2><p>{escape(explained + paper)}</p>",
        _wide(table),
        *(f"<p class='quiet'>{escape(note)}</p>" for note in tables.accuracy_notes(columns)),
        *(_more_tables(columns, *parts) for parts in MORE_TABLES),
        _chosen(chosen),
        "<div class='figures'>",
        *(
            f"<figure>{plots.as_svg(figure, name)}<figcaption>{escape(caption)}</figcaption></figure>"
            for name, (figure, caption) in figures.items()
        ),
        "</div>",
        "<h2>Differences on the same tasks</h2>",
        "<p>The best method minus each other, in percentage points. An interval that contains zero is a tie, and "
        f"fewer than {LEAST_TASKS} common tasks are too few to tell.</p>",
        *(_differences(column) for column in columns if len(column.results) > 1),
        "<h2>Every measure</h2>",
        _wide(_measures(outcomes)),
        _failures(outcomes),
        "<h2>How this was made</h2>",
        f"<p>{escape(', '.join(map(' '.join, journal.versions.items())))}</p>",
        "<details><summary>Plan and hashes</summary>",
        _wide(_plan(outcomes)),
        "</details>",
    ]
    return (
        "<!doctype html><html lang='en'><head><meta charset='utf-8'>"
        "<meta name='viewport' content='width=device-width, initial-scale=1'>"
        f"<title>{escape(journal.folder.name)}</title><style>{STYLE}</style></head><body>{''.join(parts)}</body></html>"
    )


def _wide(table: str) -> str:
    notes = (f"<p class='quiet'>{escape(note)}</p>" for note in summary.footnotes(table))
    return f"<div class='wide' tabindex='0'>{table}</div>{''.join(notes)}"


def _rows(head: Sequence[str], body: Iterable[Sequence[str]]) -> str:
    return _table(head, map(_row, body))


def _table(head: Sequence[str], rows: Iterable[str]) -> str:
    top = "".join(f"<th scope=col>{escape(text)}</th>" for text in head)
    return f"<table><thead><tr>{top}</tr></thead><tbody>{''.join(rows)}</tbody></table>"


def _row(texts: Sequence[str]) -> str:
    rest = "".join(f"<td>{escape(text)}</td>" for text in texts[1:])
    return f"<tr><th scope=row>{escape(texts[0])}</th>{rest}</tr>"


def _differences(column: Column) -> str:
    rows = tables.differences_table(column)
    body = [(label, e.text(sign="+"), summary.verdict(e, "ahead", "behind"), f"{e.n:,}") for label, e in rows]
    if not body:
        return f"<p class='quiet'>{escape(column.title)}: too few tasks to tell which method is best.</p>"
    table = _rows(("difference", "points", "", "tasks"), body)
    return f"<details><summary>{escape(column.title)}</summary>{_wide(table)}</details>"


def _chosen(chosen: Sequence[tuning.Choice]) -> str:
    """Return the options that were best on validation tasks, if the run has several of a method."""
    if not chosen:
        return ""
    table = _wide(_rows(tuning.HEAD, tuning.choice_rows(chosen)))
    return f"<h2>Chosen options</h2><p>{escape(CHOSEN)}</p>{table}"


def _more_tables(
    columns: Sequence[Column],
    title: str,
    explained: str,
    head: Sequence[str],
    rows_of: Callable[[Column], list[tuple[str, ...]]],
) -> str:
    """Tables of one kind, one for each list of tasks that has rows; empty if none has."""
    tables = [
        f"<h3>{escape(column.title)}</h3>{_wide(_rows(head, rows))}" for column in columns if (rows := rows_of(column))
    ]
    return f"<h2>{title}</h2><p>{escape(explained)}</p>{''.join(tables)}" if tables else ""


def _measures(outcomes: Sequence[Result]) -> str:
    head = ("method", "tasks", *(metric.replace("_", " ") for metric in summary.METRICS), "transform")
    body = []
    for column in summary.columns_of(outcomes):
        body.append(f"<tr class='group'><th colspan='{len(head)}'><span>{escape(column.title)}</span></th></tr>")
        for result in column.results:
            n = len(result.tasks)
            values = [_measure(result.estimate(metric), n) for metric in summary.METRICS]
            body.append(_row((result.label, f"{n:,}{result.estimate().mark}", *values, result.transform)))
    return _table(head, body)


def _measure(estimate: MeanEstimate, n_tasks: int) -> str:
    """Mean and interval; the number of tasks if some rows lack the measure."""
    return estimate.rounded() + (f" (n = {estimate.n:,})" if 0 < estimate.n < n_tasks else "")


def _failures(outcomes: Sequence[Result]) -> str:
    failed = [(r.label, r.cell.bank, f"{r.n_failed:,}", r.first_error) for r in outcomes if r.n_failed]
    return "" if not failed else "<h2>Failures</h2>" + _wide(_rows(("method", "bank", "tasks", "first error"), failed))


def _plan(outcomes: Sequence[Result]) -> str:
    body = []
    for result in outcomes:
        cell = result.cell
        options = ", ".join(f"{name}={value}" for name, value in cell.options.items()) or "defaults"
        budget = "" if cell.cpu_budget is None else f"{cell.cpu_budget:g} s"
        words = (options, str(cell.seed), f"{cell.n_tasks:,}", budget, cell.bank_hash[:16])
        name = method_at(cell.method, result.scale)
        body.append((f"{cell.content_hash} {name}", cell.bank, result.transform_text, *words))
    return _rows(("cell", "bank", "transform", "options", "seed", "tasks", "budget", "bank's hash"), body)
