"""Outputs never destroy inputs: what is read and what is written is compared before the work begins."""

from __future__ import annotations

import os
import unicodedata
from collections.abc import Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from types import MappingProxyType
from typing import Any

from handful.errors import OptionError
from handful.machine.folders import is_remote, local_path

NOTHING: Mapping[str, str] = MappingProxyType({})


def refuse_overwriting(
    reads: Mapping[str, Any],
    writes: Mapping[str, Any],
    *,
    replaces: Mapping[str, str] = NOTHING,
    files: Iterable[Path] = (),
) -> None:
    """Refuse an output that is an input or another output, lies in an input folder, or contains an input.

    Paths are compared by what they lead to: `..`, links, hard links and, on a file system that ignores it, case make no
    difference.

    Parameters
    ----------
    reads, writes : mapping of str to path
        Inputs and outputs, by what a message calls them. What is not a path on a disk is left out: None, a URL, an
        array.
    replaces : mapping of str to str
        Outputs that are labelled copies of an input in its own format, and that input: they may be the same file.
    files : iterable of Path
        More files that are read, such as those that a table names. Iterated over only if an output exists already.

    Examples
    --------
    >>> refuse_overwriting({"batch": "today.csv"}, {"predictions": "./today.csv"})
    Traceback (most recent call last):
        ...
    handful.errors.OptionError: the predictions (./today.csv) would overwrite the batch (today.csv); choose another path
    >>> refuse_overwriting({"batch": "run.mgf"}, {"predictions": "run.mgf"}, replaces={"predictions": "batch"})
    """
    inputs, outputs = ([_Place(*one) for one in named.items() if _is_local(one[1])] for named in (reads, writes))
    for position, output in enumerate(outputs):
        replaced = next((one for one in inputs if one.name == replaces.get(output.name)), None)
        may_be_same = replaced is not None and bool(output.keys & replaced.keys)
        for other in (*inputs, *outputs[:position]):
            if output.keys & other.keys:
                if may_be_same and replaced is not None and other.keys & replaced.keys:
                    continue
                raise OptionError(f"{output} would overwrite {other}; choose another path")
            if output.above & other.keys:
                raise OptionError(f"{output} is inside {other}; choose a path outside of it")
            if other.above & output.keys:
                raise OptionError(f"{output} contains {other}; choose another path")
    # Links in a folder can lead to files outside of it.
    there = {key: output for output in outputs for key in output.keys if output.path.is_file()}
    for read, found in _files(inputs, files) if there else ():
        key = _key(found)
        if key in there and not any(key in one.keys for one in inputs if one.name == replaces.get(there[key].name)):
            raise OptionError(f"{there[key]} would overwrite {found}, a file of {read}; choose another path")


@dataclass(frozen=True)
class _Place:
    """A path, what identifies it, and what identifies the folders above it."""

    name: str
    given: Any

    def __str__(self) -> str:
        return f"the {self.name} ({self.given})"

    @property
    def path(self) -> Path:
        return local_path(self.given)

    @cached_property
    def _ways(self) -> list[Path]:
        """The path that it leads to and, if that is another one, the link itself."""
        ways = [Path(os.path.realpath(self.path))]
        return [*ways, Path(os.path.realpath(self.path.parent), self.path.name)] if self.path.is_symlink() else ways

    @cached_property
    def keys(self) -> set[Hashable]:
        return {_key(way) for way in self._ways}

    @cached_property
    def above(self) -> set[Hashable]:
        return {_key(folder) for way in self._ways for folder in way.parents}


def _key(path: Path) -> Hashable:
    """Return what identifies a file: device and inode; if there is none, its folder and its name in lower case."""
    try:
        status = path.stat()
    except (OSError, ValueError):
        status = None
    if status is not None and status.st_ino:
        return status.st_dev, status.st_ino
    name = unicodedata.normalize("NFC", path.name).casefold()
    return (name,) if path.parent == path else (_key(path.parent), name)


def _is_local(path: Any) -> bool:
    return isinstance(path, (str, os.PathLike)) and not is_remote(path)


def _files(inputs: Iterable[_Place], more: Iterable[Path]) -> Iterator[tuple[_Place | str, Path]]:
    """Yield the files of all input folders, then the others, with what they belong to."""
    for one in inputs:
        for folder, _, names in os.walk(one.path):
            yield from ((one, Path(folder, name)) for name in names)
    yield from (("the items", path) for path in more)
