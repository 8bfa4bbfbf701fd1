"""SpeciesNet's `predictions.json`: the five best classes of every image, and one prediction.

Answers replace `prediction`, `prediction_score` and `prediction_source`; what stood there is kept under `handful`.
Images without classifications, such as those that failed, are counted as skipped; they and all other keys are left as
they are.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from handful.errors import FileFormatError
from handful.machine.json_files import JsonFile, entries
from handful.reading.table import Skipped
from handful.reading.tool_scores import ItemLabel, ToolScores, checked_scores

KIND = "predictions of SpeciesNet"
OURS = "handful"
# Keys of the ensemble's answer, in the order in which SpeciesNet writes them.
REPLACED = ("prediction", "prediction_score", "prediction_source")


def holds(content: Any) -> bool:
    """Whether the content of a file is that of SpeciesNet."""
    return isinstance(content, dict) and "predictions" in content


def read_speciesnet(path: Path) -> ToolScores:
    """Read the classifications of every image that has some."""
    file = JsonFile.read(path, KIND)
    images = entries(file.content, "predictions", path, KIND)
    used = list[int]()
    names = list[str]()
    classes = list[list[str]]()
    scores = list[list[float]]()
    skipped = list[Skipped]()
    for place, image in enumerate(images):
        where = f"image {place} of {path}"
        if not isinstance(image.get("filepath"), str):
            raise FileFormatError(f"{where} must have a 'filepath', as {KIND} do; write the file again")
        found = image.get("classifications")
        if not found:
            failures = image.get("failures")
            failed = f"SpeciesNet failed: {failures!s:.80}" if failures else "SpeciesNet gave it no classifications"
            skipped.append(Skipped(place, image["filepath"], failed, "failed"))
            continue
        if not isinstance(found, dict):
            raise FileFormatError(
                f"{where} must have 'classifications' with 'classes' and 'scores'; write the file again"
            )
        named, numbers = checked_scores(found.get("classes"), found.get("scores"), where)
        if not named:
            skipped.append(Skipped(place, image["filepath"], "SpeciesNet gave it no class", "failed"))
            continue
        used.append(place)
        names.append(image["filepath"])
        classes.append(named)
        scores.append(numbers)
    if not used:
        raise FileFormatError(f"{path} has no image with classifications; run the classifier of SpeciesNet first")

    def write(answers: Sequence[ItemLabel], out: Path) -> None:
        content = copy.deepcopy(file.content)
        for place, answer in zip(used, answers, strict=True):
            image = content["predictions"][place]
            before = image.get(OURS, {key: image[key] for key in REPLACED if key in image})
            image.update(zip(REPLACED, (answer.label, answer.certainty, OURS), strict=True))
            image[OURS] = before
        file.write(content, out)

    about: dict[str, Any] = {"skipped": tuple(skipped), "rows": used}
    return ToolScores("probabilities", tuple(names), tuple(names), classes, scores, write, **about)
