"""rescore: from the scores that another tool wrote to joint labels."""

from __future__ import annotations

import os
import warnings
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from importlib.util import find_spec
from os.path import isfile
from pathlib import Path
from typing import Any, Unpack

from handful.classification.batch import Batch, Groups
from handful.classification.files import (
    asked_columns,
    item_labels,
    paths_read,
    refuse_outputs,
)
from handful.classification.known import columns_named, new_labels, read_known
from handful.classification.labelled import BY_SCORES, About
from handful.errors import FileFormatError, LabelError, OptionError, OverturnedScoresWarning
from handful.estimators import Answer, Known, TopScores, infer_scores
from handful.reading.class_names import similar_names
from handful.reading.contents import IMAGE_SUFFIXES, FolderFiles
from handful.reading.images import FOLDER, folder_columns
from handful.reading.registry import candidate_rule
from handful.reading.scores import read_scores
from handful.reading.sites import columns_of, read_sites, write_sites
from handful.reading.table import Columns


def rescore(
    scores: str | os.PathLike[str],
    *,
    group_by: str | Sequence[str] | None = None,
    sites: str | os.PathLike[str] | None = None,
    pictures: str | os.PathLike[str] | None = None,
    **known: Unpack[Known],
) -> Answer:
    r"""Label all items of a file of scores jointly, or those of each group.

    Parameters
    ----------
    scores : path
        Predictions of SpeciesNet, results of MegaDetector with classifications, BirdNET's table of results, or a
        selection table of Raven.
    group_by : str or sequence of str, optional
        What makes the batches: `folder`, where the file lies, or `folder:1`, the first folder of its path (`folder:2`
        the first two); a column of `sites` such as `location`, or a column of the table.
    sites : path, optional
        Where the files were made: COCO Camera Traps, a data package of Camtrap DP, or a CSV table.
    pictures : path, optional
        The folder that the paths of the images start from, so that a page can show them. By default that of `scores`;
        where no image is found there, a page has names alone.
    **known : object
        What is known about the items, see `Known`; columns are those of the file and of `sites`. Items whose
        labels are given say how reliable the scores are.

    Returns
    -------
    Answer
        Scores do not tell which items belong to none of the classes, so these are not judged.

    Examples
    --------
    Nine images of a site look like cows, one like a deer that nobody else has seen:

    >>> import json, tempfile
    >>> file = Path(tempfile.mkdtemp()) / "predictions.json"
    >>> cow = {"classes": ["cow", "deer", "elk"], "scores": [0.8, 0.1, 0.05]}
    >>> unsure = {"classes": ["deer", "cow", "elk"], "scores": [0.45, 0.4, 0.1]}
    >>> images = [{"filepath": f"site/{i}.jpg", "classifications": unsure if i == 4 else cow} for i in range(10)]
    >>> _ = file.write_text(json.dumps({"predictions": images}))
    >>> found = rescore(file, group_by="folder")
    >>> set(found["site"].labels.tolist())
    {'cow'}
    """
    if candidate_rule(known.get("candidates")) is not None:
        raise OptionError(f"candidates by {known['candidates']} need a catalogue of examples; leave them out")
    path = Path(scores)
    inputs = paths_read(known, scores=path, sites=sites)
    tool = read_scores(path)
    asked = () if group_by is None else asked_columns(group_by)
    needed = (*asked, *columns_named(known))
    columns: dict[str, list[Any]] = dict(tool.columns)
    if sites is not None:
        columns |= columns_of(tool.files, read_sites(Path(sites)), str(sites))
    columns |= folder_columns([name for name in needed if name not in columns], tool.files, str(path))
    lost = next((name for name in needed if name not in columns), None)
    if lost is not None:
        there = ", ".join(dict.fromkeys([*columns, FOLDER, f"{FOLDER}:1"]))
        raise OptionError(f"there is no column {lost!r} of the items; there is {there}, and what a table of sites has")
    uses = Counter(name for listed in tool.classes for name in listed)
    classes = tuple(sorted(uses))

    images = _images(tool.files, path, pictures)
    rows = range(len(tool.names)) if tool.rows is None else tool.rows
    groups = Groups.of({name: columns[name] for name in asked}, str(path)) if asked else None
    batch = Batch(rows, tool.names, images, tool.skipped, Columns(columns), groups=groups)
    about = read_known(known, batch, classes, {"file": list(tool.files), **columns})
    given = about.get("given") or {}
    if new := new_labels(given, classes):
        raise LabelError(f"scores have no class {new[0]!r}, which was given to an item; give one that has scores")
    with warnings.catch_warnings(action="ignore", category=OverturnedScoresWarning):  # they come with the answer
        answer = infer_scores(
            TopScores(tool.classes, tool.scores),
            list(classes),
            kind=tool.kind,
            groups=None if groups is None else groups.of_items,
            **about,
        )
    codes = {name: k for k, name in enumerate(classes)}
    scored = About(
        batch,
        0,
        BY_SCORES,
        group_by=asked,
        given={item: None if label is None else codes[label] for item, label in given.items()},
        similar=tuple(similar_names(classes, [uses[name] for name in classes])),
        inputs=inputs,
    )
    return replace(answer, about=scored)


def _images(files: Sequence[str], scores: Path, folder: str | os.PathLike[str] | None) -> FolderFiles | None:
    """Return the images of the items, not yet read; None if there is none, or nothing that could show them."""
    if folder is None and find_spec("PIL") is None:
        return None
    found = FolderFiles(
        scores.parent if folder is None else Path(folder), tuple(file.replace("\\", "/") for file in files)
    )
    if any(Path(name).suffix.lower() in IMAGE_SUFFIXES and isfile(found.root / name) for name in found.names):
        return found
    if folder is not None:
        raise FileFormatError(f"{folder} has none of the {len(files):,} images, such as {files[0]!r}; name another one")
    return None


def write_annotations(answer: Answer, scores: Path, sites: Path, out: Path) -> None:
    """Write the labels as annotations into a copy of COCO Camera Traps, or as observations of Camtrap DP (CSV)."""
    refuse_outputs(answer, sites=sites, annotations=out)
    write_sites(sites, read_scores(scores).files, item_labels(answer), out)
