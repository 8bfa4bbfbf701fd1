"""A pickle read as data: `read_pickled(data)` gives numbers, text and containers, and calls nothing the file names.

A pickle is a program for a stack machine. Python's own machine imports the names in it, calls them, and sets their
state. This one has only the instructions that data needs. A name is a pair of strings; "calling" it looks the pair up
in a table of our own builders, which get plain values and return plain values. Nothing in a file reaches an import, an
attribute or a `__setstate__`.

Time and memory grow in proportion to the length of the stream: one byte can make at most one empty container, about 90
bytes of memory. Positions of the memo are keys of a mapping, so a large one costs nothing, and keys of mappings are
text or numbers, which are quick to hash.
"""

from __future__ import annotations

import codecs
import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from handful.errors import BankError

# Bytes of at least this length are held in a form that an array can use without a copy.
LARGE_BYTES = 4096
# Numbers written as text: 64 bits take 20 digits, a float of full precision about 25.
LONGEST_NUMBER = 64


@dataclass(frozen=True)
class Name:
    """A name in the file; nothing is imported."""

    module: str
    name: str

    def __str__(self) -> str:
        return f"{self.module}.{self.name}"


@dataclass(eq=False)
class Unbuilt:
    """A value that waits for its state; `finish(state)` gives the value that takes its place."""

    finish: Callable[[Any], Any]
    places: list[int] = field(default_factory=list)


Builder: TypeAlias = Callable[..., Any]


class PickleMachine:
    """Reads one pickle after another from a buffer.

    Attributes
    ----------
    data : bytes-like with `find`
        The stream: bytes, or a mapped file.
    builders : Mapping[Name, callable or None]
        Builders for the names a file may hold; None for names that may be mentioned but not called.
    persistent : callable, optional
        Gives the value of a persistent id, where the file may have them.
    position : int
        Where the next pickle starts.
    """

    def __init__(
        self,
        data: Any,
        builders: Mapping[Name, Builder | None],
        persistent: Callable[[Any], Any] | None = None,
        position: int = 0,
    ) -> None:
        self.data, self.builders, self.persistent, self.position = data, builders, persistent, position
        self._end = len(data)

    def read(self) -> Any:
        """Read the pickle that starts at `position`.

        Raises `BankError` for what is not data, and `ValueError` for a stream that is damaged.
        """
        self._stack: list[Any] = []
        self._marked: list[list[Any]] = []
        self._memo: dict[int, Any] = {}
        data, end = self.data, self._end
        try:
            while self.position < end:
                code = data[self.position]
                self.position += 1
                if code == STOP:
                    return self._stack[-1]
                INSTRUCTIONS[code](self)
        except (LookupError, struct.error) as error:
            raise ValueError(f"instruction at byte {self.position - 1} does not fit: {error!r}") from error
        raise ValueError("it ends in the middle")

    # Parts of the stream.

    def _take(self, n: int) -> bytes:
        start = self.position
        if n < 0 or start + n > self._end:
            raise ValueError(f"{n} bytes are announced and {self._end - start} are left")
        self.position = start + n
        return self.data[start : start + n]  # type: ignore[no-any-return]

    def _number(self, kind: struct.Struct) -> Any:
        start = self.position
        self.position = start + kind.size
        return kind.unpack_from(self.data, start)[0]

    def _line(self) -> bytes:
        stop = self.data.find(b"\n", self.position)
        if stop < 0:
            raise ValueError("a line does not end")
        line: bytes = self.data[self.position : stop]
        self.position = stop + 1
        return line

    def _bytes(self, n: int) -> bytes | bytearray:
        if n < LARGE_BYTES or self.position + n > self._end:
            return self._take(n)
        with memoryview(self.data) as view:
            found = bytearray(view[self.position : self.position + n])
        self.position += n
        return found

    def _above_mark(self) -> list[Any]:
        items = self._stack
        self._stack = self._marked.pop()
        return items

    # Instructions.

    def _proto(self) -> None:
        if self._take(1)[0] > 5:
            raise ValueError("it is written in a newer protocol than 5")

    def _frame(self) -> None:
        self._take(8)  # the length of the frame, which is not needed

    def _mark(self) -> None:
        self._marked.append(self._stack)
        self._stack = []

    def _pop(self) -> None:
        if self._stack:
            self._stack.pop()
        else:
            self._above_mark()

    def _pop_mark(self) -> None:
        self._above_mark()

    def _dup(self) -> None:
        self._stack.append(self._stack[-1])

    def _int(self) -> None:
        line = self._line()
        self._stack.append({b"00": False, b"01": True}[line] if line in (b"00", b"01") else _whole(line))

    def _long(self) -> None:
        self._stack.append(_whole(self._line().removesuffix(b"L")))

    def _long1(self) -> None:
        self._stack.append(_of_64_bits(self._take(self._take(1)[0])))

    def _long4(self) -> None:
        self._stack.append(_of_64_bits(self._take(self._number(INT32))))

    def _float(self) -> None:
        line = self._line()
        if len(line) > LONGEST_NUMBER:
            raise ValueError("a number has too many digits")
        self._stack.append(float(line))

    def _string(self) -> None:
        line = self._line().strip()
        if len(line) < 2 or line[:1] not in (b"'", b'"') or line[-1:] != line[:1]:
            raise ValueError("text lacks its quotes")
        self._stack.append(codecs.escape_decode(line[1:-1])[0].decode("latin1"))

    def _unicode(self) -> None:
        self._stack.append(self._line().decode("raw-unicode-escape"))

    def _tuple(self) -> None:
        items = tuple(self._above_mark())
        self._stack.append(items)

    def _last(self, n: int) -> None:
        if len(self._stack) < n:
            raise ValueError("the stack is too short")
        self._stack[-n:] = [tuple(self._stack[-n:])]

    def _list(self) -> None:
        items = self._above_mark()
        self._stack.append(items)

    def _append(self) -> None:
        item = self._stack.pop()
        self._top(list).append(item)

    def _appends(self) -> None:
        items = self._above_mark()
        self._top(list).extend(items)

    def _dict(self) -> None:
        items = self._above_mark()
        self._stack.append(_set({}, items))

    def _setitem(self) -> None:
        value, key = self._stack.pop(), self._stack.pop()
        _set(self._top(dict), [key, value])

    def _setitems(self) -> None:
        items = self._above_mark()
        _set(self._top(dict), items)

    def _top(self, kind: type) -> Any:
        target = self._stack[-1]
        if type(target) is not kind:
            raise BankError(f"it adds items to a {type(target).__name__}")
        return target

    def _get(self, place: int) -> None:
        self._stack.append(self._memo[place])

    def _put(self, place: int) -> None:
        value = self._stack[-1]
        if type(value) is Unbuilt:
            value.places.append(place)
        self._memo[place] = value

    def _global(self) -> None:
        module, name = (self._line().decode("utf-8") for _ in range(2))
        self._named(module, name)

    def _stack_global(self) -> None:
        name, module = self._stack.pop(), self._stack.pop()
        self._named(module, name)

    def _named(self, module: Any, name: Any) -> None:
        if type(module) is not str or type(name) is not str:
            raise ValueError("a name is not text")
        found = Name(module, name)
        if found not in self.builders:
            raise BankError(f"it names {str(found)[:200]}")
        self._stack.append(found)

    def _reduce(self) -> None:
        arguments, called = self._stack.pop(), self._stack.pop()
        build = self.builders.get(called) if type(called) is Name else None
        if build is None or type(arguments) is not tuple:
            raise BankError(f"it calls {called if type(called) is Name else type(called).__name__}")
        try:
            self._stack.append(build(*arguments))
        except TypeError as error:
            raise ValueError(f"{called} is given arguments that do not fit ({error})") from error

    def _build(self) -> None:
        state, target = self._stack.pop(), self._stack[-1]
        if type(target) is dict:
            return  # attributes added to a mapping, as torch does with the version of a network
        if type(target) is not Unbuilt:
            raise BankError(f"it sets the state of {target if type(target) is Name else type(target).__name__}")
        try:
            built = target.finish(state)
        except TypeError as error:
            raise ValueError(f"an array has an impossible state ({error})") from error
        self._stack[-1] = built
        for place in target.places:
            self._memo[place] = built

    def _persistent(self) -> None:
        if self.persistent is None:
            raise BankError("it refers to something outside of it")
        self._stack.append(self.persistent(self._stack.pop()))

    def _refused(self) -> None:
        raise BankError(f"it has the instruction {self.data[self.position - 1]:#04x}, which no data needs")


def _whole(line: bytes) -> int:
    if len(line) > LONGEST_NUMBER:
        raise ValueError("a number has too many digits")
    return _checked(int(line))


def _of_64_bits(data: bytes) -> int:
    if len(data) > 9:
        raise ValueError("a number has more than 64 bits")
    return _checked(int.from_bytes(data, "little", signed=True))


def _checked(number: int) -> int:
    """Refuse longer numbers: they can be chosen to all have the same hash, and would fit into no array."""
    if not -(2**63) <= number < 2**64:
        raise ValueError("a number has more than 64 bits")
    return number


def _set(mapping: dict[Any, Any], items: list[Any]) -> dict[Any, Any]:
    if len(items) % 2:
        raise ValueError("a mapping has a key without a value")
    for key in items[::2]:
        if type(key) not in KEY_TYPES:
            raise BankError(f"a mapping has a key that is a {type(key).__name__}, neither text nor a number")
    mapping.update(zip(items[::2], items[1::2], strict=True))
    return mapping


KEY_TYPES = frozenset({str, int, float, bool, bytes, type(None)})
UINT8, UINT16, UINT32, UINT64 = (struct.Struct(code) for code in ("<B", "<H", "<I", "<Q"))
INT32, FLOAT64 = struct.Struct("<i"), struct.Struct(">d")
Instruction: TypeAlias = Callable[[PickleMachine], None]
STOP = ord(".")


def _constant(make: Callable[[], Any]) -> Instruction:
    return lambda machine: machine._stack.append(make())


def _plain(kind: struct.Struct) -> Instruction:
    unpack, size = kind.unpack_from, kind.size

    def instruction(machine: PickleMachine) -> None:  # written out for speed: lists of numbers consist of little else
        machine._stack.append(unpack(machine.data, machine.position)[0])
        machine.position += size

    return instruction


def _counted(kind: struct.Struct, decode: Callable[[bytes], Any]) -> Instruction:
    return lambda machine: machine._stack.append(decode(machine._take(machine._number(kind))))


def _buffer(kind: struct.Struct) -> Instruction:
    return lambda machine: machine._stack.append(machine._bytes(machine._number(kind)))


def _text(data: bytes) -> str:
    return data.decode("utf-8", "surrogatepass")


def _latin(data: bytes) -> str:
    """Decode the `str` of Python 2, where arrays keep their bytes."""
    return data.decode("latin1")


def _placed(kind: struct.Struct, instruction: Callable[[PickleMachine, int], None]) -> Instruction:
    return lambda machine: instruction(machine, machine._number(kind))


def _place_in_text(instruction: Callable[[PickleMachine, int], None]) -> Instruction:
    return lambda machine: instruction(machine, _whole(machine._line()))


_M = PickleMachine
_KNOWN: dict[bytes, Instruction] = {
    b"\x80": _M._proto, b"\x95": _M._frame, b"(": _M._mark, b"0": _M._pop, b"1": _M._pop_mark, b"2": _M._dup,
    b"N": _constant(lambda: None), b"\x88": _constant(lambda: True), b"\x89": _constant(lambda: False),
    b"I": _M._int, b"L": _M._long, b"\x8a": _M._long1, b"\x8b": _M._long4, b"F": _M._float, b"G": _plain(FLOAT64),
    b"K": _plain(UINT8), b"M": _plain(UINT16), b"J": _plain(INT32),
    b"S": _M._string, b"U": _counted(UINT8, _latin), b"T": _counted(INT32, _latin),
    b"V": _M._unicode, b"\x8c": _counted(UINT8, _text), b"X": _counted(UINT32, _text), b"\x8d": _counted(UINT64, _text),
    b"C": _buffer(UINT8), b"B": _buffer(UINT32), b"\x8e": _buffer(UINT64), b"\x96": _buffer(UINT64),
    b")": _constant(tuple), b"t": _M._tuple, b"\x85": lambda machine: machine._last(1),
    b"\x86": lambda machine: machine._last(2), b"\x87": lambda machine: machine._last(3),
    b"]": _constant(list), b"l": _M._list, b"a": _M._append, b"e": _M._appends,
    b"}": _constant(dict), b"d": _M._dict, b"s": _M._setitem, b"u": _M._setitems,
    # Sets become lists: their items could be anything, and hashing them may never end.
    b"\x8f": _constant(list), b"\x90": _M._appends, b"\x91": _M._list,
    b"h": _placed(UINT8, _M._get), b"j": _placed(UINT32, _M._get), b"g": _place_in_text(_M._get),
    b"q": _placed(UINT8, _M._put), b"r": _placed(UINT32, _M._put), b"p": _place_in_text(_M._put),
    b"\x94": lambda machine: machine._put(len(machine._memo)),
    b"c": _M._global, b"\x93": _M._stack_global, b"R": _M._reduce, b"b": _M._build, b"Q": _M._persistent,
}  # fmt: skip
INSTRUCTIONS = [_KNOWN.get(bytes([code]), PickleMachine._refused) for code in range(256)]
