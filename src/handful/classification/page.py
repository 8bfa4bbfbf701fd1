"""One page about a labelled batch, on which a person confirms and corrects labels; it needs no other file.

The page holds all items as JSON (`handful.classification.page_data`), and the program that shows them
(`map.js`, `review.js`, `review.css`). It works from a file, without a network, and on a phone. The only code it may run
is that program: a browser refuses anything else, by a hash of it. `handful.review` serves the same page without the
items, which it then asks for.
"""

from __future__ import annotations

import base64
import hashlib
import os
import shlex
from collections.abc import Sequence
from html import escape
from importlib import resources
from pathlib import Path

import numpy as np

from handful.arguments import counted
from handful.classification.files import refuse_outputs
from handful.classification.labelled import NONE, NOT_APPLIED, Classified
from handful.classification.page_data import embedded, page_data
from handful.machine.outputs import written_whole
from handful.reading.table import Skipped, first_listed, skipped_summary
from handful.shapes import Int

# Groups in the table, those with most doubt; all of them can be chosen on the page.
MOST_ROWS = 2000
# Items that were left out and are listed.
MOST_SKIPPED = 1000
# Classes named in a row of the table.
MOST_NAMED = 6
KEYS = (
    ("↓ ↑ j k", "next and previous item"),
    ("Enter", "confirm the first suggestion"),
    ("r", "take the second suggestion"),
    ("x", "none of these: it belongs to no class of the catalogue"),
    ("c", "correct: choose another class"),
    ("n", "it belongs to a new class: give its name"),
    ("g", "one class for the whole new group, or for all items chosen on the map"),
    ("m", "the map: arrows go from item to item, space chooses one, + and - choose more or fewer around it"),
    ("b", "bad item: it cannot be labelled"),
    ("p", "pass: no answer"),
    ("a", "accept the labels of all items listed"),
    ("u", "undo"),
    ("s", "save the corrections, or finish the review"),
    ("/", "search in the items"),
    ("?", "these keys"),
)
FRAME = """
<noscript><p class='alarm'>This page needs JavaScript to show the items. The labels are in the table of predictions.</p>
</noscript>
<div class='bar-top'>
<div id='progress' hidden><div class='meter'><span></span><span></span></div>
<p id='progress-said' role='status'></p></div>
<button id='filters-toggle'>Filters</button>
<span class='grow' id='counter' role='status'></span>
<input id='search' type='search' placeholder='Search' aria-label='Search in the items'>
<button id='undo'>Undo<kbd>u</kbd></button>
<button id='save' class='main'>Save<span class='wide'>&nbsp;corrections</span><kbd>s</kbd></button>
<button id='help-open' aria-label='Keys'>?</button>
</div>
<p id='note' role='status' hidden></p>
<div id='work'>
<nav id='side' aria-label='Filters'>
<div id='groups-filter' hidden><h2>Group</h2><select id='group' aria-label='Group'></select></div>
<h2>Show</h2><div id='views'></div>
<div id='proposals' hidden><h2>New groups</h2><div id='proposal-list'></div></div>
<h2>Classes</h2><input id='class-words' type='search' placeholder='Find a class' aria-label='Find a class' hidden>
<div id='class-list'></div>
</nav>
<main>
<details id='map-box' hidden><summary>Map</summary>
<svg id='map' tabindex='0' role='application' aria-label='Map of the items' aria-describedby='map-how'></svg>
<div id='map-key'></div>
<p class='quiet'><small><span id='map-how'>Items lie beside those that look alike; hollow: in doubt, small: examples of
the catalogue. Click an item, or draw around several to decide about all of them.</span>
<span id='map-part'></span></small></p>
<p><button id='map-draw' aria-pressed='false'>Draw around items</button>
<small id='map-said' class='quiet' role='status'></small></p>
</details>
<div id='about' hidden></div>
<div id='chosen'><small id='matches' class='quiet' role='status'></small><span id='chips'></span>
<button id='accept' hidden></button></div>
<ul id='list' role='listbox' aria-label='Items'></ul>
<p id='nothing' class='quiet' hidden>No item matches.</p>
<div id='more' hidden><button></button></div>
</main>
<aside id='panel' aria-label='The chosen item'></aside>
</div>
<dialog id='ask'><form method='dialog'><label for='words' id='question'></label>
<input id='words' autocomplete='off' role='combobox' aria-controls='options' aria-expanded='true' dir='auto'>
<ul id='options' role='listbox'></ul></form></dialog>
<dialog id='sure'><p id='sure-said'></p><div id='sure-more'></div><p class='buttons'><button id='sure-yes' class='main'>
</button><button id='sure-no'>Back</button></p></dialog>
"""
# Inputs that an option of the same name takes.
OPTIONS = ("catalogue", "batch", "names", "segments", "scores", "sites", "prior", "candidates")


def write_page(classified: Classified, path: str | os.PathLike[str], *, title: str) -> None:
    """Write the page; with groups, a table of these stands above the items.

    Parameters
    ----------
    classified : Classified
        From `handful.classification.classify`.
    path : path
        The file, usually `.html`; an older one is replaced, but nothing that the labels were made from.
    title : str
        What the batch is called.
    """
    refuse_outputs(classified, page=Path(path))
    script, style = page_program(), packaged("review.css")
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    data = page_data(classified, title) | {"command": command_with_corrections(classified)}
    page = page_frame(
        title,
        "<meta http-equiv='Content-Security-Policy' content=\"default-src 'none'; img-src data:; "
        f"style-src 'unsafe-inline'; script-src 'sha256-{digest}'\"><style>{style}</style>",
        f"{page_top(classified, title)}"
        f"{_overview(classified, sorted(by_doubt(classified)[:MOST_ROWS].tolist())) if classified.group_by else ''}",
        f"<script type='application/json' id='data'>{embedded(data)}</script><script>{script}</script>",
    )
    with written_whole(Path(path)) as temporary:
        # In the data, an escape is half a character again.
        temporary.write_text(page, encoding="utf-8", errors="backslashreplace")


def page_frame(title: str, head: str, top: str, program: str) -> str:
    """Put the parts of the page together: what its head says, what stands above the items, and its program."""
    keys = "".join(f"<tr><td><kbd>{escape(key)}</kbd></td><td>{what}</td></tr>" for key, what in KEYS)
    return (
        "<!doctype html><html lang='en'><head><meta charset='utf-8'>"
        "<meta name='viewport' content='width=device-width, initial-scale=1'>"
        f"<meta name='color-scheme' content='light dark'><title>{escape(title)}</title>{head}</head>"
        f"<body>{top}{FRAME}<dialog id='keys'><h2>Keys</h2><table>{keys}</table>"
        f"<form method='dialog'><button>Close</button></form></dialog>{program}</body></html>"
    )


def page_top(classified: Classified, title: str, *, live: bool = False) -> str:
    """Say what the batch is and what looks wrong with it; a `live` page has labels that change."""
    answer, groups = classified.answer, counted(classified.n_groups, "group")
    head = f": {groups if classified.group_by else counted(len(classified.present()), 'class') + ' present'}"
    by = f" {groups} by {' and '.join(classified.group_by)}." if classified.group_by else ""
    unknown = "" if live else classified.unknown_summary
    if not live and not classified.group_by and answer.unknown_reason is None and answer.rejected.any():
        low, high = answer.unknown_interval
        unknown += f" Between {low:.0%} and {high:.0%} of the items belong to no class of the catalogue (90% interval)."
    n_given = sum(k is not None for k in classified.given.values())  # they are examples too
    # It stands out if unknown items could not be judged.
    style = "" if answer.unknown_reason is None else " class='alarm' role='note'"
    return "".join(
        [
            f"<h1>{escape(title)}{'' if live else head}</h1>",
            f"<p class='quiet'>{escape(classified.how)}.{escape(by)}"
            f"{' The batch was streamed.' if classified.streamed else ''}</p>",
            *(f"<p class='alarm' role='note'>{escape(message)}</p>" for message in classified.messages()),
            _skipped("catalogue", classified.skipped_examples, classified.n_examples - n_given),
            _skipped("batch", classified.batch.skipped, len(classified.batch.rows)),
            listed(f"{counted(len(classified.not_applied), 'correction')} {NOT_APPLIED}", classified.not_applied),
            f"<p{style}>{escape(unknown)}</p>" if unknown else "",
        ]
    )


def command_with_corrections(classified: Classified) -> str:
    """Return the command that labels the batch again; the page adds the file that it saves."""
    words = ["handful", "classify"]
    for name in OPTIONS:
        if name in classified.inputs:
            path = classified.inputs[name]
            here = path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path
            words += [f"--{name}", str(here)]
    for column in classified.group_by:
        words += ["--group-by", column]
    return shlex.join(words)


def page_program() -> str:
    """Return the program of the page."""
    return packaged("map.js") + packaged("review.js")


def packaged(name: str) -> str:
    """Return a file of the page's program."""
    return resources.files("handful.classification").joinpath(name).read_text(encoding="utf-8")


def _skipped(side: str, skipped: Sequence[Skipped], n_kept: int) -> str:
    return listed(f"{side.capitalize()}: {skipped_summary(skipped, n_kept + len(skipped))}", skipped)


def listed(sentence: str, skipped: Sequence[Skipped]) -> str:
    """List what was left out below a sentence about it; empty if nothing was."""
    if not skipped:
        return ""
    lines = "".join(f"<li>{escape(line)}</li>" for line in first_listed(skipped, MOST_SKIPPED))
    return f"<details class='alarm'><summary>{sentence}</summary><ul>{lines}</ul></details>"


def by_doubt(classified: Classified) -> Int[np.ndarray, "group"]:
    """Return the groups: first those with a warning, then by doubtful and unknown items, most first."""
    calm = np.array([not found for found in classified.answer.diagnostics], dtype=bool)
    return np.lexsort((-(classified.doubtful_items + classified.rejected_items), calm))


def _overview(classified: Classified, groups: Sequence[int]) -> str:
    """Show one row per group; the name of a group shows its items."""
    answer, doubtful, unknown = classified.answer, classified.doubtful_items, classified.rejected_items
    sizes = answer.sizes
    rows, warned = [], any(answer.diagnostics)
    for group in groups:
        name = f"<button data-group='{group}'>{escape(classified.name(group))}</button>"
        present = classified.present(group)
        named = ", ".join(
            f"{escape(classified.common_names[k])}&nbsp;{_count(answer.expected_counts[group][k])}"
            for k in present[:MOST_NAMED]
        )
        more = f", and {counted(len(present) - MOST_NAMED, 'more class')}" if len(present) > MOST_NAMED else ""
        rows.append(
            f"<tr><td>{name}</td>"
            f"{_number(int(sizes[group]), 'item')}<td>{named or 'none for certain'}{more}</td>"
            f"{_number(int(doubtful[group]), 'in doubt')}"
            f"{'' if not classified.judged else _number(int(unknown[group]), NONE)}"
            f"{_number(len(answer.diagnostics[group]), 'warning') if warned else ''}</tr>"
        )
    heads = ["Items", "Classes present, with expected counts", "In doubt", NONE.capitalize(), "Warnings"]
    if not classified.judged:
        heads.remove(NONE.capitalize())
    if not warned:
        heads.remove("Warnings")
    head = "".join(f"<th{'' if name.startswith('Classes') else ' class=number'}>{name}</th>" for name in heads)
    left = classified.n_groups - len(groups)
    more = f"<p class='quiet'>And {counted(left, 'more group')} with less doubt, in the files.</p>" if left > 0 else ""
    columns = escape(", ".join(classified.group_by))
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
