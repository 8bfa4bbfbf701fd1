"""Write the figures of docs/do/many_and_large.md from what `perf/large.py`, `perf/many.py` and `perf/plan.py` wrote.

python tools/render_scale.py
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from handful_fewshot.reports.tables import markdown_table
from render_performance import RESULTS, ROOT, not_again, with_parts

PAGE = ROOT / "docs" / "do" / "many_and_large.md"


def streamed(results: list[dict[str, Any]]) -> str:
    """Render streamed batches."""
    rows = []
    for one in sorted(results, key=lambda one: one["k"]):
        ours, right = one["streamed"], [f"{one[name]['accuracy']:.3f}" for name in ("nearest", "alone", "streamed")]
        cost = [f"{ours['cpu']:.0f}", f"{ours['ratio']:.1f}", f"{ours['peak_mb'] / 1000:.2f}"]
        rows.append([f"{one['k']:,}", f"{one['q']:,}", *cost, *right])
    return markdown_table(["K", "items", "CPU s", "ratio", "GB", "nearest", "alone", "jointly"], rows)


def groups(results: list[dict[str, Any]]) -> str:
    """Render runs of `label_groups`."""
    rows = []
    for one in sorted(results, key=lambda one: (-one["rows"], one["groups"])):
        ours = one["ours"]
        size = f"{one['rows'] // one['groups']}{', mixed' if one['mixed'] else ''}"
        size += f", noise {one['noise']:g}" if one["noise"] != 1 else ""
        cost = [f"{ours['cpu_s']:.0f}", f"{1e6 * sum(ours['portions_s']) / one['rows']:.0f}"]
        found = [*cost, f"{one['ratio_cpu_s']:.1f}", f"{ours['peak_mb'] / 1000:.2f}"]
        rows.append([f"{one['rows']:,}", size, *found])
    return markdown_table(["rows", "group", "CPU s", "µs", "ratio", "GB"], rows)


def plan(found: dict[str, Any]) -> str:
    """Render core hours, and hours by the number of cores."""
    cores, rows = list(found["simulated"][0]["wall_hours"]), []
    for one in found["simulated"]:
        hours = [f"{one['wall_hours'][number]:.2g}" for number in cores]
        rows.append([f"{one['use']}; {one['how']}", f"{one['core_hours']:,.0f}", *hours])
    return markdown_table(["", "core hours", *(f"{int(number):,} cores" for number in cores)], rows)


def rendered(page: str) -> str:
    """Return the page with its figures as the results are now."""

    def result(file: Path) -> dict[str, Any]:
        return dict(json.loads(file.read_text(encoding="utf-8")))

    large = [result(file) for file in sorted((RESULTS / "large").glob("*.json"))]
    many = [result(file) for file in sorted((RESULTS / "many").glob("*.json"))]
    by = sorted({f"{one['version']} (commit {one['commit']})" for one in (*large, *many)})
    parts = {
        "streamed": streamed(large),
        "groups": groups([one for one in many if "bare" in one]),
        "plan": plan(result(RESULTS / "plan.json")),
        "version": " ".join([f"Measured with handful {' and '.join(by)}.", *not_again("large_runs")]),
    }
    return with_parts(page, {name: text.replace(" --- |", "---|") for name, text in parts.items()})


if __name__ == "__main__":
    PAGE.write_text(rendered(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
