"""Write the figures of docs/do/scale.md from what `perf/large.py`, `perf/many.py` and `perf/plan.py` wrote.

python tools/render_scale.py
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from handful.fewshot.reports.tables import markdown_table
from render_performance import RESULTS, ROOT, with_parts

PAGE = ROOT / "docs" / "do" / "scale.md"


def streamed(results: list[dict[str, Any]]) -> str:
    """Render streamed batches, the smallest first."""
    rows = [
        [
            *(f"{one[size]:,}" for size in ("k", "q", "d")),
            "equal" if one["even"] else "1/rank",
            *(f"{one[name]['cpu']:,.0f}" for name in ("nearest", "streamed")),
            f"{1e6 * one['streamed']['cpu'] / one['q']:,.0f}",
            f"{one['streamed']['ratio']:.1f}",
            f"{one['streamed']['peak_mb'] / 1000:.1f}",
            *(f"{one[name]['accuracy']:.3f}" for name in ("nearest", "alone", "streamed")),
        ]
        for one in sorted(results, key=lambda one: one["q"])
    ]
    head = [
        "K",
        "items",
        "d",
        "sizes of classes",
        "bare pass, CPU s",
        "whole run, CPU s",
        "µs per item",
        "ratio",
        "GB",
    ]
    return markdown_table([*head, "nearest", "alone", "jointly"], rows)


def groups(results: list[dict[str, Any]]) -> str:
    """Render runs of `label_groups`."""
    rows = []
    for one in sorted(results, key=lambda one: (-one["rows"], one["groups"], one["noise"], one["mixed"])):
        ours, bare = one["ours"], one["bare"]
        rows.append(
            [
                f"{one['rows']:,}",
                f"{one['rows'] // one['groups']}{', mixed' if one['mixed'] else ''}",
                f"{one['noise']:g}",
                f"{bare['cpu_s']:,.0f}",
                f"{ours['cpu_s']:,.0f}",
                f"{1e6 * ours['cpu_s'] / one['rows']:,.0f}",
                f"{one['ratio_cpu_s']:.1f}",
                f"{ours['peak_mb'] / 1000:.1f}",
                f"{bare['accuracy']:.3f}",
                f"{ours['accuracy']:.3f}",
            ]
        )
    head = ["rows", "in groups of", "noise", "bare pass, CPU s", "label_groups, CPU s", "µs per row", "ratio", "GB"]
    return markdown_table([*head, "nearest", "jointly"], rows)


def plan(found: dict[str, Any]) -> str:
    """Render core hours, and hours by the number of cores."""
    cores = list(found["simulated"][0]["wall_hours"])
    rows = [
        [
            f"{one['use']}; {one['how']}",
            f"{one['core_hours']:,.0f}",
            *(f"{one['wall_hours'][number]:,.2g}" for number in cores),
        ]
        for one in found["simulated"]
    ]
    return markdown_table(["", "core hours", *(f"hours on {int(number):,} cores" for number in cores)], rows)


def rendered(page: str) -> str:
    """Return the page with its figures as the results are now."""

    def result(file: Path) -> dict[str, Any]:
        return dict(json.loads(file.read_text(encoding="utf-8")))

    large = [result(file) for file in sorted((RESULTS / "large").glob("*.json"))]
    many = [result(file) for file in sorted((RESULTS / "many").glob("*.json"))]
    by = sorted({f"handful {one['version']} (commit {one['commit']})" for one in (*large, *many)})
    parts = {
        "streamed": streamed(large),
        "groups": groups([one for one in many if "bare" in one]),
        "plan": plan(result(RESULTS / "plan.json")),
        "version": f"Measured with {', '.join(by)}.",
    }
    return with_parts(page, parts)


if __name__ == "__main__":
    PAGE.write_text(rendered(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
