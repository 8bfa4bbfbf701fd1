"""Where and when an image or recording was made: COCO Camera Traps, Camtrap DP, or a CSV table with a column of files.

Rows are found by the path of the file: the whole path, or as many of its last parts as both sides have.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import Any

from handful.errors import FileFormatError
from handful.exchange.json_files import JsonFile, entries
from handful.machine.untrusted import refuse_irregular

FILE_NAMES = ("file", "filepath", "file_name", "filename", "path", "filePath", "fileName", "File")
# Folder that an item lies in; needs no table.
FOLDER = "folder"


def read_sites(path: Path) -> dict[str, list[Any]]:
    """Return columns, among them `file`, with one row per file."""
    place = path / "datapackage.json" if path.is_dir() else path
    if place.name.lower() == "datapackage.json":
        return _camtrap(place)
    if place.suffix.lower() == ".json":
        return _coco(place)
    return _table(place)


def columns_of(files: Sequence[str], sites: Mapping[str, list[Any]], where: str) -> dict[str, list[Any]]:
    """Return the columns of `sites` for these files, in their order; a file that is not there is refused.

    Examples
    --------
    >>> columns_of(["/data/B/2.jpg", "/data/A/1.jpg"], {"file": ["A/1.jpg", "B/2.jpg"], "location": [7, 9]}, "a table")
    {'location': [9, 7]}
    """
    whole = {_parts(name): row for row, name in enumerate(sites["file"])}
    ends: dict[tuple[str, ...], int | None] = {}
    for own, row in whole.items():
        for start in range(1, len(own)):
            # An end that several files share says nothing.
            ends[own[start:]] = row if own[start:] not in ends else None
    rows = [_row_of(_parts(name), whole, ends) for name in files]
    lost = [name for name, row in zip(files, rows, strict=True) if row is None]
    if lost:
        raise FileFormatError(
            f"{where} has no row for {len(lost):,} of {len(files):,} files, or several; the first is {lost[0]!r}: "
            "paths must agree, or end alike"
        )
    others = {name: values for name, values in sites.items() if name != "file"}
    return {name: [values[row] for row in rows if row is not None] for name, values in others.items()}


def folders_of(files: Sequence[str], where: str) -> list[str]:
    """Return the folder of each file; a file in no folder is refused."""
    folders = [str(PurePosixPath(file.replace("\\", "/")).parent) for file in files]
    outside = next((file for file, folder in zip(files, folders, strict=True) if folder == "."), None)
    if outside is not None:
        raise FileFormatError(f"{where}: {outside!r} is in no folder, so it belongs to no group; give a table of sites")
    return folders


def _parts(name: Any) -> tuple[str, ...]:
    return tuple(part for part in str(name).replace("\\", "/").split("/") if part not in ("", "."))


def _row_of(
    own: tuple[str, ...], whole: Mapping[tuple[str, ...], int], ends: Mapping[tuple[str, ...], int | None]
) -> int | None:
    """Return the row of this path, of one that it ends with, or of the only one that ends with it."""
    found = next((whole[own[start:]] for start in range(len(own)) if own[start:] in whole), None)
    return ends.get(own) if found is None else found


def _coco(path: Path) -> dict[str, list[Any]]:
    """Read images with location, sequence and time; the category of the first annotation is the label."""
    kind = "COCO Camera Traps"
    content = JsonFile.read(path, kind).content
    images = entries(content, "images", path, kind)
    if not all(isinstance(image.get("file_name"), str) and "id" in image for image in images):
        raise FileFormatError(f"{path} must be {kind}: every image needs 'id' and 'file_name'; write it again")
    named = {entry.get("id"): entry.get("name") for entry in content.get("categories", ()) if isinstance(entry, dict)}
    labels: dict[Any, Any] = {}
    for entry in content.get("annotations", ()):
        if isinstance(entry, dict):
            labels.setdefault(entry.get("image_id"), named.get(entry.get("category_id")))
    keys = dict.fromkeys(key for image in images for key in image if key not in ("id", "file_name"))
    columns = {key: [image.get(key) for image in images] for key in keys}
    if labels:
        columns["annotation"] = [labels.get(image["id"]) for image in images]
    return {"file": [image["file_name"] for image in images], **columns}


def _camtrap(path: Path) -> dict[str, list[Any]]:
    """Read media with the columns of their deployments, and the scientific name of their first observation."""
    kind = "a data package of Camtrap DP"
    resources = entries(JsonFile.read(path, kind).content, "resources", path, kind)
    tables = dict[str, Path]()
    for entry in resources:
        inside = entry.get("path")
        if isinstance(inside, str) and not Path(inside).is_absolute() and ".." not in Path(inside).parts:
            tables[str(entry.get("name"))] = path.parent / inside
    if not {"deployments", "media"} <= set(tables):
        raise FileFormatError(f"{path} must name files in its folder as the resources 'deployments' and 'media'")
    deployments, media = (_rows(tables[name]) for name in ("deployments", "media"))
    for name, rows, key in (("deployments", deployments, "deploymentID"), ("media", media, "filePath")):
        if not rows or key not in rows[0]:
            raise FileFormatError(f"{tables[name]} has no rows with {key!r}, as {kind} has")
    by_deployment = {row["deploymentID"]: row for row in deployments}
    seen: dict[str, str] = {}
    if "observations" in tables and tables["observations"].is_file():
        for row in _rows(tables["observations"]):
            if row.get("mediaID") and row.get("scientificName"):
                seen.setdefault(row["mediaID"], row["scientificName"])
    of_site = [key for key in deployments[0] if key not in media[0]]
    columns: dict[str, list[Any]] = {key: [row.get(key) for row in media] for key in media[0] if key != "filePath"}
    for key in of_site:
        columns[key] = [by_deployment.get(row.get("deploymentID", ""), {}).get(key) for row in media]
    if seen:
        columns["annotation"] = [seen.get(row.get("mediaID", "")) for row in media]
    return {"file": [row["filePath"] for row in media], **columns}


def _table(path: Path) -> dict[str, list[Any]]:
    rows = _rows(path)
    name = next((name for name in FILE_NAMES if rows and name in rows[0]), None)
    if name is None:
        raise FileFormatError(f"{path} must be a CSV table with a column 'file' and one row per file")
    return {"file": [row[name] for row in rows], **{key: [row[key] for row in rows] for key in rows[0] if key != name}}


def _rows(path: Path) -> list[dict[str, str]]:
    refuse_irregular(path, FileFormatError)
    try:
        text = path.read_text(encoding="utf-8-sig")
        return [row for row in csv.DictReader(io.StringIO(text, newline="")) if None not in row]
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise FileFormatError(f"{path} cannot be read as a CSV table in UTF-8 ({error}); check the path") from error
