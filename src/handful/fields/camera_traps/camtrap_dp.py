"""Camtrap DP: a `datapackage.json` that names tables of deployments, media and observations.

Labels are written as observations of single media, classified by machine, after the rows that are there.
"""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from handful.errors import FileFormatError
from handful.machine.json_files import JsonFile, entries
from handful.machine.outputs import written_whole
from handful.machine.untrusted import read_text
from handful.reading.class_lists import names_of
from handful.reading.sites import read_rows
from handful.reading.tool_scores import ItemLabel
from handful.version import __version__

KIND = "a data package of Camtrap DP"
OURS = "handful-"
# Columns of an observation that we fill in; tables without observations get these.
OBSERVATION = (
    "observationID", "deploymentID", "mediaID", "eventStart", "eventEnd", "observationLevel", "observationType",
    "scientificName", "classificationMethod", "classifiedBy", "classificationTimestamp", "classificationProbability",
)  # fmt: skip
# Labels that are kinds of observation rather than species.
OTHER_TYPES = {"blank": "blank", "empty": "blank", "human": "human", "person": "human", "vehicle": "vehicle"}


def package_of(path: Path) -> Path | None:
    """Return the `datapackage.json` that a path is, or that its folder has; None if it is another file."""
    package = path / "datapackage.json" if os.path.isdir(path) else path
    return package if package.name.lower() == "datapackage.json" else None


def camtrap_files(path: Path) -> dict[str, Path]:
    """Return the package as `sites`, and the tables that it names."""
    return {**tables_of(path), "sites": package_of(path) or path}


def read_camtrap(path: Path) -> dict[str, list[Any]]:
    """Return columns of media and their deployments, `file` first; `annotation` is the first species observed."""
    tables = tables_of(path)
    deployments = read_rows(tables["deployments"])
    media = read_rows(tables["media"])
    for name, rows, key in (("deployments", deployments, "deploymentID"), ("media", media, "filePath")):
        if not rows or key not in rows[0]:
            raise FileFormatError(f"{tables[name]} has no rows with {key!r}, as {KIND} has")
    by_deployment = {row["deploymentID"]: row for row in deployments}
    seen: dict[str, str] = {}
    if "observations" in tables:
        for row in read_rows(tables["observations"]):
            if row.get("mediaID") and row.get("scientificName") and not row.get("observationID", "").startswith(OURS):
                seen.setdefault(row["mediaID"], row["scientificName"])
    columns: dict[str, list[Any]] = {key: [row.get(key) for row in media] for key in media[0] if key != "filePath"}
    for key in (key for key in deployments[0] if key not in media[0]):
        columns[key] = [by_deployment.get(row.get("deploymentID", ""), {}).get(key) for row in media]
    if seen:
        columns["annotation"] = [seen.get(row.get("mediaID", "")) for row in media]
    return {"file": [row["filePath"] for row in media], **columns}


def write_camtrap(source: Path, answers: Mapping[int, ItemLabel], out: Path) -> None:
    """Write the table of observations to `out`: rows that are there, then one for each medium that has an answer."""
    tables = tables_of(source)
    media = read_rows(tables["media"])
    before = list[dict[str, str]]()
    header = list(OBSERVATION)
    if "observations" in tables:
        before = read_rows(tables["observations"])
        header = _header(tables["observations"])
        header += [name for name in OBSERVATION if name not in header]
    now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    rows = [row for row in before if not row.get("observationID", "").startswith(OURS)]
    for number, answer in answers.items():
        medium = media[number]
        kind, species = observed(answer.label)
        when = medium.get("timestamp", "")
        identifier = medium.get("mediaID", "")
        values = (f"{OURS}{identifier}", medium.get("deploymentID", ""), identifier, when, when, "media", kind, species)
        about = ("machine", f"handful {__version__}", now, f"{answer.certainty:.4f}")
        rows.append(dict(zip(OBSERVATION, (*values, *about), strict=True)))
    with written_whole(out) as unfinished, unfinished.open("w", encoding="utf-8", newline="") as stream:
        writer = csv.DictWriter(stream, header, restval="", lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


def observed(label: str) -> tuple[str, str]:
    """Return the type of observation and the scientific name of a label.

    Examples
    --------
    >>> observed("b1352069;mammalia;cetartiodactyla;cervidae;alces;alces;moose"), observed("blank"), observed("red fox")
    (('animal', 'Alces alces'), ('blank', ''), ('animal', 'red fox'))
    """
    parts = label.split(";")
    if kind := next((OTHER_TYPES[name] for name in names_of(label) if name in OTHER_TYPES), None):
        return kind, ""
    if len(parts) == 7:
        genus = parts[4].strip()
        species = parts[5].strip()
        higher = next((part for part in reversed(parts[1:5]) if part.strip()), parts[6])
        return "animal", f"{genus} {species}".capitalize() if genus and species else higher.capitalize()
    return "animal", label.split("_")[0]


def _header(path: Path) -> list[str]:
    return next(csv.reader(io.StringIO(read_text(path, FileFormatError), newline="")), [])


def tables_of(path: Path) -> dict[str, Path]:
    """Return the tables that the package names, if they are in its folder."""
    path = package_of(path) or path
    tables = dict[str, Path]()
    for entry in entries(JsonFile.read(path, KIND).content, "resources", path, KIND):
        inside = entry.get("path")
        if isinstance(inside, str) and not Path(inside).is_absolute() and ".." not in Path(inside).parts:
            tables[str(entry.get("name"))] = path.parent / inside
    if not os.path.exists(tables.get("observations", "")):  # a path that is too long does not exist
        tables.pop("observations", None)  # there are none yet
    if not {"deployments", "media"} <= set(tables):
        raise FileFormatError(f"{path} must name files in its folder as the resources 'deployments' and 'media'")
    return tables
