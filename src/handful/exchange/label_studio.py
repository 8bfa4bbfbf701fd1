"""Label Studio: tasks with predictions to import there, and labels from what it exports.

A task is `{"data": {…}, "predictions": [{"model_version", "score", "result": […]}]}`. Its data hold the item, so that
an export, which repeats them, can be brought back to the batch.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote
from xml.sax.saxutils import quoteattr

from handful.errors import FileFormatError
from handful.exchange.json_files import JsonFile

KIND = "an export of Label Studio"
# Names in the labelling interface: the control that people use, and the object they look at.
CONTROL, OBJECT = "label", "item"
# Keys of the data by which a task is found again.
ROW, ITEM, BATCH = "row", "item", "handful_batch"
# How Label Studio is asked for a file on its own disk.
LOCAL_FILES = "/data/local-files/?d="
# Elements that show an item, by the key of the data that holds it.
ELEMENTS = {"text": "Text", "image": "Image", "item": "Text"}


@dataclass(frozen=True)
class Annotated:
    """Labels that people gave: fingerprint of the batch, and row, name and label of each item."""

    batch: str
    labels: tuple[tuple[int, str, str], ...]


def task(
    data: Mapping[str, Any], label: str, probability: float, *, row: int, item: str, batch: str, version: str
) -> dict[str, Any]:
    """Return a task with one prediction.

    Examples
    --------
    >>> found = task({"text": "where is my bag"}, "luggage", 0.93, row=4, item="T4", batch="ab", version="handful")
    >>> found["predictions"][0]["result"][0]["value"]
    {'choices': ['luggage']}
    """
    result = {
        "id": f"{CONTROL}-{row}",
        "from_name": CONTROL,
        "to_name": OBJECT,
        "type": "choices",
        "value": {"choices": [label]},
    }
    return {
        "data": {**data, ROW: row, ITEM: item, BATCH: batch},
        "predictions": [{"model_version": version, "score": probability, "result": [result]}],
    }


def interface(shown: str, class_names: Sequence[str]) -> str:
    """Return a labelling interface: the item, and one choice per class.

    Examples
    --------
    >>> print(interface("text", ["a", "b & c"]))
    <View>
      <Text name="item" value="$text"/>
      <Choices name="label" toName="item" choice="single" showInLine="true">
        <Choice value="a"/>
        <Choice value="b &amp; c"/>
      </Choices>
    </View>
    """
    choices = "\n".join(f"    <Choice value={quoteattr(name)}/>" for name in class_names)
    return (
        f'<View>\n  <{ELEMENTS[shown]} name="{OBJECT}" value="${shown}"/>\n'
        f'  <Choices name="{CONTROL}" toName="{OBJECT}" choice="single" showInLine="true">\n{choices}\n  </Choices>\n'
        "</View>"
    )


def local_file(name: str) -> str:
    """Return the address of a file below the folder that Label Studio serves."""
    return LOCAL_FILES + quote(name)


def write_tasks(tasks: Sequence[Mapping[str, Any]], path: Path) -> None:
    """Write tasks as Label Studio imports them."""
    JsonFile([], 1, False, False, True).write(list(tasks), path)


def read_annotations(path: Path) -> Annotated:
    """Read the label of every annotated task; the last annotation that was not cancelled counts."""
    tasks = JsonFile.read(path, KIND).content
    return annotated(tasks, str(path))


def annotated(tasks: Any, where: str) -> Annotated:
    """Return what people said in the tasks of an export."""
    if not isinstance(tasks, list) or not all(
        isinstance(one, dict) and isinstance(one.get("data"), dict) for one in tasks
    ):
        raise FileFormatError(
            f"{where} must be {KIND}: a list of tasks with 'data' and 'annotations'; export as JSON, not as JSON-MIN"
        )
    labels, batches = list[tuple[int, str, str]](), set[str]()
    for number, one in enumerate(tasks):
        label = _label(one.get("annotations"), f"task {number} of {where}")
        if label is None:
            continue
        data = one["data"]
        row, item = data.get(ROW), data.get(ITEM)
        if not isinstance(row, int) or isinstance(row, bool) or not isinstance(item, str):
            raise FileFormatError(
                f"task {number} of {where} has no {ROW!r} and {ITEM!r} in its data, so it is not one that handful wrote"
            )
        batches.add(str(data.get(BATCH, "")))
        labels.append((row, item, label))
    if not labels:
        raise FileFormatError(f"{where} has no task with an annotation; label some in Label Studio, then export again")
    if len(batches) > 1:
        raise FileFormatError(f"{where} has tasks of {len(batches)} batches; export those of one batch at a time")
    return Annotated(batches.pop(), tuple(labels))


def _label(annotations: Any, where: str) -> str | None:
    """Return the choice of the last annotation, or None."""
    said = [one for one in annotations or () if isinstance(one, dict) and not one.get("was_cancelled")]
    for one in reversed(said):
        for result in one.get("result") or ():
            if isinstance(result, dict) and result.get("type") == "choices":
                choices = (result.get("value") or {}).get("choices")
                if not isinstance(choices, list) or len(choices) != 1 or not isinstance(choices[0], str):
                    raise FileFormatError(f"{where} must have one choice, got {choices!r}; an item has one label")
                return choices[0]
    return None
