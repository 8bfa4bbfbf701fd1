"""Which classes are present, and labels given that: a sum over sets of classes.

**Model.** A set z of h of the K classes is present, `P(z) = P(h) / C(K, h)` with `P(h) ∝ 1/h`, with equal shares. With
`E_nk` the likelihood of item n under class k, its likelihood is

    L_n(z) = (1-ϵ) Σ_k z_k E_nk / h + ϵ mean_k E_nk.

ϵ is the share of strays, items of classes that are otherwise absent. The head is wrong about a class once, for all its
items, so the evidence is `Π_n L_n^τ` with the design effect `1/τ = 1 + (m/h - 1) ρ/(1+ρ)`, `ρ = c/s`: errors of the
items of one class are correlated by c after one example. Labels are `q_nk ∝ E_nk [(1-ϵ) z_k/h + ϵ/K]`, averaged over z.

**Start.** Shares of the classes by expectation maximisation that takes half an item off each count (the simple control,
`sparse_em`). Classes that keep a share are the first set, and as many classes as their shares occupy give τ: one τ for
all sets of a batch, so `P(z) Π_n L_n^τ` is a distribution.

**Sum.** 2^K sets are too many, and few of them matter. Gibbs sampling finds these: chains go through the classes, and
each comes or goes by its log-odds given the others. A set of probability P is among N visits with chance
`1 - (1 - P)^N`. So each set that was met counts once, by its probability over that chance (the estimator of Horvitz and
Thompson),

    w(z) = P(z) / (1 - exp(-N P(z))),    P(z) = P*(z) / Z,    Σ w(z) = 1,

where the last equation gives Z. Likely sets are weighed by their own probability, however long a chain stayed there;
unlikely ones, of which only some were met, by how often they were. The noise of a class is that of its rank by expected
count, always the same.

**Each item alone.** Two other hypotheses lead to labels without z: all K classes have a share, and sizes too uneven for
equal shares. The first is weighed against the sets by `E ln P*(z) + H(z)`, with H as if classes came and went by
themselves. The second by the counts of the classes present under a Dirichlet with α = 1 and with α = 10.
"""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

import numpy as np
from scipy.special import entr, expit, gammaln, logsumexp

from handful.model.arrays import Bools, ClassColumns, Doubles, Floats, Ints, chosen_columns, put_columns, take_columns
from handful.model.limits import LINEAR, SMALL_CHANCE, TOTAL_STEPS
from handful.model.settings import DEFAULT, Settings


class AloneLabels(NamedTuple):
    """Chance of each class when an item is labelled alone, `a_n E_nk`."""

    likelihood: Floats  # [batch, item, class], E
    scale: Floats  # [batch, item], a

    @classmethod
    def of(cls, likelihood: Floats) -> AloneLabels:
        """Normalise likelihoods; they stay as they are."""
        return cls(likelihood, 1 / (likelihood @ np.ones(likelihood.shape[-1], likelihood.dtype)))

    def sums(self, weights: Floats) -> Doubles:
        """Σ_n w_n a_n E_nk for weights [batch, item], [batch, class]."""
        each = (weights * self.scale).astype(self.likelihood.dtype)
        return np.asarray((each[:, None] @ self.likelihood)[:, 0], np.float64)

    def of_columns(self, columns: ClassColumns) -> Floats:
        """Return the chances of some classes, [batch, item, column]."""
        return np.asarray(take_columns(self.likelihood, columns) * self.scale[..., None])

    def with_columns(self, factors: Floats, columns: ClassColumns, values: Floats) -> Floats:
        """Return the chances of all classes times a factor for each item, and `values` for some of the classes."""
        q = self.likelihood * (factors * self.scale).astype(self.likelihood.dtype)[..., None]
        put_columns(q, columns, values)
        return np.asarray(q)


class Presence(NamedTuple):
    """Sets of classes that may be present, of those that could be."""

    columns: ClassColumns  # [batch, column], candidate classes: those that could be present
    states: Floats  # [batch, set, column], z/h
    weights: Floats  # [batch, set], P(z) of the sum, one in all
    presence: Floats  # [batch, column], chance that the class is in the set
    alone_weight: Floats  # [batch], chance that each item is better labelled alone
    valid: Bools  # [batch, column]; false for columns that only another batch of the stack needs

    @property
    def n_present(self) -> Floats:
        """Expected number of classes present, [batch]."""
        return np.asarray(self.presence.sum(-1))


def error_correlation(shots: Floats, settings: Settings) -> Floats:
    """`ρ/(1+ρ)`, the correlation of the errors of two items of a class."""
    odds = settings.shared_error / shots.astype(np.float64)
    return np.asarray(odds / (1 + odds))


def sparse_shares(own: Floats, settings: Settings = DEFAULT) -> Floats:
    """`π_k ∝ max(Σ_n r_nk - 1/2, 0)`, `r_nk ∝ p_nk π_k`: shares of classes [batch, class] from p [batch, item, class].

    If no class has half an item, shares are those of the items alone.

    Examples
    --------
    >>> sparse_shares(np.array([[[0.9, 0.1], [0.8, 0.2], [0.4, 0.6]]])).tolist()
    [[1.0, 0.0]]
    """
    alone: Floats = own.mean(-2, dtype=np.float64)
    alone /= alone.sum(-1, keepdims=True)
    shares = alone
    for _ in range(settings.share_steps):
        likelihood = own @ shares[..., None].astype(own.dtype)
        each = 1 / np.maximum(likelihood, np.finfo(own.dtype).tiny)
        counts = (each.swapaxes(-1, -2) @ own)[..., 0, :] * shares - settings.taken_off
        counts = np.maximum(counts, 0.0)
        total = counts.sum(-1, keepdims=True)
        shares = np.where(total > 0, counts / np.where(total > 0, total, 1), alone)
    return np.asarray(shares)


def find_sets(alone: AloneLabels, shots: Floats, n_classes: Ints, settings: Settings = DEFAULT) -> Presence:
    """Say which classes are present in each batch.

    Parameters
    ----------
    alone
        The chance of each class when the item is labelled alone.
    shots
        [class], numbers of examples.
    n_classes
        [batch], K without the classes that are ruled out.
    settings
        Numbers of the model.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> means = rng.normal(size=(20, 8))
    >>> points = means[np.repeat([3, 7], 10)] + 0.7 * rng.normal(size=(20, 8))
    >>> alone = AloneLabels.of(np.exp(points @ means.T - (means**2).sum(1) / 2)[None])
    >>> found = find_sets(alone, np.full(20, 5.0), np.array([20]))
    >>> sorted(found.columns[found.presence > 0.5].tolist())
    [3, 7]
    """
    n_items = alone.scale.shape[1]
    if n_items == 1:
        # No set of classes is likelier than another but by its chances: the exact answer is that of the item alone.
        best = alone.likelihood.argmax(-1)
        presence = alone.of_columns(best)[:, 0].astype(np.float64)
        one = np.ones((len(best), 1, 1), np.float32)
        return Presence(best, one, one[:, 0], presence, np.ones(len(best)), best >= 0)
    counts = alone.sums(np.ones_like(alone.scale))
    # A class with a smaller expected count is absent but for strays; in proportion to the items of a large batch.
    least = settings.candidate_count * max(n_items / settings.candidate_items, 1.0)
    enough = counts >= np.minimum(least, counts.max(-1, keepdims=True))
    columns = np.argsort(np.where(enough, -counts, 0.0), axis=-1, kind="stable")[:, : int(enough.sum(-1).max())]
    valid = take_columns(enough, columns)
    order = alone.scale.argsort(-1)  # sums of single precision are the same in whatever order the items came
    own = np.take_along_axis(alone.of_columns(columns), order[..., None], -2) * valid[:, None]
    shares = sparse_shares(own, settings)
    shared = error_correlation(shots, settings)[columns]
    n_typical = np.exp(entr(shares).sum(-1))
    temper = 1 / (1 + np.maximum(n_items / n_typical - 1, 0) * (shares * shared).sum(-1))
    sets = SetsOfClasses(np.ascontiguousarray(own.swapaxes(1, 2), np.float32), temper, n_classes, settings)
    visited = sets.search(shares > 0, valid)
    log_weights = sets.log_weights(visited)
    some, log_weights = distinct_sets(visited, log_weights)
    weights = weights_of_met(log_weights, visited.shape[1])
    states = np.asarray(some / some.sum(-1, keepdims=True), np.float32)
    presence = np.minimum(
        (weights[:, None] @ some.astype(np.float64))[:, 0], 1.0
    )  # weights add up to one but for rounding
    entropy = (entr(presence) + entr(1 - presence)).sum(-1)
    of_sets = (weights * np.where(weights > 0, log_weights, 0.0)).sum(-1) + entropy
    few = expit(of_sets + np.log(n_classes))  # against all K classes, P(K) = 1/K
    uneven = (weights * sets.unevenness(some)).sum(-1)
    return Presence(columns, states, weights.astype(np.float32), presence, 1 - (1 - uneven) * few, valid)


class SetsOfClasses(NamedTuple):
    """What sets of classes of a batch are compared by; a set is a row of true and false, [batch, set, class]."""

    rows: Floats  # [batch, class, item], E
    temper: Floats  # [batch], τ
    n_classes: Ints  # [batch], K
    settings: Settings

    def log_weights(self, sets: Bools) -> Doubles:
        """`ln P(z) + τ Σ_n ln(K L_n(z))`, [batch, set]."""
        h = sets.sum(-1).astype(np.float64)
        n_classes = self.n_classes[:, None].astype(np.float64)
        likelihood = n_classes[..., None] * self._likelihood(sets)
        evidence = np.log(likelihood, dtype=np.float64).sum(-1)
        log_sets = gammaln(n_classes + 1) - gammaln(h + 1) - gammaln(n_classes - h + 1)
        return np.asarray(self.temper[:, None] * evidence - log_sets - np.log(h))

    def _likelihood(self, sets: Bools) -> Floats:
        """`L_n(z)`, [batch, set, item]."""
        h = sets.sum(-1, keepdims=True)
        within = (sets.astype(np.float32) @ self.rows) / h
        strays = self.settings.strays / self.n_classes[:, None, None]
        return np.asarray((1 - self.settings.strays) * within + strays, np.float32)

    def unevenness(self, sets: Bools) -> Floats:
        """Chance that the sizes of the classes of a set are uneven, [batch, set]: Dirichlet with α = 1 against 10."""
        settings = self.settings
        h = sets.sum(-1).astype(np.float64)
        each = (1 / self._likelihood(sets)) @ self.rows.swapaxes(1, 2)
        counts = sets * each * ((1 - settings.strays) / h)[..., None]
        total = counts.sum(-1)
        alphas = np.array([1.0, settings.even])[:, None, None]
        of_all = gammaln(alphas * h) - gammaln(alphas * h + total)
        of_each = gammaln(counts + 1) - gammaln(counts + settings.even) + gammaln(settings.even)
        bayes = of_all[0] - of_all[1] + (sets * of_each).sum(-1)
        return np.asarray(expit(self.temper[:, None] * bayes + settings.uneven_log_odds))

    def search(self, first: Bools, valid: Bools) -> Bools:
        """Return the sets at which chains of Gibbs sampling are after each sweep that counts, [batch, visit, class].

        The log-odds of a class are `τ Σ_n ln L_n(with it) / L_n(without) + ln h/(K - h)`, for h others.
        """
        settings = self.settings
        _, width, n_items = self.rows.shape
        noise, turns = _noise(width, settings)
        order = np.argsort(turns, axis=0, kind="stable")
        here = np.repeat(first[:, None], settings.chains, 1)  # [batch, chain, class]
        visited = []
        # With strays in each row, `L_n(z)` is the mean of the rows of z, times 1 - ϵ.
        strays = settings.strays / (1 - settings.strays) / self.n_classes[:, None, None].astype(np.float32)
        rows = self.rows + strays
        others = np.maximum(np.arange(width + 1), 1)
        more = -n_items * np.log1p(1 / others)  # of equal shares of one class more
        of_set = np.log(others / np.maximum(self.n_classes[:, None] - others, 0.5))
        prior = self.temper[:, None] * more + of_set  # [batch, others]
        batch = np.arange(len(rows))[:, None]
        temper = self.temper[:, None]
        ones = np.ones(n_items, np.float32)
        for sweep in range(settings.sweeps):
            total = here.astype(np.float32) @ rows  # [batch, chain, item]
            h = here.sum(-1)
            for k in order[:, sweep].tolist():
                own = rows[:, None, k]
                was = here[..., k]
                rest = total - was[..., None] * own
                np.maximum(rest, strays, out=rest)
                np.divide(own, rest, out=rest)
                rest += 1
                evidence = np.log(rest, out=rest) @ ones
                n_others = h - was
                log_odds = temper * evidence + prior[batch, n_others]
                now = ((log_odds + noise[k, sweep] > 0) | (n_others == 0)) & valid[:, None, k]
                if (now != was).any():
                    total += (now.astype(np.float32) - was)[..., None] * own
                    h = n_others + now
                    here[..., k] = now
            visited.append(here.copy())
        return np.concatenate(visited[settings.warm_up :], 1)


def distinct_sets(visited: Bools, log_weights: Doubles) -> tuple[Bools, Doubles]:
    """Return each set once, the likeliest first; a batch that has fewer is filled up with sets of weight zero.

    Examples
    --------
    >>> sets = np.array([[[True, False], [True, True], [True, False]]])
    >>> some, logs = distinct_sets(sets, np.array([[0.0, 1.0, 0.0]]))
    >>> some[0].tolist(), logs[0].tolist()
    ([[True, True], [True, False]], [1.0, 0.0])
    """
    kept = []
    for of_batch, logs in zip(np.packbits(visited, axis=-1), log_weights, strict=True):
        whole = np.ascontiguousarray(of_batch)
        _, once = np.unique(whole.view(np.dtype((np.void, whole.shape[1])))[:, 0], return_index=True)
        kept.append(once[np.argsort(-logs[once], kind="stable")])
    width = max(len(once) for once in kept)
    rows = np.stack([np.resize(once, width) for once in kept])
    logs = np.take_along_axis(log_weights, rows, 1)
    logs[np.arange(width) >= np.array([[len(once)] for once in kept])] = -np.inf
    return np.take_along_axis(visited, rows[..., None], 1), logs


def weights_of_met(log_weights: Doubles, visits: int) -> Doubles:
    """`w = P / (1 - exp(-N P))`, `P = P*/Z`, of different sets [batch, set], with Z so that they sum to one.

    Examples
    --------
    Two sets that were met a thousand times have their own weights; of many, each counts the same:

    >>> weights_of_met(np.log([[3.0, 1.0]]), 1000).round(6).tolist()
    [[0.75, 0.25]]
    >>> weights_of_met(np.linspace([0.0], [1e-3], 64, axis=1), 64).round(3)[0, [0, -1]].tolist()
    [0.016, 0.016]
    """
    log_total = logsumexp(log_weights, axis=-1, keepdims=True)
    for _ in range(TOTAL_STEPS):
        p = np.exp(log_weights - log_total)
        expected = visits * p
        weights = np.where(expected > SMALL_CHANCE, p / -np.expm1(-np.maximum(expected, SMALL_CHANCE)), 1 / visits)
        weights = np.where(np.isfinite(log_weights), weights, 0.0)
        total = weights.sum(-1, keepdims=True)
        log_total = log_total + np.log(total)
    return np.asarray(weights / total)


@cache
def _noise(n_classes: int, settings: Settings) -> tuple[Floats, Floats]:
    """Logistic noise [class, sweep, chain], and turns of the classes [class, sweep]; the same for any more classes."""
    rng = np.random.default_rng(settings.seed)
    drawn = rng.random((n_classes, settings.sweeps, settings.chains + 1)).clip(SMALL_CHANCE, 1 - SMALL_CHANCE)
    noise = np.log(drawn[..., 1:] / (1 - drawn[..., 1:]))
    return noise, drawn[..., 0]


class JointLabels(NamedTuple):
    """`q_nk` if few classes are present."""

    of_columns: Floats  # [batch, item, column], of the candidate classes
    of_others: Floats  # [batch, item], of all others, by the chances of the item alone


def joint_labels(alone: AloneLabels, present: Presence, n_classes: Ints, settings: Settings = DEFAULT) -> JointLabels:
    """`q_nk ∝ E_nk [(1-ϵ) z_k/h + ϵ/K]`, averaged over z."""
    own = alone.of_columns(present.columns)
    stray = settings.strays / n_classes[:, None].astype(own.dtype)
    likelihood = ((1 - settings.strays) * own + stray[..., None]) @ present.states.swapaxes(-1, -2)
    each = present.weights[:, None] / likelihood
    others = stray * each.sum(-1)
    q = own * (others[..., None] + (1 - settings.strays) * (each @ present.states))
    total = q.sum(-1) + others * (1 - own.sum(-1))
    return JointLabels(q / total[..., None], others / total)


def log_absence(alone: AloneLabels, others: Floats) -> Doubles:
    """Σ_n ln(1 - chance of the class), as a stray and alone, [batch, 2, class]; `others` is that of `JointLabels`."""
    factors = [others, np.ones_like(others)]
    absent = -np.stack([alone.sums(factor) for factor in factors], -2)
    some = chosen_columns(absent[:, 1] <= -LINEAR)  # of others `ln(1 - x) = -x`
    own = alone.of_columns(some)
    chances = [(own * factor[..., None]).clip(max=1 - SMALL_CHANCE) for factor in factors]
    exact = [np.log1p(-chance).sum(-2, dtype=np.float64) for chance in chances]
    put_columns(absent, some, np.stack(exact, -2))
    return absent


def presence_probability(
    present: Presence,
    shots: Floats,
    absent: Floats,
    counts: Floats,
    n_items: float,
    settings: Settings = DEFAULT,
) -> Doubles:
    """Chance that each class has an item, [batch, class], from `log_absence`; items of one class are wrong together."""
    shares = counts / np.maximum(counts.sum(-1, keepdims=True), np.finfo(np.float64).tiny)
    typical = np.exp(entr(shares).sum(-1))
    shared = error_correlation(shots, settings)
    each = np.maximum(np.stack([present.n_present, typical], -1), 1)
    temper = 1 / (1 + np.maximum(n_items / each - 1, 0)[..., None] * shared)
    here = np.zeros(counts.shape)
    put_columns(here, present.columns, present.presence)
    few = 1 - (1 - here) * np.exp(temper[:, 0] * absent[:, 0])
    alone = present.alone_weight[:, None]
    return np.asarray((1 - alone) * few - alone * np.expm1(temper[:, 1] * absent[:, 1]))
