"""Changes of a catalogue in a file: add, remove, rename, merge.

Every change reads the file, and writes it again whole: a process that is killed leaves the old file or the new one. A
second process that wants to change it at the same time is refused.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from handful.arguments import did_you_mean
from handful.errors import BankError, LabelError, OptionError
from handful.fitted.files import load_catalogue, save_catalogue
from handful.fitted.fitted import Catalogue
from handful.fitted.labels import objects, with_label
from handful.fitted.record import PreviewKind, Record, Source, shown_rows
from handful.machine.lock import only_changer
from handful.machine.outputs import linked_file
from handful.reading.class_names import is_missing, new_name, plain_label
from handful.shapes import Float

PathLike = str | os.PathLike[str]


class Added(NamedTuple):
    """What `add_examples` did.

    Attributes
    ----------
    catalogue : Catalogue
        What was written.
    n_added, n_known : int
        Number of examples that were added, and of those that the catalogue had already.
    new_classes : tuple of labels
        Classes that it did not have.
    """

    catalogue: Catalogue
    n_added: int
    n_known: int
    new_classes: tuple[Any, ...]


def change(path: PathLike, edit: Callable[[Catalogue], Catalogue]) -> Catalogue:
    """Read a catalogue, change it and write it again, while no other process can; return what was written.

    Parameters
    ----------
    path : path
        The file.
    edit : callable
        Returns the changed catalogue; the file stays as it is if that is the same object.
    """
    file = Path(path)
    with only_changer(file, OptionError):
        before = load_catalogue(file)
        after = edit(before)
        if after is not before:
            save_catalogue(after, file)
    return after


def add_examples(
    path: PathLike,
    features: Float[np.ndarray, "row dim"],
    labels: Sequence[Any],
    sources: Sequence[Source],
    *,
    previews: Mapping[int, str | bytes] | None = None,
    columns: Mapping[str, Sequence[Any]] | None = None,
    encoder: str = "",
    kind: PreviewKind = "",
) -> Added:
    """Add examples to a catalogue in a file, with where they came from.

    An example of the same content and label as one that is there is left out; one of the same content and another label
    is refused. The head is fitted from the one that is there, see `Catalogue.updated_from`.

    Parameters
    ----------
    path : path
        The catalogue.
    features, labels, sources : [row, feature], [row], [row]
        The examples, the labels that a person gave them, and where they came from. The files of the sources are
        relative to the folder of the catalogue, see `relative_to`.
    previews : mapping of int to str or bytes, optional
        Texts, or small pictures as JPEG, of some rows; those of the first few examples of a class are kept.
    columns : mapping of str to sequence, optional
        Other columns of the rows.
    encoder, kind : str
        What made the vectors, and of what: as in `Record`. Vectors of another encoder are refused.

    Returns
    -------
    Added
        The catalogue, and how many examples were added.

    Examples
    --------
    >>> import tempfile
    >>> place = Path(tempfile.mkdtemp()) / "animals.handful"
    >>> save_catalogue(Catalogue.of(np.eye(3), np.array(["ant", "bee", "cat"])), place)
    >>> source = Source("7.jpg", "monday", "5d41402abc4b2a76", person="Ada", date="2026-11-17")
    >>> added = add_examples(place, np.ones((1, 3)), ["bee"], [source])
    >>> added.n_added, load_catalogue(place).record.sources[3].person
    (1, 'Ada')
    >>> add_examples(place, np.ones((1, 3)), ["bee"], [source]).n_added
    0
    """
    found: list[Added] = []

    def edit(before: Catalogue) -> Catalogue:
        _check_fits(before, np.shape(features)[1], encoder)
        given = _labels_like(before, labels)
        rows = _new_rows(before, given, sources)
        if not rows:
            found.append(Added(before, 0, len(labels), ()))
            return before
        more = Record(
            encoder,
            kind,
            sources={at: sources[row] for at, row in enumerate(rows)},
            previews={at: previews[row] for at, row in enumerate(rows) if previews and row in previews},
            columns={
                name: {at: values[row] for at, row in enumerate(rows)} for name, values in (columns or {}).items()
            },
        )
        after = before.with_examples(np.asarray(features)[rows], given[rows], more)
        after = _with_few_previews(after.updated_from(before))
        found.append(Added(after, len(rows), len(labels) - len(rows), tuple(before.unknown(given[rows]))))
        return after

    change(path, edit)
    return found[0]


def remove(path: PathLike, labels: Sequence[Any] = (), positions: Sequence[int] = ()) -> Catalogue:
    """Remove classes with all their examples, and single examples; the rest is fitted again.

    Parameters
    ----------
    path : path
        The catalogue.
    labels : sequence of labels
        The classes.
    positions : sequence of int
        The examples, by their positions.

    Returns
    -------
    Catalogue
        What was written.

    Examples
    --------
    >>> import tempfile
    >>> place = Path(tempfile.mkdtemp()) / "animals.handful"
    >>> save_catalogue(Catalogue.of(np.eye(3), np.array(["ant", "bee", "cat"])), place)
    >>> rename(place, "ant", "wasp").classes.tolist()
    ['bee', 'cat', 'wasp']
    >>> merge(place, ["bee", "wasp"], "insect").classes.tolist()
    ['cat', 'insect']
    >>> remove(place, ["insect"]).classes.tolist()
    ['cat']
    """

    def edit(before: Catalogue) -> Catalogue:
        after = before
        if len(positions):
            after = after.without_examples(np.asarray(positions, np.int64))
        classes = [_class(before, label) for label in labels]
        return after.without(_array(classes, before)) if classes else after

    return change(path, edit)


def rename(path: PathLike, label: Any, new: Any) -> Catalogue:
    """Give a class another name; nothing is fitted again.

    Parameters
    ----------
    path : path
        The catalogue.
    label, new : label
        The class, and its new name, which no class may have.

    Returns
    -------
    Catalogue
        What was written.

    See Also
    --------
    remove : With an example.
    """
    return change(path, lambda before: _relabelled(before, [label], new, merging=False))


def merge(path: PathLike, labels: Sequence[Any], into: Any) -> Catalogue:
    """Make one class of several, and fit all again.

    Parameters
    ----------
    path : path
        The catalogue.
    labels : sequence of labels
        The classes.
    into : label
        The name of the one class, one of theirs or new.

    Returns
    -------
    Catalogue
        What was written.

    See Also
    --------
    remove : With an example.
    """
    return change(path, lambda before: _relabelled(before, labels, into, merging=True))


def _relabelled(before: Catalogue, labels: Sequence[Any], new: Any, *, merging: bool) -> Catalogue:
    old = [_class(before, label) for label in labels]
    classes = before.classes.tolist()
    wanted = _labels_like(before, [new_name(new, [*classes, *map(str, classes)])])[0]
    if not merging and wanted in classes:
        raise LabelError(f"{new!r} is a class already; merge the two, or choose another name")
    return before.relabelled(with_label(before.classes, np.array([label in old for label in classes]), wanted))


def relative_to(catalogue: PathLike, file: PathLike) -> str:
    """Return the path of a file as a `Source` has it: relative to the folder of the catalogue, of no link to it.

    Examples
    --------
    >>> relative_to("here/birds.handful", "here/photos")
    'photos'
    """
    try:
        return Path(os.path.relpath(file, linked_file(Path(catalogue)).parent)).as_posix()
    except ValueError:  # another drive of Windows
        return Path(file).absolute().as_posix()


def _with_few_previews(catalogue: Catalogue) -> Catalogue:
    """Keep texts and pictures of the first few examples of each class that have one."""
    record = catalogue.record
    examples = catalogue.examples
    rows = np.flatnonzero(np.isin(examples.positions, list(record.previews)))
    kept = examples.positions[rows[shown_rows(examples.labels[rows])]].tolist() if len(rows) else []
    few = Record(**{**vars(record), "previews": {at: record.previews[at] for at in kept}})
    return catalogue.with_record(few)


def other_length(catalogue: Catalogue, dim: int, whose: str) -> BankError:
    """Return the error for vectors that are not as long as those of the catalogue."""
    return BankError(
        f"vectors of the catalogue have {catalogue.dim} numbers, {whose} {dim}; both must come from the same encoder"
    )


def _check_fits(catalogue: Catalogue, dim: int, encoder: str) -> None:
    if dim != catalogue.dim:
        raise other_length(catalogue, dim, "the new ones")
    made_by = catalogue.record.encoder
    if made_by and encoder and made_by != encoder:
        raise BankError(
            f"the catalogue was made by {made_by}, the new examples by {encoder}; make both with the same encoder"
        )


def _new_rows(catalogue: Catalogue, labels: npt.NDArray[Any], sources: Sequence[Source]) -> list[int]:
    """Return the rows that the catalogue does not have yet; refuse those that it has with another label."""
    own = dict(zip(catalogue.examples.positions.tolist(), catalogue.examples.labels.tolist(), strict=True))
    there = {source.content: own[at] for at, source in catalogue.record.sources.items() if source.content and at in own}
    rows = []
    for row, (label, source) in enumerate(zip(labels.tolist(), sources, strict=True)):
        if not source.content or source.content not in there:
            rows.append(row)
        elif there[source.content] != label:
            raise LabelError(
                f"{source.item} is in the catalogue as {there[source.content]!r}, and would be added as {label!r}; "
                "remove that example first, or leave this one out"
            )
        there[source.content] = label
    return rows


def _labels_like(catalogue: Catalogue, labels: Sequence[Any]) -> npt.NDArray[Any]:
    """Return labels as the catalogue has them: classes by their names, whatever kind of labels it has."""
    known = {str(label): label for label in catalogue.classes.tolist()}
    found = []
    for label in labels:
        plain = plain_label(label)
        if is_missing(label) and str(plain) not in known:
            raise LabelError(f"an example has the label {label!r}; give it a class, or leave it out")
        found.append(known.get(str(plain), plain))
    return _array(found, catalogue)


def _array(labels: Sequence[Any], catalogue: Catalogue) -> npt.NDArray[Any]:
    return objects(labels) if catalogue.classes.dtype.kind == "O" else np.array(labels)


def _class(catalogue: Catalogue, label: Any) -> Any:
    found = _labels_like(catalogue, [label]).tolist()[0]
    if catalogue.unknown(_array([found], catalogue)):
        names = [str(one) for one in catalogue.classes.tolist()]
        raise LabelError(f"class {label!r} is not in the catalogue{did_you_mean(label, names)}; check its name")
    return found
