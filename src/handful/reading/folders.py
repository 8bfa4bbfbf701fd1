"""Folders of paths as columns: `folder` is the one that a file lies in, and `folder:2` the first two of its path."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import PureWindowsPath

from handful.errors import FileFormatError
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
