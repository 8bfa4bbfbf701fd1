"""The report: one page that shows a labelled batch, and needs no other file.

The page holds all items as JSON (`handful.classification.page_data`), and the program that shows them
(`handful.classification.page_program`). It works from a file, without a network, and on a phone. The only code it may
run is that program: a browser refuses anything else, by a hash of it. Nothing on it can be changed: to answer, a person
runs `handful review`, which serves a page with the same parts.
"""

from __future__ import annotations

import base64
import hashlib
import os
from collections.abc import Sequence
from html import escape
from pathlib import Path

import numpy as np

from handful.arguments import counted
from handful.classification.files import refuse_outputs
from handful.classification.labelled import (
    NONE,
    NOT_APPLIED,
    about_of,
    common_names,
    doubtful_items,
    group_names,
    how_labelled,
    messages,
    n_groups,
    present_codes,
    rejected_items,
    unknown_summary,
)
from handful.classification.page_data import embedded, page_data
from handful.classification.page_frame import report_frame
from handful.classification.page_program import REPORT, page_program, page_style
from handful.estimators.answer import Answer, is_judged, sizes_of
from handful.machine.command_line import typed
from handful.machine.outputs import written_whole
from handful.reading.table import Skipped, first_listed, skipped_summary
from handful.shapes import Int

# Groups in the table, those with most doubt; all of them can be chosen on the page.
MOST_ROWS = 2000
# Items that were left out and are listed.
MOST_SKIPPED = 1000
# Classes named in a row of the table.
MOST_NAMED = 6
# Inputs that an option of `handful review` of the same name takes.
OPTIONS = ("names", "prior", "candidates")


def write_page(answer: Answer, path: str | os.PathLike[str], *, title: str) -> None:
    """Write the page; with groups, a table of these stands above the items.

    Parameters
    ----------
    answer : Answer
        From `handful.classification.classify`.
    path : path
        The file, usually `.html`; an older one is replaced, but nothing that the labels were made from.
    title : str
        What the batch is called.
    """
    refuse_outputs(answer, page=Path(path))
    script = page_program(REPORT)
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    data = embedded(page_data(answer, title))
    groups = sorted(by_doubt(answer)[:MOST_ROWS].tolist()) if about_of(answer).group_by else []
    page = report_frame(
        title,
        "<meta http-equiv='Content-Security-Policy' content=\"default-src 'none'; img-src data:; "
        f"style-src 'unsafe-inline'; script-src 'sha256-{digest}'\"><style>{page_style(REPORT)}</style>",
        page_top(answer, title) + _how_to_answer(answer) + (_overview(answer, groups) if groups else ""),
        f"<script type='application/json' id='data'>{data}</script><script type='module'>{script}</script>",
    )
    with written_whole(Path(path)) as temporary:
        # In the data, an escape is half a character again.
        temporary.write_text(page, encoding="utf-8", errors="backslashreplace")


def notices(answer: Answer) -> list[str]:
    """Say what looks wrong with a batch, and what was left out of it and of the catalogue: sentences."""
    about = about_of(answer)
    sides = (
        ("catalogue", about.skipped_examples, about.n_examples),
        ("batch", about.batch.skipped, len(about.batch.rows)),
    )
    left_out = [
        f"{_skipped_sentence(side, skipped, n_kept)}: {'; '.join(first_listed(skipped))}."
        for side, skipped, n_kept in sides
        if skipped
    ]
    not_applied = [f"{counted(len(about.not_applied), 'label')} {NOT_APPLIED}."] if about.not_applied else []
    return [*messages(answer), *left_out, *not_applied]


def page_top(answer: Answer, title: str) -> str:
    """Say what the batch is and what looks wrong with it."""
    about = about_of(answer)
    groups = counted(n_groups(answer), "group")
    head = f": {groups if about.group_by else counted(len(present_codes(answer)), 'class') + ' present'}"
    by = f" {groups} by {' and '.join(about.group_by)}." if about.group_by else ""
    unknown = unknown_summary(answer)
    if not about.group_by and answer.unknown_reason is None and answer.rejected.any():
        low, high = answer.unknown_interval
        unknown += f" Between {low:.0%} and {high:.0%} of the items belong to no class of the catalogue (90% interval)."
    n_given = sum(k is not None for k in about.given.values())  # they are examples too
    # It stands out if unknown items could not be judged.
    style = "" if answer.unknown_reason is None else " class='alarm' role='note'"
    return "".join(
        [
            f"<h1>{escape(title)}{head}</h1>",
            f"<p class='quiet'>{escape(how_labelled(answer))}.{escape(by)}</p>",
            *(f"<p class='alarm' role='note'>{escape(message)}</p>" for message in messages(answer)),
            _skipped("catalogue", about.skipped_examples, about.n_examples - n_given),
            _skipped("batch", about.batch.skipped, len(about.batch.rows)),
            listed(f"{counted(len(about.not_applied), 'label')} {NOT_APPLIED}", about.not_applied),
            f"<p{style}>{escape(unknown)}</p>" if unknown else "",
        ]
    )


def review_command(answer: Answer) -> str:
    """Return the command that reviews the batch; empty if it was not read from files that a review can read."""
    about = about_of(answer)
    inputs = about.inputs
    if "catalogue" not in inputs or "batch" not in inputs:
        return ""
    words = ["handful", "review", _shown(inputs["catalogue"]), _shown(inputs["batch"])]
    for name in OPTIONS:
        if name in inputs:
            words += [f"--{name}", _shown(inputs[name])]
    for column in about.group_by:
        words += ["--group-by", column]
    return typed(words)


def _shown(path: Path) -> str:
    """Return a path as a person would type it here."""
    here = Path.cwd()
    return str(path.relative_to(here) if path.is_relative_to(here) else path)


def _how_to_answer(answer: Answer) -> str:
    command = review_command(answer)
    if not command:
        return ""
    return (
        "<p class='quiet'>This page shows the labels. To correct them, run "
        f"<code>{escape(command)}</code>: it asks about a few items, and labels all others again.</p>"
    )


def _skipped(side: str, skipped: Sequence[Skipped], n_kept: int) -> str:
    return listed(_skipped_sentence(side, skipped, n_kept), skipped)


def _skipped_sentence(side: str, skipped: Sequence[Skipped], n_kept: int) -> str:
    return f"{side.capitalize()}: {skipped_summary(skipped, n_kept + len(skipped))}"


def listed(sentence: str, skipped: Sequence[Skipped]) -> str:
    """List what was left out below a sentence about it; empty if nothing was."""
    if not skipped:
        return ""
    lines = "".join(f"<li>{escape(line)}</li>" for line in first_listed(skipped, MOST_SKIPPED))
    return f"<details class='alarm'><summary>{sentence}</summary><ul>{lines}</ul></details>"


def by_doubt(answer: Answer) -> Int[np.ndarray, "group"]:
    """Return the groups: first those with a warning, then by doubtful and unknown items, most first."""
    calm = np.array([not found for found in answer.diagnostics], dtype=bool)
    return np.lexsort((-(doubtful_items(answer) + rejected_items(answer)), calm))


def _overview(answer: Answer, groups: Sequence[int]) -> str:
    """Show one row per group; the name of a group shows its items."""
    doubtful = doubtful_items(answer)
    unknown = rejected_items(answer)
    sizes = sizes_of(answer)
    names = group_names(answer)
    called = common_names(answer)
    rows = []
    warned = any(answer.diagnostics)
    for group in groups:
        name = f"<button data-group='{group}'>{escape(names[group])}</button>"
        present = present_codes(answer, group)
        named = ", ".join(
            f"{escape(called[k])}&nbsp;{_count(answer.expected_counts[group][k])}" for k in present[:MOST_NAMED]
        )
        more = f", and {counted(len(present) - MOST_NAMED, 'more class')}" if len(present) > MOST_NAMED else ""
        rows.append(
            f"<tr><td>{name}</td>"
            f"{_number(int(sizes[group]), 'item')}<td>{named or 'none for certain'}{more}</td>"
            f"{_number(int(doubtful[group]), 'doubtful')}"
            f"{'' if not is_judged(answer) else _number(int(unknown[group]), NONE)}"
            f"{_number(len(answer.diagnostics[group]), 'warning') if warned else ''}</tr>"
        )
    heads = ["Items", "Classes present, with expected counts", "Doubtful", NONE.capitalize(), "Warnings"]
    if not is_judged(answer):
        heads.remove(NONE.capitalize())
    if not warned:
        heads.remove("Warnings")
    head = "".join(f"<th{'' if name.startswith('Classes') else ' class=number'}>{name}</th>" for name in heads)
    left = n_groups(answer) - len(groups)
    more = f"<p class='quiet'>And {counted(left, 'more group')} with less doubt, in the files.</p>" if left > 0 else ""
    columns = escape(", ".join(about_of(answer).group_by))
    return (
        f"<details open><summary>Groups</summary>"
        f"<table class='groups'><thead><tr><th>{columns}</th>{head}</tr></thead>"
        f"<tbody>{''.join(rows)}</tbody></table>{more}</details>"
    )


def _number(n: int, what: str) -> str:
    """Show a number in a cell; a narrow screen has no head of the table, so there it stands before what it counts."""
    words = counted(n, what).partition(" ")[2] if what in ("item", "warning") else what
    kind = "" if what == "item" else " some" if n > 0 else " zero"
    return f"<td class='number{kind}' data-of='{words}'>{n:,}</td>"


def _count(count: float) -> str:
    whole = abs(count - round(count)) < 0.05 or count >= 100
    return f"{round(count):,}" if whole else f"{count:.1f}"
