"""Images in folders and in .zip files, or in a folder inside a .zip (`omniglot.zip/base`).

Folders of paths are columns as well: `folder` is the one that a file lies in, and `folder:2` the first two of its path.
"""

from __future__ import annotations

import os
import re
import zipfile
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path, PurePosixPath, PureWindowsPath

from handful.errors import BankError, FileFormatError
from handful.machine.extras import install_command
from handful.reading.contents import (
    DAMAGED_ENTRY,
    HEIC,
    IMAGE_SUFFIXES,
    NOT_READ,
    VIDEO,
    FolderFiles,
    ZipFiles,
    no_file,
)
from handful.reading.header import Asked
from handful.reading.table import Table

# The column of the folder that a file lies in.
FOLDER = "folder"


def is_folder(column: str) -> bool:
    """Whether a column of this name can be read off the path of a file."""
    return re.fullmatch(rf"{FOLDER}(:[1-9][0-9]{{0,2}})?", column) is not None


def folder_columns(asked: Sequence[str], files: Sequence[str], where: str) -> dict[str, list[str]]:
    r"""Return those of the columns that are folders, one value per file; a path with too few folders is refused.

    Paths may have slashes or backslashes. Levels are counted from the beginning of the path, without `/` or a drive.

    Examples
    --------
    >>> folder_columns(["folder", "folder:1"], ["wood/camera 1/a.jpg", r"marsh\camera 1\b.jpg"], "a table")
    {'folder': ['wood/camera 1', 'marsh/camera 1'], 'folder:1': ['wood', 'marsh']}
    >>> folder_columns(["folder:2"], ["/data/wood/a.jpg", r"D:\data\wood\b.jpg"], "a table")
    {'folder:2': ['/data/wood', 'D:/data/wood']}
    """
    columns = [name for name in asked if is_folder(name)]
    if not columns:
        return {}
    # Windows' rules know both kinds of slashes, and drives.
    folders = [PureWindowsPath(file).parent for file in files]
    depths = [len(folder.parts) - bool(folder.anchor) for folder in folders]
    found = {}
    for name in columns:
        level = int(name.partition(":")[2] or 0)
        few = [file for file, depth in zip(files, depths, strict=True) if depth < max(level, 1)]
        if few and min(depths) == 0:
            lost = next(file for file, depth in zip(files, depths, strict=True) if depth == 0)
            raise FileFormatError(
                f"{where}: {lost!r} is in no folder, so it belongs to no group; give a table with a column of groups"
            )
        if few:
            raise FileFormatError(
                f"{where}: {len(few):,} of {len(files):,} paths have fewer than {level} folders, the first is "
                f"{few[0]!r}; all have {FOLDER}:{min(depths)}"
            )
        found[name] = [
            (PureWindowsPath(*folder.parts[: level + bool(folder.anchor)]) if level else folder).as_posix()
            for folder in folders
        ]
    return found


def with_folders(table: Table, asked: Sequence[str], names: Sequence[str]) -> Table:
    """Add the columns that are asked for, not there, and folders of the rows, where the names of these are paths."""
    missing = [name for name in asked if is_folder(name) and name not in table.columns]
    if not missing or not any("/" in name or "\\" in name for name in names):
        return table
    return replace(table, columns={**table.columns, **folder_columns(missing, names, table.where)})


def read_image_folder(root: Path) -> Table:
    """List the images below a folder; links to folders are not followed, and what is no file is left out and listed."""
    names = image_names(file.relative_to(root).as_posix() for file in root.rglob("*") if not file.is_dir())
    return _table(names, FolderFiles(root, names), str(root))


def read_image_archive(path: Path, asked: Asked) -> Table:
    """List the images in a .zip, or below a folder inside it."""
    archive = archive_above(path)
    assert archive is not None
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
    return next((p for p in (path, *path.parents) if p.suffix.lower() == ".zip" and os.path.isfile(p)), None)


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
    kinds = NOT_READ if find_spec("pillow_heif") else {**NOT_READ, **dict.fromkeys(HEIC, "HEIC")}
    unread = {row: kinds[_ending(name)] for row, name in enumerate(names) if _ending(name) in kinds}
    instead = dict.fromkeys(unread.values(), "convert it to JPEG") | {VIDEO: "save pictures of it as JPEG"}
    if "HEIC" in instead:
        instead["HEIC"] += f", or run: {install_command('heic')}"
    if len(unread) == len(names):
        counts = ", ".join(f"{n:,} × {kind}" for kind, n in Counter(unread.values()).items())
        why = f"it has {counts}, which is not read: {max(instead.values(), key=len)}" if unread else "check the path"
        raise BankError(f"{where} contains no image that is read ({', '.join(sorted(IMAGE_SUFFIXES))}); {why}")
    lost: dict[int, str] = {}
    if isinstance(images, FolderFiles):
        reasons = {row: no_file(images.root / name) for row, name in enumerate(names) if row not in unread}
        lost = {row: reason for row, reason in reasons.items() if reason}
    if len(unread) + len(lost) == len(names):
        raise BankError(f"{where} contains no image that is read; {names[min(lost)]!r}: {lost[min(lost)]}")
    folders = [name.rpartition("/")[0] for name in names]
    table = Table(where, len(names), images=images, names=names, columns={FOLDER: folders}, classes=folders)
    said = {row: f"{kind} is not read; {instead[kind]}" for row, kind in unread.items()}
    readable = table.without(said, "unsupported")
    row_of = {position: row for row, position in enumerate(readable.rows)}
    return readable.without({row_of[row]: reason for row, reason in lost.items()}, "no file")
