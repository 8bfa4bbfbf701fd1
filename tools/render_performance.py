"""Write the table of docs/measured/performance.md from what `perf/one_catalogue.py` measured.

    python tools/render_performance.py

The table is between `<!-- one catalogue -->` and `<!-- end -->`; the rest of the page is written by hand.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from handful.fewshot.reports.tables import markdown_table

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "measured" / "performance.md"
Row = dict[str, Any]


def one_catalogue(results: Row) -> str:
    """Render what many batches against one catalogue cost."""
    titles = ["catalogue", "K", "bare ms", "stacked, ratio", "aim", "one batch ms", "its ratio", "aim"]
    rows = ((name, row) for name, row in results.items() if name != "growing")
    return markdown_table(
        titles,
        (
            (
                name.partition(" = ")[0].replace("K", "synthetic"),
                f"{row['n_classes']:,}",
                f"{row['bare_ms']:.2f}",
                f"{row['stacked_ratio']:.2f}",
                row.get("aims", ["–"])[0],
                f"{row['single_ms']:.1f}",
                f"{row['single_ratio']:.1f}",
                row.get("aims", ["–", None])[1] or "–",
            )
            for name, row in rows
        ),
    )


RESULTS = ROOT / "perf" / "results" / "one_catalogue.json"


def rendered(page: str) -> str:
    """Return the page with its table as the results are now."""
    text = one_catalogue(json.loads(RESULTS.read_text()))
    page, n = re.subn(r"(<!-- one catalogue -->\n).*?(<!-- end -->)", rf"\g<1>{text}\n\g<2>", page, flags=re.DOTALL)
    if n != 1:
        raise SystemExit(f"{PAGE} must have the marks <!-- one catalogue --> and <!-- end --> once, found {n}")
    return page


def main() -> None:
    """Write the page."""
    PAGE.write_text(rendered(PAGE.read_text()))


if __name__ == "__main__":
    main()
