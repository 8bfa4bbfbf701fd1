"""The paper's plans on one open bank in place of its own data: do they run, how long do they take, what do they show.

    python studies/paper_stand_ins.py RUN BANK [--plan NAME ...] [--budget SECONDS]
    python studies/paper_stand_ins.py --render

BANK is a bank of at least 100 classes with 100 rows each (CLINC150 in full, `clinc150-minilm`); RUN is a folder for the
runs, which continue where they were stopped. From BANK are made

- `mini`: its first 100 classes as 64 base, 16 validation and 20 test classes;
- `tiered`: all its classes, and no base classes (`l2` takes the place of `cl2n`, which needs them);
- `inat` and `inat_support`: all its classes; a fixed support of 2 to 20 rows per class, and the rest as queries.

Nothing here can be compared with the paper's numbers: data and network are different. Results are saved in
`studies/results/paper_stand_ins.json`; `--render` writes the tables of `docs/how_to/reproduce_the_paper.md` from it.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from handful import FeatureBank, read_bank
from handful.fewshot.benchmark.completion import complete
from handful.fewshot.benchmark.journal import Journal
from handful.fewshot.benchmark.paper import PAPER_PLANS
from handful.fewshot.benchmark.plan import Banks, bound_plan
from handful.fewshot.reports.summary import columns_of, results
from handful.fewshot.reports.tables import markdown_table

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "studies" / "results" / "paper_stand_ins.json"
PAGE = ROOT / "docs" / "how_to" / "reproduce_the_paper.md"
# Tasks of each cell; slow methods do as many as their processor seconds allow, but two at least.
TASKS = 30
# The figure of K_eff has hundreds of cells: here five shots, with the methods that take milliseconds.
QUICK = ("bd_cspn", "pt_map", "laplacian_shot", "paddle")
Row = dict[str, Any]


def stand_ins(bank: FeatureBank) -> Banks:
    """Return banks under the paper's names, all of them made of one."""
    splits = {"base": tuple(range(64)), "validation": tuple(range(64, 80)), "test": tuple(range(80, 100))}
    rank = np.empty(bank.n_rows, np.int64)
    for k in range(bank.n_classes):
        rows = np.flatnonzero(bank.labels == k)
        rank[rows] = np.arange(len(rows))
    fixed = rank < 2 + bank.labels % 19  # as many rows of a class as its number says, 2 to 20
    return {
        "mini": replace(_part(bank, bank.labels < 100, bank.class_names[:100]), splits=splits),
        "tiered": bank,
        "inat": _part(bank, ~fixed, bank.class_names),
        "inat_support": _part(bank, fixed, bank.class_names),
    }


def _part(bank: FeatureBank, chosen: np.ndarray, class_names: tuple[str, ...]) -> FeatureBank:
    rows = np.flatnonzero(chosen)
    return FeatureBank.from_arrays(bank.take(rows), bank.labels[rows], class_names)


def measured(name: str, folder: Path, banks: Banks, budget: float) -> list[Row]:
    """Run a plan of the paper, or what is left of it, and return one row per cell."""
    cells = PAPER_PLANS[name](banks, n_tasks=TASKS, cpu_budget=budget)
    if name == "accuracy_against_k_eff":
        cells = tuple(c for c in cells if c.method in QUICK and getattr(c.spec.support, "shots", 5) == 5)
    plan = bound_plan(cells, banks)
    journal = Journal(folder) if folder.exists() else Journal.create(folder, plan)
    complete(journal, banks)
    rows = []
    for column in columns_of(results(journal)):
        for result in column.results:
            accuracy = result.estimate()
            row = {
                "column": column.title,
                "bank": column.bank,
                "k_eff": column.spec.query.k_eff,
                "n_query": column.spec.n_query,
                "shots": getattr(column.spec.support, "shots", None),
                "method": result.cell.method,
                "tasks": accuracy.n,
                "failed": result.n_failed,
                "accuracy": round(100 * accuracy.mean, 2),
                "half_width": round(100 * accuracy.half_width, 2),
                "cpu_seconds": float(f"{np.mean(result.columns['cpu_seconds'].astype(float)):.3g}"),
            }
            if "complexity_weight" in result.cell.options:
                row["weight"] = round(result.cell.options["complexity_weight"] / column.spec.n_query, 3)
            rows.append(row)
    return rows


def of_methods(rows: list[Row]) -> str:
    """Render methods by columns; the last one has CPU seconds per task and the number of tasks."""
    columns = list(dict.fromkeys((row["bank"], row["shots"]) for row in rows))
    titles = [f"`{bank}`" + (f", {shots} shots" if shots else "") for bank, shots in columns]
    lines = []
    for method in dict.fromkeys(row["method"] for row in rows):
        mine = {(row["bank"], row["shots"]): row for row in rows if row["method"] == method}
        cells = [f"{mine[c]['accuracy']:.1f} ± {mine[c]['half_width']:.1f}" for c in columns]
        last = mine[columns[-1]]
        lines.append([f"`{method}`", *cells, f"{last['cpu_seconds']:.2g} ({last['tasks']})"])
    return markdown_table(["method", *titles, "CPU s per task (tasks), last column"], lines)


def of_k_eff(rows: list[Row]) -> str:
    """Render accuracy against K_eff, at five shots and with the fixed support."""
    ks = sorted({row["k_eff"] for row in rows})
    lines = []
    for bank, method in dict.fromkeys((row["bank"], row["method"]) for row in rows):
        mine = {row["k_eff"]: row["accuracy"] for row in rows if (row["bank"], row["method"]) == (bank, method)}
        lines.append([f"`{bank}`", f"`{method}`", *(f"{mine[k]:.1f}" for k in ks)])
    return markdown_table(["bank", "method", *(f"K_eff = {k}" for k in ks)], lines)


def of_weights(rows: list[Row]) -> str:
    """Render accuracy against λ."""
    weights = sorted({row["weight"] for row in rows})
    lines = []
    for k in sorted({row["k_eff"] for row in rows}):
        mine = {row["weight"]: row["accuracy"] for row in rows if row["k_eff"] == k}
        lines.append([k, *(f"{mine[w]:.1f}" for w in weights)])
    return markdown_table(["K_eff", *(f"λ = {w:g} |Q|" for w in weights)], lines)


def of_best_weights(rows: list[Row]) -> str:
    """Render the most accurate λ of each |Q|, and by how much it beats λ = |Q|."""
    sizes = sorted({row["n_query"] for row in rows})
    lines = []
    for k in sorted({row["k_eff"] for row in rows}):
        cells = []
        for n in sizes:
            mine = {row["weight"]: row["accuracy"] for row in rows if (row["k_eff"], row["n_query"]) == (k, n)}
            best = max(mine, key=lambda w: (mine[w], -abs(w - 1)))
            cells.append(f"{best:g} |Q| ({mine[best] - mine[1.0]:+.1f})")
        lines.append([k, *cells])
    return markdown_table(["K_eff", *(f"|Q| = {n}" for n in sizes)], lines)


TABLES: dict[str, Callable[[list[Row]], str]] = {
    "table1": of_methods,
    "table2": of_methods,
    "accuracy_against_k_eff": of_k_eff,
    "partition_term": of_methods,
    "optimisation": of_methods,
    "accuracy_against_weight": of_weights,
    "best_weight_against_n_query": of_best_weights,
}


def rendered(page: str) -> str:
    """Return the page with its tables, each between `<!-- name -->` and `<!-- end -->`, as the results are now."""
    found = json.loads(RESULTS.read_text(encoding="utf-8"))
    for name, render in TABLES.items():
        before, begin, rest = page.partition(f"<!-- {name} -->\n")
        _, end, after = rest.partition("<!-- end -->\n")
        if not end:
            raise SystemExit(
                f"{PAGE.name} must have `<!-- {name} -->` and after it `<!-- end -->`, each on its own line"
            )
        text = render(found[name]) if name in found else "*Not measured yet.*"
        page = f"{before}{begin}\n{text}\n\n{end}{after}"
    return page


def main() -> None:
    """Run what is left, or write the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", nargs="?", type=Path)
    parser.add_argument("bank", nargs="?", type=Path)
    parser.add_argument("--plan", action="append", choices=list(PAPER_PLANS), help="only this one; repeat for several")
    parser.add_argument("--budget", type=float, default=8.0, help="processor seconds after which a cell ends")
    parser.add_argument("--render", action="store_true", help="write the tables of the page")
    given = parser.parse_args()
    torch.set_num_threads(1)
    if given.render:
        PAGE.write_text(rendered(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
        return
    if given.run is None or given.bank is None:
        parser.error("give a folder for the runs and a bank, or --render")
    banks = stand_ins(read_bank(given.bank))
    found = json.loads(RESULTS.read_text(encoding="utf-8")) if RESULTS.is_file() else {}
    for name in given.plan or PAPER_PLANS:
        found[name] = measured(name, given.run / name, banks, given.budget)
        RESULTS.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
        print(f"{name}: {len(found[name])} cells", flush=True)


if __name__ == "__main__":
    main()
