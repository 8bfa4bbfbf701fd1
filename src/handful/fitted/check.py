"""What should be looked at in a catalogue, one finding each, with the examples it is about."""

from __future__ import annotations

from collections.abc import Iterator
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
    examples: tuple[int, ...] = ()  # positions
    classes: tuple[Any, ...] = ()


def check_catalogue(catalogue: FittedModel, folder: Path, *, fewest: int = 2, model: str = "") -> list[Finding]:
    """Return what should be looked at, by kind.

    Parameters
    ----------
    catalogue : FittedModel
        The catalogue.
    folder : Path
        The folder of its file: sources are relative to it.
    fewest : int
        Classes with fewer examples than this are listed.
    model : str
        The encoder of that name on this machine, as `Record` has it; empty if that is not known.

    Examples
    --------
    >>> import numpy as np
    >>> catalogue = FittedModel.of(np.eye(3)[[0, 0, 1, 2]], np.array(["ant", "ant", "bee", "Bee"]))
    >>> for finding in check_catalogue(catalogue, Path(".")):
    ...     print(f"{finding.kind}: {finding.message}")
    names: 'Bee' (1) and 'bee' (1) look alike; merge them if they are the same class.
    duplicate: The examples 0 and 1 of ant are equal; remove all but one.
    few: Bee has 1 example; add more.
    few: bee has 1 example; add more.
    source: 4 examples of 4 without a source.
    """
    if fewest < 1:
        raise OptionError(f"fewest must be at least 1, got {fewest}")
    found = [
        *_model(catalogue, model),
        *_from_report(catalogue),
        *_equal(catalogue),
        *_copies(catalogue),
        *_few(catalogue, fewest),
        *_sources(catalogue, folder),
    ]
    order = list(KINDS)
    return sorted(found, key=lambda finding: order.index(finding.kind))


def _model(catalogue: FittedModel, model: str) -> Iterator[Finding]:
    made_by = catalogue.record.encoder
    if made_by and model and model != made_by:
        yield Finding(
            "model",
            f"The vectors were made by {made_by}, and this machine has {model}; build the catalogue again, or install "
            "the version that made it.",
        )


def _from_report(catalogue: FittedModel) -> Iterator[Finding]:
    report = catalogue.report()
    for similar in report.similar:
        yield Finding("names", f"{similar} look alike; merge them if they are the same class.", (), similar.names)
    for suspect in report.suspects:
        yield Finding("suspect", str(suspect), (suspect.position,), (suspect.label, suspect.looks_like))
    for pair in report.confusions:
        yield Finding("confusion", str(pair), (), (pair.first, pair.second))


def _equal(catalogue: FittedModel) -> Iterator[Finding]:
    names = catalogue.classes.tolist()
    for copy, earlier in catalogue.equal_classes:
        pair = (names[earlier], names[copy])
        yield Finding("equal", equal_sentence(*pair), (), pair)


def _copies(catalogue: FittedModel) -> Iterator[Finding]:
    """Examples of equal content, or of equal vectors."""
    examples = catalogue.examples
    sources = catalogue.record.sources
    positions = examples.positions.tolist()
    labels = examples.labels.tolist()
    first = dict[Any, int]()
    group = dict[int, list[int]]()
    for row, at in enumerate(positions):
        content = sources[at].content if at in sources else ""
        keys = [(examples.points[row] + 0.0).tobytes(), *([content] if content else [])]
        known = next((first[key] for key in keys if key in first), row)
        first.update(dict.fromkeys(keys, known))
        group.setdefault(known, []).append(row)
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


def _few(catalogue: FittedModel, fewest: int) -> Iterator[Finding]:
    positions = catalogue.examples.positions
    labels = catalogue.examples.labels
    for label, shots in zip(catalogue.classes.tolist(), catalogue.shots.tolist(), strict=True):
        if shots < fewest:
            own = [at for at, one in zip(positions.tolist(), labels.tolist(), strict=True) if one == label]
            yield Finding("few", f"{label} has {counted(int(shots), 'example')}; add more.", tuple(own), (label,))


def _sources(catalogue: FittedModel, folder: Path) -> Iterator[Finding]:
    """Examples whose files are gone, and those of which nobody knows where they came from."""
    positions = catalogue.examples.positions.tolist()
    sources = catalogue.record.sources
    unknown = [at for at in positions if at not in sources or not (sources[at].file or sources[at].item)]
    if unknown:
        yield Finding(
            "source", f"{counted(len(unknown), 'example')} of {len(positions):,} without a source.", tuple(unknown)
        )
    there = dict[str, tuple[bool, bool]]()
    lost = dict[str, list[int]]()
    for at in positions:
        source = sources.get(at)
        if source is None or not source.file:
            continue
        place = folder / source.file
        if source.file not in there:
            there[source.file] = place.exists(), place.is_dir()
        exists, is_folder = there[source.file]
        if not exists or (is_folder and source.item and not (place / source.item).exists()):
            lost.setdefault(source.file, []).append(at)
    for file, at_all in lost.items():
        files = "its file is" if len(at_all) == 1 else "their files are"
        what = f"{files} gone from {file}" if there[file][0] else f"{file} is gone"
        yield Finding("source", f"{counted(len(at_all), 'example')}: {what}.", tuple(at_all))
