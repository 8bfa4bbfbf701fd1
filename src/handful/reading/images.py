"""Images in folders and in .zip files, or in a folder inside a .zip (`omniglot.zip/base`)."""

from __future__ import annotations

import zipfile
from collections import Counter
from collections.abc import Iterable
from pathlib import Path, PurePosixPath

from handful.errors import BankError
from handful.reading.contents import DAMAGED_ENTRY, IMAGE_SUFFIXES, NOT_READ, FolderFiles, ZipFiles
from handful.reading.folders import FOLDER
from handful.reading.table import Table


def read_image_folder(root: Path) -> Table:
    """List the images below a folder; links to folders are not followed."""
    names = image_names(file.relative_to(root).as_posix() for file in root.rglob("*") if file.is_file())
    return _table(names, FolderFiles(root, names), str(root))


def read_image_archive(path: Path, archive: Path) -> Table:
    """List the images in a .zip, or below a folder inside it."""
    inside = path.relative_to(archive).as_posix()
    prefix = "" if inside == "." else f"{inside}/"
    try:
        with zipfile.ZipFile(archive) as opened:
            entries = [name for name in opened.namelist() if name.startswith(prefix)]
    except DAMAGED_ENTRY as error:
        raise BankError(f"{archive} is not a complete .zip file ({error}); download or pack it again") from error
    names = image_names(name.removeprefix(prefix) for name in dict.fromkeys(entries))
    return _table(names, ZipFiles(archive, tuple(prefix + name for name in names)), str(path))


def archive_above(path: Path) -> Path | None:
    """Return the .zip file that `path` is, or is inside of."""
    return next((p for p in (path, *path.parents) if p.suffix.lower() == ".zip" and p.is_file()), None)


def image_names(found: Iterable[str]) -> tuple[str, ...]:
    """Images among the files, sorted, also of kinds that are not read; hidden files and what archivers add are none."""
    names = []
    for name in found:
        if _ending(name) in {*IMAGE_SUFFIXES, *NOT_READ}:
            parts = name.split("/")
            if not any(p.startswith((".", "__MACOSX")) for p in parts):
                names.append(name)
    # By folder first, 'cat/9.png' before 'cat-wild/1.png', so that rows of a class stay together.
    return tuple(sorted(names, key=lambda name: tuple(f"/{name}".rsplit("/", 1))))


def _ending(name: str) -> str:
    return PurePosixPath(name).suffix.lower()


def _table(names: tuple[str, ...], images: FolderFiles | ZipFiles, where: str) -> Table:
    """Return the images; those of kinds that are not read are left out and listed."""
    unread = {row: NOT_READ[_ending(name)] for row, name in enumerate(names) if _ending(name) in NOT_READ}
    if len(unread) == len(names):
        counts = ", ".join(f"{n:,} × {kind}" for kind, n in Counter(unread.values()).items())
        why = f"it has {counts}, which is not read: convert photographs to JPEG" if unread else "check the path"
        raise BankError(f"{where} contains no image that is read ({', '.join(sorted(IMAGE_SUFFIXES))}); {why}")
    folders = [name.rpartition("/")[0] for name in names]
    table = Table(
        where, len(names), images=images, names=names, columns={FOLDER: folders}, classes=folders, no_label=()
    )
    return table.without(
        {row: f"{kind} is not read; convert it to JPEG" for row, kind in unread.items()}, "unsupported"
    )
