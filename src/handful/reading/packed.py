"""Bytes of a file, decompressed if it ends in .gz, and no more of them than a genuine file has."""

from __future__ import annotations

import gzip
import io
import zlib
from pathlib import Path
from typing import BinaryIO

from handful.errors import BankError
from handful.machine.untrusted import ALWAYS_UNFOLDED, MOST_UNFOLDING, refuse_irregular, refuse_unfolding


def opened_bytes(path: Path) -> BinaryIO:
    """Open a file for reading; of a .gz, the decompressed bytes are in memory."""
    refuse_irregular(path, BankError)
    try:
        if path.suffix.lower() != ".gz":
            return path.open("rb")
        packed = path.stat().st_size
        with gzip.open(path) as stream:
            data = stream.read(max(ALWAYS_UNFOLDED, MOST_UNFOLDING * packed) + 1)
        refuse_unfolding("it", packed, len(data))
    except FileNotFoundError as error:
        raise BankError(f"{path} does not exist; check the path") from error
    except (gzip.BadGzipFile, EOFError, zlib.error, ValueError) as error:
        raise BankError(f"{path} is not a complete .gz file ({error}); write it again") from error
    return io.BytesIO(data)
