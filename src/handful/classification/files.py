"""Files of a labelled batch: every path that is read or written, and predictions, one row per item.

No output may destroy an input.
"""

from __future__ import annotations

import codecs
import csv
import datetime
import os
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from handful.arguments import column_names
from handful.classification.labelled import (
    COARSE_TYPES,
    GROUP_TYPES,
    NONE,
    PREDICTION_TYPES,
    about_of,
    column_types,
    group_table,
    in_front,
    key_columns,
    predictions,
)
from handful.errors import OptionError
from handful.estimators.answer import Answer
from handful.estimators.context import Known
from handful.extraction.extract import checkpoint_of
from handful.machine.extras import import_extra, import_pyarrow
from handful.machine.outputs import refuse_overwriting, written_whole
from handful.machine.untrusted import writable
from handful.reading.contents import FolderFiles
from handful.reading.field import Writer
from handful.reading.read import kind_of
from handful.reading.registry import (
    TABLE_ENDINGS,
    candidate_rule,
    is_copied,
    site_format,
    task_writers,
    writer_of,
    writers,
)
from handful.reading.scores import read_scores
from handful.reading.sites import site_files
from handful.reading.table import Columns
from handful.reading.tool_scores import ItemLabel


def paths_read(known: Known, *, sites: Any = None, encoder: str | None = None, **named: Any) -> dict[str, Path]:
    """Return the absolute paths of all inputs by name; whatever is not a path is left out.

    Examples
    --------
    >>> list(paths_read({"prior": {"cat": 2}, "candidates": "here.txt"}, catalogue="c.npz", names=None))
    ['catalogue', 'candidates']
    """
    files = {name: known.get(name) for name in ("prior", "candidates")}
    if candidate_rule(files["candidates"]) is not None:
        files["candidates"] = None
    coarse = known.get("coarse")
    files["coarse classes"] = coarse if isinstance(coarse, (str, os.PathLike)) and os.path.isfile(coarse) else None
    files["earlier predictions"] = known.get("expect_unknown")
    found = {
        **named,
        "encoder": None if encoder is None else checkpoint_of(encoder),
        **files,
        **({} if sites is None else site_files(Path(sites))),
    }
    for name in ("catalogue", "batch"):
        path = found.get(name)
        if isinstance(path, (str, os.PathLike)) and (files_of := kind_of(path).files) is not None:
            found |= {f"{name}'s {what}": file for what, file in files_of(Path(path)).items()}
    return {name: Path(path).absolute() for name, path in found.items() if isinstance(path, (str, os.PathLike))}


def paths_written(
    *,
    predictions: Path | None = None,
    grouped: bool = False,
    annotations: Path | None = None,
    page: Path | None = None,
    tasks: Path | None = None,
) -> dict[str, Path | None]:
    """Return the paths of all outputs by name, with those that are written beside them."""
    beside = dict[str, str]()
    for one in task_writers().values():
        beside |= one.beside
    return {
        "predictions": predictions,
        "table of groups": group_table_path(predictions) if grouped and predictions is not None else None,
        "annotations": annotations,
        "page": page,
        "tasks": tasks,
        **{what: tasks.parent / f"{tasks.stem}{ending}" for ending, what in beside.items() if tasks is not None},
    }


def replaceable(
    predictions: Path | None = None, scores: Path | None = None, sites: Path | None = None
) -> dict[str, str]:
    """Return the outputs that are labelled copies of an input, and these inputs, which they may replace."""
    copied = dict[str, str]()
    if predictions is not None and scores is not None and writes_back(scores, predictions):
        copied["predictions"] = "scores"
    elif predictions is not None and scores is None and is_copied(predictions):
        copied["predictions"] = "batch"
    if sites is not None and (known := site_format(sites)) is not None:
        copied["annotations"] = known.replaces
    return copied


def refuse_outputs(answer: Answer, *, sites: Path | None = None, **outputs: Path | None) -> None:
    """Refuse outputs that would destroy what the labels were made from, or one another."""

    def files() -> Iterator[Path]:
        about = about_of(answer)
        for source in (about.batch.contents, about.shown and about.shown.contents):
            if isinstance(source, FolderFiles):
                yield from (source.root / name for name in source.names)

    writes = paths_written(grouped=bool(about_of(answer).group_by), **outputs)
    inputs = about_of(answer).inputs
    copies = replaceable(outputs.get("predictions"), inputs.get("scores"), sites)
    refuse_overwriting(inputs, writes, replaces=copies, files=files())


def writes_back(scores: Path, out: Path) -> bool:
    """Whether answers about scores are written in the format of the scores: the endings are the same."""
    return scores.suffix.lower() == out.suffix.lower()


def group_table_path(path: str | os.PathLike[str]) -> Path:
    """Return where the table of groups is written: `labels.groups.csv` beside `labels.csv` and `labels.h5ad`."""
    final = Path(path)
    ending = final.suffix if final.suffix.lower() in TABLE_ENDINGS else ".csv"
    return final.parent / f"{final.stem}.groups{ending}"


# Endings of a page.
PAGE_ENDINGS = (".html", ".htm")
# Predictions written at once.
ROWS_AT_ONCE = 65_536
# Rows of a sheet and characters of a cell, by the format of spreadsheets.
MOST_SHEET_ROWS = 2**20
LONGEST_CELL = 32_767


def asked_columns(group_by: str | Sequence[str]) -> tuple[str, ...]:
    """Return the names of the columns to group by; refuse none, one that occurs twice, and names of new columns."""
    names = column_names("group_by", group_by)
    if not names or len(set(names)) != len(names):
        raise OptionError(f"group by one column or several different ones, got {', '.join(names) or 'none'}")
    for name in names:
        if name in PREDICTION_TYPES | COARSE_TYPES | GROUP_TYPES:
            raise OptionError(f"the answers have a column {name!r} of their own; rename the column to group by")
    return names


class OutputPaths(NamedTuple):
    """What is written, by the endings of paths: predictions, a page about them, tasks for another tool."""

    predictions: Path | None = None
    page: Path | None = None
    tasks: Path | None = None


def outputs_of(paths: Sequence[Path], *, tasks: bool = True) -> OutputPaths:
    """Tell outputs by their endings; refuse two of one kind. Without `tasks`, there are predictions and a page.

    Examples
    --------
    >>> outputs_of([Path("labels.csv"), Path("labels.html")])._asdict()
    {'predictions': PosixPath('labels.csv'), 'page': PosixPath('labels.html'), 'tasks': None}
    """
    found = dict[str, Path]()
    for path in paths:
        ending = path.suffix.lower()
        kind = "page" if ending in PAGE_ENDINGS else "tasks" if tasks and ending in task_writers() else "predictions"
        if kind in found:
            others = ["a page is .html", *([f"tasks are {', '.join(task_writers())}"] if tasks else [])]
            raise OptionError(
                f"{found[kind]} and {path} would both be {kind} by their endings, and {' and '.join(others)}; leave "
                "one out, or change its ending"
            )
        found[kind] = path
    return OutputPaths(**found)


def check_ending(path: Path, source: Path | None = None) -> None:
    """Refuse a path that `write_predictions` would refuse for a batch from `source`, before any work is done."""
    ending = path.suffix.lower()
    if is_copied(path):
        if source is None or source.suffix.lower() != ending:
            raise OptionError(
                f"{path} would be a copy of the batch, which is not an {ending} file; use .parquet or .csv"
            )
    elif ending not in (*TABLE_ENDINGS, *writers()):
        copies, others = (
            ", ".join(name for name, one in writers().items() if one.into_copy == copied) for copied in (True, False)
        )
        raise OptionError(
            f"predictions are written as {', '.join(TABLE_ENDINGS)} or {others}, and into copies of {copies} files, "
            f"a page is .html, and tasks are {', '.join(task_writers())}; got {path}; change the ending"
        )
    elif ending == ".parquet":
        import_pyarrow()
    elif ending == ".xlsx":
        import_extra("openpyxl", "xlsx")


def write_predictions(answer: Answer, path: str | os.PathLike[str]) -> None:
    """Write the predictions as Parquet, CSV or `.xlsx`, by the ending of the path, and a table of groups beside it.

    What `rescore` returned, at a path with the ending of the scores, is a copy of them with joint labels.

    Predictions of cells can also go into a copy of their `.h5ad` file, which may replace it: columns `handful_label`
    and so on in `obs`, probabilities in `obsm`, and what was done in `uns["handful"]`. Segments of voices can be
    written as `.rttm`, see `write_voices`, and compounds go into a copy of an `.mgf` file. Each file appears complete
    or not at all. A path that would overwrite anything else that the labels were made from is refused.

    Examples
    --------
    >>> import tempfile
    >>> from handful.classification import classify
    >>> folder = Path(tempfile.mkdtemp())
    >>> np.savez(folder / "catalogue.npz", features=np.eye(3), labels=["cat", "dog", "fox"])
    >>> np.savez(folder / "batch.npz", features=np.eye(3)[[1, 1, 0, 1]], site=["wood", "wood", "marsh", "wood"])
    >>> found = classify(folder / "catalogue.npz", folder / "batch.npz", group_by="site")
    >>> write_predictions(found, folder / "labels.csv")
    >>> [row.split(",")[:4] for row in (folder / "labels.csv").read_text().splitlines()[1:3]]
    [['0', 'row 0', 'wood', 'dog'], ['1', 'row 1', 'wood', 'dog']]
    >>> (folder / "labels.groups.csv").read_text().splitlines()[0]
    'site,items,unknown_items,joint_weight,class,expected_count,presence'
    """
    final = Path(path)
    batch = about_of(answer).batch
    refuse_outputs(answer, predictions=final)
    scores = about_of(answer).inputs.get("scores")
    if scores is not None and writes_back(scores, final):
        read_scores(scores).write(item_labels(answer), final)
    elif (writer := writer_of(final)) is not None:
        check_ending(final, batch.source)
        writer.write(answer, final)
    else:
        keys, others = (
            _types(columns, final) for columns in (key_columns(answer), batch.columns.beside(column_types(answer)))
        )
        types = in_front(column_types(answer)) | keys | others | column_types(answer)
        n_items = len(batch.rows)
        runs = (range(start, min(start + ROWS_AT_ONCE, n_items)) for start in range(0, max(1, n_items), ROWS_AT_ONCE))
        write_table(final, types, (predictions(answer, run) for run in runs))
    write_group_table(answer, final)


def item_labels(answer: Answer) -> list[ItemLabel]:
    """Return the labels of the items, as tools take them that scored these."""
    table = predictions(answer)
    columns = ("label", "certainty", "runner_up", "runner_up_certainty")
    return [ItemLabel(*row) for row in zip(*(table[name] for name in columns), strict=True)]


def write_tasks(answer: Answer, path: str | os.PathLike[str]) -> None:
    """Write one task per item for people who label in another tool: `.json` for Label Studio.

    The choices are the classes and "none of these", which is predicted for unknown items. What the tool exports joins a
    catalogue with `handful catalogue add --labelled`.

    Parameters
    ----------
    answer : Answer
        The labelled batch.
    path : path
        Where the tasks go. The labelling interface of Label Studio is written beside it, with the ending `.xml`.

    Examples
    --------
    >>> import json, tempfile
    >>> from handful.classification import classify
    >>> folder = Path(tempfile.mkdtemp())
    >>> np.savez(folder / "catalogue.npz", features=np.eye(3), labels=["cat", "dog", "fox"])
    >>> np.savez(folder / "batch.npz", features=np.eye(3)[[1, 1, 0]], text=["woof", "bark", "meow"])
    >>> write_tasks(classify(folder / "catalogue.npz", folder / "batch.npz"), folder / "tasks.json")
    >>> first = json.loads((folder / "tasks.json").read_text())[0]
    >>> first["data"]["text"], first["predictions"][0]["result"][0]["value"]
    ('woof', {'choices': ['dog']})
    """
    final = Path(path)
    refuse_outputs(answer, tasks=final)
    about = replace(about_of(answer), unknown_label=NONE)
    task_writer(final).write(replace(answer, about=about), final)


def task_writer(path: Path) -> Writer:
    """Return the writer of tasks, by the ending of the path."""
    known = task_writers()
    if path.suffix.lower() not in known:
        raise OptionError(f"tasks are written as {', '.join(known)}, got {path}; change the ending")
    return known[path.suffix.lower()]


def write_group_table(answer: Answer, path: str | os.PathLike[str]) -> None:
    """Write the table of groups beside the file of predictions at `path`, if there are groups."""
    if about_of(answer).group_by:
        beside = group_table_path(path)
        types = _types(key_columns(answer), beside) | GROUP_TYPES
        write_table(beside, types, [group_table(answer)])


def _types(columns: Columns, path: Path) -> dict[str, Any]:
    """Return the Arrow types of columns; CSV and spreadsheets need none."""
    return columns.types() if path.suffix.lower() == ".parquet" else dict.fromkeys(columns.by_name)


# What opens a table to write parts of it.
TableFile: TypeAlias = Callable[
    [Path, Mapping[str, Any]], AbstractContextManager[Callable[[Mapping[str, Sequence[Any]]], None]]
]


def write_table(
    path: str | os.PathLike[str],
    types: Mapping[str, Any],
    parts: Iterable[Mapping[str, Sequence[Any]]],
    *,
    delimiter: str = ",",
) -> None:
    """Write parts of a table as Parquet, CSV or `.xlsx`, by the ending of the path; it appears complete or not at all.

    `types` are those of the columns, in their order: an Arrow type or its name. Only Parquet needs more than names.
    `delimiter` is for CSV.
    """
    final = Path(path)
    check_ending(final)
    csv_file = partial(_csv_file, delimiter=delimiter)
    kinds: dict[str, TableFile] = {".csv": csv_file, ".xlsx": _spreadsheet}
    kind = kinds.get(final.suffix.lower(), _parquet_file)
    with written_whole(final) as temporary, kind(temporary, types) as write:
        for part in parts:
            write(part)


@contextmanager
def _csv_file(
    path: Path, types: Mapping[str, Any], *, delimiter: str
) -> Iterator[Callable[[Mapping[str, Sequence[Any]]], None]]:
    with path.open("w", encoding="utf-8", errors="backslashreplace", newline="") as stream:
        writer = csv.writer(stream, delimiter=delimiter)
        writer.writerow(types)
        yield lambda columns: writer.writerows(zip(*columns.values(), strict=True))
    with path.open("rb") as written:
        plain = all(block.isascii() for block in iter(partial(written.read, 2**20), b""))
    if not plain:  # Excel takes UTF-8 without a mark for another encoding
        marked = path.with_name(f"{path.name}.marked")
        with path.open("rb") as written, marked.open("wb") as stream:
            stream.write(codecs.BOM_UTF8)
            shutil.copyfileobj(written, stream)
        marked.replace(path)


@contextmanager
def _spreadsheet(path: Path, types: Mapping[str, Any]) -> Iterator[Callable[[Mapping[str, Sequence[Any]]], None]]:
    openpyxl = import_extra("openpyxl", "xlsx")
    cells = import_extra("openpyxl.cell", "xlsx")
    n_rows = 0
    book = openpyxl.Workbook(write_only=True)
    sheet = book.create_sheet("labels")
    sheet.freeze_panes = "A2"

    def cell(value: Any) -> Any:
        """Return text as text, also where it looks like a formula or has characters that a spreadsheet cannot have."""
        if isinstance(value, float) and not np.isfinite(value):
            return None
        if isinstance(value, datetime.datetime) and value.tzinfo is not None:
            value = value.astimezone(datetime.UTC).replace(tzinfo=None)  # a spreadsheet has no zones
        if value is None or isinstance(value, (bool, int, float, datetime.date)):
            return value
        made = cells.WriteOnlyCell(sheet, "")
        made.value = cells.cell.ILLEGAL_CHARACTERS_RE.sub("\N{REPLACEMENT CHARACTER}", writable(str(value)))[
            :LONGEST_CELL
        ]
        made.data_type = "s"
        return made

    def write(columns: Mapping[str, Sequence[Any]]) -> None:
        nonlocal n_rows
        n_rows += len(next(iter(columns.values())))
        if n_rows >= MOST_SHEET_ROWS:
            raise OptionError(f"a spreadsheet has at most {MOST_SHEET_ROWS:,} rows; write .csv or .parquet")
        for row in zip(*columns.values(), strict=True):
            sheet.append(list(map(cell, row)))

    sheet.append(list(map(cell, types)))
    yield write
    book.save(path)


@contextmanager
def _parquet_file(path: Path, types: Mapping[str, Any]) -> Iterator[Callable[[Mapping[str, Sequence[Any]]], None]]:
    pa, parquet = import_pyarrow()
    known = {name: pa.type_for_alias(t) if isinstance(t, str) else t for name, t in types.items()}
    schema = pa.schema([(writable(name), kind) for name, kind in known.items()])

    def column(name: str, values: Sequence[Any]) -> Any:
        if pa.types.is_string(known[name]):
            values = [None if value is None else writable(value) for value in values]
        return pa.array(values, known[name])

    with parquet.ParquetWriter(path, schema, write_page_checksum=True) as writer:
        yield lambda columns: writer.write_table(pa.table([column(*one) for one in columns.items()], schema=schema))
