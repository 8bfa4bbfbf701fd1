"""LargeSolution: what is known about a large batch; the answers themselves are in Parquet files."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from torch import Tensor

from handful.engine.unknown import REJECTED
from handful.large.answers import FOLDER, read_answers
from handful.machine.folders import folder_at
from handful.shapes import Bool, Float, Int


@dataclass(frozen=True, eq=False)
class LargeSolution:
    """The joint answer about a batch.

    Attributes
    ----------
    folder : Path or str
        Folder of the run, or its URL; `answers/part-*.parquet` in it have row, label, probability, runner-up (-1 if no
        second class was left), its probability, and the chance that the query is unknown (NaN if that is not known).
    class_names : tuple of str
        What the labels mean.
    expected_counts : Float[Tensor, "class"]
        Queries that each class is expected to hold, in double precision.
    presence : Float[Tensor, "class"]
        Chance that the class occurs at least once, see `handful.estimators.Inference.presence`.
    living : Int[Tensor, "living"]
        Classes that hold anything in the end, in order.
    prototypes, support_means : Float[Tensor, "living dim"]
        Their final and initial prototypes, in the coordinates of the (transformed) features. For roll call they differ
        only in that doubtful examples count less in the final ones.
    n_iter, converged, tol : int, bool, float
        Iterations of PADDLE, whether its tolerance was met at the end, and this tolerance; roll call has none: 0, True
        and 0.
    dropped_mass, largest_dropped_mass : float
        Probability under equal proportions that fell outside the shortlists of PADDLE's first pass: mean over the
        measured queries (all if lists hold every class, else every eighth), and the largest; roll call has no lists: 0.
    readmitted : int
        Classes that had left PADDLE's working set and were readmitted; 0 for roll call, which drops none.
    joint_weight, confidence : float or None
        λ, zero where each query was labelled alone, and the mean of the largest probability of each query alone; None
        for PADDLE.
    unknown_share, unknown_interval : float or None, tuple of float
        Mean chance of a query to belong to no class, and an interval of 90 % for the share of such queries in batches
        like this. None and (0, 1) if that is not known: for PADDLE, and if the catalogue cannot tell.
    unknown_reason : str or None
        Why that is not known, as a sentence.
    is_open : bool
        Whether there is enough evidence for unknown queries, see `handful.engine.unknown`.
    bytes_sent, bytes_received : list of int
        Bytes sent to the workers and received from them, for every iteration of this process, or for the pass of roll
        call; 0 without Ray.

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
    >>> found.converged, (found.presence >= 0.5).nonzero()[:, 0].tolist()
    (True, [0, 1, 2, 3])
    >>> len(found.labels()), sorted(next(found.answers()))
    (200, ['label', 'probability', 'row', 'runner_up', 'runner_up_probability', 'unknown'])
    """

    folder: Path | str
    class_names: tuple[str, ...]
    expected_counts: Float[Tensor, "class"]
    presence: Float[Tensor, "class"]
    living: Int[Tensor, "living"]
    prototypes: Float[Tensor, "living dim"]
    support_means: Float[Tensor, "living dim"]
    bytes_sent: list[int]
    bytes_received: list[int]
    n_iter: int = 0
    converged: bool = True
    dropped_mass: float = 0.0
    largest_dropped_mass: float = 0.0
    readmitted: int = 0
    joint_weight: float | None = None
    confidence: float | None = None
    unknown_share: float | None = None
    unknown_interval: tuple[float, float] = (0.0, 1.0)
    unknown_reason: str | None = None
    is_open: bool = False
    tol: float = 0.0

    @property
    def proportions(self) -> Float[Tensor, "class"]:
        """Share of the batch in each class."""
        return self.expected_counts / self.expected_counts.sum()

    def answers(self) -> Iterator[dict[str, Any]]:
        """Yield shard by shard the arrays `row`, `label`, `probability` and the other columns of the answers."""
        return read_answers(folder_at(self.folder))

    def labels(self) -> Int[np.ndarray, "query"]:
        """Label of every query, four bytes each."""
        return np.concatenate([part["label"] for part in self.answers()])

    def rejected(self) -> Bool[np.ndarray, "query"]:
        """Tell which queries are more likely unknown than known, if there is enough evidence that the batch has any."""
        return np.concatenate([self.is_open & (part["unknown"] > REJECTED) for part in self.answers()])

    def __repr__(self) -> str:
        return (
            f"LargeSolution({len(self.class_names)} classes, {len(self.living)} of them living, "
            f"answers in {self.folder}/{FOLDER})"
        )
