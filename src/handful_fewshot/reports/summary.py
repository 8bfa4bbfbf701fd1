"""Summaries of rows: means with 95% intervals, differences on the same tasks.

Accuracy varies widely between tasks, and methods find the same tasks hard. So two methods are compared by the mean of
their differences, task by task, and tie if its interval contains zero. On fewer than `LEAST_TASKS` common tasks nobody
wins: a few tasks may agree by chance, and their interval is then far too short. A single task has no interval, and no
task has no mean; both are reported in words.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Self

import numpy as np

from handful.shapes import Float
from handful_fewshot.benchmark.journal import Journal, rows_of_cells
from handful_fewshot.benchmark.plan import Cell
from handful_fewshot.tasks import CorrelatedStream, ShotsPerClass, TaskSpec
from handful_fewshot.transforms import method_at, scale_name

# What the tables have of every method.
METRICS = (
    *("accuracy", "macro_recall", "n_predicted", "presence_precision", "presence_recall", "proportion_error"),
    *("negative_log_likelihood", "n_iter", "seconds"),
)
# Share of intervals that contain the true mean.
CONFIDENCE = 0.95
# Common tasks that a comparison needs; from about 30 on, the interval of a mean is nearly that of a normal variable.
LEAST_TASKS = 30
# A figure of fewer tasks has this mark, which is explained below its table.
FEW_TASKS = 100
FEW_MARK = "†"
FEW_NOTE = f"{FEW_MARK} Measured on fewer than {FEW_TASKS} tasks, too few to rank methods that are close."


@dataclass(frozen=True)
class MeanEstimate:
    """`mean ± t s/√n` over n tasks, where `s² = Σ (x - mean)² / (n-1)` and t is Student's, 97.5%, n-1 degrees.

    The half width is infinite for a single task, and the mean of no task is not a number; `text` puts both in words.

    Examples
    --------
    >>> estimate = MeanEstimate.of(np.array([0.5, 0.7, 0.9]))
    >>> round(estimate.mean, 3), round(estimate.half_width, 3), estimate.holds_zero
    (0.7, 0.497, False)
    >>> estimate.text(), MeanEstimate.of(np.array([0.5])).text(unit="%"), MeanEstimate.of(np.array([])).text()
    ('0.7 ± 0.5', '0.5% on one task', '')
    """

    mean: float
    half_width: float
    n: int

    @classmethod
    def of(cls, values: Float[np.ndarray, "task"]) -> Self:
        """Estimate from one number per task."""
        n = len(values)
        if n == 0:
            return cls(float("nan"), float("nan"), 0)
        if n == 1:
            return cls(float(values[0]), float("inf"), 1)
        return cls(float(values.mean()), student_t(n - 1) * float(values.std(ddof=1)) / n**0.5, n)

    @property
    def percent(self) -> Self:
        """The same in percent, or in percentage points."""
        return type(self)(100 * self.mean, 100 * self.half_width, self.n)

    @property
    def has_interval(self) -> bool:
        """Whether there are at least two tasks."""
        return self.n > 1

    @property
    def decides(self) -> bool:
        """Whether there are enough tasks for a comparison."""
        return self.n >= LEAST_TASKS

    def text(self, digits: int = 1, sign: str = "", unit: str = "") -> str:
        """Mean and half width with that many decimals; empty if there is no task."""
        if not self.n:
            return ""
        spread = f" ± {self.half_width:.{digits}f}{unit}" if self.has_interval else f"{unit} on one task"
        return f"{self.mean:{sign}.{digits}f}{spread}"

    def rounded(self) -> str:
        """Mean and half width to the second digit of the half width; empty if there is no task.

        Two examples are 0.0123 ± 0.0007 and 71.2 ± 3.4.
        """
        mean = self.mean
        half = self.half_width
        if not self.n or not math.isfinite(mean):
            return "not finite" if self.n else ""
        # Three digits of the mean, or three decimals, are enough however small the interval is.
        enough = max(3, 2 - math.floor(math.log10(abs(mean)))) if mean else 3
        digits = min(max(1 - math.floor(math.log10(half)), 0), enough) if 0 < half < math.inf else enough
        if not 0.5 * 10**-digits <= half < math.inf:
            return f"{round(mean, enough):g}"
        return f"{mean:.{digits}f} ± {half:.{digits}f}"

    @property
    def above_zero(self) -> bool:
        """Whether all of the interval is above zero."""
        return self.mean > self.half_width

    @property
    def holds_zero(self) -> bool:
        """Whether the interval contains zero."""
        return abs(self.mean) <= self.half_width


class TaskMean(MeanEstimate):
    """An estimate over tasks of a run; its text is marked if these are fewer than `FEW_TASKS`.

    Examples
    --------
    >>> TaskMean.of(np.array([0.5, 0.7, 0.9])).text()
    '0.7 ± 0.5†'
    """

    @property
    def mark(self) -> str:
        """`FEW_MARK`, or nothing."""
        return FEW_MARK if 0 < self.n < FEW_TASKS else ""

    def text(self, digits: int = 1, sign: str = "", unit: str = "") -> str:
        """Mean, half width and mark."""
        return super().text(digits, sign, unit) + self.mark


def footnotes(text: str) -> list[str]:
    """Explain the mark of few tasks, if the text has it."""
    return [FEW_NOTE] if FEW_MARK in text else []


@dataclass(frozen=True, eq=False)
class Result:
    """A cell and its rows: tasks that succeeded, in order, and how many failed.

    `options` are those that are not the method's defaults, if several variants solved the same tasks.
    """

    cell: Cell
    options: tuple[str, ...]
    columns: dict[str, np.ndarray]
    n_failed: int
    first_error: str

    @property
    def label(self) -> str:
        """The method, with `options` and the scale of its features."""
        return method_at(self.cell.method, self.scale, *self.options)

    @property
    def variant(self) -> str:
        """The method with `options`, at any scale."""
        return f"{self.cell.method} ({', '.join(self.options)})" if self.options else self.cell.method

    @property
    def asked(self) -> str:
        """The label at the scale that the cell names, which is the same on all banks."""
        return method_at(self.cell.method, scale_name(self.cell.transform, self.cell.parameters), *self.options)

    @property
    def scale(self) -> str:
        """What features are called after the transform that was applied."""
        return scale_name(self.transform, self.cell.parameters)

    @property
    def tasks(self) -> np.ndarray:
        """Numbers of the tasks that succeeded."""
        return self.columns["task"]

    @property
    def transform(self) -> str:
        """The transform that was applied; it differs from the cell's if a bank has no base classes."""
        return str(self.columns["transform"][0]) if len(self.tasks) else self.cell.transform

    @property
    def transform_text(self) -> str:
        """The transform that was applied, and the one it replaced."""
        used = self.transform
        asked = self.cell.transform
        return used if used == asked else f"{used} instead of {asked}"

    def estimate(self, metric: str = "accuracy") -> TaskMean:
        """Mean and interval of a metric, over the tasks whose rows have it; rows of earlier versions may not."""
        values = self.columns[metric].astype(np.float64)
        return TaskMean.of(values[~np.isnan(values)])


@dataclass(frozen=True, eq=False)
class Column:
    """Results on the same tasks: same bank, split, spec and seed."""

    bank: str
    split: str
    spec: TaskSpec
    seed: int
    results: tuple[Result, ...]

    @property
    def title(self) -> str:
        """Bank and protocol in a few words."""
        spec = self.spec
        shots = f"{spec.support.shots}-shot" if isinstance(spec.support, ShotsPerClass) else "fixed support"
        ways = "" if spec.n_classes is None else f", K={spec.n_classes}"
        rule = type(spec.query).__name__
        spread = "" if rule == "UniformOverPool" else f", {rule.lower()}"
        if isinstance(spec.query, CorrelatedStream):
            spread = f", stream of concentration {spec.query.concentration:g}"
        queries = "" if spec.n_query == 75 else f", |Q|={spec.n_query}"
        name = f"{self.bank}/{self.split}" if self.split else self.bank
        return f"{name}, {shots}, K_eff={spec.query.k_eff_text}{ways}{spread}{queries}{self.unknown}"

    @property
    def unknown(self) -> str:
        """The unknown classes of the tasks, as the end of a title; empty if there are none."""
        unknown = self.spec.unknown
        return "" if unknown is None else f", {unknown.count} unknown at {100 * unknown.share:g}%"

    def best(self) -> tuple[Result, ...]:
        """Return the results that no other is ahead of by more than an interval, on the tasks both have.

        A result with fewer than `LEAST_TASKS` tasks is neither first nor an opponent. A result that shares fewer with
        an opponent is not first either, since the two cannot be compared. Those that tie come in the order of their
        accuracy on the tasks they share.
        """
        # Not the results that tie with the highest mean: a few easy tasks can make a mean high.
        judged = [result for result in self.results if result.estimate().decides]

        def first(result: Result) -> bool:
            ahead = [paired_difference(other, result) for other in judged if other is not result]
            return all(lead.decides and not lead.above_zero for lead in ahead)

        level = list(filter(first, judged))
        return tuple(sorted(level, key=lambda one: -sum(paired_difference(one, other).mean for other in level)))


def results(journal: Journal) -> list[Result]:
    """Rows of every cell of the plan, in its order.

    Parameters
    ----------
    journal : Journal
        A run.

    Returns
    -------
    list of Result
        One per cell.
    """
    rows = journal.columns()
    rows_of = rows_of_cells(rows)
    failed = np.array([error is not None for error in rows["error"]], dtype=bool)
    none = np.empty(0, np.int64)
    outcomes = []
    variants = Counter((cell.method, _tasks_of(cell)) for cell in journal.plan)
    varied = {method for (method, _), n in variants.items() if n > 1}
    for cell in journal.plan:
        mine = rows_of.get(cell.content_hash, none)
        errors = rows["error"][mine[failed[mine]]]
        columns = {name: values[mine[~failed[mine]]] for name, values in rows.items()}
        options = _options(cell) if cell.method in varied else ()
        outcomes.append(Result(cell, options, columns, len(errors), str(errors[0]) if len(errors) else ""))
    return outcomes


def columns_of(outcomes: Sequence[Result]) -> list[Column]:
    """Group results by their tasks, in the order in which these first occur.

    Parameters
    ----------
    outcomes : sequence of Result
        Results of cells.

    Returns
    -------
    list of Column
        One per bank, split, spec and seed.
    """
    groups: dict[tuple[str, str, TaskSpec, int], list[Result]] = {}
    for result in outcomes:
        groups.setdefault(_tasks_of(result.cell), []).append(result)
    return [Column(*key, tuple(members)) for key, members in groups.items()]


def paired_difference(a: Result, b: Result, metric: str = "accuracy") -> TaskMean:
    """Mean over the tasks both have of `metric(a) - metric(b)`, with its interval.

    Parameters
    ----------
    a, b : Result
        Results on the same tasks.
    metric : str
        A column of scores.

    Returns
    -------
    TaskMean
        Mean and interval of 95%.
    """
    shared = _shared_tasks((a, b))
    differences = _on(a, shared, metric) - _on(b, shared, metric)
    return TaskMean.of(differences[~np.isnan(differences)])


def verdict(difference: MeanEstimate, above: str, below: str) -> str:
    """Return which is ahead, `above` if the difference is positive, or that it cannot be decided."""
    if not difference.decides:
        return "too few tasks to tell" if difference.n else "no task in common"
    if difference.holds_zero:
        return "tie"
    return above if difference.mean > 0 else below


@cache
def student_t(degrees: int) -> float:
    """Half width, in standard errors, of the 95% interval of a mean with that many degrees of freedom."""
    from scipy.special import stdtrit  # comes with scikit-learn; imported here, since it takes a while

    return float(stdtrit(degrees, (1 + CONFIDENCE) / 2))


def common_means(members: Sequence[Result], least: int = LEAST_TASKS) -> dict[str, float]:
    """Mean accuracy of each label on the tasks all have; empty if these are fewer than `least`."""
    shared = _shared_tasks(members) if members else np.empty(0)
    means = {result.label: float(_on(result, shared).mean()) for result in members if len(shared) >= least}
    # Tasks with no known item have no accuracy.
    return {} if any(map(math.isnan, means.values())) else means


def _tasks_of(cell: Cell) -> tuple[str, str, TaskSpec, int]:
    return cell.bank, cell.split, cell.spec, cell.seed


def _options(cell: Cell) -> tuple[str, ...]:
    """Write out what is not the method's default."""
    return tuple(f"{name}={format(v, 'g') if isinstance(v, float) else v}" for name, v in cell.options.items())


def _shared_tasks(members: Sequence[Result]) -> np.ndarray:
    shared = members[0].tasks
    for result in members[1:]:
        shared = np.intersect1d(shared, result.tasks)
    return shared


def _on(result: Result, tasks: np.ndarray, metric: str = "accuracy") -> Float[np.ndarray, "task"]:
    values: np.ndarray = result.columns[metric][np.isin(result.tasks, tasks)].astype(np.float64)
    return values
