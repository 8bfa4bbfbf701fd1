"""A measured page: one figure, one table of means, what they show, and every row behind them as CSV beside the page.

`docs/measured/NAME.md` opens with the question and ends with the commands that make it again. `NAME.csv` has the rows,
`NAME_PART.csv` further ones. A test renders all of it again and compares.
"""

from __future__ import annotations

import argparse
import csv
import io
import json
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
import torch
from matplotlib.figure import Figure

from handful.arguments import counted
from handful_fewshot.reports.plots import COLOURS, MARKS, as_svg

MEASURED = Path(__file__).resolve().parents[1] / "docs" / "measured"
VERSIONS = Path(__file__).resolve().parent / "results" / "measured.json"
SAME_ANSWERS = VERSIONS.parent / "same_answers.json"
NOT_YET = "Not measured yet."
DIGITS = 4  # of a number in a CSV file
Row = Mapping[str, Any]


@dataclass(frozen=True)
class Page:
    """A page and its files.

    Attributes
    ----------
    name, title, question
        Its file, its heading and its first paragraph.
    alt, figure
        What the figure shows, in words, and a function that draws it.
    table, shows, limits
        Means; what they show; and how far that goes.
    made, commands
        How data were drawn, and what makes the page again.
    rows, more
        What the CSV file has, and further files by name.
    """

    name: str
    title: str
    question: str
    alt: str
    figure: Callable[[], Any]
    table: str
    shows: str
    limits: str
    made: str
    commands: Sequence[str]
    rows: Sequence[Row]
    more: Mapping[str, Sequence[Row]] = field(default_factory=dict)

    def text(self) -> str:
        """Return the page."""
        links = [f"[{file}]({file})" for file in self.tables()]
        parts = [
            f"# {self.title}",
            self.question,
            f"![{self.alt}]({self.name}.svg)",
            self.table,
            f"**What it shows.** {self.shows}",
            f"**Limits.** {self.limits}",
            f"All rows: {', '.join(links)}.",
            "## How it was made",
            f"{self.made} {measured_with(self.name)}",
            "\n".join(["```", *self.commands, "```"]),
        ]
        return "\n\n".join(parts) + "\n"

    def tables(self) -> dict[str, str]:
        """Return the CSV files by name."""
        files = {self.name: self.rows, **{f"{self.name}_{part}": rows for part, rows in self.more.items()}}
        return {f"{name}.csv": as_csv(rows) for name, rows in files.items()}

    def write(self, folder: Path = MEASURED) -> None:
        """Write the page, its figure and its CSV files."""
        for name, content in {f"{self.name}.md": self.text(), **self.tables()}.items():
            (folder / name).write_text(content, encoding="utf-8")
        svg = "\n".join(line.rstrip() for line in as_svg(self.figure(), self.name).splitlines())
        (folder / f"{self.name}.svg").write_text(f"{svg}\n", encoding="utf-8")
        print(folder / f"{self.name}.md")

    def behind(self, folder: Path = MEASURED) -> list[str]:
        """Return the files that are not what the results say; pictures differ between versions of matplotlib."""
        wanted = {f"{self.name}.md": self.text(), **self.tables()}
        return [
            name
            for name, content in wanted.items()
            if not (folder / name).is_file() or (folder / name).read_text(encoding="utf-8") != content
        ]


def measured_with(name: str, file: Path = VERSIONS) -> str:
    """Say which version measured the figures of a page, as `tools/measure.py` keeps it."""
    known = json.loads(file.read_text(encoding="utf-8")).get(name, {}) if file.is_file() else {}
    if known.get("state") != "whole":
        return "Measured with an earlier version."
    minutes = counted(max(round(known["cpu_minutes"]), 1), "CPU minute")
    return " ".join([f"Measured with handful {known['version']}, in {minutes}.", *not_again(name, file)])


def not_again(name: str, file: Path = VERSIONS) -> list[str]:
    """Say, in a sentence if at all, why figures of an earlier version are those of a later one too."""
    known = json.loads(file.read_text(encoding="utf-8")).get(name, {}) if file.is_file() else {}
    if "stands" not in known:
        return []
    with_version, reason = known["stands"]["with"], known["stands"]["reason"]
    return [f"Not measured again with {with_version}: {reason}."]


def keep(file: Path, found: Any, levels: int = 2) -> None:
    """Save what was measured as JSON; entries of this many levels have a line of their own."""

    def text(value: Any, left: int) -> str:
        if not (left and value and isinstance(value, Mapping | list)):
            return json.dumps(value, ensure_ascii=False)
        if isinstance(value, list):
            return "[\n" + ",\n".join(text(one, left - 1) for one in value) + "\n]"
        entries = (f"{json.dumps(key, ensure_ascii=False)}: {text(one, left - 1)}" for key, one in value.items())
        return "{\n" + ",\n".join(entries) + "\n}"

    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(f"{text(found, levels)}\n", encoding="utf-8")


def file_of(folder: Path, name: str) -> Path:
    """Return the file in which a folder keeps what was measured under a name."""
    return folder / f"{name.replace(', ', '_').replace(' ', '_')}.json"


def kept(folder: Path, names: Iterable[str]) -> dict[str, Any]:
    """Read what a folder keeps, by name; what was not measured yet is left out."""
    files = {name: file_of(folder, name) for name in names}
    return {name: json.loads(file.read_text(encoding="utf-8")) for name, file in files.items() if file.is_file()}


# Cells of a bank: a part of its file, the entries by which a row is known, and a function that measures the row.
Cells = Iterable[tuple[str, Row, Callable[[], Row]]]


def measure_groups(
    about: str | None,
    groups: Mapping[str, Sequence[str]],
    results: Path,
    cells: Callable[[Path], Cells],
    page: Callable[[], Page],
) -> None:
    """Run a study of groups of banks from the command line: measure cells that are not kept, or write the page."""
    parser = argparse.ArgumentParser(description=about, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path, nargs="?", help="folder that holds the data")
    parser.add_argument("--group", choices=list(groups), default=next(iter(groups)))
    parser.add_argument("--banks", nargs="+", help="some of the group's banks")
    parser.add_argument("--parts", nargs="+", help="some parts of the study")
    parser.add_argument("--again", action="store_true", help="measure again what is there")
    parser.add_argument("--render", action="store_true", help="write the page from what was kept")
    given = parser.parse_args()
    if given.render:
        page().write()
        return
    torch.set_num_threads(1)
    for name in given.banks or groups[given.group]:
        folder = results / given.group
        found: dict[str, list[Row]] = {} if given.again else kept(folder, [name]).get(name, {})
        with warnings.catch_warnings(action="ignore"):
            for part, key, measure in cells(given.data / name):
                rows = found.setdefault(part, [])
                wanted = given.parts is None or part in given.parts
                if wanted and not any(key.items() <= row.items() for row in rows):
                    rows.append({**key, **measure()})
                    keep(file_of(folder, name), found)
                    print(name, part, json.dumps(rows[-1]), flush=True)


def measure_or_render(
    about: str | None, kinds: Iterable[str], measure: Callable[[Path, str, int], None], page: Callable[[], Page]
) -> None:
    """Run a study from the command line: measure each kind with this many batches and keep it; then write the page."""
    parser = argparse.ArgumentParser(description=about, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", nargs="?", type=Path, help="folder that has the data")
    parser.add_argument("--batches", type=int, default=100, help="batches of each kind and condition")
    parser.add_argument("--only", nargs="+", choices=list(kinds), default=list(kinds))
    parser.add_argument("--render", action="store_true", help="write the page from what is kept")
    options = parser.parse_args()
    if options.data is None and not options.render:
        parser.error("name the data, or --render")
    torch.set_num_threads(1)
    for kind in options.only if options.data is not None else ():
        measure(options.data, kind, options.batches)
    page().write()


def as_csv(rows: Iterable[Row]) -> str:
    """Return rows as CSV, nested values as columns of their own; `x_half_width` is half of the 95% interval of `x`."""
    flat = [dict(_flat(row)) for row in rows]
    out = io.StringIO()
    titles = list(dict.fromkeys(title for row in flat for title in row))
    writer = csv.DictWriter(out, titles, restval="", lineterminator="\n")
    writer.writeheader()
    writer.writerows(flat)
    return out.getvalue()


def _flat(row: Row, before: str = "") -> Iterator[tuple[str, Any]]:
    for key, value in row.items():
        name = f"{before}{key}".replace(" ", "_")
        if isinstance(value, Mapping):
            yield from _flat(value, f"{name}_")
        elif isinstance(value, list | tuple) and len(value) == 2:
            yield name, _short(value[0])
            yield f"{name}_half_width", _short(value[1])
        else:
            yield name, _short(value)


def _short(value: Any) -> Any:
    return float(f"{value:.{DIGITS}g}") if isinstance(value, float) else value


def mean(values: Iterable[float]) -> float:
    """Mean of some numbers."""
    return float(np.mean(list(values)))


def dots(groups: Mapping[str, Mapping[str, Sequence[float]]], axis: str, *, at: float | None = None) -> Any:
    """Draw one line per group from top to bottom: each value as a faint dot, the mean of a series as a mark.

    Examples
    --------
    >>> figure = dots({"clean": {"jointly": [1.0, 2.0]}, "typos": {"jointly": [-1.0]}}, "points gained", at=0)
    >>> [text.get_text() for text in figure.axes[0].get_yticklabels()]
    ['clean', 'typos']
    """
    series = list(dict.fromkeys(name for values in groups.values() for name in values))
    height = 1.1 + len(groups) * max(0.3, 0.17 * len(series))
    with mpl.rc_context({"font.size": 9}):
        figure = Figure(figsize=(7, height), layout="constrained")
        axes = figure.add_subplot()
        for k, name in enumerate(series):
            colour, mark = COLOURS[k % len(COLOURS)], MARKS[k % len(MARKS)]
            shift = 0.7 * ((k + 0.5) / len(series) - 0.5)
            named = name if len(series) > 1 else None
            for place, values in enumerate(of.get(name, []) for of in groups.values()):
                if len(values):
                    axes.plot(values, [place + shift] * len(values), ".", color=colour, alpha=0.35, markersize=4)
                    axes.plot(np.mean(values), place + shift, mark, color=colour, markersize=6, label=named)
                    named = None
        if at is not None:
            axes.axvline(at, color="0.6", linewidth=0.8, zorder=0)
        axes.set_yticks(range(len(groups)), list(groups))
        axes.set_ylim(len(groups) - 0.4, -0.6)
        axes.set_xlabel(axis)
        axes.grid(axis="x", color="0.92")
        axes.spines[["top", "right", "left"]].set_visible(False)
        axes.tick_params(length=0)
        if len(series) > 1:
            figure.legend(loc="outside upper center", ncols=min(len(series), 5), frameon=False)
    return figure
