"""One page that holds all a run says: tables, differences, ranks, figures, the plan, versions and hashes."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from html import escape
from pathlib import Path
from typing import Any, TypeAlias

from handful.benchmark.journal import Journal
from handful.benchmark.plan import Cell
from handful.benchmark.run import Material, trace_of
from handful.features import FeatureBank
from handful.numerics.fixed_point import Trace
from handful.reports import plots
from handful.reports.published import source
from handful.reports.summary import METRICS, Column, Estimate, Result, columns_of, mean_ranks, results
from handful.reports.tables import (
    accuracy_table,
    differences_table,
    render_html,
    render_latex,
    render_markdown,
)

FindBank: TypeAlias = Callable[[str], FeatureBank | None]

STYLE = """
:root { --ink: #1b1f24; --quiet: #59636e; --rule: #d1d9e0; --soft: #f6f8fa; --accent: #0072b2 }
* { box-sizing: border-box }
body { margin: 0 auto; max-width: 1180px; padding: 1.5rem 1rem 4rem; color: var(--ink); background: #fff;
  font: 16px/1.5 system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", sans-serif }
h1 { font-size: 1.7rem; margin: 0 0 .2rem } h2 { font-size: 1.25rem; margin: 2.4rem 0 .6rem }
h3 { font-size: 1rem; margin: 1.4rem 0 .4rem; overflow-wrap: anywhere }
p { max-width: 46rem; margin: .4rem 0 } .quiet { color: var(--quiet) }
.wide { overflow-x: auto; margin: .6rem 0; border: 1px solid var(--rule); border-radius: 6px }
table { border-collapse: collapse; font-size: .9rem; font-variant-numeric: tabular-nums; width: 100% }
th, td { padding: .4rem .7rem; text-align: left; vertical-align: top; border-bottom: 1px solid var(--rule) }
tbody tr:last-child > * { border-bottom: 0 } thead th { background: var(--soft); font-weight: 600 }
td { white-space: nowrap } tbody th { font-weight: 500; position: sticky; left: 0; background: #fff }
td b { color: var(--accent) } .interval { color: var(--quiet) }
.count, .paper { display: block; font-size: .8rem; color: var(--quiet) } .paper { color: #a04000 }
figure { margin: 1rem 0 } figure svg { max-width: 100%; height: auto }
figcaption { color: var(--quiet); font-size: .9rem }
details { margin: .6rem 0 } summary { cursor: pointer } code { font-size: .85em; overflow-wrap: anywhere }
@media print { .wide { overflow: visible; border: 0 } details > * { display: block } }
"""


def write_report(journal: Journal, out: str | os.PathLike[str], find_bank: FindBank | None = None) -> Path:
    """Write `index.html`, which needs no other file, and beside it every table and figure on its own.

    Parameters
    ----------
    journal : Journal
        The run; it need not be complete.
    out : path
        Folder, made if it is not there; files of an earlier report are replaced.
    find_bank : callable, optional
        Answers the name of a bank of the run with the bank, or with None: `banks.get` of a mapping does. The figure of
        convergence is drawn from a task that is solved again, and left out where its bank is not found.

    Returns
    -------
    page : Path
        Where `index.html` is.
    """
    folder = Path(out)
    folder.mkdir(parents=True, exist_ok=True)
    found = results(journal)
    columns = columns_of(found)
    table = accuracy_table(columns)
    (folder / "accuracy.md").write_text(render_markdown(table), encoding="utf-8")
    (folder / "accuracy.tex").write_text(render_latex(table, "Accuracy in percent."), encoding="utf-8")
    drawn = {name: pair for name, pair in _figures(columns, find_bank).items() if pair[0] is not None}
    for name, (figure, _) in drawn.items():
        plots.save(figure, folder, name)
    page = folder / "index.html"
    page.write_text(_page(journal, found, columns, list(drawn.values())), encoding="utf-8")
    return page


def _figures(columns: Sequence[Column], find_bank: FindBank | None) -> dict[str, tuple[Any, str]]:
    """Every figure of the paper with its caption; None in place of one that this run has no cells for."""
    traces = {} if find_bank is None else _traces(_first_with(columns, ("paddle_gd", "paddle")), find_bank)
    return {
        "accuracy_against_k_eff": (
            plots.accuracy_against_k_eff(columns),
            "Accuracy against K_eff; bands are 95 % intervals.",
        ),
        "accuracy_against_weight": (
            plots.accuracy_against_weight(columns),
            "Accuracy against λ; the dotted line is λ = |Q|.",
        ),
        "best_weight_against_n_query": (plots.best_weight_against_n_query(columns), "The most accurate λ against |Q|."),
        "convergence": (
            plots.convergence(traces) if traces else None,
            "How far prototypes still move, against time, on the first task of this run; a mark every 100 iterations. "
            "Solved again on one thread when this page was made.",
        ),
        "label_cost": (
            plots.label_cost() if _first_with(columns, ("soft_kmeans", "paddle")) else None,
            "What the partition term, which soft_kmeans lacks, stands for: of two classes, how many are used, and the "
            "entropy of their shares, which is continuous and takes the place of this count.",
        ),
    }


def _first_with(columns: Sequence[Column], methods: Sequence[str]) -> list[Cell]:
    """Cells of these methods in the first column that has them all with their default options; else none."""
    for column in columns:
        cells = {result.cell.method: result.cell for result in column.results if not result.cell.options}
        if all(method in cells for method in methods):
            return [cells[method] for method in methods]
    return []


def _traces(cells: Sequence[Cell], find_bank: FindBank) -> dict[str, Trace]:
    """Traces of the first task by method; none if a bank is not found, or is not the one the run had."""
    found = {name: find_bank(name) for cell in cells for name in (cell.bank, cell.support_bank) if name}
    banks = {name: bank for name, bank in found.items() if bank is not None}
    if len(banks) < len(found) or any(cell.bound(banks).bank_hash != cell.bank_hash for cell in cells):
        return {}
    return {cell.method: trace_of(cell, Material.of(cell, banks), 0) for cell in cells}


def _page(
    journal: Journal, found: Sequence[Result], columns: Sequence[Column], figures: Sequence[tuple[Any, str]]
) -> str:
    table = accuracy_table(columns)
    n_rows, n_failed = sum(len(result.tasks) for result in found), sum(result.n_failed for result in found)
    explained = (
        "Accuracy in percent, mean over n tasks ± 95 % interval. "
        "Blue: the best of its column and all that tie with it on the same tasks."
    )
    paper = f" In red, what the paper printed ({source()})" if table.has_published else ""
    parts = [
        f"<h1>{escape(journal.folder.name)}</h1>",
        f"<p class='quiet'>{len(found)} cells, {n_rows:,} tasks solved, {n_failed:,} failed</p>",
        f"<h2>Accuracy</h2><p>{escape(explained + paper)}</p>",
        _wide(render_html(table)),
        *(f"<p class='quiet'>{escape(note)}.</p>" for note in table.notes),
        *(
            f"<figure><div>{plots.as_svg(f)}</div><figcaption>{escape(words)}</figcaption></figure>"
            for f, words in figures
        ),
        "<h2>Differences on the same tasks</h2>",
        "<p>Most accurate method minus each other, in percentage points. An interval that holds zero is a tie.</p>",
        *(_differences(column) for column in columns if len(column.results) > 1),
        _ranks(columns),
        "<h2>Every measure</h2>",
        _wide(_measures(found)),
        _failures(found),
        "<h2>How this was made</h2>",
        _wide(_rows([("component", "version")], sorted(journal.versions.items()))),
        "<details><summary>Plan and hashes</summary>",
        _wide(_plan(found)),
        "</details>",
    ]
    return (
        "<!doctype html><html lang='en'><head><meta charset='utf-8'>"
        "<meta name='viewport' content='width=device-width, initial-scale=1'>"
        f"<title>{escape(journal.folder.name)}</title><style>{STYLE}</style></head><body>{''.join(parts)}</body></html>"
    )


def _wide(table: str) -> str:
    return f"<div class='wide' tabindex='0'>{table}</div>"


def _rows(head: Iterable[Sequence[str]], body: Iterable[Sequence[str]]) -> str:
    top = "".join(f"<tr>{''.join(f'<th scope=col>{escape(text)}</th>' for text in row)}</tr>" for row in head)
    rest = "".join(
        f"<tr><th scope=row>{escape(row[0])}</th>{''.join(f'<td>{escape(text)}</td>' for text in row[1:])}</tr>"
        for row in body
    )
    return f"<table><thead>{top}</thead><tbody>{rest}</tbody></table>"


def _differences(column: Column) -> str:
    body = [
        (label, f"{e.mean:+.1f} ± {e.half_width:.1f}", "tie" if e.holds_zero else "", f"{e.n:,}")
        for label, e in differences_table(column)
    ]
    table = _rows([("difference", "points", "", "tasks")], body)
    return f"<details><summary>{escape(column.title)}</summary>{_wide(table)}</details>"


def _ranks(columns: Sequence[Column]) -> str:
    ranks = mean_ranks([column for column in columns if len(column.results) > 1])
    if not ranks:
        return ""
    body = [(label, f"{rank:.2f}", str(n)) for label, (rank, n) in ranks.items()]
    return "<h2>Mean ranks</h2>" + _wide(_rows([("method", "mean rank", "columns")], body))


def _measures(found: Sequence[Result]) -> str:
    body = []
    for column in columns_of(found):
        for result in column.results:
            estimates = [result.estimate(metric) for metric in METRICS]
            values = [_measure(e, len(result.tasks)) for e in estimates]
            body.append((f"{result.label}: {column.title}", f"{len(result.tasks):,}", result.transform, *values))
    return _rows([("cell", "tasks", "transform", *(metric.replace("_", " ") for metric in METRICS))], body)


def _measure(estimate: Estimate, n_tasks: int) -> str:
    """Mean and interval, and over how many tasks if some rows were written before the measure was."""
    if not estimate.n:
        return ""
    fewer = "" if estimate.n == n_tasks else f" (n = {estimate.n:,})"
    return f"{estimate.mean:.3g} ± {estimate.half_width:.1g}{fewer}"


def _failures(found: Sequence[Result]) -> str:
    failed = [(r.label, r.cell.bank, f"{r.n_failed:,}", r.first_error) for r in found if r.n_failed]
    return (
        "" if not failed else "<h2>Failures</h2>" + _wide(_rows([("method", "bank", "tasks", "first error")], failed))
    )


def _plan(found: Sequence[Result]) -> str:
    body = []
    for result in found:
        cell = result.cell
        options = ", ".join(f"{name}={value}" for name, value in cell.options.items()) or "defaults"
        budget = "" if cell.cpu_budget is None else f"{cell.cpu_budget:g} s"
        words = (cell.bank, cell.transform, options, str(cell.seed), f"{cell.n_tasks:,}", budget, cell.bank_hash[:16])
        body.append((f"{cell.content_hash} {cell.method}", *words))
    return _rows([("cell", "bank", "transform", "options", "seed", "tasks", "budget", "bank's hash")], body)
