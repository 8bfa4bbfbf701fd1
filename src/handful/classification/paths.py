"""Every path that labelling a batch reads or writes, with the files beside these; no output may destroy an input."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from handful.classification.known import KnownFiles
from handful.classification.labelled import Classified
from handful.exchange.mgf import is_mgf
from handful.exchange.sites import package_of, site_files
from handful.extraction.extract import checkpoint_of
from handful.machine.outputs import refuse_overwriting
from handful.reading.cells import is_h5ad
from handful.reading.contents import FolderFiles

# What tables are written as.
TABLE_ENDINGS = (".parquet", ".csv", ".xlsx")


def paths_read(known: KnownFiles, *, sites: Any = None, backbone: str | None = None, **named: Any) -> dict[str, Path]:
    """Return the absolute paths of all inputs by name; whatever is not a path is left out.

    Examples
    --------
    >>> list(paths_read({"prior": {"cat": 2}, "candidates": "here.txt"}, catalogue="c.npz", names=None))
    ['catalogue', 'candidates']
    """
    files = {name: known.get(name) for name in ("prior", "candidates", "given")}
    coarse = known.get("coarse")
    files["coarse classes"] = coarse if isinstance(coarse, (str, os.PathLike)) and Path(coarse).is_file() else None
    files["earlier predictions"] = known.get("expect_unknown")
    found = {
        **named,
        "backbone": checkpoint_of(backbone),
        **files,
        **({} if sites is None else site_files(Path(sites))),
    }
    return {name: Path(path).absolute() for name, path in found.items() if isinstance(path, (str, os.PathLike))}


def paths_written(
    *,
    predictions: Path | None = None,
    grouped: bool = False,
    run: Path | None = None,
    annotations: Path | None = None,
    page: Path | None = None,
    tasks: Path | None = None,
) -> dict[str, Path | None]:
    """Return the paths of all outputs by name, with those that are written beside them."""
    return {
        "predictions": predictions,
        "table of groups": group_table_path(predictions) if grouped and predictions is not None else None,
        "unfinished run": run,
        "annotations": annotations,
        "page": page,
        "tasks": tasks,
        "interface of the tasks": None if tasks is None else tasks.parent / f"{tasks.stem}.xml",
    }


def replaceable(
    predictions: Path | None = None, scores: Path | None = None, sites: Path | None = None
) -> dict[str, str]:
    """Return the outputs that are labelled copies of an input, and these inputs, which they may replace."""
    copied = dict[str, str]()
    if predictions is not None and scores is not None and writes_back(scores, predictions):
        copied["predictions"] = "scores"
    elif predictions is not None and scores is None and (is_h5ad(predictions) or is_mgf(predictions)):
        copied["predictions"] = "batch"
    if sites is not None and (sites.is_dir() or sites.suffix.lower() == ".json"):
        copied["annotations"] = "sites" if package_of(sites) is None else "observations"
    return copied


def refuse_outputs(
    classified: Classified, *, scores: Path | None = None, sites: Path | None = None, **outputs: Path | None
) -> None:
    """Refuse outputs that would destroy what the labels were made from, or one another."""

    def files() -> Iterator[Path]:
        for source in (classified.batch.contents, classified.shown and classified.shown.contents):
            if isinstance(source, FolderFiles):
                yield from (source.root / name for name in source.names)

    writes = paths_written(grouped=bool(classified.group_by), **outputs)
    copies = replaceable(outputs.get("predictions"), scores, sites)
    refuse_overwriting(classified.inputs, writes, replaces=copies, files=files())


def writes_back(scores: Path, out: Path) -> bool:
    """Whether answers about scores are written in the format of the scores: the endings are the same."""
    return scores.suffix.lower() == out.suffix.lower()


def group_table_path(path: str | os.PathLike[str]) -> Path:
    """Return where the table of groups is written: `labels.groups.csv` beside `labels.csv` and `labels.h5ad`."""
    final = Path(path)
    ending = final.suffix if final.suffix.lower() in TABLE_ENDINGS else ".csv"
    return final.parent / f"{final.stem}.groups{ending}"
