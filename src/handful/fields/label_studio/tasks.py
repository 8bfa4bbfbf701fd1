"""Label Studio: tasks with predictions to import there, and labels from what it exports.

A task is `{"data": {…}, "predictions": [{"model_version", "score", "result": […]}]}`. Its data hold the item, so that
an export, which repeats them, can be brought back to the batch.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote
from xml.sax.saxutils import quoteattr

from handful.errors import FileFormatError
from handful.machine.json_files import JsonFile
from handful.reading.class_names import plain_label
from handful.reading.field import GivenLabel

KIND = "an export of Label Studio"
# Names in the labelling interface: the control that people use, and the object they look at.
CONTROL = "label"
OBJECT = "item"
# Keys of the data by which a task is found again.
ROW = "row"
ITEM = "item"
CONTENT = "handful_content"
# How Label Studio is asked for a file on its own disk.
LOCAL_FILES = "/data/local-files/?d="
# Elements that show an item, by the key of the data that holds it.
ELEMENTS = {"text": "Text", "image": "Image", "item": "Text"}


# Characters that XML 1.0 cannot hold, not even escaped.
NOT_IN_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def task(
    data: Mapping[str, Any], label: str, certainty: float, *, row: int, item: str, content: str, version: str
) -> dict[str, Any]:
    """Return a task with one prediction.

    Examples
    --------
    >>> found = task({"text": "where is my bag"}, "luggage", 0.93, row=4, item="T4", content="ab", version="handful")
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
        "data": {**data, ROW: row, ITEM: item, CONTENT: content},
        "predictions": [{"model_version": version, "score": certainty, "result": [result]}],
    }


def interface(shown: str, class_names: Sequence[str]) -> str:
    """Return a labelling interface: the item, and one choice per class; XML cannot hold every name.

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
    hidden = next((name for name in class_names if NOT_IN_XML.search(name)), None)
    if hidden is not None:
        raise FileFormatError(
            f"class {hidden!r} has a character that the XML of Label Studio cannot represent, and labels must come "
            "back unchanged; rename the class"
        )
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


def annotated(tasks: Any, where: str) -> list[GivenLabel]:
    """Return what people said in the tasks of an export, in annotations that were not cancelled."""
    if not isinstance(tasks, list) or not all(
        isinstance(one, dict) and isinstance(one.get("data"), dict) for one in tasks
    ):
        raise FileFormatError(
            f"{where} must be {KIND}: a list of tasks with 'data' and 'annotations'; export as JSON, not as JSON-MIN"
        )
    labels = list[GivenLabel]()
    for number, one in enumerate(tasks):
        chosen = list(_labels(one.get("annotations"), f"task {number} of {where}"))
        if not chosen:
            continue
        data = one["data"]
        row = data.get(ROW)
        item = data.get(ITEM)
        content = data.get(CONTENT)
        if (
            not isinstance(row, int)
            or isinstance(row, bool)
            or not (isinstance(item, str) and isinstance(content, str))
        ):
            raise FileFormatError(
                f"task {number} of {where} has no {ROW!r}, {ITEM!r} and {CONTENT!r} in its data, so handful did "
                "not write it; export a project that was made from the tasks of handful"
            )
        labels += [GivenLabel(row, item, content, label) for label in chosen]
    if not labels:
        raise FileFormatError(f"{where} has no task with an annotation; label some in Label Studio, then export again")
    return labels


def _labels(annotations: Any, where: str) -> Iterator[str]:
    """Yield the choices of the annotations."""
    for one in _objects(annotations, "annotations", where):
        for result in () if one.get("was_cancelled") else _objects(one.get("result"), "results", where):
            if result.get("type") != "choices":
                continue
            value = result.get("value")
            choices = value.get("choices") if isinstance(value, dict) else None
            if not (isinstance(choices, list) and len(choices) == 1 and isinstance(choices[0], str)):
                raise FileFormatError(f"{where} must have one choice, got {value!r:.80}; an item has one label")
            if not plain_label(choices[0]):
                raise FileFormatError(f"{where} has an empty label; choose one in Label Studio, then export again")
            yield plain_label(choices[0])


def _objects(found: Any, what: str, where: str) -> list[dict[str, Any]]:
    if found is None:
        return []
    if not isinstance(found, list) or not all(isinstance(one, dict) for one in found):
        raise FileFormatError(f"{where} must have a list of {what}, as {KIND} has; export it again")
    return found
