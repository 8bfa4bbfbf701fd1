"""Small tables for notebooks: what was found, with bars, what looks wrong, and what to do next.

Colours are those of the page, so dark themes work. Everything that comes from data is escaped.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from typing import Any

import numpy as np

from handful.machine.untrusted import printable
from handful.plots.axes import short
from handful.plots.catalogues import reliability
from handful.plots.classes import Bar, bars_of

# Rows of a table, and characters of a name.
MOST_ROWS = 12
LONGEST = 60
# Columns of text beside the first.
TEXTS = ("class", "classes present")
# Rules of cells name the table too: those of JupyterLab, which aligns all cells right, must not win.
STYLE = """<style>
.handful { color: inherit; max-width: 46em; overflow-x: auto }
.handful table { border-collapse: collapse; margin: .4em 0; color: inherit; background: none }
.handful .found th, .handful .found td { text-align: left; padding: .15em .8em .15em 0; border: 0; background: none;
  color: inherit; font-weight: normal }
.handful .found thead th { opacity: .7; border-bottom: 1px solid rgba(128, 128, 128, .5) }
.handful .found tr .number { text-align: right; font-variant-numeric: tabular-nums }
.handful .bar { min-width: 5em; width: 9em }
.handful .bar span { display: inline-block; height: .8em; background: #3b8ec2; vertical-align: middle }
.handful .bar .doubt { background: repeating-linear-gradient(135deg, #3b8ec2 0 2px, transparent 2px 5px) }
.handful p { margin: .3em 0 } .handful .warning { border-left: 3px solid #d55e00; padding-left: .6em }
.handful .next { opacity: .75 }
</style>"""


def text(value: Any) -> str:
    """Return a value as text of a page, of limited length, on one line."""
    return escape(short(value, LONGEST))


def page(title: str, *parts: str) -> str:
    """Return an element of a notebook with a title; parts are markup."""
    return f"{STYLE}<div class='handful'><p><b>{escape(title)}</b></p>{''.join(parts)}</div>"


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table; cells are markup. A column without a title has bars, and others but the first have numbers."""

    def cell(kind: str, name: str, markup: str) -> str:
        place = "" if name == head[0] or name in TEXTS else f" class='{'number' if name else 'bar'}'"
        return f"<{kind}{place}>{markup}</{kind}>"

    titles = "".join(cell("th", name, escape(name)) for name in head)
    body = "".join(
        f"<tr>{''.join(cell('td', name, markup) for name, markup in zip(head, row, strict=True))}</tr>" for row in rows
    )
    return f"<table class='found'><thead><tr>{titles}</tr></thead><tbody>{body}</tbody></table>"


def bar(share: float, doubt: float = 0.0) -> str:
    """Return a bar that fills a share of its cell, and then which are doubtful."""
    parts = [f"<span style='width: {100 * share:.0f}%'></span>"]
    parts += [f"<span class='doubt' style='width: {100 * doubt:.0f}%'></span>"] if doubt else []
    return "".join(parts)


def paragraphs(kind: str, sentences: Iterable[str]) -> str:
    """Return each sentence as a paragraph of this class."""
    return "".join(f"<p class='{kind}'>{escape(printable(sentence))}</p>" for sentence in sentences)


def of_answer(answer: Any, notes: Sequence[str], how: str = "", messages: Sequence[str] | None = None) -> str:
    """Return the classes of a batch with bars, or one row per group; then warnings and what to do next.

    `notes` are sentences about doubtful and unknown items, `how` says how it was labelled; the messages are those of
    the diagnostics if there are no others.
    """
    title = answer.summary().split("\n")[0]
    note = paragraphs("note", [f"{how}."] if how else [])
    if answer.groups is not None:
        todo = paragraphs("next", ["Next: answer[group], by_class(), plot()."])
        return page(title, note, _groups(answer), paragraphs("warning", messages or ()), todo)
    if messages is None:
        messages = [diagnostic.message for diagnostic in answer.diagnostics]
    bars = bars_of(answer, MOST_ROWS)
    most = max(one.items for one in bars if one.drawn)
    return page(
        title,
        note,
        table(["class", "", "items", "doubtful", "expected", "presence"], (_row(one, most) for one in bars)),
        paragraphs("note", notes),
        paragraphs("warning", messages),
        paragraphs("next", [_next(answer)]),
    )


def _row(found: Bar, most: int) -> list[str]:
    share, doubt = (n / max(most, 1) for n in (found.items - found.doubtful, found.doubtful))
    expected = "" if found.expected is None else f"{found.expected:.1f}"
    doubtful = f"{found.doubtful:,}" if found.doubtful else ""
    return [
        text(found.name),
        bar(share, doubt) if found.drawn else "",
        f"{found.items:,}",
        doubtful,
        expected,
        found.presence,
    ]


def _next(answer: Any) -> str:
    """Say what to do with this answer."""
    looks = "plot_map(), plot_items(images=…) and to_frame() show more."
    if answer.doubtful.any():
        return f"Next: look at the doubtful items first; BatchClassifier.questions says which tell most. {looks}"
    if len(answer.proposals):
        return f"Next: name the new groups in proposals, and add them with partial_fit. {looks}"
    return f"Next: {looks}"


def _groups(answer: Any) -> str:
    assert answer.groups is not None
    rows = []
    for place in range(min(len(answer.groups), MOST_ROWS)):
        one = answer[answer.groups[place]]
        present = ", ".join(map(str, one.present_classes[:5])) + (" …" if len(one.present_classes) > 5 else "")
        counts = [f"{int(n):,}" for n in (len(one), one.doubtful.sum(), one.rejected.sum())]
        rows.append([text(answer.groups[place]), *counts, text(present)])
    more = len(answer.groups) - len(rows)
    note = paragraphs("note", [f"And {more:,} more groups."] if more > 0 else [])
    return table(["group", "items", "doubtful", "rejected", "classes present"], rows) + note


def of_catalogue(catalogue: Any) -> str:
    """Return the size of a catalogue, what looks wrong with it, and how reliable its probabilities are."""
    title, *lines = str(catalogue.report()).split("\n")
    left_out = catalogue.head.left_out
    rows = []
    if len(left_out.rows):
        found = reliability(left_out)
        rows = [
            [f"{p:.2f}", bar(right), f"{right:.0%}"] for p, right in zip(found.probability, found.right, strict=True)
        ]
    shots = catalogue.shots
    per_class = f"{int(shots.min()):,} to {int(shots.max()):,} examples per class; {catalogue.dim:,} features."
    return page(
        title,
        paragraphs("note", [per_class]),
        paragraphs("note" if lines == ["Nothing looks wrong."] else "warning", lines),
        table(["probability of held-out examples", "", "right"], rows) if rows else "",
        paragraphs("next", ["Next: plot() draws confused classes; report() lists all that looks wrong."]),
    )


def of_explanation(why: Any) -> str:
    """Return why an item has its label: the certainties of label and rival, jointly and alone, and near examples."""
    label = text(why.label)
    rival = text(why.rival)
    rows = [["certainty of its label", bar(why.certainty), f"{why.certainty:.2f}", label]]
    rows.append(["alone", bar(why.alone_certainty), f"{why.alone_certainty:.2f}", text(why.alone)])
    if why.rival is not None:
        rows.append(["rival", bar(why.rival_certainty), f"{why.rival_certainty:.2f}", rival])
    if not np.isnan(why.unknown):
        rows.append(["none of the classes", bar(why.unknown), f"{why.unknown:.2f}", ""])
    return page(
        f"Item {why.item}",
        table([" ", "", "chance", "class"], rows),
        f"<p>{escape(printable(str(why)))}</p>",
    )
