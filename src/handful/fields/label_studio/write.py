"""Tasks of a labelled batch for Label Studio, with its labelling interface."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

from handful.fields.label_studio.tasks import interface, local_file, task, write_tasks
from handful.machine.outputs import written_whole
from handful.version import __version__

if TYPE_CHECKING:
    from handful.estimators import Answer


def write_label_studio(found: Answer, path: Path) -> None:
    """Write one task per item to `path`, and the labelling interface beside it, with the ending `.xml`.

    A sentence is shown as text, an image as a file below the folder that Label Studio serves, anything else by its
    name. The choices are the classes and the label of unknown items, which is predicted for these. Columns of the batch
    are in the data of the tasks. `handful catalogue add --labelled` reads what Label Studio exports.
    """
    from handful.classification.labelled import about_of, class_names, predictions

    batch = about_of(found).batch
    unknown = about_of(found).unknown_label
    table = predictions(found)
    texts = batch.contents if isinstance(batch.contents, tuple) else None
    shown = "item" if batch.contents is None else "image" if texts is None else "text"
    columns = {name: values for name, values in batch.columns.values().items() if name not in (shown, "row", "item")}
    tasks = []
    for number, (row, item) in enumerate(zip(batch.rows, batch.names, strict=True)):
        data: dict[str, Any] = {name: _plain(values[number]) for name, values in columns.items()}
        if shown == "image":
            data[shown] = local_file(item)
        elif texts is not None:
            data[shown] = texts[number]
        tasks.append(
            task(
                data,
                table["label"][number],
                table["certainty"][number],
                row=row,
                item=item,
                version=f"handful {__version__}",
            )
        )
    choices = dict.fromkeys((*class_names(found), *([unknown] if unknown else [])))
    shown_as = interface(shown, tuple(choices))
    write_tasks(tasks, path)
    with written_whole(path.with_suffix(".xml")) as place_of_interface:
        place_of_interface.write_text(shown_as + "\n", encoding="utf-8")


def _plain(value: Any) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        return None  # JSON has no such number
    return value if isinstance(value, (str, int, float, bool, type(None))) else str(value)
