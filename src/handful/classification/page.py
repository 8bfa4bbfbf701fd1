"""One page about a labelled batch: the classes present, items that look like none of them, then all items.

Classes, groups of unknown items and items stand beside examples of the catalogue, where these can be shown. Items come
least certain first.

It needs no other file and works on a phone: pictures are small and inside the page, and nothing is wider than it.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from html import escape
from pathlib import Path

import numpy as np

from handful.classification.examples import SMALL, CatalogueExamples, shortened, thumbnail
from handful.classification.predictions import MOST_ITEMS, Classified, Unknown
from handful.extraction.extract import Skipped
from handful.extraction.items import pick

# Items shown of each class, and examples of the catalogue beside a class and beside a group; more would be scrolled
# past, and pictures take space.
MOST_CERTAIN, OF_CLASS, OF_GROUP = 6, 2, 6
MOST_CLASSES, MOST_POSSIBLE = 60, 240
# Items shown that look like none of the classes and are in no group.
MOST_STRAYS = 60
# A class whose count is too low to be present is listed as possible if its probability of presence is at least this.
LEAST_CHANCE = 0.05
# Pixels of the longer side: sharp at half that size on a phone.
THUMBNAIL = 220

STYLE = """
:root { --ink: #1b1f24; --quiet: #59636e; --rule: #d1d9e0; --soft: #f6f8fa; --accent: #0072b2; --doubt: #b35900;
  --paper: #fff; --alarm: #fff4e5 }
@media (prefers-color-scheme: dark) { :root { --ink: #e6edf3; --quiet: #9aa4ae; --rule: #3a424b; --soft: #1c2128;
  --accent: #58a6d6; --doubt: #e3a04f; --paper: #12161b; --alarm: #33270f } }
* { box-sizing: border-box }
body { margin: 0 auto; max-width: 1180px; padding: 1.25rem 1rem 4rem; color: var(--ink); background: var(--paper);
  font: 16px/1.5 system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", sans-serif; overflow-wrap: anywhere }
h1 { font-size: 1.6rem; line-height: 1.25; margin: 0 0 .2rem } h2 { font-size: 1.2rem; margin: 2.2rem 0 .3rem }
h3 { font-size: 1rem; margin: 1.2rem 0 .3rem }
p { max-width: 46rem; margin: .3rem 0 } .quiet { color: var(--quiet) } small { font-size: .85rem }
.alarm { background: var(--alarm); border-left: 4px solid var(--doubt); border-radius: 4px; padding: .6rem .9rem;
  margin: .8rem 0; max-width: 54rem }
ul { list-style: none; margin: .8rem 0; padding: 0; display: grid; gap: .8rem }
.classes { grid-template-columns: repeat(auto-fill, minmax(min(100%, 21rem), 1fr)) }
.pictures { grid-template-columns: repeat(auto-fill, minmax(min(47%, 11rem), 1fr)) }
.sentences { gap: 0 }
li { border: 1px solid var(--rule); border-radius: 8px; padding: .7rem .8rem; min-width: 0 }
.sentences > li { border-width: 0 0 1px; border-radius: 0; padding: .7rem 0; display: grid; gap: .1rem 2rem }
@media (min-width: 720px) { .sentences > li { grid-template-columns: 1fr 20rem } }
.pictures li { padding: 0; overflow: hidden } .pictures li > div { padding: .45rem .6rem .6rem }
img { width: 100%; aspect-ratio: 1; object-fit: contain; background: var(--soft); display: block }
.head { display: flex; justify-content: space-between; gap: .8rem; align-items: baseline }
.head b { min-width: 0 } .head span { white-space: nowrap; font-variant-numeric: tabular-nums }
.bar { height: 6px; border-radius: 3px; background: var(--soft); margin: .35rem 0; overflow: hidden }
.bar i { display: block; height: 100%; background: var(--accent) } .doubt .bar i { background: var(--doubt) }
.strip { display: grid; grid-template-columns: repeat(6, 1fr); gap: 4px; margin-top: .5rem }
.strip img { border-radius: 4px }
.like { margin-top: .45rem } .row { display: flex; flex-wrap: wrap; gap: .1rem .6rem; align-items: center }
.row small { flex: 1 } .row .beside { order: -1 } .row .said { flex: 1 0 100%; margin: 0 }
.beside { display: flex; flex: none; flex-wrap: wrap; gap: 4px; margin-top: .25rem; max-width: 100% }
.beside i { width: 3.1rem; aspect-ratio: 1; border-radius: 4px; background-color: var(--soft);
  background-size: contain; background-position: center; background-repeat: no-repeat;
  print-color-adjust: exact; -webkit-print-color-adjust: exact }
.pictures small { display: block; line-height: 1.3 } .none { color: var(--doubt) }
.name { white-space: nowrap; overflow: hidden; text-overflow: ellipsis }
.said { margin: .4rem 0 0; padding: 0; display: block } .said li { border: 0; padding: .1rem 0; font-size: .9rem;
  color: var(--quiet) }
details { margin: .8rem 0 } summary { cursor: pointer }
@media print { details > * { display: block } li { break-inside: avoid } }
"""


def write_batch_page(classified: Classified, path: str | os.PathLike[str], *, title: str) -> None:
    """Write the page.

    Parameters
    ----------
    classified : Classified
        From `handful.classification.classify`.
    path : path
        The file, usually `.html`; an older one is replaced.
    title : str
        What the batch is called.
    """
    final = Path(path)
    final.parent.mkdir(parents=True, exist_ok=True)
    final.write_text(_page(classified, title), encoding="utf-8")


def _page(classified: Classified, title: str) -> str:
    n_items = len(classified.batch.rows)
    present, n_classes = classified.present, len(classified.class_names)
    made_by = f"; features of {classified.backbone.partition(', weights ')[0]}" if classified.backbone else ""
    how = "labelled jointly" if classified.joint_weight > 0 else "each labelled alone"
    said = (
        f"{_counted(n_items, 'item')}, {how}, with a catalogue of {_counted(n_classes, 'class')} "
        f"and {_counted(classified.n_examples, 'example')}{made_by}."
    )
    if classified.streamed:
        said += " The batch was streamed."
    beside = "" if classified.shown is None else ", then examples of the catalogue"
    examples = CatalogueExamples(classified.shown)
    parts = [
        f"<h1>{escape(title)}: {_counted(len(present), 'class')} present</h1><p class='quiet'>{escape(said)}</p>",
        *(f"<p class='alarm' role='note'>{escape(d.message)}</p>" for d in classified.diagnostics),
        _skipped(classified.batch.skipped),
        "<h2>Classes present</h2>",
        "<p class='quiet'>The expected number of items of each, the probability that there is at least one, and its "
        f"most certain items{beside}.</p>",
        f"<ul class='classes'>{''.join(_class_card(classified, examples, k) for k in present[:MOST_CLASSES])}</ul>",
        _left_out(len(present) - MOST_CLASSES, "class"),
        _possible(classified, present),
        _none_of_these(classified, examples),
        "<h2>Items, the least certain first</h2>",
        _items(classified, examples, MOST_ITEMS),
    ]
    return _document(title, STYLE + examples.style(), parts)


def _document(title: str, style: str, parts: Sequence[str]) -> str:
    return (
        "<!doctype html><html lang='en'><head><meta charset='utf-8'>"
        "<meta name='viewport' content='width=device-width, initial-scale=1'><meta name='color-scheme' "
        f"content='light dark'><title>{escape(title)}</title><style>{style}</style></head><body>{''.join(parts)}"
        "</body></html>"
    )


def _class_card(classified: Classified, examples: CatalogueExamples, k: int) -> str:
    count = classified.expected_counts[k]
    share = count / len(classified.batch.rows)
    mine = np.flatnonzero(classified.answers.labels == k)
    best = mine[np.argsort(-classified.answers.probabilities[mine], kind="stable")][:MOST_CERTAIN]
    name = classified.class_names[k]
    return (
        f"<li><div class='head'><b>{escape(name)}</b><span>{_amount(count)}</span></div>"
        f"<div class='bar' role='img' aria-label='{share:.0%} of the batch'><i style='width:{share:.1%}'></i></div>"
        f"<small class='quiet'>present with probability {escape(_percent(classified.presence[k]))}</small>"
        f"{_strip(classified, [int(i) for i in best])}"
        f"{_of_catalogue(examples.of_class(name, OF_CLASS))}</li>"
    )


def _of_catalogue(piece: str) -> str:
    return f"<div class='like row'><small class='quiet'>in the catalogue</small>{piece}</div>" if piece else ""


def _strip(classified: Classified, positions: Sequence[int]) -> str:
    """Show the items at these positions next to each other: pictures, or the first two sentences or names."""
    pictures, names = _pictures(classified, positions, SMALL), classified.batch.names
    if pictures is not None:
        return (
            f"<div class='strip'>{''.join(_image(p, names[i]) for i, p in zip(positions, pictures, strict=True))}</div>"
        )
    lines = [_words(classified, i) for i in positions[:2]]
    return f"<ul class='said'>{''.join(f'<li>{escape(line)}</li>' for line in lines)}</ul>"


def _possible(classified: Classified, present: Sequence[int]) -> str:
    chances, named = classified.presence, set(present)
    found = [k for k in np.argsort(-chances, kind="stable").tolist() if k not in named and chances[k] >= LEAST_CHANCE]
    if not found:
        return ""
    shown = ", ".join(
        f"{escape(classified.class_names[k])} ({escape(_percent(chances[k]))})" for k in found[:MOST_POSSIBLE]
    )
    more = f", and {_counted(len(found) - MOST_POSSIBLE, 'more class')}" if len(found) > MOST_POSSIBLE else ""
    return (
        f"<details><summary>{_counted(len(found), 'other class')} may be there</summary><p>{shown}{more}</p></details>"
    )


def _none_of_these(classified: Classified, examples: CatalogueExamples) -> str:
    """Show the rejected items: their groups, each with examples of the nearest class, then those in no group."""
    unknown = classified.unknown
    if unknown is None or not unknown.rejected.any():
        return ""
    low, high = unknown.interval
    cards = "".join(
        _group_card(classified, examples, unknown, number) for number in range(len(unknown.proposals))[:MOST_CLASSES]
    )
    strays = np.flatnonzero(unknown.rejected & (classified.proposals == 0))
    strays = strays[np.argsort(-unknown.chances[strays], kind="stable")]
    others = ""
    if len(strays):
        heading = f"<h3>{_counted(len(strays), 'item')} in no group</h3>"
        others = heading + _item_cards(classified, examples, [int(i) for i in strays[:MOST_STRAYS]])
        others += _left_out(len(strays) - MOST_STRAYS, "item")
    return (
        f"<h2>None of these classes</h2><p>{escape(unknown.said(len(classified.class_names)))}</p>"
        f"<p class='quiet'>Between {low:.0%} and {high:.0%} of the items belong to no class of the catalogue, with a "
        "chance of 90%. A group looks like one new class: name it, and add its items to the catalogue.</p>"
        f"<ul class='classes'>{cards}</ul>{_left_out(len(unknown.proposals) - MOST_CLASSES, 'group')}{others}"
    )


def _group_card(classified: Classified, examples: CatalogueExamples, unknown: Unknown, number: int) -> str:
    proposal = unknown.proposals[number]
    nearest = str(proposal.nearest)
    return (
        f"<li><div class='head'><b>New group {number + 1}</b><span>{_counted(proposal.size, 'item')}</span></div>"
        f"<small class='quiet'>two of them share a class with probability {escape(_percent(proposal.cohesion))}</small>"
        f"{_strip(classified, [int(i) for i in proposal.items[:MOST_CERTAIN]])}"
        f"<div class='like'><small class='quiet'>nearest class: <b>{escape(nearest)}</b></small>"
        f"{examples.of_class(nearest, OF_GROUP)}</div></li>"
    )


def _items(classified: Classified, examples: CatalogueExamples, most: int) -> str:
    """Show the least certain items, at most that many."""
    cards = _item_cards(classified, examples, classified.answers.least_certain(most).tolist())
    return cards + _left_out(len(classified.batch.rows) - most, "item")


def _item_cards(classified: Classified, examples: CatalogueExamples, positions: Sequence[int]) -> str:
    """Show items one by one, each with its label and an example of that class."""
    table = classified.predictions(positions)
    pictures = _pictures(classified, positions, THUMBNAIL)
    cards = []
    for place, i in enumerate(positions):
        sure, label = table["probability"][place], table["label"][place]
        head = f"<div class='head'><b>{escape(label)}</b><span>{escape(_percent(sure))}</span></div>"
        head += f"<div class='bar'><i style='width:{sure:.1%}'></i></div>"
        said = ""
        if table["runner_up"][place] is not None and table["runner_up_probability"][place] >= 0.005:
            other = f"or {table['runner_up'][place]}, {_percent(table['runner_up_probability'][place])}"
            said += f"<div><small class='quiet'>{escape(other)}</small></div>"
        if classified.unknown is not None and classified.unknown.rejected[i]:
            none = f"none of the classes, {_percent(table['unknown'][place])}"
            said += f"<div class='none'><small>{escape(none)}</small></div>"
        said += _of_catalogue(examples.of_item(i, label))
        kind = " class='doubt'" if classified.answers.doubtful[i] else ""
        if pictures is None:
            cards.append(f"<li{kind}><div>{escape(_words(classified, i))}</div><div>{head}{said}</div></li>")
        else:
            name = escape(classified.batch.names[i], quote=True)
            picture = _image(pictures[place], classified.batch.names[i])
            head = f"<small class='quiet name' title='{name}'>{name}</small>{head}"
            cards.append(f"<li{kind}>{picture}<div>{head}{said}</div></li>")
    return f"<ul class='{'sentences' if pictures is None else 'pictures'}'>{''.join(cards)}</ul>"


def _pictures(classified: Classified, positions: Sequence[int], size: int) -> list[str | None] | None:
    """Return the items as data URLs of small pictures, or None if they are not images."""
    contents = classified.batch.contents
    if contents is None or isinstance(contents, tuple):
        return None
    return [thumbnail(content, size) if isinstance(content, bytes) else None for content in pick(contents, positions)]


def _image(address: str | None, name: str) -> str:
    return f"<img src='{address or 'data:,'}' alt='{escape(name, quote=True)}' loading='lazy'>"


def _words(classified: Classified, position: int) -> str:
    """Return the text of an item, or its name if it has none."""
    contents = classified.batch.contents
    return shortened(contents[position] if isinstance(contents, tuple) else classified.batch.names[position])


def _skipped(skipped: Sequence[Skipped]) -> str:
    if not skipped:
        return ""
    lines = "".join(f"<li>{escape(str(item))}</li>" for item in skipped)
    return (
        f"<details class='alarm'><summary>{_counted(len(skipped), 'item')} could not be read and got no label</summary>"
        f"<ul class='said'>{lines}</ul></details>"
    )


def _left_out(n: int, what: str) -> str:
    return f"<p class='quiet'>And {_counted(n, f'more {what}')}, in the table of predictions.</p>" if n > 0 else ""


def _counted(n: int, what: str) -> str:
    plural = what + ("es" if what.endswith("s") else "s")
    return f"{n:,} {what if n == 1 else plural}"


def _amount(count: float) -> str:
    whole = abs(count - round(count)) < 0.05 or count >= 100
    return _counted(round(count), "item") if whole else f"{count:.1f} items"


def _percent(chance: float) -> str:
    """Return it in percent, with spaces at which no line breaks."""
    if chance >= 0.9995:
        return ">\N{NO-BREAK SPACE}99.9\N{NO-BREAK SPACE}%"
    digits = 1 if chance > 0.99 or chance < 0.01 else 0
    return f"{100 * chance:.{digits}f}\N{NO-BREAK SPACE}%"
