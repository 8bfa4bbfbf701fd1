"""Whether labels are good: how many of them are wrong, by every answer so far.

Each label has a risk r, the chance that it is wrong by what is shown: `1 - certainty`, or `1 - unknown` if the item is
rejected. Risks can be too small. And mistakes come in groups: if a class is taken for its neighbour, many items of a
label are wrong together, and no risk shows it. So there are two numbers,

    c:  a label is wrong with chance c r;
    e:  the items of a label are a mix of classes with chance e; then a share s of them is wrong, and s is uniform.

Every answer is evidence about both: the label was right or it was not, at a risk that is known. Let a person look at
items i of one label, of which k were found right before, and w are now wrong and v right. The likelihood is

    (1 - m) Π_i (c r_i)^{wrong_i} (1 - c r_i)^{right_i} + m B(1 + w, 1 + k + v) / B(1, 1 + k),

with `m = e / (k + 1) / (1 - e + e / (k + 1))`, the chance of a mix after k items were right. Which items are looked at
depends on risks alone, which are known, so the choice may be ignored: no answer has to be hidden or held out.

People err as well. An answer against a label that was wrong with chance p is a slip with chance

    h (1 - p) / (h (1 - p) + (1 - h) p),

likely against a sure label, unlikely against a doubtful one; for every nine exceptions that are found on sheets, one
is overlooked. The number of such mistakes is Poisson. Items left out of a sheet that was accepted count as wrong until
they are answered. The posterior of c and e on a grid gives the
number of wrong labels, and labels are good when

    P(at most 5% of all labels are wrong) >= 0.9.

That is about labels and not about kinds, which `oddest` sees to: a person may stop when labels are good, and odd items
were looked at.

Single items contribute `Σ c r` wrong labels. Of the n items of a label that nobody has looked at, with chance m at most
j are wrong with chance `1 - (1 - (j+1)/(n+1))^{k+1}`. Where many answers went against sure labels, a session may never
say so; it then ends when everything has been seen.

The next batch starts where this one ended: how many labels of which risk were wrong, and how many were a mix of
classes, is kept with the catalogue. Old batches fade, so they cannot outweigh a batch that differs.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from scipy.special import betaln, ndtr, pdtr

from handful.shapes import Bool, Float, Int

# Labels are good if at most this share of them is wrong, with the probability below. The rest is shown, oddest first,
# once the expected share is this small. [chance; convention]
MOST_WRONG = 0.05
SURE_TO_STOP = 0.9
# c: how many times too small risks are; values that are summed over. [ratio; work]
RISK_FACTORS = np.logspace(-1.5, 1.5, 31)
# The prior of c is normal in ln c, about no bias, with this deviation. [nats; tuned]
SPREAD_OF_FACTOR = 0.9
# e: the share of labels whose items are a mix of classes, and its prior. [chance; tuned]
MIXED_LABELS = np.array([0.003, 0.01, 0.02, 0.04, 0.08, 0.15, 0.3])
MIXED_LABELS_PRIOR = np.array([0.1, 0.15, 0.2, 0.2, 0.2, 0.1, 0.05])
# Rejected items that nobody has looked at belong to classes of the catalogue after all with about this chance.
# [chance; measured: 4 in 10]
MIXED_REJECTED = 0.4
# No label is surer, and none more certainly wrong. [chance; tuned]
LEAST_RISK = 0.003
MOST_RISK = 0.95
# Items of one sheet have one label and are no independent evidence: they count as at most this many answers.
# [answers; tuned]
MOST_OF_A_SHEET = 2.0
# Mistakes of single items come in clumps of about this many: the variance of their number is as many times larger.
# [ratio; tuned]
MISTAKES_TOGETHER = 4.0
# h: the share of answers that are slips, and the share of exceptions on a sheet that are overlooked.
# [chance; convention: what people may do]
SLIPS = 0.02
OVERLOOKED = 0.1
# Risks of earlier batches are kept in bins between these. [chance; convention]
RISK_BINS = np.array([0.0, 0.01, 0.03, 0.06, 0.12, 0.25, 0.5])
# Numbers that are kept of a bin: the risk, and how many labels there were, and were wrong. [numbers; convention]
NUMBERS_OF_BIN = 3
# Earlier batches count as at most this many answers in all. [answers; convention]
MOST_KEPT = 100.0
# An interval leaves out this share at either end. [chance; convention]
TAIL = 0.05
# Numbers of wrong labels at which a distribution is computed, at most. [numbers; work]
MOST_COUNTS = 200
# Looks whose likelihood is kept: each is needed again after every later answer. [looks; work]
MOST_LOOKS = 2_048
# A deviation that is divided by is at least this. [labels; convention]
LEAST_DEVIATION = 1e-9


class Estimate(NamedTuple):
    """A value with its 90% interval."""

    value: float
    low: float
    high: float


class Look(NamedTuple):
    """Items of one label that a person looked at together.

    Attributes
    ----------
    risks, wrong : tuple
        The risk of each label, and whether it was wrong.
    found_right : float
        k, as how many answers the items of this label count that were found right before.
    rejected : bool
        Whether the label is none of the classes.
    """

    risks: tuple[float, ...]
    wrong: tuple[bool, ...]
    found_right: float = 0.0
    rejected: bool = False

    @property
    def weight(self) -> float:
        """As how many answers each item counts."""
        return min(1.0, MOST_OF_A_SHEET / len(self.risks))

    @property
    def n_wrong(self) -> float:
        """w, as how many answers the wrong ones count."""
        return self.weight * sum(self.wrong)

    @property
    def n_right(self) -> float:
        """v, as how many answers the right ones count."""
        return self.weight * (len(self.wrong) - sum(self.wrong))


@dataclass(frozen=True)
class Calibration:
    """What answers taught about shown risks, for the next batch of the same catalogue.

    It counts as at most 100 answers, so a new batch that differs is believed after a few answers of its own.

    Attributes
    ----------
    rows : tuple of (float, float, float)
        Labels by their risk: the mean risk, how many a person looked at, and how many were wrong. A row of risk 0
        counts labels that a person looked at, and those that were a mix of classes.

    Examples
    --------
    >>> sheet = Look((0.02, 0.02), (False, False))
    >>> Calibration().after([sheet, Look((0.4,), (False,), found_right=1.0)])
    Calibration(rows=((0.0, 1.0, 0.0), (0.02, 2.0, 0.0), (0.4, 1.0, 0.0)))
    """

    rows: tuple[tuple[float, float, float], ...] = ()

    def after(self, looks: Iterable[Look]) -> Calibration:
        """Return the calibration with more answers; the oldest fade."""
        looks = list(looks)
        mixed = [chance_of_mix(look) for look in looks]
        # What is wrong because a label is a mix says nothing about risks.
        new = [
            (max(risk, LEAST_RISK), (1 - chance) * look.weight, (1 - chance) * look.weight * wrong)
            for look, chance in zip(looks, mixed, strict=True)
            for risk, wrong in zip(look.risks, look.wrong, strict=True)
        ]
        n_new = sum(n for _, n, _ in new)
        n_old = sum(n for risk, n, _ in self.rows if risk > 0)
        # Answers of this batch have room first; what is left of it is for earlier ones.
        keep_new = min(1.0, MOST_KEPT / n_new) if n_new else 1.0
        keep_old = min(1.0, (MOST_KEPT - keep_new * n_new) / n_old) if n_old else 1.0
        new += [
            (0.0, float(look.found_right == 0), chance)
            for look, chance in zip(looks, mixed, strict=True)
            if not look.rejected
        ]
        scaled = [(risk, keep_old * n, keep_old * wrong) for risk, n, wrong in self.rows]
        scaled += [(risk, keep_new * n, keep_new * wrong) for risk, n, wrong in new]
        return Calibration(_binned(scaled))


def chance_of_mix(look: Look) -> float:
    """Return the chance that the items of a label are a mix of classes, by a look at it; 0 if all were right."""
    if not any(look.wrong):
        return 0.0
    usual = MIXED_LABELS_PRIOR / MIXED_LABELS_PRIOR.sum()
    mixed = float(usual @ (_chance_of_mix(look.found_right, look.rejected) * _likelihood_of_mix(look)))
    chance = np.clip(look.risks, LEAST_RISK, MOST_RISK)
    alone = float(np.exp(look.weight * np.where(look.wrong, np.log(chance), np.log(1 - chance)).sum()))
    return mixed / (mixed + alone)


def _binned(rows: Sequence[tuple[float, float, float]]) -> tuple[tuple[float, float, float], ...]:
    """Add up the rows of each bin of risks."""
    risks, n_labels, n_wrong = np.array(rows).reshape(-1, NUMBERS_OF_BIN).T
    of_bin = np.searchsorted(RISK_BINS, risks)
    found = []
    for place in np.unique(of_bin[n_labels > 0]).tolist():
        here = of_bin == place
        total = n_labels[here].sum()
        mean = (risks[here] * n_labels[here]).sum() / total
        found.append((float(mean), float(total), float(min(n_wrong[here].sum(), total))))
    return tuple(found)


def from_risk(risk: Float[np.ndarray, "item"]) -> Float[np.ndarray, "factor item"]:
    """`c r` for every c of the grid."""
    return np.asarray(np.minimum(RISK_FACTORS[:, None] * risk.clip(LEAST_RISK, 1), MOST_RISK))


class Unseen(NamedTuple):
    """Labels that no person gave.

    Attributes
    ----------
    risk : [item]
        r of each label.
    group : [item]
        A number for each label.
    found_right : [item]
        k of each label.
    rejected : [item]
        Whether the label is none of the classes.
    """

    risk: Float[np.ndarray, "item"]
    group: Int[np.ndarray, "item"]
    found_right: Float[np.ndarray, "item"]
    rejected: Bool[np.ndarray, "item"]

    def of(self, some: Bool[np.ndarray, "item"]) -> Unseen:
        """Return some of the items."""
        return Unseen(*(column[some] for column in self))


class Mistakes(NamedTuple):
    """Wrong labels beside those that nobody has looked at.

    Attributes
    ----------
    n_wrong : int
        Items whose label is known to be wrong.
    n_slips : float
        Expected number of answers that are wrong.
    """

    n_wrong: int = 0
    n_slips: float = 0.0


NO_MISTAKES = Mistakes()


class Posterior:
    """Weights of c and e after what a person said.

    Parameters
    ----------
    calibration : Calibration
        What earlier batches taught.
    looks : sequence of Look
        Labels of this batch that a person looked at.
    """

    def __init__(self, calibration: Calibration, looks: Sequence[Look] = ()) -> None:
        log_factor = -0.5 * (np.log(RISK_FACTORS) / SPREAD_OF_FACTOR) ** 2
        log_weights = log_factor[:, None] + np.log(MIXED_LABELS_PRIOR)
        for risk, n, wrong in calibration.rows:
            chance = from_risk(np.array([risk])) if risk > 0 else MIXED_LABELS
            log_weights = log_weights + wrong * np.log(chance) + (n - wrong) * np.log(1 - chance)
        for look in looks:
            log_weights = log_weights + _log_likelihood(look)
        weights = np.exp(log_weights - log_weights.max())
        self.weights: Float[np.ndarray, "factor share"] = weights / weights.sum()

    def alone(self, unseen: Unseen) -> Float[np.ndarray, "item"]:
        """Return the chance that each label is wrong by its own risk, `c r`."""
        return np.asarray(self.weights.sum(1) @ from_risk(unseen.risk))

    def wrong(self, unseen: Unseen) -> Float[np.ndarray, "item"]:
        """Return the chance that each label is wrong, `1 - (1 - c r) (1 - m E[s])` with `E[s] = 1 / (k + 2)`."""
        mixed = _chance_of_mix(unseen.found_right[:, None], unseen.rejected[:, None])
        mixed = mixed / (unseen.found_right[:, None] + 2)
        right = np.einsum("fs,fi->is", self.weights, 1 - from_risk(unseen.risk))
        return np.asarray(1 - ((1 - mixed) * right).sum(1))

    def at_most(
        self, unseen: Unseen, counts: Int[np.ndarray, "n"], mistakes: Mistakes = NO_MISTAKES
    ) -> Float[np.ndarray, "n"]:
        """Return the chances that at most `counts` of all labels are wrong; counts are 0, s, 2 s, … for a step s."""
        chance = from_risk(unseen.risk)
        mean = chance.sum(-1)[:, None]
        deviation = np.sqrt(MISTAKES_TOGETHER * (chance * (1 - chance)).sum(-1))[:, None]
        # Half an item more: the number of wrong labels is whole, the normal distribution is not.
        alone = ndtr((counts + 0.5 - mean) / np.maximum(deviation, LEAST_DEVIATION))
        together = _sums(unseen, counts, mistakes)
        below = np.zeros(len(counts))
        for of_share, of_groups in zip(self.weights.T, together, strict=True):
            below += np.convolve(of_groups, of_share @ alone)[: len(counts)]
        return below

    def may_stop(
        self, unseen: Unseen, n_labels: int, sure: float = SURE_TO_STOP, mistakes: Mistakes = NO_MISTAKES
    ) -> bool:
        """Whether at most 5% of all labels are wrong, with this chance."""
        allowed = int(MOST_WRONG * n_labels)
        if mistakes == NO_MISTAKES and len(unseen.risk) <= allowed:
            return True
        return bool(self.at_most(unseen, _counts(allowed), mistakes)[-1] >= sure)

    def right(self, unseen: Unseen, n_labels: int, mistakes: Mistakes = NO_MISTAKES) -> Estimate:
        """Return the share of all labels that is right."""
        if mistakes == NO_MISTAKES and len(unseen.risk) == 0:
            return Estimate(1.0, 1.0, 1.0)
        counts = _counts(n_labels)
        below = self.at_most(unseen, counts, mistakes)
        fewest = float(counts[min(int(np.searchsorted(below, TAIL)), len(counts) - 1)])
        most = float(counts[min(int(np.searchsorted(below, 1 - TAIL)), len(counts) - 1)])
        value = min(float(self.wrong(unseen).sum()) + sum(mistakes), n_labels)
        return Estimate(1 - value / n_labels, 1 - max(most, value) / n_labels, 1 - min(fewest, value) / n_labels)


def _counts(last: int) -> Int[np.ndarray, "n"]:
    """Return 0, s, 2 s, … up to `last` or at most s before it, with the smallest step s that keeps them few."""
    step = max(1, -(-last // MOST_COUNTS))
    return np.arange(last % step, last + 1, step)


def _sums(unseen: Unseen, counts: Int[np.ndarray, "n"], mistakes: Mistakes) -> Float[np.ndarray, "share n"]:
    """Return the distribution of the number of wrong items in mixes and of mistakes, for every e.

    Of n items of a mix, at most j are wrong with chance `1 - (1 - (j + 1) / (n + 1))^{k + 1}`.
    """
    # The slips are Poisson; what is known to be wrong comes on top.
    start = np.diff(
        np.where(counts >= mistakes.n_wrong, pdtr(counts - mistakes.n_wrong, mistakes.n_slips), 0), prepend=0
    )
    found = np.tile(start, (len(MIXED_LABELS), 1))
    _, first, sizes = np.unique(unseen.group, return_index=True, return_counts=True)
    for item, size in zip(first.tolist(), sizes.tolist(), strict=True):
        k = float(unseen.found_right[item])
        below = 1 - (1 - np.minimum((counts + 1) / (size + 1), 1)) ** (k + 1)
        of_mix = np.diff(below, prepend=0.0)
        for row, mixed in enumerate(_chance_of_mix(k, bool(unseen.rejected[item]))):
            found[row] = (1 - mixed) * found[row] + mixed * np.convolve(found[row], of_mix)[: len(counts)]
    return found


def chance_of_slip(wrong: float) -> float:
    """`h (1 - p) / (h (1 - p) + (1 - h) p)`: the chance that an answer against a label is a slip."""
    slip = SLIPS * (1 - wrong)
    return slip / (slip + (1 - SLIPS) * wrong)


def n_overlooked(n_exceptions: int) -> float:
    """Return how many exceptions were probably overlooked on sheets, by the number of those that were not."""
    return n_exceptions * OVERLOOKED / (1 - OVERLOOKED)


def _chance_of_mix(found_right: Any, rejected: Any) -> Float[np.ndarray, "... share"]:
    """`m`, for every e."""
    share = np.where(rejected, MIXED_REJECTED, MIXED_LABELS)
    mixed = share / (found_right + 1)
    return np.asarray(mixed / (1 - share + mixed))


def _likelihood_of_mix(look: Look) -> float:
    """`B(1 + w, 1 + k + v) / B(1, 1 + k)`."""
    after = betaln(1 + look.n_wrong, 1 + look.found_right + look.n_right)
    return float(np.exp(after - betaln(1, 1 + look.found_right)))


@lru_cache(maxsize=MOST_LOOKS)
def _log_likelihood(look: Look) -> Float[np.ndarray, "factor share"]:
    """Return the log-likelihood of a look for every c and e."""
    chance = from_risk(np.array(look.risks))
    alone = look.weight * np.where(look.wrong, np.log(chance), np.log(1 - chance)).sum(-1)[:, None]
    mixed = _chance_of_mix(look.found_right, look.rejected)
    return np.asarray(np.logaddexp(np.log(1 - mixed) + alone, np.log(mixed * _likelihood_of_mix(look))))
