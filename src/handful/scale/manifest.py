"""The manifest of a run: a line of JSON for each partition that is done, and what it was made of and by.

Every driver appends to a file of its own, so none can harm the lines of another. A line is true if the files that it
names are there as it says, so a partition whose output was damaged, removed or made by another driver is known.
"""

from __future__ import annotations

import json
import os
import time
import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from handful.errors import FileFormatError
from handful.machine.folders import FileAt, Folder, LocalFolder
from handful.machine.outputs import explain_refusal
from handful.machine.untrusted import parse_json
from handful.scale.source import sha256_of

# Where manifests are, hidden from readers of tables.
PLACE = "_handful"
# Incremented when the meaning of a line changes. [version; convention]
FORMAT = 1
# Least time between two writes of a manifest at a URL, where a file can only be written as a whole. [seconds; work]
BETWEEN_WRITES = 5.0


@dataclass(frozen=True)
class Hashed:
    """A file of an output or an input, see `FileAt`; `sha256` is that of its bytes."""

    name: str
    size: int
    version: str
    sha256: str

    @property
    def as_listed(self) -> FileAt:
        """The file without its hash."""
        return FileAt(self.name, self.size, self.version)


@dataclass(frozen=True)
class Done:
    """A partition that is done.

    Attributes
    ----------
    partition : str
        Its name.
    inputs, outputs : tuple of Hashed
        Files that it was made of, and that were made of it.
    made_by : mapping
        Hash of the model, version of handful and settings.
    counts : mapping
        Rows, bad rows, groups, unknown items, seconds, and how many groups have which diagnostic.
    data : str
        Address of the data set.
    is_new : bool
        Whether this run labelled it.
    """

    partition: str
    inputs: tuple[Hashed, ...]
    outputs: tuple[Hashed, ...]
    made_by: Mapping[str, Any]
    counts: Mapping[str, Any]
    data: str
    format: int = FORMAT
    is_new: bool = True

    def __str__(self) -> str:
        counts = self.counts
        diagnostics = ", ".join(f"{name} in {number:,}" for name, number in sorted(counts["diagnostics"].items()))
        return (
            f"{self.partition}: {counts['rows']:,} rows in {counts['groups']:,} groups, {counts['bad_rows']:,} bad "
            f"rows, {counts['unknown_items']:,} unknown items, {counts['seconds']:.1f} s"
            f"{f'; diagnostics: {diagnostics}' if diagnostics else ''}"
        )

    @property
    def content(self) -> list[str]:
        """What it was made of: hashes of the inputs, whatever their names."""
        return sorted(one.sha256 for one in self.inputs)

    def line(self) -> str:
        """Return the line of the manifest."""
        about = asdict(self)
        del about["is_new"]
        return json.dumps(about, sort_keys=True)

    @classmethod
    def of(cls, line: str) -> Done:
        """Read a line."""
        about = dict(parse_json(line))
        for name in ("inputs", "outputs"):
            about[name] = tuple(Hashed(**one) for one in about[name])
        return cls(**about)


@dataclass
class Manifest:
    """The lines of all drivers about an output, and the file of this one."""

    folder: Folder
    name: str = field(default_factory=lambda: f"{PLACE}/{time.strftime('%Y%m%d-%H%M%S')}-{uuid.uuid4().hex}.jsonl")
    _lines: list[str] = field(default_factory=list)
    _written: float = 0.0

    def read(self) -> dict[str, list[Done]]:
        """Return the lines about each partition, those that were written last first."""
        found: dict[str, list[Done]] = {}
        for name in self.folder.names(PLACE):
            if not name.endswith(".jsonl"):
                continue
            for done in self._read(f"{PLACE}/{name}"):
                found.setdefault(done.partition, []).insert(0, done)
        return found

    def _read(self, name: str) -> Iterator[Done]:
        with self.folder.opened(name) as file:
            lines = [] if file is None else file.read_text(encoding="utf-8").split("\n")
        whole = lines[:-1]  # a driver that was killed may have left a part of a line
        for line in whole:
            try:
                done = Done.of(line)
            except (ValueError, TypeError, KeyError, AttributeError) as error:
                raise FileFormatError(
                    f"{self.folder.address}/{name} is damaged ({error}); remove it, and the partitions that it names "
                    "are labelled again"
                ) from error
            if done.format != FORMAT:
                raise FileFormatError(
                    f"{self.folder.address} was labelled by another version of handful; choose another folder"
                )
            yield done

    def add(self, done: Done) -> None:
        """Note a partition that is done: on a disk at once, at a URL a little later."""
        self._lines.append(done.line())
        if isinstance(self.folder, LocalFolder):
            place = self.folder.path / self.name
            with explain_refusal(place, place.parent):
                place.parent.mkdir(parents=True, exist_ok=True)
                with place.open("a", encoding="utf-8") as file:
                    file.write(f"{self._lines.pop()}\n")
                    file.flush()
                    os.fsync(file.fileno())
        elif time.monotonic() - self._written > BETWEEN_WRITES:
            self.flush()

    def flush(self) -> None:
        """Write what was noted."""
        if not self._lines:
            return
        with self.folder.written(self.name) as place:
            place.write_text("".join(f"{line}\n" for line in self._lines), encoding="utf-8")
        self._written = time.monotonic()


def true_line(lines: Sequence[Done], now: Mapping[str, FileAt], folder: Folder) -> Done | None:
    """Return the line whose files are there as it says; bytes of files that were written since are compared.

    `now` has the files of the output.
    """
    for done in lines:
        if all(one.name in now and (one.as_listed == now[one.name] or _has(folder, one)) for one in done.outputs):
            return done
    return None


def _has(folder: Folder, one: Hashed) -> bool:
    """Whether a file has the bytes that it had."""
    with folder.opened(one.name) as file:
        return file is not None and file.stat().st_size == one.size and sha256_of(file) == one.sha256
