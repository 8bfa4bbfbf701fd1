"""A disk that fails: SQLite lets a program replace the calls by which it writes.

`sqlite3_vfs.xSetSystemCall` is there for tests. The calls that change a file are counted, and one of them kills this
process, or fails as on a full disk. Use it in a process that ends afterwards.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sqlite3  # noqa: F401 - loads the library
import sys
from collections.abc import Callable

import pytest

NAMES = {
    b"write": (ctypes.c_ssize_t, ctypes.c_int, ctypes.c_void_p, ctypes.c_size_t),
    b"pwrite": (ctypes.c_ssize_t, ctypes.c_int, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int64),
    b"pwrite64": (ctypes.c_ssize_t, ctypes.c_int, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int64),
    b"ftruncate": (ctypes.c_int, ctypes.c_int, ctypes.c_int64),
    b"unlink": (ctypes.c_int, ctypes.c_char_p),
}
# Calls that need room on the disk.
GROWING = (b"write", b"pwrite", b"pwrite64")
Pointer = ctypes.CFUNCTYPE(None)


class Vfs(ctypes.Structure):
    """What the operating system is to SQLite, as sqlite3.h has it."""

    _fields_ = [
        ("version", ctypes.c_int),
        ("file_bytes", ctypes.c_int),
        ("longest_path", ctypes.c_int),
        ("next", ctypes.c_void_p),
        ("name", ctypes.c_char_p),
        ("data", ctypes.c_void_p),
        *((f"call_{number}", ctypes.c_void_p) for number in range(13)),
        (
            "set_system_call",
            ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p),
        ),
        ("get_system_call", ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p, ctypes.c_char_p)),
    ]


def library() -> ctypes.CDLL | None:
    """The SQLite that Python itself uses; None where it is not a library of its own."""
    with open("/proc/self/maps", encoding="utf-8") as stream:
        paths = {line.split()[-1] for line in stream if "libsqlite3" in line}
    return ctypes.CDLL(paths.pop()) if paths else None


needs_library = pytest.mark.skipif(
    not sys.platform.startswith("linux") or library() is None, reason="SQLite is part of this Python, and not a library"
)
_kept = []


def count_writes(happens: Callable[[int, bytes], bool]) -> None:
    """Call `happens` before every write with its number, from 0, and its name; if it is true, the disk is full."""
    found = library()
    assert found is not None
    assert found.sqlite3_libversion is not None
    find = found.sqlite3_vfs_find
    find.restype = ctypes.POINTER(Vfs)
    vfs = find(None)
    number = -1

    def replaced(name: bytes, types: tuple[type, ...]) -> None:
        kind = ctypes.CFUNCTYPE(*types, use_errno=True)
        address = vfs.contents.get_system_call(vfs, name)
        if not address:
            return
        real = kind(address)

        def call(*arguments: object) -> int:
            nonlocal number
            number += 1
            if happens(number, name):
                ctypes.set_errno(28)  # no space left on device
                return -1
            return int(real(*arguments))

        ours = kind(call)
        _kept.append((ours, real))
        assert vfs.contents.set_system_call(vfs, name, ctypes.cast(ours, ctypes.c_void_p)) == 0

    for name, types in NAMES.items():
        replaced(name, types)


def kill_at(step: int) -> None:
    """Kill this process before the write of this number."""

    def happens(number: int, name: bytes) -> bool:
        if number == step:
            os.kill(os.getpid(), signal.SIGKILL)
        return False

    count_writes(happens)


def full_from(step: int, still: Callable[[], bool]) -> None:
    """The disk is full from one write on, for as long as `still` says so."""
    count_writes(lambda number, name: number >= step and name in GROWING and still())
