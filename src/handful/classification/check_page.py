"""A page about what should be looked at in a catalogue, with pictures or texts of the examples; one file, no script."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping, Sequence
from html import escape
from pathlib import Path
from typing import TypeAlias

from handful.arguments import counted
from handful.catalogue.file import CatalogueFile
from handful.classification.checking import Checked
from handful.classification.findings import KINDS, Finding, Source
from handful.classification.page_data import SMALL, pictures
from handful.fitted import FittedModel
from handful.items import pictures_of
from handful.machine.outputs import written_whole

# Headings, and the examples below them.
Rows: TypeAlias = list[tuple[str, tuple[int, ...]]]
# A small picture and a text of items.
Previews: TypeAlias = Mapping[int, tuple[str | None, str]]

# Findings of each kind on the page, and examples beside a finding and beside each class of it.
MOST_FINDINGS = 200
MOST_EXAMPLES = 6
OF_CLASS = 3
MOST_LETTERS = 300
STYLE = """
:root { --ink: #1b1f24; --quiet: #59636e; --rule: #d1d9e0; --paper: #fff; --accent: #0072b2; --good: #1a7f4b }
@media (prefers-color-scheme: dark) { :root { --ink: #e6edf3; --quiet: #9aa4ae; --rule: #3a424b; --paper: #12161b;
  --accent: #58a6d6; --good: #56c487 } }
* { box-sizing: border-box }
body { margin: 0 auto; max-width: 70rem; padding: 1rem 1rem 3rem; color: var(--ink); background: var(--paper);
  font: 16px/1.45 system-ui, -apple-system, "Segoe UI", Roboto, sans-serif; overflow-wrap: anywhere }
h1 { font-size: 1.45rem; margin: 0 0 .2rem } h2 { font-size: 1.1rem; margin: 1.8rem 0 .5rem }
p { margin: .2rem 0 } .quiet, figcaption { color: var(--quiet) } .good { color: var(--good); font-weight: 600 }
article { border-top: 1px solid var(--rule); padding: .7rem 0 }
.examples { display: flex; flex-wrap: wrap; gap: .7rem 1.6rem; margin-top: .5rem }
.examples > div { display: flex; flex-wrap: wrap; gap: .5rem }
.examples h3 { font-size: .85rem; margin: 0; width: 100%; color: var(--quiet); font-weight: 600 }
figure { margin: 0; width: 8rem } figure.text { width: 16rem; max-width: 100% }
figure img { width: 8rem; height: 7rem; object-fit: contain; object-position: left bottom; display: block }
figure blockquote { margin: 0; border-left: 3px solid var(--rule); padding-left: .5rem }
figcaption { font-size: .8rem }
"""


def write_check_page(checked: Checked, file: CatalogueFile, path: str | os.PathLike[str], title: str) -> None:
    """Write the page.

    Parameters
    ----------
    checked : Checked
        What was found.
    file : CatalogueFile
        The catalogue, which knows how its examples look.
    path : path
        The file, usually `.html`; an older one is replaced.
    title : str
        What the catalogue is called.
    """
    examples = checked.model.examples
    own = dict(zip(examples.positions.tolist(), examples.labels.tolist(), strict=True))
    of_class: dict[object, list[int]] = {}
    for at, label in own.items():
        of_class.setdefault(label, []).append(at)
    of_kind: dict[str, list[Finding]] = {}
    for finding in checked.findings:
        of_kind.setdefault(finding.kind, []).append(finding)
    shown = [(finding, _examples(finding, of_class)) for some in of_kind.values() for finding in some[:MOST_FINDINGS]]
    previews = _previews(file, {at for _, rows in shown for _, at_all in rows for at in at_all})
    articles = {id(finding): _article(checked.sources, own, finding, rows, previews) for finding, rows in shown}
    body = [
        f"<h1>{escape(title)}: {counted(len(checked.findings), 'thing')} to look at</h1>",
        f"<p class='quiet'>{escape(about(checked.model))}</p>",
        *([] if checked.findings else ["<p class='good'>Nothing looks wrong.</p>"]),
    ]
    for kind, some in of_kind.items():
        body.append(f"<h2>{KINDS[kind]} ({len(some):,})</h2>")
        body += [articles[id(finding)] for finding in some[:MOST_FINDINGS]]
        if len(some) > MOST_FINDINGS:
            body.append(f"<p class='quiet'>And {len(some) - MOST_FINDINGS:,} more.</p>")
    page = (
        "<!doctype html><html lang='en'><head><meta charset='utf-8'>"
        "<meta http-equiv='Content-Security-Policy' content=\"default-src 'none'; img-src data:; "
        "style-src 'unsafe-inline'\"><meta name='viewport' content='width=device-width, initial-scale=1'>"
        f"<meta name='color-scheme' content='light dark'><title>{escape(title)}</title><style>{STYLE}</style></head>"
        f"<body>{''.join(body)}</body></html>"
    )
    with written_whole(Path(path)) as place:
        place.write_text(page, encoding="utf-8", errors="backslashreplace")


def about(model: FittedModel) -> str:
    """Say in a sentence what a catalogue is.

    Examples
    --------
    >>> import numpy as np
    >>> about(FittedModel.of(np.eye(2), np.array(["ant", "bee"])))
    '2 classes, 2 examples of 2 features each.'
    """
    made_by = f", made by {model.record.encoder.partition(', weights ')[0]}" if model.record.encoder else ""
    n_examples = int(model.shots.sum())
    return (
        f"{counted(model.n_classes, 'class')}, {counted(n_examples, 'example')} of {model.dim:,} features each"
        f"{made_by}."
    )


def _examples(finding: Finding, of_class: Mapping[object, Sequence[int]]) -> Rows:
    """Return the examples that a finding is about, and some of the classes that it names, with their headings."""
    rows = [("", finding.examples[:MOST_EXAMPLES])] if finding.kind != "source" else []
    compared = finding.classes[:2] if finding.kind in ("suspect", "confusion", "names", "conflict") else ()
    for label in compared:
        others = [at for at in of_class.get(label, ()) if at not in finding.examples]
        rows.append((f"Examples of {label}", tuple(others[:OF_CLASS])))
    return rows


def _previews(file: CatalogueFile, items: Collection[int]) -> dict[int, tuple[str | None, str]]:
    """Return a small picture of each item, in base64, if it is an image that can be read, and its text."""
    order = sorted(items)
    contents = pictures_of(file, order) if order else None
    if contents is None:
        return {}
    if isinstance(contents, tuple):
        return {at: (None, text) for at, text in zip(order, contents, strict=True)}
    drawn = pictures(contents, range(len(order)), SMALL)
    return {at: (picture, "") for at, picture in zip(order, drawn, strict=True)}


def _article(
    sources: Mapping[int, Source], own: Mapping[int, object], finding: Finding, rows: Rows, previews: Previews
) -> str:
    """Show a finding with its examples, and with examples of the classes that it names."""
    shown = []
    for heading, at_all in rows:
        figures = "".join(_figure(sources.get(at), at, None if heading else own.get(at), previews) for at in at_all)
        title = f"<h3>{escape(heading)}</h3>" if heading else ""
        if figures:
            shown.append(f"<div>{title}{figures}</div>")
    below = f"<div class='examples'>{''.join(shown)}</div>" if shown else ""
    return f"<article><p>{escape(finding.message)}</p>{below}</article>"


def _figure(source: Source | None, at: int, label: object, previews: Previews) -> str:
    """Show an example, with its number and, if it is what the finding is about, its label and source."""
    picture, text = previews.get(at, (None, ""))
    where = ""
    if source is not None and label is not None:
        by = f"said by {source.person}" if source.person else ""
        where = f"<br>{escape(', '.join(filter(None, (source.item, by, source.batch))))}"
    about = f"<b>{at}</b>{'' if label is None else f' {escape(str(label))}'}{where}"
    caption = f"<figcaption>{about}</figcaption>"
    if picture is not None:
        return f"<figure><img alt='Example {at}' src='data:image/jpeg;base64,{picture}'>{caption}</figure>"
    quote = f"<blockquote>{escape(text[:MOST_LETTERS])}</blockquote>" if text else ""
    return f"<figure class='text'>{quote}{caption}</figure>"
