"""handful.open: a catalogue in Python: batches come in, are reviewed or labelled, and what was said is exported."""

from __future__ import annotations

import getpass
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Self, Unpack

from handful.catalogue.file import CatalogueFile
from handful.classification.steps import ClassifyOptions, Listener, classify
from handful.errors import OptionError
from handful.estimators import Answer
from handful.estimators.context import Known
from handful.extraction.options import Reading
from handful.items import Brought, bring, import_labelled
from handful.items.bringing import name_in
from handful.machine.outputs import refuse_overwriting
from handful.reading.read import in_hand
from handful.review.exporting import Exported, export, export_keywords
from handful.review.opening import OpenOptions, open_batch
from handful.review.starting import last_batch
from handful.session import Session
from handful.session.stopping import SURE_TO_STOP

PathLike = str | os.PathLike[str]


class Catalogue:
    """A catalogue that is open, as `handful.open` returns it; a context manager.

    Everything that is said is in the file before a method returns.

    Parameters
    ----------
    file : CatalogueFile
        The file.
    person : str
        Who says things.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> folder = Path(tempfile.mkdtemp())
    >>> with open(folder / "birds.handful", person="Ada") as birds:
    ...     print(birds.add((np.eye(3), ["owl", "tit", "jay"]), name="examples", labelled=True))
    ...     print(birds.add(np.eye(3)[[1, 1, 2, 2]], name="monday"))
    ...     birds.session("monday").answer(0, "tit").result.labels.tolist()
    ...     birds.classes, birds.batches
    ...     print(birds.export(folder / "monday.csv", batches=["monday"]).n_items)
    3 rows are new
    4 rows are new
    ['tit', 'tit', 'jay', 'jay']
    (('owl', 'tit', 'jay'), ('examples', 'monday'))
    4
    """

    def __init__(self, file: CatalogueFile, person: str) -> None:
        self.file = file
        self.person = person

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the file; everything that was said is in it already."""
        self.file.close()

    @property
    def batches(self) -> tuple[str, ...]:
        """Names of the batches that have items now, in the order in which they came."""
        self.file.refresh()
        return tuple(name for name, items in self.file.said.places.items() if items)

    @property
    def classes(self) -> tuple[str, ...]:
        """Classes that an item has, in the order in which they were named first."""
        self.file.refresh()
        return self.file.said.classes

    def add(
        self,
        data: Any,
        name: str | None = None,
        *,
        labelled: bool = False,
        on_progress: Listener | None = None,
        **reading: Unpack[Reading],
    ) -> Brought:
        """Bring a batch; only what is new in it is embedded.

        Parameters
        ----------
        data : path, frame, array or list
            Anything that `handful.read` reads; with `labelled`, `(X, y)`, too.
        name : str, optional
            Name of the batch; by default that of its folder or file. Arrays, frames and texts need one.
        labelled : bool
            Whether its labels are a person's answers. By default they are left alone, as they may be a model's.
        on_progress : callable, optional
            Called with a `handful.progress.Progress` while images or sentences are embedded.
        **reading : object
            How it is read and embedded, see `Reading`; by default the encoder of the catalogue.

        Returns
        -------
        Brought
            What is new; as text, one line.
        """
        if name is None:
            if in_hand(data):
                raise OptionError("arrays, frames and texts need a name as a batch; give one, such as name='tuesday'")
            name = name_in(self.file, Path(data))
        if not in_hand(data):
            refuse_overwriting({"batch": data}, {"catalogue": self.file.path})
        said: Any = {"person": self.person, "on_progress": on_progress, **reading}
        if labelled:
            return import_labelled(self.file, data, name, **said)
        return bring(self.file, name, data, **said)

    def session(
        self,
        batch: str | None = None,
        *,
        names: PathLike | None = None,
        group_by: str | Sequence[str] | None = None,
        unknown: str | None = None,
        sure: float = SURE_TO_STOP,
        **known: Unpack[Known],
    ) -> Session:
        """Go on with a batch, from where it was left; items with an answer in other batches are examples.

        Parameters
        ----------
        batch : str, optional
            Its name; by default the batch that came last.
        names, group_by, unknown : object
            As in `classify`.
        sure : float
            How sure a person wants to be before stopping.
        **known : object
            What is known about the batch, see `Known`.

        Returns
        -------
        Session
            Its answers are in the catalogue at once.
        """
        self.file.refresh()
        called = last_batch(self.file) if batch is None else batch
        by = [group_by] if isinstance(group_by, str) else group_by
        how = OpenOptions(None if names is None else Path(names), by, unknown, sure, known)
        return open_batch(self.file, called, how, person=self.person).session

    def label(self, batch: PathLike, **options: Unpack[ClassifyOptions]) -> Answer:
        """Label a batch that is not in the catalogue; nothing is added.

        Parameters
        ----------
        batch : path
            A file or folder that `handful.read` reads.
        **options : object
            How it is read, and what is known about it, as in `handful.classify`.

        Returns
        -------
        Answer
            As `handful.classify` returns it.
        """
        return classify(self.file.path, batch, **options)

    def export(self, path: PathLike, *, batches: Sequence[str] = (), links: bool = False) -> Exported:
        """Write what was said and what the model says: a table, a folder per class, or a model.

        Parameters
        ----------
        path : path
            A table (.csv, .xlsx, .parquet, .jsonl), a model (.model), or else a new folder with a folder per class.
        batches : sequence of str
            The batches whose items are written; by default all.
        links : bool
            Whether a folder per class has links to the images instead of copies.

        Returns
        -------
        Exported
            What was written; as text, one line.
        """
        self.file.refresh()
        return export(self.file, path, batches=batches, links=links)

    def export_keywords(self, *, batches: Sequence[str] = ()) -> Exported:
        """Write the class of each photograph as a keyword into a file next to it, `photo.jpg.xmp`, in `dc:subject`.

        What other programs wrote there stays, and the photographs are never changed.

        Parameters
        ----------
        batches : sequence of str
            The batches whose photographs get a keyword; by default all.

        Returns
        -------
        Exported
            What was written; as text, one line.
        """
        self.file.refresh()
        return export_keywords(self.file, batches=batches)


def open(path: PathLike, *, person: str | None = None) -> Catalogue:
    """Open a catalogue; it is made if it is not there.

    Parameters
    ----------
    path : path
        The file, `.handful`.
    person : str, optional
        Who says things; by default your user name.

    Returns
    -------
    Catalogue
        The catalogue; close it, or use it in a `with` statement.

    Examples
    --------
    >>> import tempfile
    >>> with open(Path(tempfile.mkdtemp()) / "birds.handful") as birds:
    ...     birds.batches
    ()
    """
    return Catalogue(CatalogueFile.open(Path(path)), getpass.getuser() if person is None else person)
