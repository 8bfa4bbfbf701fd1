"""COCO Camera Traps: images with location, sequence and time, annotations and categories.

Labels are written as annotations of ours into a copy; images, other annotations and categories stay as they are.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from handful.errors import FileFormatError
from handful.machine.json_files import JsonFile, entries
from handful.machine.untrusted import Budget
from handful.reading.tool_scores import ItemLabel

KIND = "COCO Camera Traps"
# What entries must have beside images.
NEEDED = {"categories": ("id", "name"), "annotations": ("image_id", "category_id")}
# Identifiers of our annotations begin with this.
OURS = "handful-"


def read_coco(path: Path) -> dict[str, list[Any]]:
    """Return columns of the images, `file` first; `annotation` is the category of an image's first annotation."""
    content = JsonFile.read(path, KIND).content
    images = _images(content, path)
    named = {entry["id"]: entry["name"] for entry in content.get("categories", ())}
    labels: dict[Any, Any] = {}
    for entry in content.get("annotations", ()):
        if not str(entry.get("id")).startswith(OURS):
            labels.setdefault(entry.get("image_id"), named.get(entry.get("category_id")))
    keys = dict.fromkeys(key for image in images for key in image if key not in ("id", "file_name"))
    Budget.of(path).spend(8 * len(keys) * len(images))
    columns = {key: [image.get(key) for image in images] for key in keys}
    if labels:
        columns["annotation"] = [labels.get(image["id"]) for image in images]
    return {"file": [image["file_name"] for image in images], **columns}


def write_coco(source: Path, answers: Mapping[int, ItemLabel], out: Path) -> None:
    """Write a copy with one more annotation for each image that has an answer, by its position among the images."""
    file = JsonFile.read(source, KIND)
    content = copy.deepcopy(file.content)
    images = _images(content, source)
    categories = content.setdefault("categories", [])
    numbers = {entry["name"]: entry["id"] for entry in categories}
    used = [number for number in numbers.values() if isinstance(number, int)]
    free = max(used, default=-1) + 1
    for name in dict.fromkeys(answer.label for answer in answers.values()):
        if name not in numbers:
            numbers[name] = free
            categories.append({"id": free, "name": name})
            free += 1
    annotations = content.setdefault("annotations", [])
    annotations[:] = [entry for entry in annotations if not str(entry.get("id")).startswith(OURS)]
    for number, answer in answers.items():
        image = images[number]["id"]
        own = {"id": f"{OURS}{image}", "image_id": image, "category_id": numbers[answer.label]}
        annotations.append({**own, "score": answer.certainty})
    file.write(content, out)


def _images(content: Any, path: Path) -> list[dict[str, Any]]:
    images = entries(content, "images", path, KIND)
    if not all(isinstance(image.get("file_name"), str) and _is_id(image.get("id")) for image in images):
        raise FileFormatError(f"{path} must be {KIND}: every image needs 'id' and 'file_name'; write it again")
    for key, needed in NEEDED.items():
        listed = entries(content, key, path, KIND) if key in content else []
        if not all(_is_id(entry.get(name)) for entry in listed for name in needed):
            raise FileFormatError(
                f"{path} must be {KIND}: {' and '.join(map(repr, needed))} of {key} must be text or numbers; "
                "write it again"
            )
    return images


def _is_id(value: Any) -> bool:
    return isinstance(value, (int, float, str)) and not isinstance(value, bool)
