"""Files that a command writes about a labelled batch, and what is in them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from handful.classification.files import OutputPaths
    from handful.estimators import Answer


def write_outputs(answer: Answer, outputs: OutputPaths, title: str) -> list[tuple[Path, str]]:
    """Write predictions, a page and tasks, as far as they are wanted; return each path, and what is there."""
    from handful.classification.files import group_table_path, task_writer, write_predictions, write_tasks, writes_back
    from handful.classification.labelled import about_of
    from handful.classification.page import write_page
    from handful.reading.registry import writer_of

    written = list[tuple[Path, str]]()
    about = about_of(answer)
    if (path := outputs.predictions) is not None:
        write_predictions(answer, path)
        scores = about.inputs.get("scores")
        writer = writer_of(path)
        what = "predictions, one row per item" if writer is None else writer.written
        if scores is not None:
            what = f"{scores.name} with joint labels" if writes_back(scores, path) else "predictions, one row per item"
        written.append((path, what))
        if about.group_by:
            written.append((group_table_path(path), "groups and their classes"))
    if outputs.page is not None:
        write_page(answer, outputs.page, title=title)
        written.append((outputs.page, "a page about them"))
    if outputs.tasks is not None:
        write_tasks(answer, outputs.tasks)
        written.append((outputs.tasks, task_writer(outputs.tasks).written))
    return written
