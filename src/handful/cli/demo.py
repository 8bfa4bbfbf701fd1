"""`handful demo`: one batch of real sentences, the classes found in it, the gain, and what to do next, as a page."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from textwrap import fill
from typing import TYPE_CHECKING, Annotated

import typer

from handful.cli.terminal import data
from handful.progress import bars

if TYPE_CHECKING:
    import numpy as np

    from handful.banks import FeatureBank

# Examples of each class, classes of a batch, items of a batch, and batches.
SHOTS = 1
INSIDE = 5
ITEMS = 75
BATCHES = 20
# Sentences of each class that are in no batch: a catalogue can have this many examples.
MOST_SHOTS = 5
# Sentences in the terminal; the page has them all.
MOST_SHOWN = 4
WIDTH = 80
AGAIN = (
    "handful classify",
    "catalogue.npz",
    "batch.npz",
    "--out labels.csv",
    "--out report.html",
)
NEXT = """\
What to do next:
  handful classify --help    label your own photographs, sentences or vectors
  handful review --help      name items on a page, with examples or without any
  handful doctor             list what is installed, and any problems with it
  python -m pydoc handful.BatchClassifier
                             the same in Python, with an example"""
STYLE = """
:root { --ink: #1b1f24; --quiet: #59636e; --rule: #d1d9e0; --soft: #f3f5f8; --in: #0072b2; --out: #b35900;
  --paper: #fff }
@media (prefers-color-scheme: dark) { :root { --ink: #e6edf3; --quiet: #9aa4ae; --rule: #3a424b; --soft: #1c2128;
  --in: #58a6d6; --out: #e3a04f; --paper: #12161b } }
* { box-sizing: border-box }
body { margin: 0 auto; max-width: 56rem; padding: 1.5rem 1rem 3rem; color: var(--ink); background: var(--paper);
  font: 16px/1.5 system-ui, -apple-system, "Segoe UI", Roboto, sans-serif; overflow-wrap: anywhere }
h1 { font-size: 1.6rem; line-height: 1.25; margin: 0 0 .5rem } h2 { font-size: 1.15rem; margin: 2rem 0 .5rem }
p { margin: .4rem 0 } a { color: var(--in) } .quiet { color: var(--quiet) }
.answers { display: grid; grid-template-columns: repeat(auto-fit, minmax(15rem, 1fr)); gap: .8rem; margin: 1.2rem 0 }
.answers div { background: var(--soft); border-radius: 8px; padding: .8rem 1rem }
.answers b { display: block; font-size: 1.9rem; line-height: 1.2 }
table { border-collapse: collapse; width: 100%; table-layout: fixed }
th:first-child { width: 30% } th, td { padding: .28rem .5rem; text-align: right; vertical-align: top }
th { font-weight: 600; overflow-wrap: normal; border-bottom: 1px solid var(--rule) }
td { border-bottom: 1px solid var(--soft) }
th:first-child, td:first-child, .words td, .words th { text-align: left; padding-left: 0 }
.words th:first-child { width: 34% }
td i { display: block; height: 5px; border-radius: 3px; background: var(--in); margin: .1rem 0 0 auto }
.absent td:first-child, .wrong { color: var(--out) } .absent i { background: var(--out) }
pre { background: var(--soft); border-radius: 8px; padding: .8rem 1rem; white-space: pre-wrap }
pre span { white-space: nowrap }
@media (max-width: 480px) { th, td { font-size: .86rem; padding: .25rem .3rem } .words th:first-child { width: 26% } }
"""


@dataclass(frozen=True)
class Labelled:
    """One batch: its sentences, the true labels, those of each item alone, and those of the batch as a whole."""

    sentences: np.ndarray
    truth: np.ndarray
    alone: np.ndarray
    together: np.ndarray

    def right(self, labels: np.ndarray) -> int:
        """Return how many labels are those of the truth."""
        return int((labels == self.truth).sum())

    def changed(self) -> list[int]:
        """Return the items whose label the rest of the batch changed."""
        return [i for i in range(len(self.truth)) if self.alone[i] != self.together[i]]


def demo(
    out: Annotated[Path, typer.Option(help="Folder for the page and its files; it must not exist yet.")] = Path(
        "handful-demo"
    ),
) -> None:
    """Label a batch of real sentences, and write a page about it: classes found, gain, what to do next. Takes seconds.

    \b
    Examples:
      handful demo
      handful demo --out /tmp/demo
    """
    import numpy as np

    from handful.arguments import counted
    from handful.classification import classify, write_page, write_predictions
    from handful.datasets import load_clinc150, load_clinc150_sentences
    from handful.errors import OptionError
    from handful.estimators import BatchClassifier
    from handful.machine.outputs import written_whole

    if out.exists():
        raise OptionError(f"{out} already exists; remove it, or name another folder with --out")
    with bars("labelling"):
        bank = load_clinc150()
        sentences = np.array(load_clinc150_sentences())
        catalogue, batches = drawn(bank)
        names = np.array(bank.class_names)[bank.labels]
        classifier = BatchClassifier().fit(bank.take(catalogue), names[catalogue])
        found = list[Labelled]()
        for batch in batches:
            X = bank.take(batch)
            # Alone: the same classifier, with each item as a batch of its own.
            alone = classifier.infer(X, groups=np.arange(len(X))).labels
            found.append(Labelled(sentences[batch], names[batch], alone, classifier.infer(X).labels))
        shown = middle(found)
        # This batch once more, from files, as `handful classify` does it.
        examples = {"features": bank.take(catalogue), "labels": names[catalogue], "text": sentences[catalogue]}
        items = {"features": bank.take(batches[shown]), "text": found[shown].sentences}
        sides = {"catalogue": examples, "batch": items}
        for side, arrays in sides.items():
            with written_whole(out / f"{side}.npz") as place, place.open("wb") as file:
                np.savez(file, **arrays)
        answer = classify(out / "catalogue.npz", out / "batch.npz")
        write_predictions(answer, out / "labels.csv")
        write_page(answer, out / "report.html", title="demo")
        presence = dict(zip(answer.classes.tolist(), answer.presence.tolist(), strict=True))
        page = out / "index.html"
        with written_whole(page) as place:
            place.write_text(page_about(found, found[shown], presence, bank.n_classes), encoding="utf-8")
    one = found[shown]
    present = answer.present_classes.tolist()
    about = (
        f"{ITEMS} sentences to a voice assistant; a catalogue of {bank.n_classes} intents, "
        f"{counted(SHOTS, 'example')} of each. {INSIDE} intents occur in the batch. Found: {', '.join(present)}."
    )
    data(
        f"{fill(about, WIDTH)}\n\n"
        f"  one at a time    {one.right(one.alone)} of {ITEMS} labels right\n"
        f"  as one batch     {one.right(one.together)} of {ITEMS} labels right\n\n"
        f"{changes_said(one)}\n\n"
        f"{fill(gain_said(found), WIDTH)}\n\nThe page: {page}\n\n{NEXT}"
    )


def drawn(bank: FeatureBank) -> tuple[np.ndarray, list[np.ndarray]]:
    """Return rows of one catalogue, and of batches of other rows with few classes each."""
    import numpy as np

    rng = np.random.default_rng(0)
    rows = np.array([rng.permutation(np.flatnonzero(bank.labels == k)) for k in range(bank.n_classes)])
    inside = [rng.choice(bank.n_classes, INSIDE, replace=False) for _ in range(BATCHES)]
    others = rows[:, MOST_SHOTS:]
    return rows[:, :SHOTS].ravel(), [rng.choice(others[few].ravel(), ITEMS, replace=False) for few in inside]


def middle(found: Sequence[Labelled]) -> int:
    """Return which batch is in the middle, by the number of labels that are right as a batch."""
    order = sorted(range(len(found)), key=lambda k: found[k].right(found[k].together))
    return order[(len(found) - 1) // 2]


def gain_said(found: Sequence[Labelled]) -> str:
    """Return the means over all batches, and the gain with its 95% interval, as a sentence."""
    import numpy as np

    alone, together = (
        100 * np.array([one.right(getattr(one, which)) / len(one.truth) for one in found])
        for which in ("alone", "together")
    )
    half = 1.96 * (together - alone).std(ddof=1) / np.sqrt(len(found))
    return (
        f"Over {len(found)} such batches: {alone.mean():.1f}% right one at a time, {together.mean():.1f}% as a "
        f"batch, a gain of {(together - alone).mean():.1f} ± {half:.1f} points."
    )


def changes_said(one: Labelled) -> str:
    """Return the first sentences whose label the batch changed, with both labels."""
    changed = one.changed()
    lines = ["Sentences whose label the batch changed:"]
    for i in changed[:MOST_SHOWN]:
        sentence = fill(f'"{one.sentences[i]}"', WIDTH, initial_indent="  ", subsequent_indent="   ")
        lines += [sentence, f"      {one.alone[i]} → {one.together[i]}"]
    if len(changed) > MOST_SHOWN:
        lines.append(f"  and {len(changed) - MOST_SHOWN} more, on the page")
    return "\n".join(lines)


def page_about(found: Sequence[Labelled], one: Labelled, presence: dict[str, float], n_classes: int) -> str:
    """Return the page: one batch, its classes, the items on which the two answers differ, and the mean gain of all."""
    from handful.arguments import counted

    columns = [Counter(labels.tolist()) for labels in (one.truth, one.alone, one.together)]
    really, alone, together = columns
    n_present = sum(chance > 0.5 for chance in presence.values())
    rows = "".join(
        f"<tr{'' if name in really else ' class=absent'}><td>{_plain(name)}</td>"
        + "".join(_bar(column[name], max(really.values())) for column in columns)
        + f"<td>{presence[name]:.0%}</td></tr>"
        for name in sorted({*really, *alone, *together}, key=lambda name: (-really[name], name))
    )
    changed = "".join(
        f"<tr><td>{escape(one.sentences[i])}</td>"
        + "".join(
            f"<td{'' if label == one.truth[i] else ' class=wrong'}>{_plain(label)}</td>"
            for label in (one.truth[i], one.alone[i], one.together[i])
        )
        + "</tr>"
        for i in one.changed()
    )
    return f"""<!doctype html><html lang='en'><head><meta charset='utf-8'>
<meta name='viewport' content='width=device-width, initial-scale=1'><meta name='color-scheme' content='light dark'>
<title>handful demo</title><style>{STYLE}</style></head><body>
<h1>{len(one.truth)} sentences, {n_present} of {n_classes} classes found</h1>
<p>A catalogue has {n_classes} classes, the intents of a voice assistant, with {counted(SHOTS, "example")} of each.
A batch of {len(one.truth)} new sentences arrives. Only {len(really)} of the classes occur in it, and it is not known
which.</p>
<div class='answers'>
<div>One at a time<b>{one.right(one.alone)} of {len(one.truth)} right</b>spread over {len(alone)} classes</div>
<div>As one batch<b>{one.right(one.together)} of {len(one.truth)} right</b>spread over {len(together)}
classes</div>
</div>
<p>{escape(gain_said(found))} This page shows the one in the middle, not the best one.</p>
<h2>The classes found</h2>
<table><thead><tr><th>class</th><th>in the batch</th><th>one at a time</th><th>as a batch</th>
<th>chance</th></tr></thead><tbody>{rows}</tbody></table>
<p class='quiet'>Chance: that the class is present. Orange: not in the batch.</p>
<h2>Where the batch changed the label</h2>
<table class='words'><thead><tr><th>sentence</th><th>truth</th><th>one at a time</th><th>as a batch</th></tr></thead>
<tbody>{changed}</tbody></table>
<h2>What to do next</h2>
<p><a href='report.html'>All sentences of this batch</a>, with their labels, how certain these are, and why.</p>
<p>Answer a few questions about it, and watch all other labels follow, from the files beside this page:</p>
<pre>handful review catalogue.npz batch.npz</pre>
<p>Label it again:</p>
<pre>{" ".join(f"<span>{part}</span>" for part in AGAIN)}</pre>
<p>Then use your own: photographs in folders, a table of sentences, or vectors. <code>handful classify --help</code></p>
<p class='quiet'>Sentences: CLINC150 (Larson et al., EMNLP 2019, CC BY 3.0), embedded by all-MiniLM-L6-v2.</p>
</body></html>
"""


def _plain(name: str) -> str:
    return escape(str(name).replace("_", " "))


def _bar(n: int, most: int) -> str:
    return f"<td>{n or '–'}{f'<i style=width:{min(n / most, 1):.0%}></i>' if n else ''}</td>"
