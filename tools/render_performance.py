"""Write the table of docs/measured/performance.md from what `perf/labelling.py` measured.

    python tools/render_performance.py

The table is between `<!-- labelling -->` and `<!-- end -->`; the rest of the page is written by hand.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from handful.fewshot.reports.tables import markdown_table

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "measured" / "performance.md"
RESULTS = ROOT / "perf" / "results" / "labelling.json"


def table(rows: list[dict[str, Any]]) -> str:
    """Render what labelling costs per item; fitting has no items."""

    def number(row: dict[str, Any], key: str) -> str:
        return "–" if row.get(key) is None else f"{row[key]:.3g}"

    keys = ("us", "us_aim", "ratio", "ratio_aim")
    return markdown_table(
        ["case", "µs per item", "aim", "times the product", "aim"],
        [[row["case"], *(number(row, key) for key in keys)] for row in rows if "us" in row],
    )


def rendered(page: str) -> str:
    """Return the page with its table as the results are now."""
    text = table(json.loads(RESULTS.read_text()))
    page, n = re.subn(r"(<!-- labelling -->\n).*?(<!-- end -->)", rf"\g<1>{text}\n\g<2>", page, flags=re.DOTALL)
    if n != 1:
        raise SystemExit(f"{PAGE} must have the marks <!-- labelling --> and <!-- end --> once, found {n}")
    return page


if __name__ == "__main__":
    PAGE.write_text(rendered(PAGE.read_text()))
