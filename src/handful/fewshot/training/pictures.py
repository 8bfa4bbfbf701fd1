"""Pictures: decoded images of a list of items, at random access; small collections stay in memory.

Every image is decoded once before a training begins. So a broken file is reported in the first minutes and not hours
later, and images that fit into the memory reserved for them are never decoded again.
"""

from __future__ import annotations

import os
import zipfile
from collections.abc import Callable
from typing import Any

from handful.errors import TrainingError
from handful.extraction.decode import decode_image
from handful.extraction.items import Items
from handful.reading.contents import Content, Unreadable, ZipFiles
from handful.runs import Progress
from handful.runs.progress import Reporter

# Decoded images kept in memory, in each process that trains.
KEPT_BYTES = 2 * 2**30
# Images decoded between two progress messages.
BLOCK = 500
# Unreadable images named in the message about them.
SHOWN = 5


class Pictures:
    """RGB images of Pillow by row; images beyond `kept_bytes`, three for each pixel, are decoded each time.

    `on_progress` is called with a `Progress` now and then.
    """

    def __init__(
        self, items: Items, *, kept_bytes: int = KEPT_BYTES, on_progress: Callable[[Progress], None] | None = None
    ) -> None:
        if items.kind != "image":
            raise TrainingError(
                "networks are trained on images, but these items are sentences; give a folder of images"
            )
        self.items = items
        self._kept: list[Any] = []
        self._archive: tuple[int, zipfile.ZipFile] | None = None
        broken: list[str] = []
        report, before = Reporter(on_progress).stage("check images", len(items)), 0
        for row, content in enumerate(items.source):
            image = _decoded(content)
            if isinstance(image, Unreadable):
                broken.append(f"{items.names[row]}: {image.reason}")
                continue
            kept_bytes -= 3 * image.width * image.height
            if kept_bytes >= 0 and len(self._kept) == row:
                self._kept.append(image)
            if row + 1 == len(items) or row % BLOCK == 0:
                report(row + 1 - before)
                before = row + 1
        if broken:
            more = [f"and {len(broken) - SHOWN} more"] if len(broken) > SHOWN else []
            summary = f"{len(broken)} of {len(items)} images cannot be read; fix or remove them:"
            raise TrainingError("\n  ".join([summary, *broken[:SHOWN], *more]))

    def __len__(self) -> int:
        return len(self.items)

    def __getitem__(self, row: int) -> Any:
        """Return one image."""
        if row < len(self._kept):
            return self._kept[row]
        image = _decoded(self._content(row))
        if isinstance(image, Unreadable):
            raise TrainingError(f"{self.items.names[row]} could be read before but no longer can: {image.reason}")
        return image

    def __getstate__(self) -> dict[str, Any]:
        """Leave out the open archive: each process opens its own."""
        return {**self.__dict__, "_archive": None}

    def _content(self, row: int) -> Content:
        source = self.items.source
        if not isinstance(source, ZipFiles):
            return next(iter(source[row : row + 1]))
        # Opening an archive reads its whole table of contents, so it stays open; but not across processes, which would
        # share the position in the file.
        if self._archive is None or self._archive[0] != os.getpid():
            self._archive = (os.getpid(), zipfile.ZipFile(source.root))
        return self._archive[1].read(source.names[row])


def _decoded(content: Content) -> Any:
    return decode_image(content) if isinstance(content, bytes) else content
