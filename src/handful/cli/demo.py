"""`handful demo`: one batch of real sentences, the classes found in it, the gain, and what to do next."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
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
# Sentences that are printed; the page has them all.
MOST_SHOWN = 4
WIDTH = 80
NEXT = """\
What to do next:
  handful classify --help    label your own photographs, sentences or vectors
  handful review --help      name items on a page, with examples or without any
  handful doctor             list what is installed, for a report of a problem
  python -m pydoc handful.BatchClassifier
                             the same in Python, with an example"""


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
    """Label a batch of real sentences; print the classes found and the gain, and write a page. Takes seconds.

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
        f"{fill(gain_said(found), WIDTH)}\n\nThe page: {out / 'report.html'}\n\n{NEXT}"
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
