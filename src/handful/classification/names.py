"""Names of classes in a file, as texts or as vectors, and their vectors.

A file of texts is `.txt`, one class per line (further texts about it after tabs); or any table that `read` reads, with
the columns `label` and `text`; or `.json`, an object from labels to a text or a list of texts. Without a text of its
own, a class is described by its label: `book_flight` and `BookFlight` read "book flight". A file of vectors is anything
else that `read` reads as vectors, with one or several rows per class.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

import numpy as np

from handful.errors import BankError, LabelError, OptionError
from handful.extraction.items import list_items
from handful.extraction.options import Reading, asked_of
from handful.fitted import FittedModel
from handful.machine.untrusted import lines_of, read_json, read_text
from handful.reading.class_names import is_missing, plain_label
from handful.reading.labels import labelled
from handful.reading.read import read_input
from handful.shapes import Float, Int

if TYPE_CHECKING:
    from handful.extraction.encoder import Encoder


@dataclass(frozen=True, eq=False)
class NamedClasses:
    """Classes with texts, or with vectors.

    Attributes
    ----------
    labels : tuple of str
        The classes.
    texts : tuple of tuple of str, or None
        What describes each class; None if there are vectors.
    vectors, codes : Float[np.ndarray, "row dim"], Int[ndarray, "row"], or None
        Vectors, and the class of each; None if there are texts.
    made_by : str
        Encoder that made the vectors, if that is known.
    """

    labels: tuple[str, ...]
    texts: tuple[tuple[str, ...], ...] | None
    vectors: Float[np.ndarray, "row dim"] | None = None
    codes: Int[np.ndarray, "row"] | None = None
    made_by: str = ""

    def embedded(self, network: Encoder | None) -> tuple[Float[np.ndarray, "row dim"], Int[np.ndarray, "row"]]:
        """Return the vectors, and the class of each; texts are embedded."""
        if self.texts is None:
            assert self.vectors is not None
            assert self.codes is not None
            return self.vectors, self.codes
        if network is None:
            raise OptionError(
                "the names are texts, and which encoder made the vectors of the batch is not recorded; name it with "
                "`encoder`, or give a file with vectors of the names"
            )
        if network.embed_texts is None:
            raise OptionError(
                f"encoder {network.name} reads images and has no text side, so it cannot read names; use one that "
                "has, such as open_clip:NAME/PRETRAINED, or give a file with vectors of the names"
            )
        codes = np.arange(len(self.labels)).repeat([len(of_class) for of_class in self.texts])
        vectors = network.embed_texts([text for of_class in self.texts for text in of_class])
        return np.asarray(vectors, np.float32), codes


def read_names(path: Path, *, beside: bool = False, **reading: Unpack[Reading]) -> NamedClasses:
    r"""Read a file of names; `beside` a catalogue, the columns named are those of the catalogue unless it has vectors.

    Examples
    --------
    >>> import tempfile
    >>> file = Path(tempfile.mkdtemp()) / "intents.txt"
    >>> _ = file.write_text("book_flight\nBookHotel\nweather\twill it rain\thow hot is it\n")
    >>> named = read_names(file)
    >>> named.labels, named.texts
    (('book_flight', 'BookHotel', 'weather'), (('book flight',), ('book hotel',), ('will it rain', 'how hot is it')))
    """
    labels = reading.get("labels")
    kind = path.name.lower().removesuffix(".gz").rpartition(".")[2]
    if kind in ("txt", "json") and labels is not None and not beside:
        raise OptionError(f"{path} has no columns, so it has no column {labels!r}; leave it out")
    if kind == "txt":
        return _of_texts(path, _lines(path))
    if kind == "json":
        return _of_texts(path, _of_json(path))
    # Lines and gaps are those of catalogue and batch.
    asked = asked_of(reading)._replace(gaps=False, header_row=None)
    table = read_input(path, asked._replace(text=None) if beside else asked)
    if table.images is not None:
        raise BankError(f"{path} must have the columns 'label' and 'text', with the names of classes")
    if table.text is not None and table.vectors is None:
        items = list_items(table, labels=None if beside else labels)
        classes = [items.class_names[code] for code in items.labels]
        rows = [(label, [str(text)]) for label, text in zip(classes, items.source, strict=True)]
        return _of_texts(path, rows, many=True)
    bank = labelled(table, labels)
    vectors = np.asarray(bank.features, np.float32)
    return NamedClasses(tuple(bank.class_names), None, vectors, bank.labels.astype(np.int64), bank.provenance.encoder)


def spoken(label: str) -> str:
    """Return a label as words.

    Examples
    --------
    >>> spoken("book_flight"), spoken("BookFlight"), spoken("PTO-request"), spoken("what's up")
    ('book flight', 'book flight', 'PTO request', "what's up")
    """
    words = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", " ", label)
    words = re.sub(r"[\s_\-./]+", " ", words).strip()
    # Capitals of CamelCase are no names; those of an abbreviation are.
    return " ".join(w if w.isupper() and len(w) > 1 else w.lower() for w in words.split()) if words != label else label


def with_names(
    examples: FittedModel | None,
    class_names: Sequence[str],
    named: NamedClasses,
    network: Encoder | None,
) -> tuple[FittedModel, tuple[str, ...]]:
    """Add names to a catalogue whose classes are numbers; return it, and the names of all its classes.

    A name belongs to the class of the same label, or else of the same words. All others are new classes.
    """
    vectors, codes = named.embedded(network)
    every = list(class_names)
    by_words = {spoken(name).lower(): k for k, name in enumerate(class_names)}
    positions = []
    for label in named.labels:
        position = every.index(label) if label in every else by_words.get(spoken(label).lower(), len(every))
        if position == len(every):
            every.append(label)
        positions.append(position)
    if len(set(positions)) < len(positions):
        raise LabelError("two names belong to one class of the catalogue; keep one of them")
    own = np.array(positions, dtype=np.int64)[codes]
    if examples is None:
        return FittedModel.of_names(vectors, own), tuple(every)
    if vectors.shape[1] != examples.dim:
        raise examples.other_length(vectors.shape[1], "those of the names")
    return examples.with_names(vectors, own), tuple(every)


def _of_texts(path: Path, rows: Sequence[tuple[str, Sequence[str]]], *, many: bool = False) -> NamedClasses:
    """Check texts; a label may come several times only in tables with one text per row."""
    if len(rows) == 0:
        raise BankError(f"{path} has no names; write one class per line")
    texts: dict[str, list[str]] = {}
    for written, of_class in rows:
        label = plain_label(written)
        if not label or not all(text.strip() for text in of_class):
            raise BankError(f"{path} has an empty name or text; remove it")
        if is_missing(label):
            raise BankError(f"{path} has the name {label!r}, which says that a label is missing; write another one")
        if label in texts and not many:
            raise BankError(f"{path} has the name {label!r} twice; keep one of them")
        texts.setdefault(label, []).extend(of_class or [spoken(label)])
    return NamedClasses(tuple(texts), tuple(map(tuple, texts.values())))


def _lines(path: Path) -> list[tuple[str, list[str]]]:
    rows = []
    for number, line in enumerate(lines_of(read_text(path, BankError)), 1):
        label, *texts = (part.strip() for part in line.split("\t"))
        if not label:
            raise BankError(f"line {number} of {path} is empty; write one class per line")
        rows.append((label, texts))
    return rows


def _of_json(path: Path) -> list[tuple[str, list[str]]]:
    found: Any = read_json(path, BankError, "names of classes")
    if isinstance(found, list):
        texts = all(isinstance(label, str) for label in found) and len(set(found)) == len(found)
        found = {label: [] for label in found} if texts else None
    if not isinstance(found, Mapping):
        raise BankError(f"{path} must be an object from labels to texts, or a list of distinct labels")
    rows = []
    for label, texts in found.items():
        several = [texts] if isinstance(texts, str) else texts
        if not isinstance(several, list) or not all(isinstance(text, str) for text in several):
            raise BankError(f"{path} must give {label!r} a text or a list of texts")
        rows.append((str(label), several))
    return rows
