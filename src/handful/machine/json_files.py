"""JSON files that come back as they were written: order of keys, indentation, and whether letters are escaped."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from handful.errors import FileFormatError
from handful.machine.outputs import written_whole
from handful.machine.untrusted import read_json, read_text


@dataclass(frozen=True)
class JsonFile:
    """Content of a JSON file and how it was laid out."""

    content: Any
    indent: int | str | None
    compact: bool
    escaped: bool
    ended: bool

    @classmethod
    def read(cls, path: Path, kind: str) -> JsonFile:
        """Read a file; `kind` says in a message what was expected."""
        content = read_json(path, FileFormatError, kind)
        text = read_text(path, FileFormatError)
        match = re.match(r"\s*[\[{]\r?\n([ \t]+)", text)
        blanks = match[1] if match else ""
        indent = None if not blanks else blanks if "\t" in blanks else len(blanks)
        return cls(content, indent, indent is None and '": ' not in text[:10_000], text.isascii(), text.endswith("\n"))

    def write(self, content: Any, path: Path) -> None:
        """Write other content in the same layout; the file appears complete or not at all."""
        separators = (",", ":") if self.compact else None
        text = json.dumps(content, indent=self.indent, ensure_ascii=self.escaped, separators=separators)
        with written_whole(path) as temporary:
            temporary.write_text(text + "\n" * self.ended, encoding="utf-8", errors="backslashreplace")


def entries(content: Any, key: str, path: Path, kind: str) -> list[dict[str, Any]]:
    """Return the list of objects under a key; refuse any other content."""
    listed = content.get(key) if isinstance(content, dict) else None
    if not isinstance(listed, list) or not all(isinstance(entry, dict) for entry in listed):
        raise FileFormatError(f"{path} must be {kind}: an object with a list of objects under {key!r}")
    return listed
