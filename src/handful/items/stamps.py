"""Stamps: size and time of a file, by which it is known that its content is as before, without reading it.

A clock that is coarse gives two contents that follow one another the same time. So a file that was written within the
last two seconds has no stamp yet, and is read again next time.
"""

from __future__ import annotations

import hashlib
import json
import os
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple, Self

from handful.machine.untrusted import parse_json

# Nanoseconds after which the time of a file is trusted: FAT counts in steps of two seconds. [ns; limit]
SETTLED = 2_000_000_000


class Stamp(NamedTuple):
    """Size of a file in bytes, and when it was written last, in nanoseconds."""

    size: int
    time: int

    @classmethod
    def of(cls, file: Path) -> Stamp | None:
        """Return the stamp of a file; None if it cannot be asked, or was written just now."""
        try:
            found = os.stat(file)
        except OSError:
            return None
        if not found.st_mtime_ns <= time.time_ns() - SETTLED:
            return None
        return cls(found.st_size, found.st_mtime_ns)


@dataclass(frozen=True)
class Stamps:
    """Hashes of contents of the files below a folder, with the stamps that the files had.

    Attributes
    ----------
    root : str
        What tells the folder from others.
    files : mapping of str to (Stamp, bytes)
        By the path below the folder.

    Examples
    --------
    >>> stamps = Stamps("here", {"a.jpg": (Stamp(3, 7), b"abc")})
    >>> Stamps.read(stamps.written()) == stamps, stamps.hash_of("a.jpg", Stamp(4, 7))
    (True, None)
    """

    root: str = ""
    files: Mapping[str, tuple[Stamp, bytes]] = field(default_factory=dict)

    def hash_of(self, name: str, stamp: Stamp | None) -> bytes | None:
        """Return the hash of a file, if it has the stamp that it had."""
        known = self.files.get(name)
        return known[1] if known is not None and known[0] == stamp else None

    def written(self) -> bytes:
        """Return the stamps as a cache keeps them."""
        files = {name: [*stamp, found.hex()] for name, (stamp, found) in self.files.items()}
        return json.dumps({"root": self.root, "files": files}).encode()

    @classmethod
    def read(cls, cached: bytes | None) -> Self:
        """Undo `written`; what is no such cache says nothing."""
        try:
            about = parse_json(cached or b"")
            return cls(
                str(about["root"]),
                {
                    str(name): (Stamp(int(size), int(when)), bytes.fromhex(found))
                    for name, (size, when, found) in about["files"].items()
                },
            )
        except (ValueError, TypeError, KeyError, AttributeError):
            return cls()


def root_of(folder: Path) -> str:
    """Return what tells a folder from others, and does not say where it is."""
    return hashlib.sha256(os.fsencode(os.path.abspath(folder))).hexdigest()[:16]
