"""Untrusted files: what every reader checks before it reads, and how foreign values become text.

A name can belong to a pipe that never ends, a few kilobytes of JSON can be nested deeper than the stack, and a few
kilobytes of compressed data can expand to any size. JSON and arrays can hold halves of characters, which no file in
UTF-8 can hold.
"""

from __future__ import annotations

import gzip
import io
import json
import math
import os
import re
import stat
import zlib
from pathlib import Path
from typing import Any, BinaryIO

from handful.errors import BankError, HandfulError
from handful.errors import printable as printable

# Contents of a file may always take this many bytes, and those of a larger file this many times its size. Features
# hardly compress at all, and text about ten times.
ALWAYS_ALLOWED = 2**26
MOST_PER_BYTE = 100
# What a value that is kept takes in memory, about.
CELL_BYTES = 32
# Characters of a path that a message shows: text in the place of a path can be long.
LONGEST_SHOWN = 300
# Digits of a whole number that surely does not overflow as a float.
LONGEST_WHOLE = 308


class Budget:
    """What the contents of a file may take in memory: 64 MB, or 100 times its size if that is more.

    Readers spend it while they read, before they keep anything.

    Examples
    --------
    >>> budget = Budget("a.csv.gz", 30_000)
    >>> budget.spend(1_000_000)
    >>> budget.spend(cells=3_000_000)
    Traceback (most recent call last):
        ...
    handful.errors.BankError: a.csv.gz has 30,000 bytes and would expand to more than 67,108,864, ...
    """

    def __init__(self, where: object, size: int) -> None:
        """`where` is the file, for messages, and `size` how many bytes it has."""
        self._where = where
        self._size = size
        self.left = max(ALWAYS_ALLOWED, MOST_PER_BYTE * size)

    @classmethod
    def of(cls, path: Path) -> Budget:
        """Return the budget of a file."""
        return cls(path, path.stat().st_size)

    def spend(self, n_bytes: int = 0, *, cells: int = 0) -> None:
        """Take this much of what is left, before it is kept; raise `BankError` if it is more."""
        self.left -= abs(n_bytes) + CELL_BYTES * cells  # a damaged file can have negative sizes
        if self.left < 0:
            raise BankError(
                f"{self._where} has {self._size:,} bytes and would expand to more than "
                f"{max(ALWAYS_ALLOWED, MOST_PER_BYTE * self._size):,}, which no genuine file does; if this one is "
                "genuine, save it uncompressed or in parts"
            )


def refuse_irregular(path: str | os.PathLike[str], error: type[HandfulError]) -> None:
    """Refuse pipes, devices, sockets and folders: reading some of them never ends. A missing file passes.

    Examples
    --------
    >>> from handful.errors import BankError
    >>> refuse_irregular("/dev/null", BankError)
    Traceback (most recent call last):
        ...
    handful.errors.BankError: /dev/null is not a regular file but a pipe, a device or a folder; check the path
    """
    try:
        mode = Path(path).stat().st_mode
    except (OSError, ValueError):
        return  # the reader says what is wrong with it
    if not stat.S_ISREG(mode):
        raise error(f"{path} is not a regular file but a pipe, a device or a folder; check the path")


def absent(path: object, error: type[HandfulError]) -> HandfulError:
    """Return the error for a file that is not there."""
    if scheme := re.match(r"[a-z][a-z0-9]+:(?=/)", str(path)):
        address = f"{scheme[0]}//{str(path)[scheme.end() :].lstrip('/')}"  # a Path has lost one of the slashes
        return error(f"{address} is an address, which cannot be read from here; copy it to this machine first")
    called = str(path)
    if len(called) > LONGEST_SHOWN:
        return error(f"{called[:LONGEST_SHOWN]}… ({len(called):,} characters) does not exist; check the path")
    return error(f"{called} does not exist; check the path")


def unreadable(where: object, kind: str, reason: Exception) -> BankError:
    """Return the error for a file that is not of the kind that its name says, or damaged."""
    return BankError(f"{where} cannot be read as {kind} ({reason}); it is cut short or of another kind")


def with_type(error: Exception) -> Exception:
    """Return an error of another package with the name of its type, which often says more than its text."""
    return Exception(f"{type(error).__name__}: {error}")


def read_bytes(path: str | os.PathLike[str], error: type[HandfulError]) -> bytes:
    """Read a whole file; whatever cannot be read raises `error`."""
    refuse_irregular(path, error)
    try:
        return Path(path).read_bytes()
    except FileNotFoundError as reason:
        raise absent(path, error) from reason
    except (OSError, ValueError) as reason:  # ValueError: the path has a character that no path can have
        raise error(f"{path} cannot be read ({reason}); check the path") from reason


def read_text(path: str | os.PathLike[str], error: type[HandfulError]) -> str:
    """Read a whole text in UTF-8, with or without a byte order mark; ends of lines stay as they are."""
    try:
        return read_bytes(path, error).decode("utf-8-sig")
    except UnicodeDecodeError as reason:
        raise error(f"{path} cannot be read as text in UTF-8 ({reason}); save it as UTF-8") from reason


def read_json(path: str | os.PathLike[str], error: type[HandfulError], expected: str) -> Any:
    """Read a JSON file; `expected` says in a message what it should hold."""
    text = read_text(path, error)
    try:
        return parse_json(text)
    except ValueError as reason:
        raise error(f"{path} must be {expected} in JSON, but is not JSON ({reason}); write it again") from reason


def lines_of(text: str) -> list[str]:
    r"""Cut a text at ends of lines alone; `str.splitlines` also cuts at characters that may occur in a name.

    Examples
    --------
    >>> lines_of("a\u2028b\r\nc\x0bd\n")
    ['a\u2028b', 'c\x0bd']
    """
    return [line.removesuffix("\n") for line in io.StringIO(text, newline=None)]


def writable(value: object) -> str:
    r"""Return a foreign value as text that every file can hold: halves of characters become escapes.

    Examples
    --------
    >>> writable("a\ud800"), writable(b"gr\xc3\xbcn"), writable([1, "b"])
    ('a\\ud800', 'grün', "[1, 'b']")
    """
    text = value.decode("utf-8", "backslashreplace") if isinstance(value, bytes) else str(value)
    return text.encode("utf-8", "backslashreplace").decode()


def parse_json(text: str | bytes) -> Any:
    """`json.loads`, where every error is a `ValueError`: nesting that overflows the stack, numbers that overflow.

    Examples
    --------
    >>> parse_json('[1, {"a": null}]')
    [1, {'a': None}]
    >>> parse_json("[" * 100_000)
    Traceback (most recent call last):
        ...
    ValueError: it is nested too deep
    """
    try:
        return json.loads(text, parse_float=finite, parse_int=_whole)
    except RecursionError:
        raise ValueError("it is nested too deep") from None


def finite(text: object) -> float:
    """`float`, where everything but a finite decimal number in ASCII is a `ValueError`, as is what cannot be a number.

    `float` itself also reads `nan`, `inf`, `1_0`, digits of other scripts, and what overflows.

    Examples
    --------
    >>> finite("1.5e3"), finite(2)
    (1500.0, 2.0)
    >>> finite("1_0")
    Traceback (most recent call last):
        ...
    ValueError: '1_0' is not a finite number
    """
    try:
        number = float(text) if not isinstance(text, str) or (text.isascii() and "_" not in text) else math.nan  # type: ignore[arg-type]  # a TypeError is expected here
    except (TypeError, ValueError, OverflowError):
        number = math.nan
    if not math.isfinite(number):
        raise ValueError(f"{text!r:.40} is not a finite number")
    return number


def _whole(digits: str) -> int:
    if len(digits) > LONGEST_WHOLE:
        finite(digits)
    return int(digits)


def opened_bytes(path: Path) -> BinaryIO:
    """Open a file for reading; of a .gz, the decompressed bytes are in memory."""
    refuse_irregular(path, BankError)
    try:
        if path.suffix.lower() != ".gz":
            return path.open("rb")
        budget = Budget.of(path)
        with gzip.open(path) as stream:
            data = stream.read(budget.left + 1)
        budget.spend(len(data))
    except HandfulError:
        raise
    except FileNotFoundError as error:
        raise absent(path, BankError) from error
    except (gzip.BadGzipFile, EOFError, zlib.error, ValueError) as error:
        raise BankError(f"{path} is not a complete .gz file ({error}); write it again") from error
    return io.BytesIO(data)
