"""Which encoder? All of them label the same batches of left-out examples, and are compared class by class.

    θ = (1/C) Σ_c v_c           v_c: share of the left-out examples of class c that are labelled right
    θ ± t √(Σ_u ψ_u²)           ψ_u: what class u adds to the error of θ; with few classes, what example u adds

Examples of a class share those that were not left out, and items of a batch are labelled jointly: they are not
independent, and classes nearly are. A difference of two encoders is taken within each class. Its interval holds for all
pairs of encoders together: t is the quantile of the largest `|Σ_u ψ_u g_u| / √(Σ_u ψ_u²)` of all pairs, where g are
normal numbers. So the best of several equal encoders does not look better than the rest.

The error falls with the number of examples n as `n^-β`, where β comes from the catalogues with half of them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
from scipy.special import ndtri, stdtrit

from handful.arguments import counted
from handful.fitted.fitted import FittedModel
from handful.fitted.left_out_batches import LeftOutBatches, Part
from handful.model.answer import JointAnswer
from handful.model.knowledge import Knowledge
from handful.model.labelling import KnownBatch, label_batches
from handful.progress import Reporter, silent
from handful.shapes import Float, Int

# Chance that an interval holds. [chance; convention]
LEVEL = 0.95
# With fewer classes, the examples are taken to vary, and not the classes. [classes; convention]
FEWEST_CLASSES = 6
# Normal numbers that the quantile of all pairs is taken from. [draws; work]
DRAWS = 4_000
# Classes that a catalogue must have to judge items of no class. [classes; convention]
FEWEST_KNOWN = 2
# Step of a derivative, as a share of the value. [ratio; convention]
STEP = 1e-4
# Shares are printed in percent, and times in thousandths of a second. [parts; convention]
PERCENT = 100
PARTS_OF_A_SECOND = 1000
# Values of an encoder that have an interval.
MEASURED = (
    "alone",
    "jointly",
    "unknown",
    "seconds",
    "behind",
    "alone_behind",
    "unknown_behind",
    "doubled",
)
# What can be said of an encoder.
BEST = "best"
WORSE = "worse"
CANNOT_TELL = "cannot tell"

Rows = Int[np.ndarray, "item"]


class Outcomes(NamedTuple):
    """What became of each row when it was left out, [row] each; NaN where that is not known."""

    alone: Float[np.ndarray, "row"]  # share of its batches in which it was labelled right, each item alone
    jointly: Float[np.ndarray, "row"]  # the same, jointly
    fewer: Float[np.ndarray, "row"]  # jointly, with half of the examples
    as_unknown: Float[np.ndarray, "row"]  # share of the known items of its batches that rank below it
    as_known: Float[np.ndarray, "row"]  # share of the unknown items of its batches that rank above it


class _Sums:
    """Adds up outcomes of batches."""

    def __init__(self, n_rows: int) -> None:
        self._sums = {name: np.zeros(n_rows) for name in Outcomes._fields}
        self._counts = {name: np.zeros(n_rows) for name in Outcomes._fields}

    def add(self, name: str, rows: Rows, values: Any) -> None:
        self._sums[name][rows] += values
        self._counts[name][rows] += 1

    def outcomes(self) -> Outcomes:
        with np.errstate(invalid="ignore"):
            return Outcomes(**{name: self._sums[name] / self._counts[name] for name in Outcomes._fields})


def outcomes_of(
    features: Float[np.ndarray, "row dim"], drawn: LeftOutBatches, report: Callable[[int], None]
) -> Outcomes:
    """Label all batches with the three catalogues of each part; `report` is called with 1 after each part."""
    sums = _Sums(len(drawn.codes))
    for part in drawn.parts:
        if part.batches:
            with silent():
                _label_closed(features, drawn.codes, part, sums)
                _label_open(features, drawn.codes, part, sums)
        report(1)
    return sums.outcomes()


def _label_closed(features: Float[np.ndarray, "row dim"], codes: Rows, part: Part, sums: _Sums) -> None:
    """Label with all other examples, and with half of them."""
    for rows, name in ((part.whole, "jointly"), (part.fewer, "fewer")):
        catalogue = FittedModel.of(features[rows], codes[rows])
        for batch, answer in _answers(catalogue, features, part):
            found = catalogue.classes[answer.probabilities.argmax(1)]
            sums.add(name, batch, found == codes[batch])
            if rows is part.whole:
                scores = catalogue.head.scores(catalogue.points(features[batch]))
                sums.add("alone", batch, catalogue.classes[scores.argmax(1)] == codes[batch])


def _label_open(features: Float[np.ndarray, "row dim"], codes: Rows, part: Part, sums: _Sums) -> None:
    """Rank items by their chance to belong to no class, where some do."""
    if len(np.unique(codes[part.open])) < FEWEST_KNOWN:
        return
    catalogue = FittedModel.of(features[part.open], codes[part.open])
    if catalogue.unknown_reason is not None:
        return
    for batch, answer in _answers(catalogue, features, part):
        known = np.isin(codes[batch], catalogue.classes)
        if known.all() or not known.any():
            continue
        unknown = answer.unknown[~known][:, None]
        below = (unknown > answer.unknown[known]) + 0.5 * (unknown == answer.unknown[known])
        sums.add("as_unknown", batch[~known], below.mean(1))
        sums.add("as_known", batch[known], below.mean(0))


def _answers(
    catalogue: FittedModel, features: Float[np.ndarray, "row dim"], part: Part
) -> Iterator[tuple[Rows, JointAnswer]]:
    items = (KnownBatch(catalogue.points(features[batch]), Knowledge()) for batch in part.batches)
    return zip(part.batches, label_batches(items, catalogue.reference), strict=True)


class Interval(NamedTuple):
    """A value and where it is with a chance of 95 %."""

    value: float
    low: float
    high: float

    def of_hundred(self, digits: int = 1) -> str:
        """In percent, or in points of it."""
        value, low, high = (f"{PERCENT * number:.{digits}f}" for number in self)
        return f"{value} ({low} to {high})"


class Mean(NamedTuple):
    """A mean over classes.

    `parts` are what each class or example adds to its error, `n_units` how many of these vary, and `least` what one
    example can change: no interval is narrower, even if the same examples are right in all classes.
    """

    value: float
    parts: Float[np.ndarray, "unit"]
    n_units: int
    least: float

    @property
    def error(self) -> float:
        """Standard error."""
        return float(np.sqrt((self.parts**2).sum()))

    def interval(self, quantile: float | None = None) -> Interval:
        """Return `θ ± t · error`."""
        half = max(self.error, self.least) * (self.quantile if quantile is None else quantile)
        return Interval(self.value, self.value - half, self.value + half)

    def share(self, n_items: int) -> Interval:
        """Return the interval of a share (Wilson), which stays within 0 and 1 and is never empty.

        It is that of as many independent items as have the same error, at most of `n_items`.
        """
        p = min(max(self.value, 0.0), 1.0)
        square = self.error**2
        n = n_items if square == 0 else min(n_items, max(1.0, p * (1 - p) / square))
        t = self.quantile
        middle = (p + t**2 / (2 * n)) / (1 + t**2 / n)
        half = t / (1 + t**2 / n) * math.sqrt(p * (1 - p) / n + t**2 / (2 * n) ** 2)
        return Interval(p, max(0.0, middle - half), min(1.0, middle + half))

    @property
    def quantile(self) -> float:
        """Of Student's distribution."""
        return float(stdtrit(max(1, self.n_units - 1), 0.5 + LEVEL / 2))


class Classes(NamedTuple):
    """Turns outcomes of rows into means over classes, with their errors."""

    codes: Int[np.ndarray, "group"]  # class of each group of rows
    of_row: Int[np.ndarray, "row"]
    by_class: bool

    @classmethod
    def of(cls, drawn: LeftOutBatches) -> Classes:
        """By classes, if enough of them have an example that can be left out; else by examples."""
        _, first, of_row = np.unique(drawn.group_of, return_index=True, return_inverse=True)
        codes = drawn.codes[first]
        return cls(codes, of_row, int((np.bincount(codes) > 1).sum()) >= FEWEST_CLASSES)

    def mean(self, values: Float[np.ndarray, "row"]) -> Mean | None:
        """Return the mean over classes; None if there is nothing to tell it by."""
        there = ~np.isnan(values)
        n_rows = np.bincount(self.of_row[there], minlength=len(self.codes))
        sums = np.bincount(self.of_row[there], values[there], len(self.codes))
        groups = np.flatnonzero(n_rows)
        of_group = sums[groups] / n_rows[groups]
        codes = self.codes[groups]
        n_groups = np.bincount(codes, minlength=int(self.codes.max()) + 1)
        classes = np.flatnonzero(n_groups)
        n_classes = len(classes)
        if n_classes < 2:
            return None
        with np.errstate(invalid="ignore"):
            of_class = np.bincount(codes, of_group, len(n_groups)) / n_groups
        value = float(of_class[classes].mean())
        by_class = np.zeros(len(n_groups))
        by_class[classes] = (of_class[classes] - value) / math.sqrt(n_classes * (n_classes - 1))
        if self.by_class:
            return Mean(value, by_class, n_classes, 1 / len(groups))
        n = n_groups[codes]
        within = np.zeros(len(self.codes))
        several = n > 1
        scale = np.sqrt(n[several] * (n[several] - 1.0)) * n_classes
        within[groups[several]] = (of_group[several] - of_class[codes[several]]) / scale
        # Classes that differ by more than their examples do: batches and examples are shared within a class.
        ratio = float(np.sqrt((by_class**2).sum() / max((within**2).sum(), np.finfo(float).tiny)))
        parts = within * max(1.0, ratio) if within.any() else within
        return Mean(value, parts, len(groups) - n_classes + 1, 1 / len(groups))

    def ranked(self, found: Outcomes) -> Mean | None:
        """Return the chance that an unknown item ranks above a known one; a class is once unknown, and else known."""
        unknown = self.mean(found.as_unknown)
        known = self.mean(found.as_known)
        if unknown is None or known is None:
            return None
        return unknown._replace(parts=unknown.parts + known.parts)


class Growth(NamedTuple):
    """How many examples the catalogues had, for classes of which half can be taken away."""

    halved: Int[np.ndarray, "row"]  # rows of these classes
    ratio: float  # examples of the whole catalogue to those of half of it, geometric mean
    left: float  # all examples to those that were not left out

    @classmethod
    def of(cls, drawn: LeftOutBatches, classes: Classes) -> Growth | None:
        """Count them; None if no class has enough."""
        n_classes = int(drawn.codes.max()) + 1

        def sizes(rows: Rows) -> Float[np.ndarray, "class"]:
            there = np.unique(classes.of_row[rows])
            return np.bincount(classes.codes[there], minlength=n_classes).astype(float)

        whole = np.mean([sizes(part.whole) for part in drawn.parts], 0)
        fewer = np.mean([sizes(part.fewer) for part in drawn.parts], 0)
        every = sizes(np.arange(len(drawn.codes)))
        halved = (whole > fewer) & (every > whole)
        if halved.sum() < 2:
            return None
        ratio = float(np.exp(np.log(whole[halved] / fewer[halved]).mean()))
        left = float(np.exp(np.log(every[halved] / whole[halved]).mean()))
        return cls(np.flatnonzero(halved[drawn.codes]), ratio, left)

    def doubled(self, found: Outcomes, classes: Classes) -> Mean | None:
        """`e (n'/n)^-β (1 - 2^-β)`: what twice as many examples would add to the labels right; None if it is not known.

        e is the share of wrong labels with n examples, which are n' with those left out, and β how it fell with them.
        """
        with_all = self._wrong(found.jointly)
        with_half = self._wrong(found.fewer)
        first = classes.mean(with_all)
        second = classes.mean(with_half)
        if first is None or second is None or not first.value or not second.value:
            return None

        def gain(e: float, e_half: float) -> float:
            slope = math.log(e_half / e) / math.log(self.ratio)
            return e * math.exp(-slope * math.log(self.left)) * (1 - math.exp(-slope * math.log(2)))

        step = STEP * first.value
        value = gain(first.value, second.value)
        by_all = (gain(first.value + step, second.value) - value) / step
        by_half = (gain(first.value, second.value + step) - value) / step
        parts = classes.mean(by_all * with_all + by_half * with_half)
        assert parts is not None
        return parts._replace(value=value)

    def _wrong(self, right: Float[np.ndarray, "row"]) -> Float[np.ndarray, "row"]:
        wrong = np.full(len(right), np.nan)
        wrong[self.halved] = 1 - right[self.halved]
        return wrong


@dataclass(frozen=True)
class ComparedEncoder:
    """What was found about one encoder.

    Attributes
    ----------
    name : str
        The encoder, or the column of vectors.
    dim : int
        Length of a vector.
    alone, jointly : Interval
        Share of left-out examples that are labelled right, each alone, and jointly with the others of its batch.
    unknown : Interval or None
        Chance that an item of a class that the catalogue lacks ranks above one that it has (area under the curve); None
        if there are too few examples to tell.
    seconds : Interval or None
        To read and embed an item, on one core or on the device; None for vectors of a table.
    behind : Interval
        `jointly` minus that of the best encoder, class by class.
    alone_behind, unknown_behind : Interval or None
        The same for the others.
    verdict : {"best", "worse", "cannot tell"}
        "cannot tell" where the interval of the difference to the best contains 0.
    doubled : Interval or None
        What twice as many examples would add to `jointly`, by how it grew with them; None if that is not known.
    more_examples : bool
        Whether twice as many examples would add more than the best encoder, for certain.
    """

    name: str
    dim: int
    alone: Interval
    jointly: Interval
    unknown: Interval | None
    seconds: Interval | None
    behind: Interval
    alone_behind: Interval
    unknown_behind: Interval | None
    verdict: str
    doubled: Interval | None
    more_examples: bool


@dataclass(frozen=True)
class Comparison:
    """Encoders, compared by what they do with left-out examples of one catalogue; print it.

    Attributes
    ----------
    encoders : tuple of ComparedEncoder
        In the order in which they were named.
    n_classes, n_examples, n_left_out : int
        Classes and examples that took part, and examples that were left out once.
    n_present, n_items : int and float
        Classes of a batch, and its mean number of items.
    notes : tuple of str
        What was left out of the comparison, and what could not be told, in sentences.
    """

    encoders: tuple[ComparedEncoder, ...]
    n_classes: int
    n_examples: int
    n_left_out: int
    n_present: int
    n_items: float
    notes: tuple[str, ...] = ()

    @property
    def best(self) -> ComparedEncoder:
        """The encoder with most labels right jointly; of equal ones the first."""
        return next(one for one in self.encoders if one.verdict == BEST)

    def table(self) -> dict[str, list[Any]]:
        """Return one entry per encoder: its name, each value, and the ends of its interval."""
        columns: dict[str, list[Any]] = {
            "encoder": [one.name for one in self.encoders],
            "dim": [one.dim for one in self.encoders],
        }
        for name in MEASURED:
            found = [getattr(one, name) or Interval(math.nan, math.nan, math.nan) for one in self.encoders]
            columns[name] = [one.value for one in found]
            columns[f"{name}_low"] = [one.low for one in found]
            columns[f"{name}_high"] = [one.high for one in found]
        columns["verdict"] = [one.verdict for one in self.encoders]
        columns["more_examples"] = [one.more_examples for one in self.encoders]
        return columns

    def __str__(self) -> str:
        head = (
            f"{counted(self.n_classes, 'class')}, {counted(self.n_examples, 'example')}; {self.n_left_out:,} were left "
            f"out once, and labelled in batches of {self.n_present} classes and about {self.n_items:.0f} items."
        )
        cells = [["encoder", "right alone, %", "right jointly, %", "unknown ranked, %", "ms per item"]]
        for one in self.encoders:
            seconds = one.seconds and Interval(*(PARTS_OF_A_SECOND / PERCENT * number for number in one.seconds))
            row = (one.alone, one.jointly, one.unknown, seconds)
            cells.append([one.name, *("–" if found is None else found.of_hundred() for found in row)])
        widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
        lines = ["  ".join(map(str.ljust, row, widths)).rstrip() for row in cells]
        return "\n".join([head, *self.notes, "", *lines, "", *self.findings])

    @property
    def findings(self) -> list[str]:
        """What follows, in sentences."""
        best = self.best
        said = []
        for one in self.encoders:
            if one is not best:
                behind = Interval(*(0.0 - end for end in (one.behind.value, one.behind.high, one.behind.low)))
                points = f"{behind.of_hundred()} points fewer labels right jointly"
                said.append(f"{one.name} has {points} than {best.name}: {_verdict(one)}.")
        said += self._quicker()
        if best.doubled is not None:
            text = f"Twice as many examples of each class would add about {best.doubled.of_hundred()} points"
            said.append(f"{text} to {best.name}.")
        others = [one for one in self.encoders if one is not best]
        if others and all(one.more_examples for one in others):
            said.append("More examples would help more than another of these encoders.")
        elif others and best.doubled and best.doubled.low > 0 and all(one.verdict != WORSE for one in others):
            said.append("More examples would help; whether another of these encoders would cannot be told.")
        elif helped := [one.name for one in others if one.more_examples]:
            said.append(f"More examples would help {' and '.join(helped)} more than another of these encoders.")
        return said

    def _quicker(self) -> list[str]:
        """Name the quickest encoder of those that may be as good as the best."""
        best = self.best
        timed = [one for one in self.encoders if one.seconds is not None and one.verdict != WORSE]
        quickest = min(timed, key=lambda one: one.seconds.value if one.seconds else math.inf, default=best)
        if best.seconds is None or quickest.seconds is None or quickest.seconds.high >= best.seconds.low:
            return []
        times = best.seconds.value / quickest.seconds.value
        return [f"{quickest.name} is {times:.1f} times as quick as {best.name}, and may be as good."]


def _verdict(one: ComparedEncoder) -> str:
    """Say whether it is worse; if joint labels cannot tell, whether items alone or their ranks can."""
    tell = [
        name
        for name, found in (("alone", one.alone_behind), ("by the ranks of unknown items", one.unknown_behind))
        if found is not None and found.high < 0
    ]
    if one.verdict == WORSE or not tell:
        return one.verdict
    return f"{one.verdict}, but it is worse {' and '.join(tell)}"


def compared(
    vectors: Mapping[str, Float[np.ndarray, "row dim"]],
    drawn: LeftOutBatches,
    *,
    seconds: Mapping[str, Interval] | None = None,
    notes: Sequence[str] = (),
    seed: int = 0,
    reporter: Reporter | None = None,
) -> Comparison:
    """Compare encoders by what they do with the same left-out examples.

    Parameters
    ----------
    vectors : mapping of str to Float[ndarray, "row dim"]
        Vectors of all examples, by the name of the encoder.
    drawn : LeftOutBatches
        What is left out when.
    seconds : mapping of str to Interval, optional
        Time per item of encoders, where it is known.
    notes : sequence of str
        Sentences that go before the table.
    seed : int
        Of the numbers that intervals of differences need.
    reporter : Reporter, optional
        What is told after each part.
    """
    names = list(vectors)
    report = (reporter or Reporter()).stage("label left-out examples", len(names) * len(drawn.parts))
    found = [outcomes_of(vectors[name], drawn, report) for name in names]
    classes = Classes.of(drawn)
    left_out = ~np.isnan(found[0].jointly)
    n_left_out = len(np.unique(drawn.group_of[left_out]))
    jointly = [_known(classes.mean(one.jointly)) for one in found]
    best = int(np.argmax([one.value for one in jointly]))
    growth = Growth.of(drawn, classes)
    differences = {
        "jointly": _differences(found, best, seed, lambda one: classes.mean(one.jointly)),
        "alone": _differences(found, best, seed, lambda one: classes.mean(one.alone)),
        "unknown": _differences(found, best, seed, classes.ranked),
    }
    encoders = []
    for at, (name, own) in enumerate(zip(names, found, strict=True)):
        ranked = classes.ranked(own)
        behind, t = differences["jointly"][at]
        assert behind is not None
        doubled = None if growth is None else growth.doubled(own, classes)
        instead = doubled and doubled._replace(value=doubled.value + behind.value, parts=doubled.parts + behind.parts)
        verdict = BEST if at == best else WORSE if behind.interval(t).high < 0 else CANNOT_TELL
        encoders.append(
            ComparedEncoder(
                name,
                vectors[name].shape[1],
                _known(classes.mean(own.alone)).share(n_left_out),
                jointly[at].share(n_left_out),
                None if ranked is None else ranked.share(n_left_out),
                (seconds or {}).get(name),
                behind.interval(t),
                _interval(*differences["alone"][at]) or Interval(0, 0, 0),
                _interval(*differences["unknown"][at]),
                verdict,
                None if doubled is None else doubled.interval(),
                instead is not None and at != best and instead.interval(t).low > 0,
            )
        )
    if all(one.unknown is None for one in encoders):
        notes = (*notes, "Unknown items could not be ranked: there are too few classes or examples.")
    sizes = [len(batch) for part in drawn.parts for batch in part.batches]
    n_classes = int(drawn.codes.max()) + 1
    return Comparison(
        tuple(encoders), n_classes, len(drawn.codes), n_left_out, drawn.n_present, float(np.mean(sizes)), tuple(notes)
    )


def _differences(
    found: Sequence[Outcomes], best: int, seed: int, mean: Callable[[Outcomes], Mean | None]
) -> list[tuple[Mean | None, float]]:
    """Return the difference of each encoder to the best, and the quantile for all pairs together."""

    def minus(one: int, other: int) -> Mean | None:
        return mean(Outcomes(*(a - b for a, b in zip(found[one], found[other], strict=True))))

    pairs = [minus(one, other) for one, other in combinations(range(len(found)), 2)]
    t = _quantile([pair for pair in pairs if pair is not None and pair.error > 0], seed)
    return [(minus(one, best), t) for one in range(len(found))]


def _quantile(pairs: Sequence[Mean], seed: int) -> float:
    """Return the quantile of the largest of all pairs; of one, that of Student's distribution."""
    if not pairs:
        return float(ndtri(0.5 + LEVEL / 2))
    alone = pairs[0].quantile
    if len(pairs) == 1:
        return alone
    scaled = np.array([pair.parts / pair.error for pair in pairs])
    numbers = np.random.default_rng(seed).normal(size=(scaled.shape[1], DRAWS))
    largest = np.abs(scaled @ numbers).max(0)
    # Of normal numbers; few classes have wider tails.
    return float(np.quantile(largest, LEVEL)) * alone / float(ndtri(0.5 + LEVEL / 2))


def _interval(mean: Mean | None, t: float) -> Interval | None:
    return None if mean is None else mean.interval(t)


def _known(mean: Mean | None) -> Mean:
    assert mean is not None
    return mean
