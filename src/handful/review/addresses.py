"""The address of a catalogue stays the same for a person: its port and its token, kept where only that person reads.

So a window that is open comes back by itself when the review is started again, and a bookmark leads to it.
"""

from __future__ import annotations

import hashlib
import json
import os
import stat
import sys
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from handful.machine.untrusted import parse_json
from handful.review.guard import new_token

PRIVATE_FOLDER = 0o700
PRIVATE_FILE = 0o600
# Digits of the hash of the path of a catalogue. [digits; convention]
DIGITS = 16
# Letters of a token at least, and the largest port. [letters; convention] [port; limit]
LEAST_LETTERS = 32
LAST_PORT = 65_535


class KeptAddress(NamedTuple):
    """The port of a catalogue, 0 for any that is free, and its token."""

    port: int
    token: str


def state_folder() -> Path:
    """Return where programs keep what is worth keeping between two starts, for this person alone."""
    if os.name == "nt":
        return Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local") / "handful"
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Application Support" / "handful"
    return Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state") / "handful"


def kept_address(catalogue: Path | None) -> KeptAddress:
    """Return the address of a catalogue; a new one if there is none, or if others could have read it."""
    new = KeptAddress(0, new_token())
    if catalogue is None:
        return new
    file = _file_of(catalogue)
    try:
        about = os.lstat(file)
        if not stat.S_ISREG(about.st_mode):
            return new
        if os.name != "nt" and (about.st_uid != os.getuid() or about.st_mode & 0o077):
            return new
        said = parse_json(file.read_bytes())
        port = said["port"]
        token = said["token"]
    except (OSError, ValueError, TypeError, KeyError):
        return new
    is_port = type(port) is int and 0 < port <= LAST_PORT
    is_token = isinstance(token, str) and token.isascii() and len(token) >= LEAST_LETTERS
    return KeptAddress(port, token) if is_port and is_token else new


def keep_address(catalogue: Path | None, address: KeptAddress) -> None:
    """Keep the address of a catalogue; without a place to keep it, the next start has another one."""
    if catalogue is None or kept_address(catalogue) == address:
        return
    file = _file_of(catalogue)
    unfinished = file.with_name(f"{file.name}.{os.getpid()}")
    with suppress(OSError):
        file.parent.mkdir(PRIVATE_FOLDER, parents=True, exist_ok=True)
        handle = os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_EXCL, PRIVATE_FILE)
        with os.fdopen(handle, "w", encoding="utf-8") as stream:
            json.dump(address._asdict(), stream)
        os.replace(unfinished, file)


def _file_of(catalogue: Path) -> Path:
    name = hashlib.sha256(os.fsencode(os.path.realpath(catalogue))).hexdigest()[:DIGITS]
    return state_folder() / f"review-{name}.json"
