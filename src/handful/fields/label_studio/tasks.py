"""Label Studio: tasks with predictions to import there, and labels from what it exports.

A task is `{"data": {…}, "predictions": [{"model_version", "score", "result": […]}]}`. Its data hold the item, so that
an export, which repeats them, is a table of labelled items.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote
from xml.sax.saxutils import quoteattr

from handful.errors import BankError, FileFormatError
from handful.machine.json_files import JsonFile
from handful.machine.untrusted import read_json
from handful.reading.class_names import NO_CLASS, plain_label
from handful.reading.header import Asked
from handful.reading.lists import table_of_lists
from handful.reading.table import Table

KIND = "an export of Label Studio"
# Names in the labelling interface: the control that people use, and the object they look at.
CONTROL = "label"
OBJECT = "item"
# Keys of the data: what the item is, in the batch that was labelled, and columns of the table that an export is.
ROW = "row"
ITEM = "item"
TEXT = "text"
IMAGE = "image"
PATH = "path"
LABEL = "label"
# How Label Studio is asked for a file on its own disk.
LOCAL_FILES = "/data/local-files/?d="
# Elements that show an item, by the key of the data that holds it.
ELEMENTS = {"text": "Text", "image": "Image", "item": "Text"}


# Characters that XML 1.0 cannot hold, not even escaped.
NOT_IN_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def task(data: Mapping[str, Any], label: str, certainty: float, *, row: int, item: str, version: str) -> dict[str, Any]:
    """Return a task with one prediction.

    Examples
    --------
    >>> found = task({"text": "where is my bag"}, "luggage", 0.93, row=4, item="T4", version="handful")
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
        "data": {**data, ROW: row, ITEM: item},
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


def read_export(path: Path, asked: Asked) -> Table:
    """Read what people chose in the tasks of an export, in annotations that were not cancelled, as labelled items.

    Sentences are in the export itself, and images are found from its folder. A task without a choice, or with none of
    the classes, is an item without a label.
    """
    tasks = read_json(path, FileFormatError, KIND)
    listed = isinstance(tasks, list) and len(tasks) > 0
    if not listed or not all(isinstance(one, dict) and isinstance(one.get("data"), dict) for one in tasks):
        raise BankError(
            f"{path} is not {KIND}, a list of tasks with 'data' and 'annotations' (exported as JSON, not as JSON-MIN); "
            "for any other table, write one object per line and call it .jsonl"
        )
    found = [_choice(one.get("annotations"), f"task {number} of {path}") for number, one in enumerate(tasks)]
    if all(choice is None for choice in found):
        raise FileFormatError(f"{path} has no task with an annotation; label some in Label Studio, then export again")
    data = [_item(one["data"], f"task {number} of {path}") for number, one in enumerate(tasks)]
    names = dict.fromkeys(name for one in data for name in one)
    columns: dict[str, list[Any]] = {name: [one.get(name) for one in data] for name in names}
    columns[LABEL] = [None if choice in NO_CLASS else choice for choice in found]
    return table_of_lists(columns, asked, str(path))


def _item(data: Mapping[str, Any], where: str) -> dict[str, Any]:
    """Return the columns of an item; an image has its path."""
    columns = {name: value for name, value in data.items() if name not in (ROW, LABEL, IMAGE)}
    address = data.get(IMAGE)
    if isinstance(address, str) and address.startswith(LOCAL_FILES):
        return {**columns, PATH: unquote(address.removeprefix(LOCAL_FILES))}
    if isinstance(data.get(TEXT), str):
        return columns
    raise FileFormatError(f"{where} has neither a text nor an image; only sentences and images can be brought back")


def _choice(annotations: Any, where: str) -> str | None:
    """Return the one choice of the annotations of a task; None if there is none."""
    chosen = list(dict.fromkeys(_labels(annotations, where)))
    if len(chosen) > 1:
        raise FileFormatError(f"{where} has more than one label, {chosen[0]!r} and {chosen[1]!r}; keep one")
    return chosen[0] if chosen else None


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
