"""Which classes are present, and labels given that: spike and slab on the scores of a head.

**Model.** h of K classes are present, `P(z) = P(h) / C(K, h)` with `P(h) ∝ 1/h`, with equal shares. With `E_nk` the
likelihood of item n under class k, its likelihood is

    L_n(z) = (1-ε) Σ_k z_k E_nk / h + ε mean_k E_nk + u_n.

ε is the share of strays, items of classes that are otherwise absent, and u_n what an item of no class would have. The
head is wrong about a class once, for all its items, so the evidence is `Π_n L_n^τ` with the design effect
`1/τ = 1 + (M/h - 1) ρ/(1+ρ)`, `ρ = c/s`: errors of the items of one class are correlated by c after one example. Labels
are `q_nk ∝ E_nk [(1-ε) z_k/h + ε/K]`, averaged over z.

**Inference.** Relaxed Gibbs sampling: a class gets the weight `z_k = σ((log-odds given the others + noise) / T)`, noise
being logistic. In each sweep a random half of the classes has its turn first: of two classes that share their items,
both would leave, or both would come. A few chains run side by side as one array; the states of the last sweeps are
averaged over. On small problems this agrees with the sum over all sets of classes (a test). The noise of a class is a
smooth function of its own position (`class_noise`), so answers are deterministic, do not depend on the order of the
classes, and change little when the data do.

**Each item alone.** Two other hypotheses lead to labels without z: all K classes have a share (`h = K`, far from the
sets that the chains visit), and sizes that are too uneven for equal shares. The first is compared with the chains by
its evidence, theirs being `E ln P(z) Π L_n^τ` plus the entropy of z. The second by the counts of the classes present
under a Dirichlet with α = 1 and with α = 10.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.special import entr, expit, gammaln, ndtr

Floats = npt.NDArray[np.floating]

# ε, the share of strays.
STRAYS = 0.02
# c: correlation of the errors of two items of a class that has one example, as odds.
SHARED_ERROR = 0.2
# α of uneven and of even batches, and the log-odds of an uneven batch before anything is seen.
UNEVEN, EVEN, UNEVEN_LOG_ODDS = 1.0, 10.0, -1.0
# Chains, their sweeps, and the first one that counts; T, the temperature of the relaxation.
CHAINS, SWEEPS, FIRST_COUNTED, SOFTNESS = 8, 6, 2, 0.5
# A class that holds less than this, when each item is labelled alone, is absent but for strays; per 75 items of a
# large batch.
LEAST_ALONE, OF_ITEMS = 0.02, 75
# Waves of the noise of a class, and their frequency for positions of unit spread.
WAVES, FREQUENCY = 8, 30.0
# Largest log of a likelihood ratio of one item.
LARGEST = 25.0


class Roll(NamedTuple):
    """What the chains say about the classes that could be present."""

    columns: npt.NDArray[np.intp]  # these classes
    states: Floats  # [state, column], z/h
    chances: Floats  # [column], that the class is present
    alone: float  # chance that each item is better labelled alone

    @classmethod
    def nobody(cls) -> Roll:
        """Before any class is called."""
        nothing = np.empty(0)
        return cls(np.empty(0, np.intp), nothing[None], nothing, 1.0)

    @property
    def found(self) -> float:
        """Expected number of classes present."""
        return float(self.chances.sum())


def shared_error(shots: Floats) -> Floats:
    """`ρ/(1+ρ)`, the correlation of the errors of two items of a class."""
    odds = SHARED_ERROR / shots.astype(np.float64)
    return np.asarray(odds / (1 + odds))


def class_noise(positions: Floats) -> Floats:
    """Return logistic noise [number, class]: sums of cosines of the class's own position [class, dim].

    Examples
    --------
    >>> means = np.random.default_rng(0).normal(size=(50, 8))
    >>> found = class_noise(means)
    >>> bool(np.allclose(found, class_noise(3 * means + 1), atol=1e-3))  # no origin, no scale
    True
    """
    centred = positions - positions.mean(0, dtype=np.float64)
    centred /= max(float(np.sqrt((centred**2).sum(1).mean())), np.finfo(np.float64).tiny)
    rng, n = np.random.default_rng(0), (CHAINS + 1) * SWEEPS
    total = np.zeros((len(positions), n))
    for _ in range(WAVES):
        directions = FREQUENCY * rng.normal(size=(positions.shape[1], n))
        total += np.cos(centred @ directions + 2 * np.pi * rng.random(n))
    chance = ndtr(total * np.sqrt(2 / WAVES)).clip(1e-6, 1 - 1e-6)
    return np.ascontiguousarray(np.log(chance / (1 - chance)).T, dtype=np.float32)


def call_roll(near: Floats, noise: Floats, shots: Floats, n_classes: int, unknown: Floats | None = None) -> Roll:
    """Say which classes are present in one batch.

    Parameters
    ----------
    near
        [item, class], the chance of each class when the item is labelled alone.
    noise
        `class_noise` of the classes.
    shots
        [class], numbers of examples.
    n_classes
        K without the classes that are ruled out.
    unknown
        [item], u; none if every item has a class.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> means = rng.normal(size=(20, 8))
    >>> points = means[np.repeat([3, 7], 10)] + 0.7 * rng.normal(size=(20, 8))
    >>> near = np.exp(points @ means.T - (means**2).sum(1) / 2)
    >>> found = call_roll(near / near.sum(1, keepdims=True), class_noise(means), np.full(20, 5.0), 20)
    >>> found.columns[found.chances > 0.5].tolist()
    [3, 7]
    """
    if len(near) == 1:
        # No set of classes is likelier than another but by its chances: the exact answer is that of the item alone.
        return Roll(near.argmax(1), np.ones((1, 1), np.float32), near.max(1).astype(np.float64), 1.0)
    held = near.sum(0, dtype=np.float64)
    columns = np.flatnonzero(held >= min(LEAST_ALONE * max(len(near) / OF_ITEMS, 1.0), float(held.max())))
    held, shared = held[columns], shared_error(shots[columns])
    noise = noise[:, columns].reshape(SWEEPS, CHAINS + 1, len(columns))
    rows = (1 - STRAYS) * near[:, columns].T + STRAYS / n_classes
    rows = np.ascontiguousarray(rows if unknown is None else rows + unknown, dtype=np.float32)
    start = expit(4 * np.log(np.maximum(held, 1e-30)))
    start[held >= held.max()] = 1.0  # so that there is one
    at = _Chains(rows, shared, n_classes, np.repeat(start[None], CHAINS, 0))
    states, chances, few, uneven = [], np.zeros(len(columns)), 0.0, 0.0
    for sweep in range(SWEEPS):
        first = noise[sweep, CHAINS] > 0
        for turn in (np.flatnonzero(first), np.flatnonzero(~first)):
            log_odds, chance = at.log_odds(turn)
            at.here[:, turn] = expit((log_odds + noise[sweep, :CHAINS, turn].T) / SOFTNESS)
            if sweep >= FIRST_COUNTED:
                chances[turn] += chance
        if sweep >= FIRST_COUNTED:
            states.append(at.here / at.found)
            evidence, bayes = at.evidence()
            few += evidence / (SWEEPS - FIRST_COUNTED)
            uneven += bayes / (SWEEPS - FIRST_COUNTED)
    chances /= SWEEPS - FIRST_COUNTED
    few += float((entr(chances) + entr(1 - chances)).sum())
    alone = 1 - (1 - uneven) * float(expit(few))
    return Roll(columns, np.concatenate(states).astype(np.float32), chances, alone)


def labels_of(near: Floats, roll: Roll, n_classes: int) -> tuple[Floats, Floats]:
    """Return `q_nk` if there are few classes, and the part of it that is due to strays."""
    own = near[:, roll.columns]
    each = 1 / (((1 - STRAYS) * own + STRAYS / n_classes) @ roll.states.T)
    strays = near * (STRAYS / n_classes * each.mean(1))[:, None]
    q = strays.copy()
    q[:, roll.columns] += (1 - STRAYS) * own * (each @ roll.states / len(roll.states))
    total = q.sum(1, keepdims=True)
    return q / total, strays / total


def likelihoods_of(near: Floats, roll: Roll, n_classes: int) -> Floats:
    """Mean of `L_n(z)` over z, [item]."""
    mean = roll.states.mean(0)
    return np.asarray((1 - STRAYS) * near[:, roll.columns] @ mean + STRAYS / n_classes)


def chance_of_any(roll: Roll, shots: Floats, absent: Floats, counts: Floats, n_items: float) -> npt.NDArray[np.float64]:
    """Chance that each class has an item, from `Σ_n ln(1 - chance)`; items of one class are wrong together.

    `absent` has these sums for classes that are absent but for strays, and for items labelled alone, [2, class].
    """
    shares = counts / max(float(counts.sum()), np.finfo(np.float64).tiny)
    typical = float(np.exp(-(shares * np.log(np.maximum(shares, 1e-300))).sum()))
    temper = [1 / (1 + max(n_items / max(h, 1) - 1, 0) * shared_error(shots)) for h in (roll.found, typical)]
    here = np.zeros(len(counts))
    here[roll.columns] = roll.chances
    few = 1 - (1 - here) * np.exp(temper[0] * absent[0])
    return np.asarray((1 - roll.alone) * few - roll.alone * np.expm1(temper[1] * absent[1]))


class _Chains:
    """The states of all chains, [chain, class], and what they say about a class given all others."""

    def __init__(self, rows: Floats, shared: Floats, n_classes: int, here: Floats) -> None:
        self.rows, self.shared, self.n_classes, self.here = rows, shared, n_classes, here
        self.n_items = rows.shape[1]

    @property
    def found(self) -> Floats:
        """Number h of classes present, for each chain."""
        return np.asarray(np.maximum(self.here.sum(1, keepdims=True), 1))

    @property
    def temper(self) -> Floats:
        """τ of each chain."""
        found = self.found
        return np.asarray(
            1 / (1 + np.maximum(self.n_items / found - 1, 0) * (self.here @ self.shared)[:, None] / found)
        )

    def log_odds(self, turn: npt.NDArray[np.intp]) -> tuple[Floats, Floats]:
        """Log-odds of some classes given the others, and the mean chance that they hold an item."""
        found, mine, own = self.found, self.here[:, turn], self.rows[turn]
        total = (self.here.astype(np.float32) @ self.rows)[:, None]
        ratio = own * -mine[:, :, None].astype(np.float32)
        ratio += total
        np.maximum(ratio, np.float32(np.exp(-LARGEST)) * total, out=ratio)
        np.divide(own, ratio, out=ratio)
        ratio += 1
        evidence = np.log(ratio, out=ratio).sum(2, dtype=np.float64)
        others = np.maximum(found - mine, 1)
        log_odds = np.log(others / np.maximum(self.n_classes - others, 0.5))
        log_odds += self.temper * (evidence - self.n_items * np.log1p(1 / others))
        return log_odds, (expit(log_odds) * -np.expm1(-evidence)).mean(0)

    def evidence(self) -> tuple[float, float]:
        """Log-evidence against all K classes, and the chance of an uneven batch; means over the chains."""
        total, found, temper = self.here.astype(np.float32) @ self.rows, self.found[:, 0], self.temper[:, 0]
        gain = np.log(self.n_classes / found[:, None] * total).sum(1)
        sets = gammaln(self.n_classes + 1) - gammaln(found + 1) - gammaln(self.n_classes - found + 1)
        few = temper * gain - sets - np.log(found / self.n_classes)
        counts = (1 / total) @ self.rows.T  # of a class, if it were present for certain
        bayes = self._log_dirichlet(counts, UNEVEN) - self._log_dirichlet(counts, EVEN)
        return float(few.mean()), float(expit(temper * bayes + UNEVEN_LOG_ODDS).mean())

    def _log_dirichlet(self, counts: Floats, alpha: float) -> Floats:
        """Log-probability of the counts of the classes that are here, whose shares are Dirichlet(α)."""
        found = self.here.sum(1)
        each = (self.here * (gammaln(counts + alpha) - gammaln(alpha))).sum(1)
        return np.asarray(each + gammaln(alpha * found) - gammaln(alpha * found + self.n_items))
