"""What commands print about a labelled batch, its groups, or a new bank: what was found and written."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from handful.arguments import counted
from handful.classification.labelled import NONE, NOT_APPLIED
from handful.cli.terminal import show
from handful.machine.untrusted import printable
from handful.reading.table import Skipped, first_listed, skipped_summary

if TYPE_CHECKING:
    from rich.table import Table
    from rich.text import Text

    from handful.banks import FeatureBank
    from handful.classification.labelled import Classified

# Classes of a batch, groups, and classes of each group that are printed; files have all of them.
MOST_CLASSES = 50
MOST_GROUPS = 20
MOST_CLASSES_OF_A_GROUP = 6
# Skipped items named one by one.
MOST_SKIPPED = 20
DOUBTFUL = "in doubt, because another class or none is nearly as likely"


def print_batch(found: Classified, files: Sequence[tuple[Path, str]]) -> None:
    """Print what was found in a batch, or in each group.

    Parameters
    ----------
    found : Classified
        The labelled batch.
    files : sequence of path and str
        Files that were written, and what is in them.
    """
    _complain(found)
    n_doubtful = int(found.doubtful_items.sum())
    are = "is" if n_doubtful == 1 else "are"
    head, table = _groups(found) if found.group_by else _classes(found)
    written = _table()
    for place, what in files:
        written.add_row(_plain(str(place), "bold"), _plain(what, "dim"))
    show(
        _plain(found.how),
        *([_plain(found.columns_summary)] if found.columns_summary else []),
        "",
        _plain(head, "bold"),
        *((table,) if table.row_count else ()),
        "",
        *([_plain(f"{counted(n_doubtful, 'item')} {are} {DOUBTFUL}.")] if n_doubtful else []),
        *([_plain(found.unknown_summary)] if found.unknown_summary else []),
        *([_plain(found.answer.sure_summary)] if found.answer.sure_summary else []),
        _plain("Written:"),
        written,
    )


def _classes(found: Classified) -> tuple[str, Table]:
    """Return the classes present: their number in words, and name, items and expected items of each."""
    present = found.present()
    counts = found.label_counts()
    answer = found.answer
    told = not np.isnan(answer.presence).any()
    chance_column = [("chance", "right")] if told else []
    classes = _table(("items", "right"), ("expected", "right"), *chance_column, ("class", "left"))
    for k in present[:MOST_CLASSES]:
        chance = [f"{answer.presence[k]:.3f}"] if told else []
        classes.add_row(f"{counts[k]:,}", f"{answer.expected_counts[k]:,.1f}", *chance, _plain(found.common_names[k]))
    # All other items, so that the numbers add up.
    more = present[MOST_CLASSES:]
    others = set(np.flatnonzero(counts[:-1]).tolist()) - set(present)
    for codes, what in ((more, f"{len(more):,} more"), (others, f"not present for certain: {len(others):,} more")):
        if codes:
            classes.add_row(f"{counts[list(codes)].sum():,}", "", *([""] if told else []), _plain(f"and {what}", "dim"))
    if counts[-1]:
        classes.add_row(f"{counts[-1]:,}", "", *([""] if told else []), _plain(NONE))
    head = f"{counted(len(present), 'class')} present, with items, expected items and the chance of presence"
    if not told:
        head = f"{counted(len(present), 'class')} with items; {found.method} does not estimate the chance of presence"
    return head if present else "No class is present for certain", classes


def _groups(found: Classified) -> tuple[str, Table]:
    """Return the groups: their number in words, and name, items and classes of each."""
    columns = ", ".join(found.group_by)
    answer = found.answer
    groups = _table((columns, "left"), ("items", "right"), ("classes present, with expected items", "left"))
    sizes = answer.sizes
    unknown = found.rejected_items
    for place in range(min(found.n_groups, MOST_GROUPS)):
        named = [f"{found.common_names[k]} {answer.expected_counts[place][k]:,.1f}" for k in found.present(place)]
        if len(named) > MOST_CLASSES_OF_A_GROUP:
            named[MOST_CLASSES_OF_A_GROUP:] = [f"{len(named) - MOST_CLASSES_OF_A_GROUP} more"]
        none = f"; {NONE} {unknown[place]:,}" if unknown[place] else ""
        classes = f"{', '.join(named) or 'no class for certain'}{none}"
        groups.add_row(_plain(found.name(place)), f"{sizes[place]:,}", _plain(classes))
    left = found.n_groups - MOST_GROUPS
    if left > 0:
        groups.add_row(_plain(f"and {left:,} more", "dim"))
    return f"{counted(found.n_groups, 'group')} by {columns}", groups


def print_bank(bank: FeatureBank, place: Path) -> None:
    """Print what a new bank holds, where it is, and its content hash."""
    sizes = bank.class_sizes
    fewest = int(sizes.min())
    most = int(sizes.max())
    each = f"{fewest:,}" if fewest == most else f"{fewest:,} to {most:,}"
    backbone = bank.provenance.backbone.partition(", weights ")[0]
    written = _table()
    written.add_row(_plain(str(place), "bold"), _plain(f"bank, content hash {bank.recorded_hash}", "dim"))
    classes = counted(bank.n_classes, "class")
    made_by = f", features of {backbone}" if backbone else ""
    show(
        _plain(f"{counted(bank.n_rows, 'vector')} of {bank.dim:,} numbers, {classes} with {each} each{made_by}"),
        _plain("Written:"),
        written,
    )


def complain_of_skipped(skipped: Sequence[Skipped], n_items: int) -> None:
    """Count the items that were left out, and list the first with their reasons, on standard error."""
    if skipped:
        sys.stderr.write(f"{skipped_summary(skipped, n_items)}\n")
        sys.stderr.writelines(f"  {line}\n" for line in first_listed(skipped, MOST_SKIPPED))


def _complain(found: Classified) -> None:
    """Name what was left out, and what looks wrong, on standard error."""
    complain_of_skipped(found.batch.skipped, len(found.batch.rows) + len(found.batch.skipped))
    lines = []
    if found.not_applied:
        lines.append(f"warning: {counted(len(found.not_applied), 'correction')} {NOT_APPLIED}:")
        lines += [f"  {line}" for line in first_listed(found.not_applied, MOST_SKIPPED)]
    for line in (*lines, *(f"warning: {message}" for message in found.messages())):
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
