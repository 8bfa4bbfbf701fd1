"""Write the figures of docs/do/many_batches.md from what `perf/run.py` wrote.

python tools/render_scale.py
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from handful_fewshot.reports.tables import markdown_table
from render_performance import RESULTS, ROOT, not_again, with_parts

PAGE = ROOT / "docs" / "do" / "many_batches.md"
# Seconds of an hour, and workers of a node.
HOUR, NODE = 3600, 16
MILLION = 1_000_000


def costs(found: Mapping[str, Any]) -> str:
    """Render CPU time beside a bare pass, and memory, of the cases that were measured."""
    rows = []
    for name, what in (("folders", "Hive folders, `run`"), ("scattered", "random order, `run`")):
        if of := found.get(name):
            rows.append([what, *_of(of["run"]), f"{of['ratio']:.1f}", _memory(of["run"])])
    if of := found.get("duckdb"):
        rows.append(["random order, DuckDB", *_of(of["recipe"]), f"{of['ratio']:.1f}", _memory(of["recipe"])])
    if of := found.get("ray"):
        for name, what in (("run", "Hive folders, `run` on Ray"), ("recipe", "Hive folders, Ray Data")):
            seconds = of[name]["on_ray_cpu_s"]
            rows.append([what, *_of({"cpu_s": seconds}), f"{seconds / of['bare']['on_ray_cpu_s']:.1f}", ""])
    for name, what in (
        ("giant", "one group of a million, 20,000 of five, `run`"),
        ("rows", "ten million rows, `run`, two processes"),
    ):
        if of := found.get(name):
            rows.append([what, *_of(of), "", _memory(of)])
    for name, of in found.get("small", {}).items():
        if name.startswith("groups"):
            what = f"{name.replace('_', ' ')}, `label_table`"
            rows.append([what, "", f"{of['label_table_us']:.0f}", f"{of['ratio']:.1f}", ""])
    for name, of in found.get("classes", {}).items():
        if name.isdecimal():
            group = of["group_cpu_s"]
            what = f"a group of 100 of {int(name):,} classes, `label_table`"
            rows.append([what, f"{group:.2g}", f"{1e4 * group:,.0f}", "", _memory(of)])
    return markdown_table(["", "CPU s", "µs per row", "ratio", "GB"], rows)


def _of(one: Mapping[str, Any]) -> list[str]:
    """Return CPU seconds, and microseconds of a row; of a million rows, unless it says how many."""
    return [f"{one['cpu_s']:.0f}", f"{1e6 * one['cpu_s'] / one.get('rows', MILLION):.0f}"]


def _memory(one: Mapping[str, Any]) -> str:
    return f"{one['peak_gb']:.2f}"


def near(found: Mapping[str, Any]) -> str:
    """Say how many labels are right among the near classes, and among all where that was measured."""
    said = []
    for name, of in found.get("classes", {}).items():
        if name.isdecimal():
            among_all = f" ({100 * of['accuracy_among_all']:.1f}% among all)" if "accuracy_among_all" in of else ""
            said.append(f"of {int(name):,} classes {100 * of['accuracy']:.1f}%{among_all}")
    return f"Labels that are right in these groups of many classes: {', '.join(said)}." if said else ""


def more(found: Mapping[str, Any]) -> str:
    """Render what more rows would take."""
    of = found.get("rows") or found["folders"]["run"]
    each = of["cpu_s"] / of["rows"]
    rows = []
    for name, number in (("10⁹", 1e9), ("10¹¹", 1e11)):
        hours = each * number / HOUR
        rows.append([name, f"{hours:,.0f}", f"{hours / NODE:,.1f}", f"{hours / (64 * NODE):,.2f}"])
    return markdown_table(["rows", "core hours", "hours on a node of 16 cores", "hours on 64 nodes"], rows)


def rendered(page: str) -> str:
    """Return the page with its figures as the results are now."""
    found = {file.stem: json.loads(file.read_text(encoding="utf-8")) for file in (RESULTS / "run").glob("*.json")}
    versions, commits = ({one[what] for one in found.values()} for what in ("version", "commit"))
    by = f"handful {', '.join(sorted(versions))} (commits {', '.join(sorted(commits))})"
    parts = {
        "costs": costs(found),
        "near": near(found),
        "more": more(found),
        "version": " ".join([f"Measured with {by}.", *not_again("large_runs")]),
    }
    return with_parts(page, {name: text.replace(" --- |", "---|") for name, text in parts.items()})


if __name__ == "__main__":
    PAGE.write_text(rendered(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
