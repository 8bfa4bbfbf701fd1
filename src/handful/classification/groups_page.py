"""One page about many labelled batches: a table of the groups, then a section for each of those with most doubt.

It needs no other file and works on a phone, like the page about one batch, whose parts it is made of.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from html import escape
from pathlib import Path

import numpy as np

from handful.classification.examples import CatalogueExamples
from handful.classification.groups import ClassifiedGroups
from handful.classification.page import (
    STYLE,
    _amount,
    _class_card,
    _counted,
    _document,
    _group_card,
    _item_cards,
    _items,
    _left_out,
    _possible,
    _skipped,
)
from handful.classification.predictions import Classified
from handful.shapes import Int

# Groups in the table, and groups with a section. Pictures take most of the space: a section has at most about 130.
MOST_ROWS, MOST_SECTIONS = 2000, 20
# Classes named in a row of the table.
MOST_NAMED = 6
# In a section: classes present, proposed classes, other unknown items, and the least certain items.
SECTION_CLASSES, SECTION_PROPOSALS, SECTION_STRAYS, SECTION_ITEMS = 9, 4, 12, 12

GROUPS_STYLE = """
table { border-collapse: collapse; width: 100%; margin: .8rem 0; font-size: .95rem }
th, td { text-align: left; vertical-align: top; padding: .45rem .8rem .45rem 0; border-bottom: 1px solid var(--rule) }
th { color: var(--quiet); font-weight: 600; font-size: .85rem; white-space: nowrap }
th.number, td.number { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap }
td:first-child { min-width: 7rem } td:nth-child(3) { width: 55% }
a { color: var(--accent) }
td.zero { color: var(--quiet) } td.some { color: var(--doubt); font-weight: 600 }
section { border-top: 2px solid var(--rule); margin-top: 2.4rem } section h2 { margin-top: 1rem }
@media (max-width: 719px) {
  table, tbody, tr, td { display: block; width: auto } thead { position: absolute; left: -999rem }
  tr { border: 1px solid var(--rule); border-radius: 8px; padding: .6rem .8rem; margin-bottom: .7rem }
  td, td:nth-child(3) { border: 0; padding: .05rem 0; width: auto } td:first-child { font-weight: 600 }
  td.number { text-align: left; display: inline-block; margin-right: 1rem }
  td.zero { display: none } td[data-of]::after { content: " " attr(data-of); color: var(--quiet) }
}
@media print { section { break-before: page } }
"""


def write_groups_page(classified: ClassifiedGroups, path: str | os.PathLike[str], *, title: str) -> None:
    """Write the page.

    Parameters
    ----------
    classified : ClassifiedGroups
        From `handful.classification.classify` with `group_by`.
    path : path
        The file, usually `.html`; an older one is replaced.
    title : str
        What the table is called.
    """
    final = Path(path)
    final.parent.mkdir(parents=True, exist_ok=True)
    final.write_text(_page(classified, title), encoding="utf-8")


def messages(classified: ClassifiedGroups) -> list[str]:
    """Return what looks wrong, one message for each kind of diagnostic, with the groups that it is about."""
    about: dict[str, list[tuple[int, str]]] = {}
    for place, found in enumerate(classified.diagnostics):
        for diagnostic in found:
            about.setdefault(diagnostic.name, []).append((place, diagnostic.message))
    said = []
    for told in about.values():
        place, message = told[0]
        if len(told) == 1:
            said.append(f"{classified.name(place)}: {message}")
        elif len(told) == len(classified) and len({text for _, text in told}) == 1:
            said.append(message)
        else:
            said.append(f"{len(told):,} of {len(classified):,} groups, for example {classified.name(place)}: {message}")
    return said


def by_doubt(classified: ClassifiedGroups) -> Int[np.ndarray, "group"]:
    """Return the places of the groups: first those with a warning, then by doubtful and unknown items, most first."""
    calm = np.array([not found for found in classified.diagnostics], dtype=bool)
    return np.lexsort((-(classified.doubtful + classified.unknown_items), calm))


def _page(classified: ClassifiedGroups, title: str) -> str:
    n_items, n_groups = len(classified.batch.rows), len(classified)
    columns = " and ".join(classified.grouping.columns)
    made_by = f"; features of {classified.backbone.partition(', weights ')[0]}" if classified.backbone else ""
    said = (
        f"{_counted(n_items, 'item')} in {_counted(n_groups, 'group')} by {columns}, every group labelled as one "
        f"batch, with a catalogue of {_counted(len(classified.class_names), 'class')} and "
        f"{_counted(classified.n_examples, 'example')}{made_by}."
    )
    doubt = by_doubt(classified)
    shown = doubt[:MOST_SECTIONS].tolist()
    examples = CatalogueExamples(classified.shown)
    parts = [
        f"<h1>{escape(title)}: {_counted(n_groups, 'group')}</h1><p class='quiet'>{escape(said)}</p>",
        *(f"<p class='alarm' role='note'>{escape(message)}</p>" for message in messages(classified)),
        _skipped(classified.batch.skipped),
        f"<p>{escape(unknown)}</p>" if (unknown := classified.said()) else "",
        _overview(classified, sorted(doubt[:MOST_ROWS].tolist()), shown),
        *(_section(classified.at(place), examples, classified.name(place), place) for place in shown),
    ]
    return _document(title, STYLE + GROUPS_STYLE + examples.style(), parts)


def _sections_said(classified: ClassifiedGroups, shown: Sequence[int]) -> str:
    """Say which groups have a section; where these are not all, name them, as they are hard to find in the table."""
    order = "those with a warning first, then those with most items in doubt or unknown"
    left = len(classified) - len(shown)
    if left == 0:
        return f"<p class='quiet'>Each has a section below, {order}.</p>"
    others = "1 other group is" if left == 1 else f"{left:,} other groups are"
    return (
        f"<p class='quiet'>{_counted(len(shown), 'group')} have a section below, {order}. {others} only in this table "
        "and in the files.</p>"
        f"<details><summary>Groups with a section</summary>"
        f"<p>{' · '.join(_link(classified, place) for place in shown)}</p></details>"
    )


def _link(classified: ClassifiedGroups, place: int) -> str:
    return f"<a href='#group-{place}'>{escape(classified.name(place))}</a>"


def _overview(classified: ClassifiedGroups, places: Sequence[int], shown: Sequence[int]) -> str:
    """Show one row per group; a group with a section is linked to it."""
    sizes, doubtful, unknown = classified.sizes, classified.doubtful, classified.unknown_items
    rows, warned, linked = [], any(classified.diagnostics), set(shown)
    for place in places:
        name = _link(classified, place) if place in linked else escape(classified.name(place))
        present = classified.present(place)
        named = ", ".join(
            f"{escape(classified.class_names[k])}&nbsp;{_count(classified.expected_counts[place][k])}"
            for k in present[:MOST_NAMED]
        )
        more = f", and {_counted(len(present) - MOST_NAMED, 'more class')}" if len(present) > MOST_NAMED else ""
        rows.append(
            f"<tr><td>{name}</td>"
            f"{_number(int(sizes[place]), 'item')}<td>{named or 'none for certain'}{more}</td>"
            f"{_number(int(doubtful[place]), 'in doubt')}"
            f"{'' if classified.unknown is None else _number(int(unknown[place]), 'unknown')}"
            f"{_number(len(classified.diagnostics[place]), 'warning') if warned else ''}</tr>"
        )
    heads = ["Items", "Classes present, with expected counts", "In doubt", "Unknown", "Warnings"]
    if classified.unknown is None:
        heads.remove("Unknown")
    if not warned:
        heads.remove("Warnings")
    head = "".join(f"<th{'' if name.startswith('Classes') else ' class=number'}>{name}</th>" for name in heads)
    left = len(classified) - len(places)
    columns = escape(", ".join(classified.grouping.columns))
    return (
        f"<h2 id='groups'>Groups</h2>{_sections_said(classified, shown)}"
        f"<table><thead><tr><th>{columns}</th>{head}</tr></thead>"
        f"<tbody>{''.join(rows)}</tbody></table>"
        + (
            f"<p class='quiet'>And {_counted(left, 'more group')} with less doubt, in the files.</p>"
            if left > 0
            else ""
        )
    )


def _number(n: int, what: str) -> str:
    """Show a number in a cell; a narrow screen has no head of the table, so there it stands before what it counts."""
    words = _counted(n, what).partition(" ")[2] if what in ("item", "warning") else what
    kind = "" if what == "item" else " some" if n > 0 else " zero"
    return f"<td class='number{kind}' data-of='{words}'>{n:,}</td>"


def _count(count: float) -> str:
    return _amount(count).partition(" ")[0]


def _section(found: Classified, examples: CatalogueExamples, name: str, place: int) -> str:
    present = found.present
    how = "labelled jointly" if found.joint_weight > 0 else "each labelled alone"
    cards = "".join(_class_card(found, examples, k) for k in present[:SECTION_CLASSES])
    parts = [
        f"<h2>{escape(name)}</h2><p class='quiet'>{_counted(len(found.batch.rows), 'item')}, {how}; "
        f"{_counted(len(present), 'class')} present.</p>",
        *(f"<p class='alarm' role='note'>{escape(d.message)}</p>" for d in found.diagnostics),
        f"<ul class='classes'>{cards}</ul>",
        _left_out(len(present) - SECTION_CLASSES, "class"),
        _possible(found, present),
        _none_of_these(found, examples),
        "<h3>Least certain items</h3>",
        _items(found, examples, SECTION_ITEMS),
    ]
    back = "<p><a href='#groups'>All groups</a></p>"
    return f"<section id='group-{place}'>{''.join(parts)}{back}</section>"


def _none_of_these(found: Classified, examples: CatalogueExamples) -> str:
    """Show the rejected items: proposed classes, then those in no such group."""
    unknown = found.unknown
    if unknown is None or not unknown.rejected.any():
        return ""
    n = len(unknown.proposals)
    cards = "".join(_group_card(found, examples, unknown, number) for number in range(min(n, SECTION_PROPOSALS)))
    strays = np.flatnonzero(unknown.rejected & (found.proposals == 0))
    strays = strays[np.argsort(-unknown.chances[strays], kind="stable")]
    others = ""
    if len(strays):
        others = f"<p class='quiet'>{_counted(len(strays), 'item')} in none of these groups:</p>" if n else ""
        others += _item_cards(found, examples, strays[:SECTION_STRAYS].tolist())
        others += _left_out(len(strays) - SECTION_STRAYS, "item")
    return (
        f"<h3>None of these classes</h3><p>{escape(unknown.said(len(found.class_names)))}</p>"
        f"<ul class='classes'>{cards}</ul>{_left_out(n - SECTION_PROPOSALS, 'group')}{others}"
    )
