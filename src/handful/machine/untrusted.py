"""Untrusted files: what every reader checks before it reads.

A name can belong to a pipe that never ends, a few kilobytes of JSON can be nested deeper than the stack, and a few
kilobytes of compressed data can expand to any size.
"""

from __future__ import annotations

import json
import os
import stat
from pathlib import Path
from typing import Any

from handful.errors import HandfulError

# Compressed data may always expand to this many bytes, and larger data to this many times its size. Features hardly
# compress at all, and text about ten times.
ALWAYS_UNFOLDED, MOST_UNFOLDING = 2**26, 100


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


def parse_json(text: str | bytes) -> Any:
    """`json.loads`, where every error is a `ValueError`, including nesting that overflows the stack.

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
        return json.loads(text)
    except RecursionError:
        raise ValueError("it is nested too deep") from None


def refuse_unfolding(what: str, packed: int, unfolded: int) -> None:
    """Raise `ValueError` if a small file would expand to a suspiciously large one.

    Examples
    --------
    >>> refuse_unfolding("the table", packed=30_000, unfolded=3_000_000_000)
    Traceback (most recent call last):
        ...
    ValueError: the table has 30000 bytes and would expand to 3000000000, which no genuine file does
    """
    if unfolded > max(ALWAYS_UNFOLDED, MOST_UNFOLDING * packed):
        raise ValueError(f"{what} has {packed} bytes and would expand to {unfolded}, which no genuine file does")
