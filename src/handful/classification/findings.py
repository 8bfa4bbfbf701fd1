"""What should be looked at in examples and the model fitted to them, one finding each."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from handful.arguments import counted
from handful.errors import OptionError
from handful.fitted.fitted import FittedModel, equal_sentence

# Kinds of findings, in the order in which they are listed.
KINDS = {
    "model": "Another model",
    "disputed": "People disagree",
    "names": "Names that look alike",
    "equal": "Classes with the same examples",
    "conflict": "One example in two classes",
    "suspect": "Labels that look wrong",
    "confusion": "Classes that cannot be told apart",
    "duplicate": "Examples that occur twice",
    "few": "Few examples",
    "source": "Sources that are missing",
}


class Finding(NamedTuple):
    """One thing to look at."""

    kind: str  # one of `KINDS`
    message: str  # a sentence
    examples: tuple[int, ...] = ()  # numbers of items
    classes: tuple[Any, ...] = ()


class Source(NamedTuple):
    """Where an example came from; what is not known is empty."""

    item: str  # its name, a path or a row
    file: str = ""  # the folder or table that has it, relative to the folder of the catalogue
    person: str = ""
    date: str = ""
    batch: str = ""


def findings_about(
    model: FittedModel, sources: Mapping[int, Source], folder: Path, *, fewest: int, installed: str
) -> list[Finding]:
    """Return what should be looked at.

    Parameters
    ----------
    model : FittedModel
        The model of the catalogue, whose examples have the numbers of their items as positions.
    sources : mapping of int to Source
        Where they came from.
    folder : Path
        The folder of the catalogue: sources are relative to it.
    fewest : int
        Classes with fewer examples than this are listed.
    installed : str
        The encoder of that name on this machine, as `Record` has it; empty if that is not known.
    """
    if fewest < 1:
        raise OptionError(f"fewest must be at least 1, got {fewest}")
    return [
        *_model(model, installed),
        *_from_report(model),
        *_equal(model),
        *_copies(model),
        *_few(model, fewest),
        *_gone(model, sources, folder),
    ]


def _model(model: FittedModel, installed: str) -> Iterator[Finding]:
    made_by = model.record.encoder
    if made_by and installed and installed != made_by:
        yield Finding(
            "model",
            f"The vectors were made by {made_by}, and this machine has {installed}; build the catalogue again, or "
            "install the version that made it.",
        )


def _from_report(model: FittedModel) -> Iterator[Finding]:
    report = model.report()
    for similar in report.similar:
        yield Finding("names", f"{similar} look alike; merge them if they are the same class.", (), similar.names)
    for suspect in report.suspects:
        yield Finding("suspect", str(suspect), (suspect.position,), (suspect.label, suspect.looks_like))
    for pair in report.confusions:
        yield Finding("confusion", str(pair), (), (pair.first, pair.second))


def _equal(model: FittedModel) -> Iterator[Finding]:
    names = model.classes.tolist()
    for copy, earlier in model.equal_classes:
        pair = (names[earlier], names[copy])
        yield Finding("equal", equal_sentence(*pair), (), pair)


def _copies(model: FittedModel) -> Iterator[Finding]:
    """Examples of equal vectors."""
    examples = model.examples
    positions = examples.positions.tolist()
    labels = examples.labels.tolist()
    group = dict[bytes, list[int]]()
    for row, point in enumerate(examples.points):
        group.setdefault((point + 0.0).tobytes(), []).append(row)
    for rows in group.values():
        if len(rows) < 2:
            continue
        at = tuple(positions[row] for row in rows)
        classes = tuple(dict.fromkeys(labels[row] for row in rows))
        numbers = f"{', '.join(map(str, at[:-1]))} and {at[-1]}"
        if len(classes) > 1:
            named = ", ".join(map(str, classes))
            message = f"The examples {numbers} are equal, and labelled {named}; remove those that are wrong."
            yield Finding("conflict", message, at, classes)
        else:
            yield Finding(
                "duplicate", f"The examples {numbers} of {classes[0]} are equal; remove all but one.", at, classes
            )


def _few(model: FittedModel, fewest: int) -> Iterator[Finding]:
    positions = model.examples.positions
    labels = model.examples.labels
    for label, shots in zip(model.classes.tolist(), model.shots.tolist(), strict=True):
        if shots < fewest:
            own = [at for at, one in zip(positions.tolist(), labels.tolist(), strict=True) if one == label]
            yield Finding("few", f"{label} has {counted(int(shots), 'example')}; add more.", tuple(own), (label,))


def _gone(model: FittedModel, sources: Mapping[int, Source], folder: Path) -> Iterator[Finding]:
    """Examples whose files are gone."""
    there = dict[str, tuple[bool, bool]]()
    lost = dict[str, list[int]]()
    for at in model.examples.positions.tolist():
        source = sources.get(at)
        if source is None or not source.file:
            continue
        place = folder / source.file
        if source.file not in there:
            there[source.file] = place.exists(), place.is_dir()
        exists, is_folder = there[source.file]
        if not exists or (is_folder and not (place / source.item).exists()):
            lost.setdefault(source.file, []).append(at)
    for file, at_all in lost.items():
        files = "its file is" if len(at_all) == 1 else "their files are"
        what = f"{files} gone from {file}" if there[file][0] else f"{file} is gone"
        yield Finding("source", f"{counted(len(at_all), 'example')}: {what}.", tuple(at_all))
