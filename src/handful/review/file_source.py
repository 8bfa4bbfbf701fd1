"""Where the batch of `handful review` comes from: a folder or a file, which is brought into a catalogue.

It has connections of its own to the catalogue: one that brings, and one that the page reviews with.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from handful.catalogue.file import CatalogueFile
from handful.items import bring, source_of
from handful.items.looking_up import pictures_of, with_vectors
from handful.progress import Listener
from handful.reading.contents import FolderFiles
from handful.review.batch_review import BatchReview
from handful.review.opening import OpenOptions, open_batch
from handful.review.server import LARGE, Page
from handful.review.starting import catalogue_path, news_of, start


@dataclass
class FileSource:
    """A batch in files.

    Attributes
    ----------
    page : Page
        The page that shows it.
    catalogue, batch : Path or None
        As `start` takes them.
    how : OpenOptions
        How it is opened.
    person : str
        Who reviews.
    reading : mapping
        How it is read and embedded.
    """

    page: Page
    catalogue: Path | None
    batch: Path | None
    how: OpenOptions
    person: str
    reading: Mapping[str, Any] = field(default_factory=dict)
    name: str = ""
    _brings: CatalogueFile | None = None
    _reviews: CatalogueFile | None = None

    def bring(self, on_progress: Listener) -> Sequence[str]:
        """Bring what is there now; return what a person should be told, nothing if nothing is new."""
        if self._brings is not None:
            brought = bring(self._brings, self.name, person=self.person, on_progress=on_progress)
            return list(filter(None, [news_of(brought)]))
        started = start(
            self.catalogue,
            self.batch,
            person=self.person,
            on_progress=on_progress,
            reading=self.reading,
            on_opened=self._begun,
        )
        return started.notes

    def _begun(self, file: CatalogueFile, name: str) -> None:
        """Take the connection that brings, before anything is embedded; the page shows what has come."""
        self._brings = file
        self.name = name
        self.page.title = name
        self.page.pictures = self._pictures

    def _pictures(self, done: int) -> list[str | None]:
        """Return pictures of what was embedded."""
        assert self._brings is not None
        items = sorted(self._brings.said.places.get(self.name, {}))[:done]
        contents = pictures_of(self._brings, items) if items else None
        return self.page.media.ids(contents, range(len(items)), LARGE) if isinstance(contents, FolderFiles) else []

    def n_ready(self) -> int:
        """Return how many items have vectors."""
        if self._brings is None:
            return 0
        return len(with_vectors(self._brings, list(self._brings.said.places.get(self.name, {}))))

    def opened(self, notes: Sequence[str]) -> BatchReview:
        """Return the review of what has vectors."""
        assert self._brings is not None
        if self._reviews is None:
            in_memory = self._brings.path is None
            self._reviews = (
                self._brings if in_memory else CatalogueFile.open(catalogue_path(self.catalogue, self._path))
            )
        self._reviews.refresh()
        return self._review(self._reviews, notes)

    def _review(self, file: CatalogueFile, notes: Sequence[str]) -> BatchReview:
        return open_batch(file, self.name, self.how, person=self.person, notes=notes)

    @property
    def _path(self) -> Path:
        return self.batch or Path()

    def is_watched(self) -> bool:
        """Whether more may come: into a folder."""
        source = None if self._brings is None else source_of(self._brings, self.name)
        return source is not None and source.is_dir()

    def close(self) -> None:
        """Close the connection that brings."""
        if self._brings is not None:
            self._brings.close()

    def end(self) -> None:
        """Close the connection that reviews; answers are in the file already."""
        if self._reviews is not None:
            self._reviews.close()
