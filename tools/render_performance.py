"""Write the figures of docs/measured/performance.md from what scripts of `perf` measured.

    python tools/render_performance.py

Each part is between `<!-- its name -->` and `<!-- end -->`; the rest of the page is written by hand.
"""

from __future__ import annotations

import json
import re
import sys
import textwrap
from pathlib import Path
from typing import Any

from handful_fewshot.reports.tables import markdown_table

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "measured" / "performance.md"
RESULTS = ROOT / "perf" / "results"
sys.path.insert(0, str(ROOT / "studies"))

from pages import measured_with, not_again  # noqa: E402

__all__ = ["RESULTS", "ROOT", "not_again", "with_parts"]


def table(rows: list[dict[str, Any]]) -> str:
    """Render what labelling costs per item; fitting has no items."""

    def number(row: dict[str, Any], key: str) -> str:
        return "–" if row.get(key) is None else f"{row[key]:.3g}"

    keys = ("us", "us_aim", "ratio", "ratio_aim")
    return markdown_table(
        ["case", "µs per item", "aim", "times the product", "aim"],
        [[row["case"], *(number(row, key) for key in keys)] for row in rows if "us" in row],
    )


def answers(rows: list[dict[str, Any]]) -> str:
    """Render what an answer in a session costs."""
    return markdown_table(
        ["items", "answers", "s", "aim", "times a product"],
        [
            [
                f"{row['items']:,}",
                "with a new class" if row["new"] else "classes of the catalogue",
                f"{row['s']:.2g}",
                "–" if row["aim"] is None else f"{row['aim']:.2g}",
                f"{row['ratio']:.2g}",
            ]
            for row in rows
        ],
    )


def catalogue_file(found: dict[str, dict[str, Any]]) -> str:
    """Say what a catalogue in a file saves, in CPU seconds of whole commands."""
    examples, file = (
        {name: round(found[name][kind]) for name in found if name != "add"} for kind in ("examples", "file")
    )
    same = all(found[name]["same"] == found[name]["items"] for name in examples)
    add, n = found["add"], found["photographs"]["items"]
    return textwrap.fill(
        "**A catalogue in a file** saves embedding and fitting. Labelling nine sentences with 150 intents takes "
        f"{examples['sentences']} CPU seconds with the table and {file['sentences']} with the "
        "[file](../do/catalogue.md); most of these load packages and the encoder. "
        f"With {n} photographs and 24 classes of five it is {examples['photographs']} and {file['photographs']}: "
        "embedding the batch takes most of it. With 300 spectra and a library of 1,152 compounds, the table "
        f"takes {examples['compounds']} and the file {file['compounds']}. "
        f"{'All labels are the same.' if same else 'Some labels differ.'} Adding 100 examples to 1,000 classes of five "
        f"takes {add['update']:.2g} s, and a fit of all {add['fit']:.2g} s; of {add['items']:,} items, {add['same']:,} "
        f"get the same label, {add['right'][0]:,} and {add['right'][1]:,} of them right.",
        width=140,
        break_long_words=False,
        break_on_hyphens=False,
    )


def rendered(page: str) -> str:
    """Return the page with its figures as the results are now."""

    def result(name: str) -> Any:
        return json.loads((RESULTS / f"{name}.json").read_text())

    parts = {
        "labelling": table(result("labelling")),
        "answers": answers(result("answers")),
        "catalogue": catalogue_file(result("catalogue_file")),
        "version": measured_with("performance"),
    }
    return with_parts(page, parts)


def with_parts(page: str, parts: dict[str, str]) -> str:
    """Return a page with the text of each part between its marks."""
    for name, text in parts.items():
        between = rf"(<!-- {name} -->\n).*?(<!-- end -->)"
        page, n = re.subn(between, rf"\g<1>{text}\n\g<2>", page, flags=re.DOTALL)
        if n != 1:
            raise SystemExit(f"the page must have the marks <!-- {name} --> and <!-- end --> once, found {n}")
    return page


if __name__ == "__main__":
    PAGE.write_text(rendered(PAGE.read_text()))
