"""Examples of the catalogue on the page, for an eye to compare; each picture is stored once, however often it is shown.

A picture is the background of a style class, and an element of that class shows it.
"""

from __future__ import annotations

import base64
import io
from collections.abc import Sequence
from html import escape

import numpy as np

from handful.classification.predictions import Shown
from handful.extraction.decode import Unreadable, decode_image
from handful.extraction.items import pick

# Pixels of the longer side of an example: sharp at half that size.
SMALL = 104
MOST_LETTERS = 280


class CatalogueExamples:
    """Pieces of the page that show examples, and the style that their pictures need.

    Without anything to show, the pieces are empty.
    """

    def __init__(self, shown: Shown | None) -> None:
        self._shown = shown
        self._used: set[int] = set()

    def of_class(self, name: str, most: int) -> str:
        """Show the first examples of a class; at most two sentences."""
        if self._shown is None:
            return ""
        return self._piece(np.flatnonzero(self._shown.classes == name)[:most].tolist(), name)

    def of_item(self, item: int, label: str) -> str:
        """Show the example of its label nearest to an item; the first one if the nearest is not known."""
        if self._shown is None:
            return ""
        if item in self._shown.nearest:
            return self._piece([self._shown.nearest[item]], label)
        return self.of_class(label, 1)

    def _piece(self, rows: Sequence[int], name: str) -> str:
        shown = self._shown
        if shown is None or not rows:
            return ""
        if isinstance(shown.contents, tuple):
            lines = "".join(f"<li>{escape(shortened(shown.contents[row]))}</li>" for row in rows[:2])
            return f"<ul class='said' aria-label='examples of {escape(name, quote=True)}'>{lines}</ul>"
        self._used.update(rows)
        pictures = "".join(
            f"<i class='x{row}' role='img' aria-label='{escape(shown.names[row], quote=True)}'></i>" for row in rows
        )
        return f"<div class='beside'>{pictures}</div>"

    def style(self) -> str:
        """Return the style of all pictures shown so far."""
        if self._shown is None:
            return ""
        rows = sorted(self._used)
        contents = pick(self._shown.contents, rows)
        addresses = (thumbnail(content, SMALL) if isinstance(content, bytes) else None for content in contents)
        return "\n".join(
            f".x{row} {{ background-image: url({address}) }}"
            for row, address in zip(rows, addresses, strict=True)
            if address is not None
        )


def thumbnail(content: bytes, size: int) -> str | None:
    """Return a picture as a data URL, its longer side no longer than `size` pixels; None if it cannot be read."""
    image = decode_image(content)
    if isinstance(image, Unreadable):  # it was readable when its features were made
        return None
    image.thumbnail((size, size))
    stream = io.BytesIO()
    image.save(stream, "JPEG", quality=75, optimize=True)
    return f"data:image/jpeg;base64,{base64.b64encode(stream.getvalue()).decode()}"


def shortened(text: str) -> str:
    """Cut a long text."""
    return text if len(text) <= MOST_LETTERS else f"{text[:MOST_LETTERS]}…"
