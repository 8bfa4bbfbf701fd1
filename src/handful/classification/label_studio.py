"""Tasks of a labelled batch for Label Studio, with its labelling interface."""

from __future__ import annotations

import math
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

from handful.classification.files import refuse_outputs
from handful.classification.labelled import NONE, Classified
from handful.exchange.label_studio import interface, local_file, task, write_tasks
from handful.machine.outputs import written_whole
from handful.version import __version__


def write_label_studio(classified: Classified, path: str | os.PathLike[str]) -> None:
    """Write one task per item to `path`, and the labelling interface beside it, with the ending `.xml`.

    A sentence is shown as text, an image as a file below the folder that Label Studio serves, anything else by its
    name. The choices are the classes and "none of these", which is predicted for unknown items. Columns of the batch
    are in the data of the tasks. `classify(..., given=...)` reads what Label Studio exports.

    Parameters
    ----------
    classified : Classified
        The labelled batch.
    path : path
        Where the tasks go, `.json`.

    Examples
    --------
    >>> import json, tempfile
    >>> import numpy as np
    >>> from handful.classification import classify
    >>> folder = Path(tempfile.mkdtemp())
    >>> np.savez(folder / "catalogue.npz", features=np.eye(3), labels=["cat", "dog", "fox"])
    >>> np.savez(folder / "batch.npz", features=np.eye(3)[[1, 1, 0]], text=["woof", "bark", "meow"])
    >>> write_label_studio(classify(folder / "catalogue.npz", folder / "batch.npz"), folder / "tasks.json")
    >>> first = json.loads((folder / "tasks.json").read_text())[0]
    >>> first["data"]["text"], first["predictions"][0]["result"][0]["value"]
    ('woof', {'choices': ['dog']})
    """
    refuse_outputs(classified, tasks=Path(path))
    batch = classified.batch
    found = replace(classified, unknown_label=NONE).predictions()
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
                found["label"][number],
                found["certainty"][number],
                row=row,
                item=item,
                content=batch.content(number),
                version=f"handful {__version__}",
            )
        )
    final = Path(path)
    shown_as = interface(shown, tuple(dict.fromkeys((*classified.class_names, NONE))))
    write_tasks(tasks, final)
    with written_whole(final.with_suffix(".xml")) as place_of_interface:
        place_of_interface.write_text(shown_as + "\n", encoding="utf-8")


def _plain(value: Any) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        return None  # JSON has no such number
    return value if isinstance(value, (str, int, float, bool, type(None))) else str(value)
