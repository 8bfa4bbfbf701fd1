"""DNA barcodes in FASTA files, `>name species` and lines of letters: a field that handful itself does not have."""

from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from handful.reading import Asked, Field, Reader, Table, Writer

LENGTH = 4
WORDS = {"".join(letters): place for place, letters in enumerate(product("ACGT", repeat=LENGTH))}


def records(path: Path) -> Iterator[tuple[str, str, str]]:
    """Yield the name, the species, which may be empty, and the letters of each barcode."""
    for part in path.read_text(encoding="utf-8").split(">")[1:]:
        header, *lines = part.splitlines()
        name, _, species = header.partition(" ")
        yield name, species, "".join(lines).upper()


def vector(letters: str) -> np.ndarray:
    """Return how often each word of four letters occurs, as a vector of length one."""
    counts = np.zeros(len(WORDS), np.float32)
    for start in range(len(letters) - LENGTH + 1):
        word = letters[start : start + LENGTH]
        if word in WORDS:  # an N stands for a letter that was not read
            counts[WORDS[word]] += 1
    return counts / max(float(np.linalg.norm(counts)), 1.0)


def read(path: Path, asked: Asked) -> Table:
    """Read a catalogue or a batch."""
    names, species, letters = zip(*records(path), strict=True)
    vectors = np.stack(list(map(vector, letters)))
    columns = {"species": list(species)}
    return Table(str(path), len(names), vectors, columns=columns, names=names, label_names=("species",))


def write(found: Any, path: Path) -> None:
    """Write a copy of the batch with the species that were found."""
    old = records(found.about.batch.source)
    text = (f">{name} {label}\n{letters}\n" for (name, _, letters), label in zip(old, found.labels, strict=True))
    path.write_text("".join(text), encoding="utf-8")


FIELD = Field(readers={".fasta": Reader(read, columns=False)}, writers={".fasta": Writer(write, into_copy=True)})
