"""classify_scores: from the scores that another tool wrote to joint labels, and back into the tool's own format."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from handful.banks.carried import Carried
from handful.classification.grouping import Grouping
from handful.classification.groups import ClassifiedGroups, asked_columns, write_group_table, write_groups
from handful.classification.predictions import BY_SCORES, Answers, Batch, Classified, write_predictions
from handful.errors import FileFormatError, OptionError
from handful.estimators import TopScores, infer_scores
from handful.exchange.scored import ItemLabel
from handful.exchange.scores import read_scores
from handful.exchange.sites import FOLDER, columns_of, folders_of, read_sites, write_sites
from handful.exchange.species import read_candidates, read_weights
from handful.shapes import Int


def classify_scores(
    scores: str | os.PathLike[str],
    *,
    group_by: str | Sequence[str] | None = None,
    sites: str | os.PathLike[str] | None = None,
    sequence: str | None = None,
    candidates: str | os.PathLike[str] | None = None,
    prior: str | os.PathLike[str] | None = None,
) -> Classified | ClassifiedGroups:
    r"""Label all items of a file of scores jointly, or those of each group.

    Parameters
    ----------
    scores : path
        Predictions of SpeciesNet, results of MegaDetector with classifications, BirdNET's table of results, or a
        selection table of Raven.
    group_by : str or sequence of str, optional
        What makes the batches: `folder` of the file, a column of `sites` such as `location`, or a column of the table.
    sites : path, optional
        Where the files were made: COCO Camera Traps, a data package of Camtrap DP, or a CSV table.
    sequence : str, optional
        Column that is equal for items of the same class, such as the images of one sequence: each of them then has the
        mean of their joint probabilities, and so all have the same label.
    candidates : path, optional
        A list of species, one per line, that can occur; all others are ruled out.
    prior : path, optional
        A table of species and weights: how likely they are at this place.

    Returns
    -------
    Classified or, with groups, ClassifiedGroups
        Scores do not tell which items belong to none of the classes, so `unknown` is None.

    Examples
    --------
    Nine images of a site look like cows, one like a deer that nobody else has seen:

    >>> import json, tempfile
    >>> file = Path(tempfile.mkdtemp()) / "predictions.json"
    >>> cow = {"classes": ["cow", "deer", "elk"], "scores": [0.8, 0.1, 0.05]}
    >>> unsure = {"classes": ["deer", "cow", "elk"], "scores": [0.45, 0.4, 0.1]}
    >>> images = [{"filepath": f"site/{i}.jpg", "classifications": unsure if i == 4 else cow} for i in range(10)]
    >>> _ = file.write_text(json.dumps({"predictions": images}))
    >>> found = classify_scores(file, group_by="folder")
    >>> set(found["site"].predictions()["label"])
    {'cow'}
    """
    path = Path(scores)
    tool = read_scores(path)
    asked = () if group_by is None else asked_columns(group_by)
    columns: dict[str, list[Any]] = dict(tool.columns)
    if FOLDER in asked:
        columns[FOLDER] = folders_of(tool.files, str(path))
    if sites is not None:
        columns |= columns_of(tool.files, read_sites(Path(sites)), str(sites))
    lost = next((name for name in (*asked, *([sequence] if sequence else [])) if name not in columns), None)
    if lost is not None:
        there = ", ".join(dict.fromkeys([*columns, FOLDER]))
        raise OptionError(f"there is no column {lost!r} of the items; there is {there}, and what a table of sites has")
    classes = tuple(sorted({name for listed in tool.classes for name in listed}))
    batch = Batch(range(len(tool.names)), tool.names, None, (), Carried(columns))
    known: dict[str, Any] = {
        "candidates": None if candidates is None else read_candidates(Path(candidates), classes),
        "prior": None if prior is None else read_weights(Path(prior), classes),
    }
    top = TopScores(tool.classes, tool.scores)
    if not asked:
        found = infer_scores(top, list(classes), kind=tool.kind, **known)
        answers = _answers(found.probabilities, columns, sequence, None)
        counts, presence, weight = found.expected_counts, found.presence, found.joint_weight or 0.0
        return Classified(
            batch,
            answers,
            counts,
            presence,
            weight,
            found.diagnostics,
            classes,
            0,
            BY_SCORES,
            streamed=False,
            unknown_reason=found.unknown_reason,
        )
    grouping = Grouping.of({name: columns[name] for name in asked}, str(path))
    grouped = infer_scores(top, list(classes), kind=tool.kind, groups=grouping.group_of, **known)
    return ClassifiedGroups(
        batch,
        grouping,
        _answers(grouped.probabilities, columns, sequence, grouping.group_of),
        grouped.expected_counts,
        grouped.presence,
        grouped.joint_weight,
        grouped.diagnostics,
        classes,
        0,
        BY_SCORES,
        unknown_reason=grouped.unknown_reason,
    )


def _answers(
    probabilities: Any,
    columns: dict[str, list[Any]],
    sequence: str | None,
    group_of: Int[np.ndarray, "item"] | None,
) -> Answers:
    """Read answers off the probabilities, averaged over each sequence; one that is in two groups is two sequences."""
    table = np.asarray(probabilities)
    if sequence is None:
        return Answers.of(table)
    values = columns[sequence]
    odd = next((value for value in values if isinstance(value, (list, dict))), None)
    if odd is not None:
        raise FileFormatError(f"column {sequence!r} must hold text or numbers, got {odd!r:.80}; name another column")
    # An item without a sequence is one of its own.
    keys = [(0, item) if value in (None, "") else (1, value) for item, value in enumerate(values)]
    groups = [0] * len(keys) if group_of is None else group_of.tolist()
    numbers: dict[Any, int] = {}
    sequence_of = np.array([numbers.setdefault(key, len(numbers)) for key in zip(keys, groups, strict=True)])
    sums = np.zeros((len(numbers), table.shape[1]))
    np.add.at(sums, sequence_of, table)
    return Answers.of((sums / np.bincount(sequence_of)[:, None])[sequence_of])


def writes_back(scores: Path, out: Path) -> bool:
    """Whether answers about scores are written in the format of the scores: the endings are the same."""
    return scores.suffix.lower() == out.suffix.lower()


def write_scores(classified: Classified | ClassifiedGroups, scores: str | os.PathLike[str], out: Path) -> None:
    """Write the answers into a copy of the file of scores, or, with another ending, as Parquet or CSV.

    The table of groups, if there are any, is written beside it.

    Parameters
    ----------
    classified : Classified or ClassifiedGroups
        What `classify_scores` returned.
    scores : path
        The file of scores that it was given.
    out : Path
        The file to write; it may be the same.

    Examples
    --------
    >>> import json, tempfile
    >>> folder = Path(tempfile.mkdtemp())
    >>> image = {"filepath": "a.jpg", "classifications": {"classes": ["cow", "deer"], "scores": [0.8, 0.1]}}
    >>> _ = (folder / "predictions.json").write_text(json.dumps({"predictions": [image] * 3}))
    >>> found = classify_scores(folder / "predictions.json")
    >>> write_scores(found, folder / "predictions.json", folder / "better.json")
    >>> json.loads((folder / "better.json").read_text())["predictions"][0]["prediction"]
    'cow'
    """
    if not writes_back(Path(scores), out):
        if isinstance(classified, ClassifiedGroups):
            write_groups(classified, out)
        else:
            write_predictions(classified, out)
        return
    read_scores(Path(scores)).write(_answers_of(classified), out)
    if isinstance(classified, ClassifiedGroups):
        write_group_table(classified, out)


def write_annotations(classified: Classified | ClassifiedGroups, scores: Path, sites: Path, out: Path) -> None:
    """Write the labels as annotations into a copy of COCO Camera Traps, or as observations of Camtrap DP (CSV)."""
    write_sites(sites, read_scores(scores).files, _answers_of(classified), out)


def _answers_of(classified: Classified | ClassifiedGroups) -> list[ItemLabel]:
    table = classified.predictions()
    columns = ("label", "probability", "runner_up", "runner_up_probability")
    return [ItemLabel(*row) for row in zip(*(table[name] for name in columns), strict=True)]
