"""When a person may stop: how many labels that nobody has looked at are wrong, by every answer so far.

Each label has a risk r, the chance that it is wrong by what is shown: `1 - certainty`, or `1 - unknown` if the item is
rejected. Risks can be too small, and some mistakes no risk shows. With two numbers,

    P(wrong) = 1 - (1 - e) (1 - c r) :   c, how far risks are too small;  e, mistakes that no risk shows.

Every answer is evidence about both: the label was right or it was not, at a risk that is known. Which item is asked
depends on risks alone, so the choice may be ignored, and no answer has to be hidden or held out. Items that are
accepted together on a sheet have one label and are right or wrong together, so they count as fewer than they are.

The posterior of c and e on a grid gives the number of wrong labels left; a person may stop when

    P(at most 5 % of all labels are wrong) >= 0.9.

Labels that a person gave count as right. See "When a review may stop" in docs/understand/model.md.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.special import ndtr

from handful.shapes import Float

# Stop when at most this share of all labels is wrong, with this chance.
MOST_WRONG = 0.05
SURE_TO_STOP = 0.9
# c: how many times too small risks are. Its prior is normal in ln c, about no bias.
RISK_FACTORS = np.logspace(-1.5, 1.2, 28)
SPREAD_OF_FACTOR = 0.9
# e: share of mistakes that no risk shows, and its prior.
HIDDEN_SHARES = np.array([0.0, 0.005, 0.01, 0.02, 0.04, 0.08, 0.15])
HIDDEN_PRIOR = np.array([0.3, 0.15, 0.15, 0.15, 0.12, 0.08, 0.05])
# No risk is exactly zero or counts as certain.
LEAST_RISK = 0.001
MOST_RISK = 0.95
# Items of one sheet count as at most this many answers.
MOST_OF_A_SHEET = 8.0
# Risks of earlier batches are kept in bins between these, and count as at most this many answers in all.
RISK_BINS = np.array([0.003, 0.01, 0.03, 0.06, 0.12, 0.25, 0.5])
MOST_KEPT = 60.0
# An interval leaves out this share at either end.
TAIL = 0.05


class Estimate(NamedTuple):
    """A value with its 90 % interval."""

    value: float
    low: float
    high: float


class Evidence(NamedTuple):
    """Labels that a person looked at: the risk of each, whether it was wrong, and as how many answers it counts."""

    risk: float
    wrong: bool
    weight: float = 1.0


@dataclass(frozen=True)
class Calibration:
    """What answers taught about shown risks: the risk, how many labels had about this risk, and how many were wrong.

    The calibration after a batch is where the next batch of the catalogue starts. It counts as at most 60 answers, so a
    new batch that differs is believed after a few answers of its own.

    Attributes
    ----------
    rows : tuple of (float, float, float)
        Mean risk, number of labels and number of wrong ones, in increasing order of risks.

    Examples
    --------
    >>> calibration = Calibration().after([Evidence(0.02, False), Evidence(0.02, False), Evidence(0.4, True)])
    >>> calibration.rows
    ((0.02, 2.0, 0.0), (0.4, 1.0, 1.0))
    """

    rows: tuple[tuple[float, float, float], ...] = ()

    def after(self, evidence: Iterable[Evidence]) -> Calibration:
        """Return the calibration with more answers; the oldest fade."""
        new = [(one.risk, one.weight, one.weight * one.wrong) for one in evidence]
        n_new = sum(n for _, n, _ in new)
        n_old = sum(n for _, n, _ in self.rows)
        # Answers of this batch have room first; what is left of it is for earlier ones.
        keep_new = min(1.0, MOST_KEPT / n_new) if n_new else 1.0
        keep_old = min(1.0, (MOST_KEPT - keep_new * n_new) / n_old) if n_old else 1.0
        scaled = [(risk, keep_old * n, keep_old * wrong) for risk, n, wrong in self.rows]
        scaled += [(risk, keep_new * n, keep_new * wrong) for risk, n, wrong in new]
        risks, n_labels, n_wrong = np.array(scaled).reshape(-1, 3).T
        of_bin = np.searchsorted(RISK_BINS, risks)
        rows = []
        for place in np.unique(of_bin[n_labels > 0]).tolist():
            here = of_bin == place
            total = n_labels[here].sum()
            mean = (risks[here] * n_labels[here]).sum() / total
            rows.append((float(mean), float(total), float(n_wrong[here].sum())))
        return Calibration(tuple(rows))


def chance_wrong(risk: Float[np.ndarray, "item"]) -> Float[np.ndarray, "factor share item"]:
    """`1 - (1 - e) (1 - c r)` for every c and e of the grid."""
    from_risk = np.minimum(RISK_FACTORS[:, None, None] * risk, MOST_RISK)
    return np.asarray(1 - (1 - HIDDEN_SHARES[None, :, None]) * (1 - from_risk))


class Posterior:
    """Weights of c and e after what a person said.

    Parameters
    ----------
    calibration : Calibration
        What earlier batches taught.
    evidence : sequence of Evidence
        Labels of this batch that a person looked at.
    """

    def __init__(self, calibration: Calibration, evidence: Sequence[Evidence] = ()) -> None:
        log_factor = -0.5 * (np.log(RISK_FACTORS) / SPREAD_OF_FACTOR) ** 2
        log_weights = log_factor[:, None] + np.log(HIDDEN_PRIOR)
        rows = [(one.risk, one.weight, one.weight * one.wrong) for one in evidence] + list(calibration.rows)
        if rows:
            risk, n, wrong = np.array(rows).T
            chance = chance_wrong(risk.clip(LEAST_RISK, 1))
            log_weights = log_weights + (wrong * np.log(chance) + (n - wrong) * np.log(1 - chance)).sum(-1)
        weights = np.exp(log_weights - log_weights.max())
        self.weights: Float[np.ndarray, "factor share"] = weights / weights.sum()

    def wrong(self, risk: Float[np.ndarray, "item"]) -> Float[np.ndarray, "item"]:
        """Return the chance that each label with this risk is wrong."""
        return np.asarray(np.einsum("fs,fsi->i", self.weights, chance_wrong(risk.clip(LEAST_RISK, 1))))

    def n_wrong(self, risk: Float[np.ndarray, "item"], at_most: Float[np.ndarray, "n"]) -> Float[np.ndarray, "n"]:
        """Return the chances that at most so many of the labels with these risks are wrong."""
        chance = chance_wrong(risk.clip(LEAST_RISK, 1))
        mean = chance.sum(-1)[..., None]
        deviation = np.sqrt((chance * (1 - chance)).sum(-1))[..., None]
        # Half an item more: the number of wrong labels is whole, the normal distribution is not.
        below = ndtr((at_most + 0.5 - mean) / np.maximum(deviation, 1e-9))
        return np.asarray(np.einsum("fs,fsn->n", self.weights, below))

    def may_stop(self, risk: Float[np.ndarray, "item"], n_labels: int, sure: float = SURE_TO_STOP) -> bool:
        """Whether at most 5 % of all labels are wrong, with this chance; `risk` is that of those nobody answered."""
        if len(risk) <= MOST_WRONG * n_labels:
            return True
        return bool(self.n_wrong(risk, np.array([MOST_WRONG * n_labels]))[0] >= sure)

    def right(self, risk: Float[np.ndarray, "item"], n_labels: int) -> Estimate:
        """Return the share of all labels that is right."""
        if len(risk) == 0:
            return Estimate(1.0, 1.0, 1.0)
        counts = np.unique(np.linspace(0, len(risk), min(len(risk), 400) + 1).round())
        below = self.n_wrong(risk, counts)
        fewest = counts[min(int(np.searchsorted(below, TAIL)), len(counts) - 1)]
        most = counts[min(int(np.searchsorted(below, 1 - TAIL)), len(counts) - 1)]
        value = float(self.wrong(risk).sum())
        return Estimate(
            1 - value / n_labels, 1 - max(float(most), value) / n_labels, 1 - min(float(fewest), value) / n_labels
        )
