"""What a labeller and a page ask of items: their vectors, and their pictures or texts."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from handful.catalogue.file import CatalogueFile, ItemRow
from handful.catalogue.vectors import GIVEN, EncoderId
from handful.errors import OptionError
from handful.items.bringing import FOLDER, placed
from handful.items.embedding import encoder_of
from handful.reading.contents import Contents, FolderFiles, KeptPictures, Unreadable, ZipFiles
from handful.reading.header import PATH_NAME, TEXT_NAMES
from handful.reading.images import archive_above
from handful.shapes import Float


def with_vectors(catalogue: CatalogueFile, items: Sequence[int], encoder: EncoderId | None = None) -> list[int]:
    """Return those of these items that have a vector, in this order."""
    contents = catalogue.contents_of(items)
    there = set[int]()
    for one in _spaces(catalogue, encoder):
        there |= catalogue.embedded(one, list(set(contents.values())))
    return [item for item in items if contents[item] in there]


def vectors_of(
    catalogue: CatalogueFile, items: Sequence[int], encoder: EncoderId | None = None
) -> Float[np.ndarray, "item dim"]:
    """Return the vectors of items, in this order.

    Parameters
    ----------
    catalogue
        The catalogue.
    items
        Numbers of items that have one, see `with_vectors`.
    encoder
        By which; by default that of the catalogue. Vectors of as many numbers that were given stand for others.

    Examples
    --------
    >>> from handful.items import bring
    >>> catalogue = CatalogueFile.open()
    >>> _ = bring(catalogue, "monday", np.eye(3))
    >>> vectors_of(catalogue, [3, 1, 3]).tolist()
    [[0.0, 0.0, 1.0], [1.0, 0.0, 0.0], [0.0, 0.0, 1.0]]
    """
    contents = catalogue.contents_of(items)
    found: dict[int, np.ndarray] = {}
    for one in _spaces(catalogue, encoder):
        found |= catalogue.vectors(one, [content for content in set(contents.values()) if content not in found])
    missing = [item for item in items if contents[item] not in found]
    if missing:
        raise OptionError(f"{len(missing):,} items have no vector, the first is item {missing[0]}; bring them again")
    if not items:
        return np.empty((0, catalogue.dim(_spaces(catalogue, encoder)[0])), np.float32)
    return np.stack([found[contents[item]] for item in items])


def _spaces(catalogue: CatalogueFile, encoder: EncoderId | None) -> list[EncoderId]:
    """Return the encoders whose vectors are compared with one another."""
    own = encoder or encoder_of(catalogue) or GIVEN
    return list(dict.fromkeys((own, GIVEN))) if catalogue.dim(GIVEN) in (0, catalogue.dim(own)) else [own]


def pictures_of(catalogue: CatalogueFile, items: Sequence[int]) -> Contents | None:
    """Return what a page shows of items, in this order: texts, or images that are not yet read.

    Images are below the folder that their batch was in last, as seen from the catalogue. One that is gone is
    unreadable. Items of several kinds or archives are read at once, so ask for as many as are shown. None if there is
    nothing to show but numbers.

    Parameters
    ----------
    catalogue
        The catalogue.
    items
        Numbers of items.

    Examples
    --------
    >>> from handful.items import bring
    >>> catalogue = CatalogueFile.open()
    >>> _ = bring(catalogue, "calls", ["where is my bag", "wake me at six"])
    >>> pictures_of(catalogue, [2])
    ('wake me at six',)
    """
    rows = catalogue.rows(items)
    kinds = {row.kind for row in rows}
    if "image" not in kinds:
        texts = [_text(row) for row in rows]
        return tuple(text or "" for text in texts) if any(text is not None for text in texts) else None
    paths = [_path(catalogue, row) if row.kind == "image" else None for row in rows]
    archives = {None if path is None else archive_above(path) for path in paths}
    if kinds == {"image"} and archives == {None}:
        start = Path() if catalogue.path is None else catalogue.path.parent
        return FolderFiles(start, tuple(str(path.absolute()) for path in paths if path is not None))
    if kinds == {"image"} and len(archives) == 1:
        (archive,) = archives
        assert archive is not None
        return ZipFiles(archive, tuple(path.relative_to(archive).as_posix() for path in paths if path is not None))
    return KeptPictures(tuple(map(_read, paths)))


def _text(row: ItemRow) -> str | None:
    """Return the text of an item, or one beside its vector."""
    if row.text is not None:
        return row.text
    beside = row.columns or {}
    return next((str(beside[name]) for name in TEXT_NAMES if name in beside), None)


def _path(catalogue: CatalogueFile, row: ItemRow) -> Path:
    """Return where the image of an item is; a path that leads to nothing if it is gone."""
    place = catalogue.said.places.get(row.batch, {}).get(row.item)
    source = catalogue.said.sources.get(row.batch, {})
    folder = placed(catalogue, source.get(FOLDER, "."))
    if place is None:
        return folder / f"item {row.item}, which is gone"
    return folder / str((row.columns or {}).get(PATH_NAME, place))


def _read(path: Path | None) -> bytes:
    """Return the image of an item; nothing if there is none."""
    if path is None:
        return b""
    archive = archive_above(path)
    files: FolderFiles | ZipFiles = FolderFiles(path.parent, (path.name,))
    if archive is not None:
        files = ZipFiles(archive, (path.relative_to(archive).as_posix(),))
    try:
        (content,) = files
    except KeyError:  # no such entry of the archive
        return b""
    return b"" if isinstance(content, str | Unreadable) else content
