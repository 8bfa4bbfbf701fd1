"""Examples of the catalogue on the page, for comparison, and small pictures of them and of items."""

from __future__ import annotations

import base64
import io
from collections.abc import Collection, Sequence

import numpy as np

from handful.classification.labelled import Shown
from handful.extraction.decode import decode_image
from handful.reading.contents import KeptPictures, Source, Unreadable, pick

# Pixels of the longer side of an example: sharp at half that size.
SMALL = 128
MOST_LETTERS = 600
# Examples of a class that some item has as its label or runner-up, and of any other class.
OF_CLASS, OF_OTHERS = 6, 1
# Examples on a page; each picture takes about 4 kB.
MOST_EXAMPLES = 1200


def chosen_examples(
    shown: Shown, class_names: Sequence[str], occurring: Collection[int], also: Sequence[int]
) -> list[int]:
    """Return rows of the examples to show: those in `also`, then the first ones of the classes that occur, then others.

    `occurring` are positions in the class names. No row occurs twice, and there are at most `MOST_EXAMPLES`.
    """
    by_class: dict[str, list[int]] = {}
    for row, name in enumerate(shown.classes.tolist()):
        by_class.setdefault(name, []).append(row)
    chosen = dict.fromkeys(also)
    ordered = sorted(range(len(class_names)), key=lambda k: k not in occurring)
    for k in ordered:
        most = OF_CLASS if k in occurring else OF_OTHERS
        chosen.update(dict.fromkeys(by_class.get(class_names[k], [])[:most]))
    return list(chosen)[:MOST_EXAMPLES]


def pictures(source: Source, positions: Sequence[int], size: int) -> list[str | None]:
    """Return small pictures of the images at these positions, in base64; None if one cannot be read."""
    contents = pick(source, positions)
    if isinstance(contents, KeptPictures):
        return [base64.b64encode(content).decode() or None for content in contents.contents]
    return [thumbnail(content, size) if isinstance(content, bytes) else None for content in contents]


def thumbnail(content: bytes, size: int) -> str | None:
    """Return a JPEG in base64, its longer side no longer than `size` pixels; None if it cannot be read."""
    image = decode_image(content)
    if isinstance(image, Unreadable):  # it was readable when its features were made
        return None
    image.thumbnail((size, size))
    stream = io.BytesIO()
    image.save(stream, "JPEG", quality=75, optimize=True)
    return base64.b64encode(stream.getvalue()).decode()


def shortened(text: str) -> str:
    """Cut a long text."""
    return text if len(text) <= MOST_LETTERS else f"{text[:MOST_LETTERS]}…"


def rounded(numbers: np.ndarray, digits: int = 4) -> list[float]:
    """Return the numbers with few digits: they take most of the space of a page without pictures."""
    return np.round(np.asarray(numbers, np.float64), digits).tolist()  # type: ignore[no-any-return]
