"""Write the tables of docs/performance.md from the JSON files that perf/ and studies/ wrote.

    python tools/render_performance.py

A table is between `<!-- name -->` and `<!-- end -->`; the rest of the page is written by hand.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from handful.fewshot.reports.tables import markdown_table

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "performance.md"
Row = dict[str, Any]


def price(results: Row) -> str:
    """Render the ratios to the bare pass."""
    titles = ["bank", "K", "shots", "d", "threads", "bare ms", "`paddle` ms", "ratio", "aim"]
    titles += ["public code's arithmetic over ours"]
    columns = ["name", "classes", "shots", "dim", "threads", "bare_ms", "paddle_ms", "paddle_ratio", "aim"]
    columns += ["public_ratio"]
    return markdown_table(titles, ([row.get(column, "–") for column in columns] for row in results["rows"]))


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


def growing(results: Row) -> str:
    """Render what changing and saving a large catalogue costs, in milliseconds by the clock."""
    names = {
        "add_ms": "add a class of five examples",
        "join_ms": "first use of the means after that",
        "head_ms": "first use of the head after that",
        "save_ms": "save",
        "write_bytes_ms": "write the same number of bytes",
        "load_ms": "load",
        "read_bytes_ms": "read the same number of bytes",
    }
    return markdown_table(
        ("what", "ms"),
        ((said, f"{results['growing'][name]:.0f}") for name, said in names.items() if name in results["growing"]),
    )


SECTIONS: dict[str, tuple[Path, Callable[[Row], str]]] = {
    "price": (ROOT / "perf" / "results" / "price_of_induction.json", price),
    "one catalogue": (ROOT / "perf" / "results" / "one_catalogue.json", one_catalogue),
    "growing": (ROOT / "perf" / "results" / "one_catalogue.json", growing),
}


def rendered(page: str) -> str:
    """Return the page with every table whose results are there written again."""
    for name, (path, render) in SECTIONS.items():
        if path.exists():
            text = render(json.loads(path.read_text()))
            page, n = re.subn(rf"(<!-- {name} -->\n).*?(<!-- end -->)", rf"\g<1>{text}\n\g<2>", page, flags=re.DOTALL)
            if n != 1:
                raise SystemExit(f"{PAGE} must have the marks <!-- {name} --> and <!-- end --> once, found {n}")
    return page


def main() -> None:
    """Write the page."""
    PAGE.write_text(rendered(PAGE.read_text()))


if __name__ == "__main__":
    main()
