"""When a person may stop: how many labels that nobody has looked at are wrong, by every answer so far.

Each label has a risk r, the chance that it is wrong by what is shown: `1 - certainty`, or `1 - unknown` if the item is
rejected. Risks can be too small. And mistakes come in groups: if a class is taken for its neighbour, all its items are
wrong together, and no risk shows it. So there are two numbers,

    c:  a label is wrong with chance c r;
    e:  all items of a label are wrong with chance e, as long as nobody has looked at one of them and found it right.

Every answer is evidence about both: the label was right or it was not, at a risk that is known. With items i that are
looked at together, of one label, the likelihood is

    Π_i (c r_i)^{wrong_i} (1 - c r_i)^{right_i},                                  once the label was found right,
    (1 - e) Π_i (c r_i)^{wrong_i} (1 - c r_i)^{right_i} + e [all are wrong],      at the first look.

Which items are looked at depends on risks alone, which are known, so the choice may be ignored: no answer has to be
hidden or held out. The posterior of c and e on a grid gives the number of wrong labels left, and a person may stop when

    P(at most 5 % of all labels are wrong) >= 0.9.

Labels that a person gave count as right. See "When a review may stop" in docs/understand/model.md.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.special import ndtr

from handful.shapes import Bool, Float, Int

# Stop when at most this share of all labels is wrong, with this chance.
MOST_WRONG = 0.05
SURE_TO_STOP = 0.9
# c: how many times too small risks are. Its prior is normal in ln c, about no bias.
RISK_FACTORS = np.logspace(-1.5, 1.5, 31)
SPREAD_OF_FACTOR = 0.9
# e: the share of labels that are wrong as a whole, and its prior.
WRONG_GROUPS = np.array([0.003, 0.01, 0.02, 0.04, 0.08, 0.15, 0.3])
WRONG_GROUPS_PRIOR = np.array([0.1, 0.15, 0.2, 0.2, 0.2, 0.1, 0.05])
# No label is surer, and none more certainly wrong.
LEAST_RISK = 0.003
MOST_RISK = 0.95
# Items of one sheet have one label and are no independent evidence: they count as at most this many answers.
MOST_OF_A_SHEET = 2.0
# Mistakes of single items come in clumps of about this many: the variance of their number is as many times larger.
MISTAKES_TOGETHER = 6.0
# Risks of earlier batches are kept in bins between these, and count as at most this many answers in all.
RISK_BINS = np.array([0.0, 0.01, 0.03, 0.06, 0.12, 0.25, 0.5])
MOST_KEPT = 100.0
# An interval leaves out this share at either end.
TAIL = 0.05
# Numbers of wrong labels at which a distribution is computed, at most.
MOST_COUNTS = 200


class Estimate(NamedTuple):
    """A value with its 90 % interval."""

    value: float
    low: float
    high: float


class Look(NamedTuple):
    """Items of one label that a person looked at together.

    Attributes
    ----------
    risks, wrong : tuple
        The risk of each label, and whether it was wrong.
    is_first : bool
        Whether nobody had found the label right before.
    """

    risks: tuple[float, ...]
    wrong: tuple[bool, ...]
    is_first: bool

    @property
    def weight(self) -> float:
        """As how many answers each item counts."""
        return min(1.0, MOST_OF_A_SHEET / len(self.risks))


@dataclass(frozen=True)
class Calibration:
    """What answers taught about shown risks, for the next batch of the same catalogue.

    It counts as at most 100 answers, so a new batch that differs is believed after a few answers of its own.

    Attributes
    ----------
    rows : tuple of (float, float, float)
        Labels by their risk: the mean risk, how many a person looked at, and how many were wrong. A row of risk 0
        counts first looks at a label, and the labels that were wrong as a whole.

    Examples
    --------
    >>> sheet = Look((0.02, 0.02), (False, False), is_first=True)
    >>> Calibration().after([sheet, Look((0.4,), (True,), is_first=False)])
    Calibration(rows=((0.0, 1.0, 0.0), (0.02, 2.0, 0.0), (0.4, 1.0, 1.0)))
    """

    rows: tuple[tuple[float, float, float], ...] = ()

    def after(self, looks: Iterable[Look]) -> Calibration:
        """Return the calibration with more answers; the oldest fade."""
        looks = list(looks)
        new = [
            (max(risk, LEAST_RISK), look.weight, look.weight * wrong)
            for look in looks
            for risk, wrong in zip(look.risks, look.wrong, strict=True)
        ]
        n_new = sum(n for _, n, _ in new)
        n_old = sum(n for risk, n, _ in self.rows if risk > 0)
        # Answers of this batch have room first; what is left of it is for earlier ones.
        keep_new = min(1.0, MOST_KEPT / n_new) if n_new else 1.0
        keep_old = min(1.0, (MOST_KEPT - keep_new * n_new) / n_old) if n_old else 1.0
        new += [(0.0, 1.0, chance_of_wrong_group(look)) for look in looks if look.is_first]
        scaled = [(risk, keep_old * n, keep_old * wrong) for risk, n, wrong in self.rows]
        scaled += [(risk, keep_new * n, keep_new * wrong) for risk, n, wrong in new]
        return Calibration(_binned(scaled))


def chance_of_wrong_group(look: Look) -> float:
    """Return the chance that a label was wrong as a whole at the first look, by its risks; 0 if one item was right."""
    if not all(look.wrong):
        return 0.0
    one_by_one = float(np.prod(np.clip(look.risks, LEAST_RISK, MOST_RISK)))
    usual = float(WRONG_GROUPS @ WRONG_GROUPS_PRIOR / WRONG_GROUPS_PRIOR.sum())
    return usual / (usual + (1 - usual) * one_by_one)


def _binned(rows: Sequence[tuple[float, float, float]]) -> tuple[tuple[float, float, float], ...]:
    """Add up the rows of each bin of risks."""
    risks, n_labels, n_wrong = np.array(rows).reshape(-1, 3).T
    of_bin = np.searchsorted(RISK_BINS, risks)
    found = []
    for place in np.unique(of_bin[n_labels > 0]).tolist():
        here = of_bin == place
        total = n_labels[here].sum()
        mean = (risks[here] * n_labels[here]).sum() / total
        found.append((float(mean), float(total), float(n_wrong[here].sum())))
    return tuple(found)


def from_risk(risk: Float[np.ndarray, "item"]) -> Float[np.ndarray, "factor item"]:
    """`c r` for every c of the grid."""
    return np.asarray(np.minimum(RISK_FACTORS[:, None] * risk.clip(LEAST_RISK, 1), MOST_RISK))


class Unseen(NamedTuple):
    """Labels that no person gave: the risk of each, and the group of those that nobody has looked at, else -1."""

    risk: Float[np.ndarray, "item"]
    group: Int[np.ndarray, "item"]

    def of(self, some: Bool[np.ndarray, "item"]) -> Unseen:
        """Return some of the items."""
        return Unseen(self.risk[some], self.group[some])


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
        log_weights = log_factor[:, None] + np.log(WRONG_GROUPS_PRIOR)
        for risk, n, wrong in calibration.rows:
            chance = from_risk(np.array([risk])) if risk > 0 else WRONG_GROUPS
            log_weights = log_weights + wrong * np.log(chance) + (n - wrong) * np.log(1 - chance)
        for look in looks:
            log_weights = log_weights + _log_likelihood(look)
        weights = np.exp(log_weights - log_weights.max())
        self.weights: Float[np.ndarray, "factor share"] = weights / weights.sum()

    def wrong(self, unseen: Unseen) -> Float[np.ndarray, "item"]:
        """Return the chance that each label is wrong."""
        alone = self.weights.sum(1) @ from_risk(unseen.risk)
        together = np.einsum("fs,fi->si", self.weights, 1 - from_risk(unseen.risk))
        return np.asarray(np.where(unseen.group >= 0, 1 - (1 - WRONG_GROUPS) @ together, alone))

    def at_most(self, unseen: Unseen, counts: Int[np.ndarray, "n"]) -> Float[np.ndarray, "n"]:
        """Return the chances that at most `counts` of these labels are wrong; counts are 0, s, 2 s, … for a step s."""
        chance = from_risk(unseen.risk)
        mean = chance.sum(-1)[:, None]
        deviation = np.sqrt(MISTAKES_TOGETHER * (chance * (1 - chance)).sum(-1))[:, None]
        step = int(counts[1] - counts[0]) if len(counts) > 1 else 1
        # Half an item more: the number of wrong labels is whole, the normal distribution is not.
        alone = ndtr((counts + 0.5 - mean) / np.maximum(deviation, 1e-9))
        sizes = np.bincount(unseen.group[unseen.group >= 0])
        together = _sums(sizes[sizes > 0], step, len(counts))
        below = np.zeros(len(counts))
        for of_share, of_groups in zip(self.weights.T, together, strict=True):
            below += np.convolve(of_groups, of_share @ alone)[: len(counts)]
        return below

    def may_stop(self, unseen: Unseen, n_labels: int, sure: float = SURE_TO_STOP, n_wrong: int = 0) -> bool:
        """Whether at most 5 % of all labels are wrong, with this chance; `n_wrong` others are wrong for certain."""
        allowed = int(MOST_WRONG * n_labels) - n_wrong
        if allowed < 0:
            return False
        if len(unseen.risk) <= allowed:
            return True
        return bool(self.at_most(unseen, _counts(allowed))[-1] >= sure)

    def right(self, unseen: Unseen, n_labels: int, n_wrong: int = 0) -> Estimate:
        """Return the share of all labels that is right; `n_wrong` others are wrong for certain."""
        n_open = len(unseen.risk)
        if n_open == 0:
            share = 1 - n_wrong / n_labels
            return Estimate(share, share, share)
        counts = _counts(n_open)
        below = self.at_most(unseen, counts)
        fewest = float(counts[min(int(np.searchsorted(below, TAIL)), len(counts) - 1)])
        most = float(counts[min(int(np.searchsorted(below, 1 - TAIL)), len(counts) - 1)])
        value = float(self.wrong(unseen).sum())
        low = 1 - (n_wrong + min(max(most, value), n_open)) / n_labels
        high = 1 - (n_wrong + min(fewest, value)) / n_labels
        return Estimate(1 - (n_wrong + value) / n_labels, low, high)


def _counts(last: int) -> Int[np.ndarray, "n"]:
    """Return 0, s, 2 s, … up to `last` or at most s before it, with the smallest step s that keeps them few."""
    step = max(1, -(-last // MOST_COUNTS))
    return np.arange(last % step, last + 1, step)


def _sums(sizes: Int[np.ndarray, "group"], step: int, n: int) -> Float[np.ndarray, "share n"]:
    """Return the distribution of the items of wrong groups, in steps, for every e; more than n steps are left out."""
    found = np.zeros((len(WRONG_GROUPS), n))
    found[:, 0] = 1
    for size in sizes.tolist():
        moved = np.zeros_like(found)
        by = -(-size // step)
        if by < n:
            moved[:, by:] = found[:, : n - by]
        found = (1 - WRONG_GROUPS)[:, None] * found + WRONG_GROUPS[:, None] * moved
    return found


def _log_likelihood(look: Look) -> Float[np.ndarray, "factor share"]:
    """Return the log-likelihood of a look for every c and e."""
    chance = from_risk(np.array(look.risks))
    wrong = np.array(look.wrong)
    alone = look.weight * np.where(wrong, np.log(chance), np.log(1 - chance)).sum(-1)[:, None]
    if not look.is_first:
        return np.broadcast_to(alone, (len(RISK_FACTORS), len(WRONG_GROUPS)))
    not_together = np.log(1 - WRONG_GROUPS) + alone
    return np.asarray(np.logaddexp(not_together, np.log(WRONG_GROUPS)) if wrong.all() else not_together)
