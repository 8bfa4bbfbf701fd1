"""A page about what should be looked at in a catalogue, with pictures or texts of the examples; one file, no script."""

from __future__ import annotations

import base64
import os
from collections.abc import Sequence
from html import escape
from pathlib import Path

from handful.arguments import counted
from handful.fitted.check import KINDS, Finding
from handful.fitted.fitted import FittedModel
from handful.machine.outputs import written_whole

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


def write_check_page(
    catalogue: FittedModel, findings: Sequence[Finding], path: str | os.PathLike[str], title: str
) -> None:
    """Write the page.

    Parameters
    ----------
    catalogue, findings : FittedModel, sequence of Finding
        What was checked, and what was found.
    path : path
        The file, usually `.html`; an older one is replaced.
    title : str
        What the catalogue is called.
    """
    own = dict(zip(catalogue.examples.positions.tolist(), catalogue.examples.labels.tolist(), strict=True))
    of_class: dict[object, list[int]] = {}
    for at in catalogue.record.previews:
        if at in own:
            of_class.setdefault(own[at], []).append(at)
    body = [
        f"<h1>{escape(title)}: {counted(len(findings), 'thing')} to look at</h1>",
        f"<p class='quiet'>{escape(about(catalogue))}</p>",
        *([] if findings else ["<p class='good'>Nothing looks wrong.</p>"]),
    ]
    for kind, heading in KINDS.items():
        some = [finding for finding in findings if finding.kind == kind]
        if some:
            body.append(f"<h2>{heading} ({len(some):,})</h2>")
            body += [_article(catalogue, finding, own, of_class) for finding in some[:MOST_FINDINGS]]
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


def about(catalogue: FittedModel) -> str:
    """Say in a sentence what a catalogue is.

    Examples
    --------
    >>> import numpy as np
    >>> about(FittedModel.of(np.eye(2), np.array(["ant", "bee"])))
    '2 classes, 2 examples of 2 features each.'
    """
    record = catalogue.record
    n_examples = int(catalogue.shots.sum())
    made_by = f", made by {record.encoder.partition(', weights ')[0]}" if record.encoder else ""
    return (
        f"{counted(catalogue.n_classes, 'class')}, {counted(n_examples, 'example')} of {catalogue.dim:,} features each"
        f"{made_by}."
    )


def _article(
    catalogue: FittedModel, finding: Finding, own: dict[int, object], of_class: dict[object, list[int]]
) -> str:
    """Show a finding with its examples, and with examples of the classes that it names."""
    previews = catalogue.record.previews
    rows = [("", [at for at in finding.examples if at in previews or finding.kind != "source"][:MOST_EXAMPLES])]
    compared = finding.classes[:2] if finding.kind in ("suspect", "confusion", "names", "conflict") else ()
    rows += [
        (f"Examples of {label}", [at for at in of_class.get(label, []) if at not in finding.examples][:OF_CLASS])
        for label in compared
    ]
    shown = [
        f"<div>{f'<h3>{escape(heading)}</h3>' if heading else ''}{''.join(figures)}</div>"
        for heading, at_all in rows
        if (figures := [_figure(catalogue, at, None if heading else own.get(at)) for at in at_all[:MOST_EXAMPLES]])
    ]
    examples = f"<div class='examples'>{''.join(shown)}</div>" if shown else ""
    return f"<article><p>{escape(finding.message)}</p>{examples}</article>"


def _figure(catalogue: FittedModel, at: int, label: object) -> str:
    """Show an example, with its number and, if it is what the finding is about, its label and source."""
    preview = catalogue.record.previews.get(at)
    source = catalogue.record.sources.get(at)
    where = "" if source is None or label is None else str(source._replace(date="", file=""))
    about = f"<b>{at}</b>{'' if label is None else f' {escape(str(label))}'}{f'<br>{escape(where)}' if where else ''}"
    caption = f"<figcaption>{about}</figcaption>"
    if isinstance(preview, bytes):
        picture = base64.b64encode(preview).decode()
        return f"<figure><img alt='Example {at}' src='data:image/jpeg;base64,{picture}'>{caption}</figure>"
    text = "" if preview is None else f"<blockquote>{escape(preview[:MOST_LETTERS])}</blockquote>"
    return f"<figure class='text'>{text}{caption}</figure>"
