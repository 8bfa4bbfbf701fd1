"""Images in folders and in .zip files, or in a folder inside a .zip (`omniglot.zip/base`)."""

from __future__ import annotations

import zipfile
from collections.abc import Iterable
from pathlib import Path

from handful.errors import BankError
from handful.reading.contents import DAMAGED_ENTRY, IMAGE_SUFFIXES, FolderFiles, ZipFiles
from handful.reading.folders import FOLDER
from handful.reading.records import Records


def read_image_folder(root: Path) -> Records:
    """List the images below a folder; links to folders are not followed."""
    names = _image_names(file.relative_to(root).as_posix() for file in root.rglob("*") if file.is_file())
    return _table(names, FolderFiles(root, names), str(root))


def read_image_archive(path: Path, archive: Path) -> Records:
    """List the images in a .zip, or below a folder inside it."""
    inside = path.relative_to(archive).as_posix()
    prefix = "" if inside == "." else f"{inside}/"
    try:
        with zipfile.ZipFile(archive) as opened:
            entries = [name for name in opened.namelist() if name.startswith(prefix)]
    except DAMAGED_ENTRY as error:
        raise BankError(f"{archive} is not a complete .zip file ({error}); download or pack it again") from error
    names = _image_names(name.removeprefix(prefix) for name in dict.fromkeys(entries))
    return _table(names, ZipFiles(archive, tuple(prefix + name for name in names)), str(path))


def archive_above(path: Path) -> Path | None:
    """Return the .zip file that `path` is, or is inside of."""
    return next((p for p in (path, *path.parents) if p.suffix.lower() == ".zip" and p.is_file()), None)


def _image_names(found: Iterable[str]) -> tuple[str, ...]:
    """Images among the files, sorted; hidden files, and folders that archivers add, are left out."""
    names = []
    for name in found:
        parts = name.split("/")
        if Path(name).suffix.lower() in IMAGE_SUFFIXES and not any(p.startswith((".", "__MACOSX")) for p in parts):
            names.append(name)
    # By folder first, 'cat/9.png' before 'cat-wild/1.png', so that rows of a class stay together.
    return tuple(sorted(names, key=lambda name: tuple(f"/{name}".rsplit("/", 1))))


def _table(names: tuple[str, ...], images: FolderFiles | ZipFiles, where: str) -> Records:
    if not names:
        raise BankError(f"{where} contains no image ({', '.join(sorted(IMAGE_SUFFIXES))}); check the path")
    folders = [name.rpartition("/")[0] for name in names]
    return Records(
        where, len(names), images=images, names=names, columns={FOLDER: folders}, classes=folders, no_label=()
    )
