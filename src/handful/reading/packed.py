"""Bytes of a file, decompressed if it ends in .gz, and no more of them than a genuine file has."""

from __future__ import annotations

import gzip
import io
import zlib
from pathlib import Path
from typing import BinaryIO

from handful.errors import BankError, HandfulError
from handful.machine.untrusted import Budget, refuse_irregular


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
        raise BankError(f"{path} does not exist; check the path") from error
    except (gzip.BadGzipFile, EOFError, zlib.error, ValueError) as error:
        raise BankError(f"{path} is not a complete .gz file ({error}); write it again") from error
    return io.BytesIO(data)
