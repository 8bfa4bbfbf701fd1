"""The paper's plans on one open bank in place of its own data: do they run, how long do they take, what do they show.

    python studies/paper_stand_ins.py RUN BANK [--plan NAME ...] [--budget SECONDS]
    python studies/paper_stand_ins.py --render

BANK is a bank of at least 100 classes with 100 rows each (CLINC150 in full, `clinc150-minilm`); RUN is a folder for the
runs, which continue where they were stopped. From BANK are made

- `mini`: its first 100 classes as 64 base, 16 validation and 20 test classes;
- `tiered`: all its classes, and no base classes (`l2` takes the place of `cl2n`, which needs them);
- `inat` and `inat_support`: all its classes; a fixed support of 2 to 20 rows per class, and the rest as queries.

Nothing here can be compared with the paper's numbers: data and network are different. Results are saved in
`studies/results/paper_stand_ins.json`; `--render` writes
`docs/measured/stand_ins.md` from it.
"""

from __future__ import annotations

import argparse
import json
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
from pages import Page, dots

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "studies" / "results" / "paper_stand_ins.json"
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


def page() -> Page:
    """Make the page from what was kept."""
    found: dict[str, list[Row]] = json.loads(RESULTS.read_text(encoding="utf-8"))
    best = {k: max(rows, key=lambda row: row["accuracy"]) for k, rows in _by_k_eff(found["accuracy_against_weight"])}
    return Page(
        name="stand_ins",
        title="The paper's plans on a stand-in",
        question=(
            "Do the plans of the paper run, how long do they take, and what does their output look like? We have not "
            "run them on the paper's own data, which may not be distributed. Here CLINC150 (150 sentences of each of "
            "150 intents) stands in for all of it: `mini` is 64, 16 and 20 of its classes, `tiered` all 150 without "
            "base classes. This is Table 1: accuracy in percent with 95 % intervals. "
            "[Reproduce the paper](../do/reproduce_the_paper.md) has the commands."
        ),
        alt="Accuracy of the methods of Table 1 on the stand-ins: one dot per column, a mark for the mean",
        figure=lambda: dots(
            {
                method: {bank: _accuracies(found["table1"], method, bank) for bank in ("mini", "tiered")}
                for method in dict.fromkeys(row["method"] for row in found["table1"])
            },
            "percent right",
        ),
        table=of_methods(found["table1"]),
        shows=(
            "All plans run. `paddle`, `laplacian_shot`, `bd_cspn` and `pt_map` take milliseconds per task; `tim`, "
            "`alpha_tim` and `ici` take seconds. The best λ depends on the number of classes present: "
            + ", ".join(f"{row['weight']:g} |Q| with {k}" for k, row in best.items())
            + ". λ = |Q|, the paper's choice, lies in between."
        ),
        limits=(
            f"These numbers say nothing about mini-ImageNet. A cell has {TASKS} tasks, or as many as 8 processor "
            "seconds allow (3 in Tables 1 and 2), but at least two: some intervals are useless."
        ),
        made="The file has the other plans too: `inat` has a fixed support of 2 to 20 rows per class.",
        commands=[
            "python studies/paper_stand_ins.py RUN clinc150-minilm",
            "python studies/paper_stand_ins.py --render",
        ],
        rows=[{"plan": plan, **row} for plan in PAPER_PLANS for row in found.get(plan, [])],
    )


def _by_k_eff(rows: list[Row]) -> list[tuple[int, list[Row]]]:
    return [(k, [row for row in rows if row["k_eff"] == k]) for k in sorted({row["k_eff"] for row in rows})]


def _accuracies(rows: list[Row], method: str, bank: str) -> list[float]:
    return [row["accuracy"] for row in rows if (row["method"], row["bank"]) == (method, bank)]


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
        page().write()
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
