"""Calibrated PADDLE against the field: every method, at its published settings and tuned, on the same tasks.

    python studies/field.py RUN BANK [BANK ...] [--stages tune-quick quick tune-slow slow] [--budget-minutes 30]
    python studies/field.py --render

All classes in the support, 5 and 10 shots (omniglot659: 5), 75 queries of 5 classes. RUN is a folder for two runs of
the benchmark, RUN/tuning and RUN/test; both continue where they were stopped.

- **Published** is the method's defaults after the transform it names (unit length in place of `cl2n`, which needs base
  classes that these banks do not have).
- **Tuned** is the value of a grid with the highest mean accuracy over the three tuning banks, at 5 shots and the K and
  K_eff to be tested: other tasks (seed 1), the same classes. The grids are those that PADDLE's authors swept for their
  competitors; PADDLE, soft K-means and EM for the prior get the length of unit vectors as well, which matters most to
  them.
- Quick methods solve 500 tasks per cell; slow ones 30, or as many as the budget of CPU minutes per cell allows.

Differences are paired: calibrated PADDLE minus the method on the tasks both have. Results are saved in
`studies/results/field.json`; `--render` writes `docs/field_results.md` from it.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import torch

import handful
from handful.benchmark.completion import CellProgress, complete
from handful.benchmark.journal import Journal
from handful.benchmark.plan import Banks, Cell, Plan, bound_plan
from handful.benchmark.tuning import GRIDS
from handful.reports.summary import Result, columns_of, paired_difference, results
from handful.transforms import parameters_of

ROOT = Path(__file__).resolve().parents[1]
RESULTS, PAGE = ROOT / "studies" / "results" / "field.json", ROOT / "docs" / "field_results.md"
TUNING_BANKS = ("clinc150-minilm", "cub200-efflite0", "omniglot659-conv4")
OURS = "calibrated_paddle"
QUICK = (OURS, "nearest_prototype", "prior_em", "paddle", "soft_kmeans", "laplacian_shot", "bd_cspn")
SLOW = ("pt_map", "paddle_gd", "baseline", "baseline_pp", "tim_adm", "ici", "alpha_tim", "tim")
STAGES = ("tune-quick", "quick", "tune-slow", "slow")
TEST_TASKS, TUNING_TASKS, SLOW_TASKS, SLOW_TUNING_TASKS = 500, 50, 30, 4

Setting = Mapping[str, Any]  # transform, parameters, options


def setting(transform: str, options: Mapping[str, Any], **parameters: Any) -> Setting:
    """Transform, its parameters, and options of the method."""
    return {"transform": transform, "parameters": parameters, "options": dict(options)}


def published(method: str) -> Setting:
    """Defaults after the method's own transform."""
    name = handful.METHODS[method].transform
    return setting("l2" if "base_mean" in parameters_of(name) else name, {})


def grid(method: str) -> list[Setting]:
    """Values to choose from; none for a method that has nothing to tune."""
    if method == "paddle":
        weights: tuple[dict[str, float], ...] = ({}, {"complexity_weight": 112.5})
        return [setting("l2_times", w, factor=f) for f, w in product((3.5, 4.0, 4.5, 5.0, 5.5, 6.0, 7.0), weights)]
    if method in ("prior_em", "soft_kmeans"):
        return [setting("l2_times", {}, factor=f) for f in (3.5, 4.0, 4.5, 5.0, 6.0, 7.0, 9.0, 12.0)]
    if method == "paddle_gd":
        return [setting("l2_times", {}, factor=f) for f in (4.0, 5.0, 6.0)]
    if method in ("baseline", "baseline_pp"):
        return [setting("l2", {"head": "prototypes", "temperature": t}) for t in (5.0, 15.0, 45.0)]
    if method == "tim_adm":
        return [setting("l2", {"marginal_weight": w}) for w in (0.0, 0.01, 0.03, 0.1, 0.3)]
    return [setting(published(method)["transform"], options) for options in GRIDS.get(method, ())]


def tuned_on(journal: Journal) -> dict[str, list[int]]:
    """Tasks of each tuning bank that all values of a method's grid have."""
    fewest: dict[tuple[str, str], int] = {}
    for r in results(journal):
        key = (r.cell.method, r.cell.bank)
        fewest[key] = min(len(r.tasks), fewest.get(key, len(r.tasks)))
    return {method: [fewest[method, bank] for bank in TUNING_BANKS] for method, _ in fewest}


def spec(shots: int) -> handful.TaskSpec:
    """Few of all classes in the query."""
    return handful.TaskSpec(handful.ShotsPerClass(shots), handful.UniformOverPool(5), n_query=75)


def tuning_plan(banks: Banks, methods: Iterable[str], n_tasks: int, budget: float | None) -> Plan:
    """Every value of every grid on the tuning banks."""
    return bound_plan(
        (
            Cell(bank, spec(5), method, seed=1, n_tasks=n_tasks, cpu_budget=budget, **value)
            for method in methods
            for value in grid(method)
            for bank in TUNING_BANKS
        ),
        banks,
    )


def best(journal: Journal) -> dict[str, Setting]:
    """Return the value of each grid with the highest mean over banks, on the tasks that all values of it have."""
    groups: dict[str, dict[str, list[Result]]] = {}
    for result in results(journal):
        key = json.dumps([result.cell.transform, dict(result.cell.parameters), dict(result.cell.options)])
        groups.setdefault(result.cell.method, {}).setdefault(key, []).append(result)
    chosen = {}
    for method, values in groups.items():
        shared: dict[str, np.ndarray] = {}
        for result in (r for members in values.values() for r in members):
            bank = result.cell.bank
            shared[bank] = np.intersect1d(shared.get(bank, result.tasks), result.tasks)

        def mean(members: Sequence[Result], shared: dict[str, np.ndarray] = shared) -> float:
            parts = [r.columns["accuracy"][np.isin(r.tasks, shared[r.cell.bank])] for r in members]
            return float(np.mean([part.mean() for part in parts if len(part)]))

        transform, parameters, options = json.loads(max(values, key=lambda key: mean(values[key])))
        chosen[method] = setting(transform, options, **parameters)
    return chosen


def test_plan(
    banks: Banks, methods: Iterable[str], tuned: Mapping[str, Setting], n_tasks: int, budget: float | None
) -> Plan:
    """Both settings of every method on every bank; one where tuning chose what was published."""
    cells = []
    for method, bank in product(methods, banks):
        settings = [published(method), *([tuned[method]] if method in tuned else [])]
        for shots in (5,) if bank.startswith("omniglot") else (5, 10):
            kept = [value for i, value in enumerate(settings) if value not in settings[:i]]
            cells += [Cell(bank, spec(shots), method, n_tasks=n_tasks, cpu_budget=budget, **v) for v in kept]
    return bound_plan(cells, banks)


def run(folder: Path, plan: Plan, banks: Banks) -> Journal:
    """Add a plan to a run and complete it."""
    if (folder / "plan.json").exists():
        journal = Journal(folder)
        new = {cell.content_hash for cell in plan}
        journal.extend((*(cell for cell in journal.plan if cell.content_hash not in new), *plan))
    else:
        journal = Journal.create(folder, plan)

    def report(state: CellProgress) -> None:
        if state.done >= state.wanted:
            print(f"{state.cell.method:<18} {state.cell.bank:<26} {state.done} tasks", flush=True)

    complete(journal, banks, on_progress=report)
    return journal


def stage(name: str, folder: Path, banks: Banks, budget_minutes: float) -> None:
    """Run one stage."""
    quick = name.endswith("quick")
    methods, budget = (QUICK, None) if quick else (SLOW, 60 * budget_minutes)
    if name.startswith("tune"):
        sizes = (TUNING_TASKS, None) if quick else (SLOW_TUNING_TASKS, 60 * budget_minutes / 10)
        run(folder / "tuning", tuning_plan(banks, methods, *sizes), banks)
    else:
        tuned = best(Journal(folder / "tuning"))
        test = test_plan(banks, methods, tuned, TEST_TASKS if quick else SLOW_TASKS, budget)
        store(run(folder / "test", test, banks), tuned, tuned_on(Journal(folder / "tuning")))


def store(journal: Journal, tuned: Mapping[str, Setting], tuning_tasks: Mapping[str, list[int]]) -> None:
    """Keep the means, intervals and paired differences of all cells."""
    cells = []
    for column in columns_of(results(journal)):
        ours = next(r for r in column.results if r.cell.method == OURS)
        for r in (r for r in column.results if len(r.tasks)):
            mine, ahead = r.estimate("accuracy"), paired_difference(ours, r)
            value = {"transform": r.cell.transform, "parameters": r.cell.parameters, "options": r.cell.options}
            cells.append(
                {
                    "bank": r.cell.bank,
                    "shots": r.cell.to_mapping()["spec"]["support"]["shots"],
                    "method": r.cell.method,
                    "settings": "published" if value == published(r.cell.method) else "tuned",
                    **{key: dict(v) if isinstance(v, Mapping) else v for key, v in value.items()},
                    "n_tasks": mine.n,
                    "accuracy": 100 * mine.mean,
                    "half_width": 100 * mine.half_width,
                    "ahead": 100 * ahead.mean,
                    "ahead_half_width": 100 * ahead.half_width,
                    "cell": r.cell.content_hash,
                }
            )
    about = {"versions": journal.versions, "tuned": tuned, "tuned_on": tuning_tasks, "cells": cells}
    RESULTS.write_text(json.dumps(about, indent=1, ensure_ascii=False) + "\n")


# ---------------------------------------------------------------------------------------------------------------------


def render() -> None:
    """Write the page."""
    about = json.loads(RESULTS.read_text())
    cells = about["cells"]
    tested = {c["method"] for c in cells}
    lines = [
        "# Against the field",
        "",
        "How does `calibrated_paddle` compare with every other method, as published and with tuned options? All",
        "classes of a bank are in the support, and the 75 queries of a task are of 5 classes. Accuracy is in percent.",
        "In brackets: by how much calibrated PADDLE is ahead on the same tasks, with a 95 % interval, and the number",
        "of tasks if it is not 500. Slow methods have as many tasks as a budget of CPU time allowed.",
        "`python studies/field.py RUN BANK …` measures, and `python studies/field.py --render` writes this page.",
        "Methods for names instead of examples: [names, under the protocol of StatA](stata_protocol_results.md).",
        "",
        "Tuned settings, chosen on clinc150, cub200 and omniglot659, and the number of tasks of each:",
        "",
        *(
            f"- {method}: {_said(value)}; {', '.join(map(str, about['tuned_on'][method]))}"
            for method, value in about["tuned"].items()
            if method in tested
        ),
        "",
    ]
    for title, wanted in (("Banks to tune on", True), ("Banks to confirm on", False)):
        columns = sorted({(c["bank"], c["shots"]) for c in cells if (c["bank"] in TUNING_BANKS) == wanted})
        rows = list(dict.fromkeys((c["method"], c["settings"]) for c in cells))
        heads = " | ".join(f"{bank}, {shots} shots" for bank, shots in columns)
        lines += [f"## {title}", "", f"| method | settings | {heads} |", "|---|---|" + "---|" * len(columns)]
        for method, settings in rows:
            found = {(c["bank"], c["shots"]): c for c in cells if (c["method"], c["settings"]) == (method, settings)}
            entries = [_entry(found.get(column)) for column in columns]
            lines.append(f"| {method} | {settings if method != OURS else ''} | {' | '.join(entries)} |")
        lines.append("")
    lines += [
        "## Where another method is not behind",
        "",
        "Calibrated PADDLE minus that method, in points:",
        "",
        *behind(cells),
    ]
    PAGE.write_text("\n".join(lines).rstrip() + "\n")


def behind(cells: Sequence[Mapping[str, Any]]) -> list[str]:
    """Cells whose paired interval is not entirely above zero."""
    found = [c for c in cells if c["method"] != OURS and c["ahead"] - c["ahead_half_width"] <= 0]
    return [
        f"- {c['method']}, {c['settings']}, on {c['bank']} at {c['shots']} shots: "
        f"{c['ahead']:+.1f} ± {c['ahead_half_width']:.1f} ({c['n_tasks']} tasks)"
        for c in found
    ] or ["Nowhere."]


def _entry(c: Mapping[str, Any] | None) -> str:
    if c is None:
        return "–"
    if c["method"] == OURS:
        return f"**{c['accuracy']:.1f}** ± {c['half_width']:.1f}"
    count = f"; {c['n_tasks']}" if c["n_tasks"] != TEST_TASKS else ""
    return f"{c['accuracy']:.1f} ({c['ahead']:+.1f} ± {c['ahead_half_width']:.1f}{count})"


def _said(value: Mapping[str, Any]) -> str:
    details = {**value["parameters"], **value["options"]}
    return ", ".join([f"`{value['transform']}`", *(f"`{name}={v!r}`" for name, v in details.items())])


def main() -> None:
    """Run stages, or render."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", nargs="?", type=Path)
    parser.add_argument("banks", nargs="*", type=Path)
    parser.add_argument("--stages", nargs="+", choices=STAGES, default=list(STAGES))
    parser.add_argument("--budget-minutes", type=float, default=30.0)
    parser.add_argument("--render", action="store_true")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    if arguments.run is not None:
        banks = {path.name: handful.read_bank(path) for path in arguments.banks}
        if missing := [name for name in TUNING_BANKS if name not in banks]:
            sys.exit(f"the tuning banks must be among the banks; missing: {', '.join(missing)}")
        for name in arguments.stages:
            stage(name, arguments.run, banks, arguments.budget_minutes)
    if RESULTS.exists():
        render()


if __name__ == "__main__":
    main()
