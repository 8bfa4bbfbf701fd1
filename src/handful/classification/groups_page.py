"""The page about many labelled batches: a table of the groups above the items, which can be shown group by group."""

from __future__ import annotations

import os
from collections.abc import Sequence
from html import escape

import numpy as np

from handful.classification.groups import ClassifiedGroups
from handful.classification.page import skipped_said, unknown_paragraph, write_page
from handful.classification.predictions import NONE, labelled_with
from handful.estimators.answer import counted
from handful.shapes import Int

# Groups in the table, those with most doubt; all of them can be chosen on the page.
MOST_ROWS = 2000
# Classes named in a row of the table.
MOST_NAMED = 6


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
    n_items, n_groups = len(classified.batch.rows), len(classified)
    columns = " and ".join(classified.grouping.columns)
    said = (
        f"{counted(n_items, 'item')} in {counted(n_groups, 'group')} by {columns}, every group labelled as one "
        f"batch{labelled_with(classified)}."
    )
    top = [
        f"<h1>{escape(title)}: {counted(n_groups, 'group')}</h1><p class='quiet'>{escape(said)}</p>",
        *(f"<p class='alarm' role='note'>{escape(message)}</p>" for message in messages(classified)),
        skipped_said(classified.batch.skipped),
        unknown_paragraph(classified.unknown_said, classified.unknown_reason),
        _overview(classified, sorted(by_doubt(classified)[:MOST_ROWS].tolist())),
    ]
    write_page(classified, path, title, top)


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
    return np.lexsort((-(classified.doubtful_items + classified.unknown_items), calm))


def _overview(classified: ClassifiedGroups, places: Sequence[int]) -> str:
    """Show one row per group; the name of a group shows its items."""
    sizes, doubtful, unknown = classified.sizes, classified.doubtful_items, classified.unknown_items
    rows, warned = [], any(classified.diagnostics)
    for place in places:
        name = f"<button data-group='{place}'>{escape(classified.name(place))}</button>"
        present = classified.present(place)
        named = ", ".join(
            f"{escape(classified.class_names[k])}&nbsp;{_count(classified.expected_counts[place][k])}"
            for k in present[:MOST_NAMED]
        )
        more = f", and {counted(len(present) - MOST_NAMED, 'more class')}" if len(present) > MOST_NAMED else ""
        rows.append(
            f"<tr><td>{name}</td>"
            f"{_number(int(sizes[place]), 'item')}<td>{named or 'none for certain'}{more}</td>"
            f"{_number(int(doubtful[place]), 'in doubt')}"
            f"{'' if classified.unknown is None else _number(int(unknown[place]), NONE)}"
            f"{_number(len(classified.diagnostics[place]), 'warning') if warned else ''}</tr>"
        )
    heads = ["Items", "Classes present, with expected counts", "In doubt", NONE.capitalize(), "Warnings"]
    if classified.unknown is None:
        heads.remove(NONE.capitalize())
    if not warned:
        heads.remove("Warnings")
    head = "".join(f"<th{'' if name.startswith('Classes') else ' class=number'}>{name}</th>" for name in heads)
    left = len(classified) - len(places)
    more = f"<p class='quiet'>And {counted(left, 'more group')} with less doubt, in the files.</p>" if left > 0 else ""
    columns = escape(", ".join(classified.grouping.columns))
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
