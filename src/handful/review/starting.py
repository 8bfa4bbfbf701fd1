"""Find or make the catalogue of a review, and bring its batch.

`photos/` alone has its catalogue beside it, `photos.handful`. Labelled examples, a folder per class or a table, have
theirs beside them too; they are items that have answers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from handful.catalogue.file import CatalogueFile
from handful.errors import OptionError
from handful.items import Brought, bring, import_labelled, source_of
from handful.items.bringing import name_in, name_of
from handful.progress import Listener
from handful.reading.table import first_listed, skipped_summary

ENDING = ".handful"


class Started(NamedTuple):
    """A catalogue, its batch, and what the person should be told about both."""

    file: CatalogueFile
    batch: str
    notes: list[str]


def catalogue_path(catalogue: Path | None, batch: Path) -> Path:
    """Return where the catalogue of a review is.

    Examples
    --------
    >>> print(catalogue_path(None, Path("cameras/monday")), catalogue_path(Path("birds.handful"), Path("monday")))
    cameras/monday.handful birds.handful
    """
    whole = batch if catalogue is None else catalogue
    if whole.suffix == ENDING:
        return whole
    return whole.parent / f"{name_of(whole)}{ENDING}"


def start(
    catalogue: Path | None,
    batch: Path | None,
    *,
    person: str = "",
    on_progress: Listener | None = None,
    reading: Mapping[str, Any] | None = None,
    on_opened: Callable[[CatalogueFile, str], None] = lambda file, batch: None,
) -> Started:
    """Open the catalogue of a review, or make it, and bring its batch.

    Parameters
    ----------
    catalogue
        A catalogue, examples of which one is made, or None.
    batch
        What is to be labelled; None for the batch that came last.
    person
        Who reviews.
    on_progress
        Called with a `handful.progress.Progress` while images or sentences are embedded.
    reading
        How it is read and embedded, see `handful.extraction.options.Reading`.
    on_opened
        Called with the catalogue and the name of the batch before anything of it is embedded.
    """
    asked = dict(reading or {})
    assert catalogue is not None or batch is not None
    path = catalogue_path(catalogue, batch or Path())
    notes = []
    file = CatalogueFile.open(path)
    try:
        if catalogue is not None and catalogue.suffix != ENDING:
            import_labelled(file, catalogue, on_progress=on_progress, **asked)
        if batch is None:
            name = last_batch(file)
            on_opened(file, name)
            if source_of(file, name) is not None:
                notes += _said(file, name, None, person, on_progress, {})
        else:
            name = name_in(file, batch)
            on_opened(file, name)
            notes += _said(file, name, batch, person, on_progress, asked)
    except BaseException:
        file.close()
        raise
    return Started(file, name, [note for note in notes if note])


def _said(
    file: CatalogueFile,
    name: str,
    batch: Path | None,
    person: str,
    on_progress: Listener | None,
    reading: Mapping[str, Any],
) -> list[str]:
    """Bring a batch, and say what is new in it, if it was there before, and what was left out."""
    was_there = name in file.said.places
    brought = bring(file, name, batch, person=person, on_progress=on_progress, **dict(reading))
    left_out = [_left_out(file, brought)] if brought.skipped else []
    return [news_of(brought) if was_there else "", *left_out]


def news_of(brought: Brought) -> str:
    """Say what is new in a batch; empty if nothing is."""
    changed = brought.new or brought.gone or brought.back or brought.moved
    return f"{brought}." if changed else ""


def _left_out(file: CatalogueFile, brought: Brought) -> str:
    """Say what was left out."""
    # What cannot be decoded is an item all the same, and counts once.
    here = set(file.said.places[brought.batch].values())
    n_all = len(here) + sum(one.name not in here for one in brought.skipped)
    source = source_of(file, brought.batch)
    things = "files" if source is not None and source.is_dir() else "rows"
    return f"{skipped_summary(brought.skipped, n_all, things)}: {'; '.join(first_listed(brought.skipped))}."


def last_batch(file: CatalogueFile) -> str:
    """Return the batch that came last, or that something was said about last."""
    for event in reversed(file.history.events):
        name = event.about.get("batch")
        if name is not None and file.said.places.get(name):
            return str(name)
    raise OptionError(f"{file.path} has no batch yet; name one: handful review {file.path} BATCH")
