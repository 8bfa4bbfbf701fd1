"""MegaDetector's results with classifications, as MegaDetector, EcoAssist and Timelapse exchange them.

An item is a detection that has classifications. Answers replace these by the two most likely classes; what stood there
is kept under `handful`. Everything else is left as it is.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from handful.errors import FileFormatError
from handful.machine.json_files import JsonFile, entries
from handful.reading.class_names import plain_label
from handful.reading.table import Skipped
from handful.reading.tool_scores import ItemLabel, ToolScores, checked_scores

KIND = "results of MegaDetector with classifications"
OURS = "handful"


def holds(content: Any) -> bool:
    """Whether the content of a file is that of MegaDetector."""
    return isinstance(content, dict) and "images" in content and "predictions" not in content


def read_megadetector(path: Path) -> ToolScores:
    """Read the classifications of every detection that has some."""
    file = JsonFile.read(path, KIND)
    images = entries(file.content, "images", path, KIND)
    categories = file.content.get("classification_categories")
    if not categories:
        raise FileFormatError(
            f"{path} has detections of MegaDetector without classes: it finds animals, people and vehicles, and does "
            "not say which animals; run a classifier on its detections first, such as SpeciesNet"
        )
    if not isinstance(categories, dict) or not all(isinstance(name, str) for name in categories.values()):
        raise FileFormatError(f"{path} must name its classes under 'classification_categories', as {KIND} do")
    categories = {key: plain_label(name) for key, name in categories.items()}
    if len(set(categories.values())) != len(categories):
        raise FileFormatError(f"{path} has two classes of the same name under 'classification_categories'; rename one")
    used = list[tuple[int, int]]()
    skipped = list[Skipped]()
    names = list[str]()
    files = list[str]()
    classes = list[list[str]]()
    scores = list[list[float]]()
    for row, image in enumerate(images):
        if not isinstance(image.get("file"), str):
            raise FileFormatError(f"image {row} of {path} must have a 'file', as {KIND} do; write the file again")
        if image.get("failure"):
            skipped.append(Skipped(row, image["file"], f"MegaDetector failed: {image['failure']!s:.80}", "failed"))
        detections = image.get("detections") or []
        if not isinstance(detections, list):
            raise FileFormatError(f"image {row} of {path} must have a list of 'detections'; write the file again")
        for number, detection in enumerate(detections):
            where = f"detection {number} of {image['file']} in {path}"
            if not isinstance(detection, dict):
                raise FileFormatError(f"{where} must be an object, as in {KIND}; write the file again")
            scored = detection.get("classifications")
            if not scored:
                continue
            pairs = _pairs(scored, categories, where)
            named, numbers = checked_scores([categories[key] for key, _ in pairs], [score for _, score in pairs], where)
            used.append((row, number))
            names.append(image["file"] if number == 0 else f"{image['file']}#{number}")
            files.append(image["file"])
            classes.append(named)
            scores.append(numbers)
    if not used:
        raise FileFormatError(f"{path} has no detection with classifications; run a classifier on its detections first")
    keys = {name: key for key, name in categories.items()}

    def write(answers: Sequence[ItemLabel], out: Path) -> None:
        content = copy.deepcopy(file.content)
        for (row, number), answer in zip(used, answers, strict=True):
            detection = content["images"][row]["detections"][number]
            before = detection.get(OURS, {"classifications": detection["classifications"]})
            detection["classifications"] = [[keys[answer.label], answer.certainty]]
            if answer.runner_up is not None:
                detection["classifications"].append([keys[answer.runner_up], answer.runner_up_certainty])
            detection[OURS] = before
        file.write(content, out)

    return ToolScores("probabilities", tuple(names), tuple(files), classes, scores, write, skipped=tuple(skipped))


def _pairs(scored: Any, categories: dict[str, str], where: str) -> list[tuple[str, Any]]:
    if not isinstance(scored, list) or not all(isinstance(pair, list) and len(pair) == 2 for pair in scored):
        raise FileFormatError(f"{where} must have 'classifications' that are pairs of class and score")
    unknown = next((key for key, _ in scored if not isinstance(key, str) or key not in categories), None)
    if unknown is not None:
        raise FileFormatError(f"{where} has class {unknown!r}, which 'classification_categories' does not name")
    return [(key, score) for key, score in scored]
