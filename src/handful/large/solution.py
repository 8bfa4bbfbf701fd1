"""LargeSolution: what is known about a large batch; the answers themselves are in Parquet files, one per shard.

Pages have checksums, and rows their numbers, so a file that was cut, changed or exchanged is refused when it is read.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from handful.errors import FileFormatError
from handful.estimators.answer import Answer
from handful.estimators.diagnostics import Diagnostic
from handful.machine.extras import import_pyarrow
from handful.machine.folders import Folder, folder_at
from handful.shapes import Float

COLUMNS = {
    "row": "int64",
    "label": "int32",
    "certainty": "float32",
    "runner_up": "int32",
    "runner_up_certainty": "float32",
    "unknown": "float32",
    "none_of_these": "bool",
}
FOLDER = "answers"


def write_answers(folder: Folder, shard: int, columns: Mapping[str, np.ndarray]) -> None:
    """Write the answers of a shard; the file appears complete or not at all."""
    pa, parquet = import_pyarrow()
    table = pa.table({name: pa.array(columns[name], kind) for name, kind in COLUMNS.items()})
    with folder.written(answers_of(shard)) as file:
        parquet.write_table(table, file, write_page_checksum=True)


def answers_of(shard: int) -> str:
    """Return the name of the file with the answers of a shard."""
    return f"{FOLDER}/part-{shard:06d}.parquet"


def answered(folder: Folder) -> list[str]:
    """Return the names of the files with answers, in the order of the shards."""
    return [f"{FOLDER}/{name}" for name in folder.names(FOLDER) if fnmatch(name, "part-*.parquet")]


def read_answers(folder: Folder) -> Iterator[dict[str, Any]]:
    """Yield the answers shard by shard, as arrays by column."""
    pa, parquet = import_pyarrow()
    start = 0
    for name in answered(folder):
        try:
            with folder.opened(name) as file:
                table = parquet.read_table(file, page_checksum_verification=True)
            columns = {name: table[name].to_numpy() for name in COLUMNS}
            if not np.array_equal(columns["row"], np.arange(start, start + len(table))):
                raise ValueError(f"its rows are not those from {start} on")
        except (pa.ArrowException, OSError, KeyError, ValueError) as error:
            raise FileFormatError(
                f"{folder.address}/{name} was cut short, changed or exchanged for another file ({error}); call "
                "handful.large.solve again with the same arguments: the answers will be written again"
            ) from error
        start += len(table)
        yield columns


@dataclass(frozen=True, eq=False)
class LargeSolution:
    """A run: what its answers add up to, and where they are; `answer()` reads them.

    Attributes
    ----------
    folder : Path or str
        Folder of the run, or its URL; `answers/part-*.parquet` in it have row, label, certainty, runner-up (-1 if no
        second class was left), its certainty, the chance that the query is unknown (NaN if that is not known), and
        whether it looks like what a person called none of these.
    class_names : tuple of str
        What the labels mean.
    expected_counts : Float[np.ndarray, "class"]
        Expected number of queries of each class, in double precision.
    presence : Float[np.ndarray, "class"]
        Chance that the class occurs at least once, see `handful.estimators.Answer.presence`.
    joint_weight, confidence : float
        λ, zero where each query was labelled alone, and the mean of the largest probability of each query alone.
    unknown_share, unknown_interval : float or None, tuple of float
        Mean chance that a query belongs to no class, and a 90 % interval for the share of such queries in batches like
        this. None and (0, 1) if the catalogue cannot tell.
    unknown_reason : str or None
        Why that cannot be judged, as a sentence.
    limit : float
        Chance of belonging to no class above which a query is rejected.
    diagnostics : tuple of Diagnostic
        What looks wrong.

    Examples
    --------
    >>> import numpy as np
    >>> from tempfile import mkdtemp
    >>> from handful.large import solve
    >>> rng = np.random.default_rng(0)
    >>> centres = rng.normal(size=(30, 16)).astype("float32")
    >>> catalogue = centres.repeat(5, axis=0) + 0.7 * rng.normal(size=(150, 16)), np.arange(30).repeat(5)
    >>> batch = centres[rng.integers(0, 4, 200)] + 0.7 * rng.normal(size=(200, 16))
    >>> found = solve(catalogue, batch, mkdtemp())
    >>> np.flatnonzero(found.presence >= 0.5).tolist()
    [0, 1, 2, 3]
    >>> found.answer()
    Answer(200 items, 4 of 30 classes present, 2 items doubtful, 0 rejected)
    """

    folder: Path | str
    class_names: tuple[str, ...]
    expected_counts: Float[np.ndarray, "class"]
    presence: Float[np.ndarray, "class"]
    joint_weight: float
    confidence: float
    unknown_share: float | None
    unknown_interval: tuple[float, float]
    unknown_reason: str | None
    limit: float
    diagnostics: tuple[Diagnostic, ...]

    def answer(self, classes: npt.NDArray[Any] | None = None) -> Answer:
        """Read the answers of all queries, about 40 bytes each; there are no probabilities of all classes.

        Parameters
        ----------
        classes : ndarray [class], optional
            Labels of the classes; by default `class_names`.
        """
        columns = {name: np.concatenate([part[name] for part in self.answers()]) for name in COLUMNS}
        return Answer(
            classes=np.array(self.class_names, dtype=object) if classes is None else classes,
            codes=np.column_stack([columns["label"], columns["runner_up"]]),
            _certainties=np.column_stack([columns["certainty"], columns["runner_up_certainty"]]),
            _table=None,
            expected_counts=self.expected_counts,
            presence=self.presence,
            joint_weight=self.joint_weight,
            prior_weight=None,
            unknown=columns["unknown"],
            rejected=np.asarray(columns["unknown"] > self.limit),
            _none_of_these=columns["none_of_these"],
            unknown_interval=self.unknown_interval,
            unknown_reason=self.unknown_reason,
            proposals=(),
            diagnostics=self.diagnostics,
        )

    def answers(self) -> Iterator[dict[str, Any]]:
        """Yield shard by shard the arrays `row`, `label`, `certainty` and the other columns of the answers."""
        return read_answers(folder_at(self.folder))

    def __repr__(self) -> str:
        return f"LargeSolution({len(self.class_names)} classes, answers in {self.folder}/{FOLDER})"
