"""What commands print about a labelled batch, its groups, or a new bank: what was found and written."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from handful.arguments import counted
from handful.classification.labelled import (
    NONE,
    NOT_APPLIED,
    about_of,
    columns_summary,
    common_names,
    doubtful_items,
    group_names,
    how_labelled,
    label_counts,
    messages,
    n_groups,
    present_codes,
    rejected_items,
    unknown_summary,
)
from handful.cli.terminal import show
from handful.estimators.answer import sizes_of
from handful.estimators.summary import sure_summary
from handful.machine.untrusted import printable
from handful.reading.table import Skipped, first_listed, skipped_summary

if TYPE_CHECKING:
    from rich.table import Table
    from rich.text import Text

    from handful.banks import FeatureBank
    from handful.estimators import Answer

# Classes of a batch, groups, and classes of each group that are printed; files have all of them.
MOST_CLASSES = 50
MOST_GROUPS = 20
MOST_CLASSES_OF_A_GROUP = 6
# Skipped items named one by one.
MOST_SKIPPED = 20
DOUBTFUL = "doubtful, because another class or none is nearly as likely"
# What a summary ends with if no output was named.
NOT_WRITTEN = "Nothing is written; name a file for the labels: --out labels.csv"


def print_batch(found: Answer, files: Sequence[tuple[Path, str]]) -> None:
    """Print what was found in a batch, or in each group.

    Parameters
    ----------
    found : Answer
        The labelled batch.
    files : sequence of path and str
        Files that were written, and what is in them.
    """
    _complain(found)
    n_doubtful = int(doubtful_items(found).sum())
    are = "is" if n_doubtful == 1 else "are"
    columns = columns_summary(found)
    unknown = unknown_summary(found)
    sure = sure_summary(found)
    head, table = _groups(found) if about_of(found).group_by else _classes(found)
    written = _table()
    for place, what in files:
        written.add_row(_plain(str(place), "bold"), _plain(what, "dim"))
    show(
        _plain(how_labelled(found)),
        *([_plain(columns)] if columns else []),
        "",
        _plain(head, "bold"),
        *((table,) if table.row_count else ()),
        "",
        *([_plain(f"{counted(n_doubtful, 'item')} {are} {DOUBTFUL}.")] if n_doubtful else []),
        *([_plain(unknown)] if unknown else []),
        *([_plain(sure)] if sure else []),
        *((_plain("Written:"), written) if files else (_plain(NOT_WRITTEN),)),
    )


def _classes(found: Answer) -> tuple[str, Table]:
    """Return the classes present: their number in words, and name, items and expected items of each."""
    present = present_codes(found)
    counts = label_counts(found)
    called = common_names(found)
    told = not np.isnan(found.presence).any()
    chance_column = [("chance", "right")] if told else []
    classes = _table(("items", "right"), ("expected", "right"), *chance_column, ("class", "left"))
    for k in present[:MOST_CLASSES]:
        chance = [f"{found.presence[k]:.3f}"] if told else []
        classes.add_row(f"{counts[k]:,}", f"{found.expected_counts[k]:,.1f}", *chance, _plain(called[k]))
    # All other items, so that the numbers add up.
    more = present[MOST_CLASSES:]
    others = set(np.flatnonzero(counts[:-1]).tolist()) - set(present)
    for codes, what in ((more, f"{len(more):,} more"), (others, f"not present for certain: {len(others):,} more")):
        if codes:
            classes.add_row(f"{counts[list(codes)].sum():,}", "", *([""] if told else []), _plain(f"and {what}", "dim"))
    if counts[-1]:
        classes.add_row(f"{counts[-1]:,}", "", *([""] if told else []), _plain(NONE))
    head = f"{counted(len(present), 'class')} present, with items, expected items and the probability of presence"
    if not told:
        method = about_of(found).method
        head = f"{counted(len(present), 'class')} with items; {method} does not estimate the probability of presence"
    return head if present else "No class is present for certain", classes


def _groups(found: Answer) -> tuple[str, Table]:
    """Return the groups: their number in words, and name, items and classes of each."""
    columns = ", ".join(about_of(found).group_by)
    groups = _table((columns, "left"), ("items", "right"), ("classes present, with expected items", "left"))
    sizes = sizes_of(found)
    unknown = rejected_items(found)
    called = common_names(found)
    names = group_names(found)
    for place in range(min(n_groups(found), MOST_GROUPS)):
        named = [f"{called[k]} {found.expected_counts[place][k]:,.1f}" for k in present_codes(found, place)]
        if len(named) > MOST_CLASSES_OF_A_GROUP:
            named[MOST_CLASSES_OF_A_GROUP:] = [f"{len(named) - MOST_CLASSES_OF_A_GROUP} more"]
        none = f"; {NONE} {unknown[place]:,}" if unknown[place] else ""
        classes = f"{', '.join(named) or 'no class for certain'}{none}"
        groups.add_row(_plain(names[place]), f"{sizes[place]:,}", _plain(classes))
    left = n_groups(found) - MOST_GROUPS
    if left > 0:
        groups.add_row(_plain(f"and {left:,} more", "dim"))
    return f"{counted(n_groups(found), 'group')} by {columns}", groups


def print_bank(bank: FeatureBank, place: Path) -> None:
    """Print what a new bank holds, where it is, and its content hash."""
    sizes = bank.class_sizes
    fewest = int(sizes.min())
    most = int(sizes.max())
    each = f"{fewest:,}" if fewest == most else f"{fewest:,} to {most:,}"
    encoder = bank.provenance.encoder.partition(", weights ")[0]
    written = _table()
    written.add_row(_plain(str(place), "bold"), _plain(f"bank, content hash {bank.recorded_hash}", "dim"))
    classes = counted(bank.n_classes, "class")
    made_by = f", features of {encoder}" if encoder else ""
    show(
        _plain(f"{counted(bank.n_rows, 'vector')} of {bank.dim:,} numbers, {classes} with {each} each{made_by}"),
        _plain("Written:"),
        written,
    )


def complain_of_skipped(skipped: Sequence[Skipped], n_items: int) -> None:
    """Count the items that were skipped, and list the first with their reasons, on standard error."""
    if skipped:
        sys.stderr.write(f"{skipped_summary(skipped, n_items)}\n")
        sys.stderr.writelines(f"  {line}\n" for line in first_listed(skipped, MOST_SKIPPED))


def _complain(found: Answer) -> None:
    """Name what was skipped, and what looks wrong, on standard error."""
    about = about_of(found)
    complain_of_skipped(about.batch.skipped, len(about.batch.rows) + len(about.batch.skipped))
    lines = []
    if about.not_applied:
        lines.append(f"warning: {counted(len(about.not_applied), 'label')} {NOT_APPLIED}:")
        lines += [f"  {line}" for line in first_listed(about.not_applied, MOST_SKIPPED)]
    for line in (*lines, *(f"warning: {message}" for message in messages(found))):
        sys.stderr.write(f"{printable(line)}\n")


def _table(*columns: tuple[str, str]) -> Table:
    """Make a table without lines, indented by two columns."""
    from rich.table import Table

    table = Table(box=None, show_header=bool(columns), header_style="dim", padding=(0, 0, 0, 2), pad_edge=True)
    for name, side in columns:
        table.add_column(_plain(name, "dim"), justify=side, overflow="fold")  # type: ignore[arg-type]
    return table


def _plain(text: str, style: str = "") -> Text:
    """Return text on one line: a name in square brackets is no markup, and a line feed in one is an escape."""
    from rich.text import Text

    return Text(printable(text), style=style)
