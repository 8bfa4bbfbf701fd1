"""The paper's tables, figures and ablations on real, openly available features, with every method.

    python studies/banks_study.py run RUN BANK [BANK ...] [--stages table k_eff n_query weights slow optimiser ...]
    python studies/banks_study.py keep RUN [RUN ...]
    python studies/study_page.py

All classes of a bank are in the support. RUN is an ordinary run of the benchmark (`handful bench status RUN` shows how
far it is, `handful report RUN` draws it) that continues where it was stopped. Stages:

- **table**: 5, 10 and 20 shots where a bank has the rows, K_eff = 5, |Q| = 75 (the paper's Tables 1 and 2);
- **k_eff**: 1, 2, 5, 10, 20, 50 and all classes allowed in the query, 5 shots (its figure);
- **n_query**: 10, 25, 75, 200, 500 and 1,000 queries of 10 classes, 5 shots;
- **weights**: PADDLE at λ from |Q|/4 to 3|Q|, 20 shots, K_eff = 2, 5, 10, several |Q| (its two figures on λ);
- **pt_map**, **slow**, **sweep-slow**: PT-MAP; the methods that take longer than 0.1 s per task, in the table; and
  these along K_eff on the two banks with fewest classes;
- **optimiser**: seconds of PADDLE's updates, of projected gradient and of α-TIM, on CLINC150.

Quick methods solve 1,000 tasks per cell (300 where |Q| > 200 or λ varies), slow ones 30 or what a budget allows.
`--cpu-minutes` bounds the whole run: the stages that are left share what is left, and within a stage the slow methods
share what it has. A run that was cut short continues with the same command. If
the smallest classes of a bank cannot fill a query, it is as large as they allow. Settings are the published ones:
each method's defaults after the transform it names (`l2` for `cl2n`, which needs base classes). Published PADDLE also
runs on unit vectors times 5.

`keep` writes a summary of each cell, not its rows, to `studies/results/study/<bank>.json`. If several runs have a
cell, the one with most tasks is used. `study_page.py` writes `docs/measured/study.md` from those.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import torch

import handful
import handful_fewshot as fewshot
from handful_fewshot.benchmark.completion import CellProgress, complete
from handful_fewshot.benchmark.journal import Journal
from handful_fewshot.benchmark.paper import N_QUERIES, WEIGHT_K_EFFS, WEIGHT_SHOTS, WEIGHTS
from handful_fewshot.benchmark.plan import Banks, Cell, Plan, bound_plan
from handful_fewshot.reports.summary import MeanEstimate, Result, columns_of, paired_difference, results
from handful_fewshot.transforms import parameters_of

ROOT = Path(__file__).resolve().parents[1]
KEPT = ROOT / "studies" / "results" / "study"
QUICK = ("nearest_prototype", "prior_em", "paddle", "soft_kmeans", "laplacian_shot", "bd_cspn")
SLOW = ("sparse_em", "pt_map", "paddle_gd", "baseline", "baseline_pp", "tim_adm", "ici", "alpha_tim", "tim")
K_EFFS, QUERIES, SHOTS = (1, 2, 5, 10, 20, 50), (10, 25, 75, 200, 500, 1000), (5, 10, 20)
N_TASKS, FEWER_TASKS, SLOW_TASKS = 1000, 300, 30
METRICS = ("accuracy", "presence_precision", "presence_recall", "proportion_error", "n_iter", "cpu_seconds")
WEIGHT_BANKS = ("clinc150", "banking77")
SWEEP_BANKS, OPTIMISER_BANK = ("hwu64", "banking77"), "clinc150"
# Not in SLOW's order: what the paper's figure has comes first.
SWEPT_SLOW = ("sparse_em", "alpha_tim", "tim_adm", "baseline", "tim", "ici")


Setting = Mapping[str, Any]  # transform, parameters, options


def setting(transform: str, options: Mapping[str, Any], **parameters: Any) -> Setting:
    """Transform, its parameters, and options of the method."""
    return {"transform": transform, "parameters": parameters, "options": dict(options)}


def published(method: str) -> Setting:
    """Defaults after the method's own transform."""
    name = fewshot.METHODS[method].transform
    return setting("l2" if "base_mean" in parameters_of(name) else name, {})


SCALED: Setting = setting("l2_times", {}, factor=5.0)


def settings(methods: Iterable[str]) -> Iterator[tuple[str, Setting]]:
    """Yield the published settings of each method, and the scaled ones of PADDLE."""
    for method in methods:
        yield method, published(method)
        if method == "paddle":
            yield method, SCALED


def largest_query(bank: handful.FeatureBank, shots: int, k_eff: int) -> int:
    """Rows that any `k_eff` classes have beside the support."""
    return int(np.sort(bank.class_sizes)[:k_eff].sum()) - shots * k_eff


def spec(bank: handful.FeatureBank, shots: int, k_eff: int, n_query: int = 75) -> fewshot.TaskSpec:
    """Few of all classes in the query, which is smaller where rows run out."""
    n_query = min(n_query, largest_query(bank, shots, k_eff))
    return fewshot.TaskSpec(fewshot.ShotsPerClass(shots), fewshot.UniformOverPool(k_eff), n_query=n_query)


def table_specs(bank: handful.FeatureBank) -> list[fewshot.TaskSpec]:
    """5, 10, 20 shots; at least 25 queries must be left."""
    return [spec(bank, shots, 5) for shots in SHOTS if largest_query(bank, shots, 5) >= 25]


def k_eff_specs(bank: handful.FeatureBank) -> list[fewshot.TaskSpec]:
    """Every K_eff that the bank has classes for, and all of them."""
    return [spec(bank, 5, k) for k in (*(k for k in K_EFFS if k < bank.n_classes), bank.n_classes)]


def n_query_specs(bank: handful.FeatureBank) -> list[fewshot.TaskSpec]:
    """Every |Q| that ten classes can fill."""
    return [spec(bank, 5, 10, n) for n in QUERIES if largest_query(bank, 5, 10) >= n]


def quick_cells(bank: str, specs: Iterable[fewshot.TaskSpec], methods: Iterable[str], most: int) -> Iterator[Cell]:
    """Give each of these tasks to each of these methods."""
    for (method, value), wanted in product(settings(methods), specs):
        n_tasks = min(most, N_TASKS if wanted.n_query <= 200 else FEWER_TASKS)
        yield Cell(bank, wanted, method, n_tasks=n_tasks, **value)


def slow_cells(bank: str, specs: Iterable[fewshot.TaskSpec], methods: Iterable[str], budget: float) -> Iterator[Cell]:
    """Give the first of these tasks to slow methods."""
    for (method, value), wanted in product(settings(methods), specs):
        yield Cell(bank, wanted, method, n_tasks=SLOW_TASKS, cpu_budget=budget, **value)


def weight_cells(name: str, bank: handful.FeatureBank, most: int) -> Iterator[Cell]:
    """λ in multiples of |Q|, for published and for scaled features."""
    for value, k_eff, n_query, weight in product((published("paddle"), SCALED), WEIGHT_K_EFFS, N_QUERIES, WEIGHTS):
        if largest_query(bank, WEIGHT_SHOTS, k_eff) >= n_query:
            wanted, options = spec(bank, WEIGHT_SHOTS, k_eff, n_query), {"complexity_weight": weight * n_query}
            yield Cell(name, wanted, "paddle", n_tasks=min(most, FEWER_TASKS), **{**value, "options": options})


def stage(name: str, banks: Banks, most: int, budget: float) -> Plan:
    """Cells of one stage, method after method, so that a run cut short has the first methods on every bank."""
    cells: list[Cell] = []
    for key, bank in banks.items():
        short = key.split("-")[0]
        if name == "table":
            cells += quick_cells(key, table_specs(bank), QUICK, most)
        elif name == "k_eff":
            cells += quick_cells(key, (s for s in k_eff_specs(bank) if s not in table_specs(bank)), QUICK, most)
        elif name == "n_query":
            cells += quick_cells(key, (s for s in n_query_specs(bank) if s not in k_eff_specs(bank)), QUICK, most)
        elif name == "weights" and short in WEIGHT_BANKS:
            cells += weight_cells(key, bank, most)
        elif name == "pt_map":
            cells += quick_cells(key, dict.fromkeys((*table_specs(bank), *k_eff_specs(bank))), ("pt_map",), most)
        elif name == "slow":
            cells += slow_cells(key, table_specs(bank), (m for m in SLOW if m != "pt_map"), budget)
        elif name == "sweep-slow" and short in SWEEP_BANKS:
            specs = [s for s in k_eff_specs(bank) if s not in table_specs(bank)]
            cells += slow_cells(key, specs, SWEPT_SLOW, budget)
        elif name == "optimiser" and short == OPTIMISER_BANK:
            cells += slow_cells(key, [spec(bank, WEIGHT_SHOTS, 5)], ("alpha_tim", "paddle_gd"), budget)
    order = (*QUICK, "pt_map", *SWEPT_SLOW, *SLOW)
    return bound_plan(sorted(cells, key=lambda cell: order.index(cell.method)), banks)


STAGES = ("table", "k_eff", "n_query", "weights", "pt_map", "slow", "sweep-slow", "optimiser")


class UsedUp(Exception):
    """The CPU time of a stage is used up; rows that were solved are kept."""


def within(plan: Plan, seconds: float) -> Plan:
    """Lower the budget of each cell that has one, so that all of them together take so many CPU seconds."""
    budgeted = sum(cell.cpu_budget is not None for cell in plan)
    return tuple(
        cell if cell.cpu_budget is None else replace(cell, cpu_budget=min(cell.cpu_budget, seconds / budgeted))
        for cell in plan
    )


def run(folder: Path, plan: Plan, banks: Banks, seconds: float = np.inf) -> Journal:
    """Add a plan to a run and complete it, or as much of it as so many CPU seconds allow."""
    begun = time.process_time()
    plan = within(plan, seconds)
    if (folder / "plan.json").exists():
        journal = Journal(folder)
        new = {cell.content_hash for cell in plan}
        journal.extend((*(cell for cell in journal.plan if cell.content_hash not in new), *plan))
    else:
        journal = Journal.create(folder, plan)

    def report(state: CellProgress) -> None:
        if time.process_time() - begun > seconds:
            raise UsedUp
        if state.done >= state.wanted:
            print(f"{state.cell.method:<18} {state.cell.bank:<26} {state.done} tasks", flush=True)

    try:
        complete(journal, banks, on_progress=report)
    except UsedUp:
        print(f"{seconds / 60:.3g} CPU minutes are used up; the same command continues", flush=True)
    return journal


# ---------------------------------------------------------------------------------------------------------------------


# What a cell says of how it was run, or of tables.
NOT_KEPT = ("n_tasks", "cpu_budget", "keep", "as_published")


def keep(folders: Sequence[Path]) -> None:
    """Summarise the cells of runs, bank by bank."""
    found: dict[str, Result] = {}
    versions: dict[str, str] = {}
    for folder in folders:
        journal = Journal(folder)
        versions = versions | journal.versions
        for result in results(journal):
            known = found.get(result.cell.content_hash)
            if len(result.tasks) > (0 if known is None else len(known.tasks)) and studied(result.cell):
                found[result.cell.content_hash] = result
    summaries: dict[str, list[dict[str, Any]]] = {}
    for column in columns_of(list(found.values())):
        alone = next((r for r in column.results if r.cell.method == "nearest_prototype"), None)
        for result in column.results:
            entry = {
                **{key: v for key, v in result.cell.to_mapping().items() if key not in NOT_KEPT},
                "hash": result.cell.content_hash,
                "applied": result.transform,
                "n_tasks": len(result.tasks),
                "n_failed": result.n_failed,
                **{metric: _rounded(result.estimate(metric)) for metric in METRICS},
            }
            if alone is not None:
                entry["gain"] = _rounded(paired_difference(result, alone))
            summaries.setdefault(result.cell.bank, []).append(entry)
    KEPT.mkdir(parents=True, exist_ok=True)
    for bank, entries in summaries.items():
        entries.sort(key=lambda e: json.dumps([e["spec"], e["method"], e["transform"], e["options"]], sort_keys=True))
        lines = ",\n  ".join(json.dumps(entry, ensure_ascii=False) for entry in entries)
        about = json.dumps({"bank": bank, "versions": versions, "cells": []}, indent=1)
        (KEPT / f"{bank}.json").write_text(about.replace('"cells": []', f'"cells": [\n  {lines}\n ]') + "\n")


def studied(cell: Cell) -> bool:
    """Whether a cell belongs here: its settings are published ones, PADDLE's scaled ones, or another λ."""
    value = setting(cell.transform, cell.options, **cell.parameters)
    plain = {**value, "options": {key: v for key, v in cell.options.items() if key != "complexity_weight"}}
    return cell.seed == 0 and plain in [setting_ for _, setting_ in settings([cell.method])]


def _rounded(estimate: MeanEstimate) -> list[float]:
    return [float(f"{estimate.mean:.5g}"), float(f"{estimate.half_width:.3g}")]


def main() -> None:
    """Run or keep."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    verbs = parser.add_subparsers(dest="verb", required=True)
    running = verbs.add_parser("run")
    running.add_argument("run", type=Path)
    running.add_argument("banks", nargs="+", type=Path)
    running.add_argument("--stages", nargs="+", choices=STAGES, default=list(STAGES))
    running.add_argument("--tasks", type=int, default=N_TASKS, help="most tasks per cell; a later run may ask for more")
    running.add_argument("--budget-minutes", type=float, default=30.0, help="CPU minutes of a cell of a slow method")
    running.add_argument("--cpu-minutes", type=float, default=np.inf, help="CPU minutes of the whole run")
    keeping = verbs.add_parser("keep")
    keeping.add_argument("runs", nargs="+", type=Path)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    if arguments.verb == "run":
        banks = {path.name: handful.read_bank(path) for path in arguments.banks}
        begun = time.process_time()
        for done, name in enumerate(arguments.stages):
            left = 60 * arguments.cpu_minutes - (time.process_time() - begun)
            share = max(left, 1.0) / (len(arguments.stages) - done)
            run(arguments.run, stage(name, banks, arguments.tasks, 60 * arguments.budget_minutes), banks, share)
    else:
        keep(arguments.runs)


if __name__ == "__main__":
    main()
