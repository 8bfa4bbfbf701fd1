"""Which classes are present, and labels given that: a sum over sets of classes.

**Model.** A set z of h of the K classes is present, `P(z) = P(h) / C(K, h)` with `P(h) ∝ 1/h`, with equal shares. With
`E_nk` the chance of class k for item n alone, the item has the likelihood

    L_n(z) = (1-φ) Σ_k z_k E_nk / h + φ/K.

φ is the share of strays, items of classes that are otherwise absent. Errors of the head are shared by all items of a
class, so the likelihood of m items is `Π_n L_n^τ` with the design effect
`1/τ = 1 + max(m/h_0 - 1, 0) Σ_k π_k c/(s_k + c)`: errors of two items of a class with one example are correlated, with
odds of c. Labels are `q_nk ∝ E_nk [(1-φ) z_k/h + φ/K]`, averaged over z.

**Start.** Shares π of the classes by expectation maximisation that takes half an item off each count (the simple
control, `sparse_em`). Classes that keep a share are the first set, and h_0 is how many classes the shares occupy. One τ
holds for all sets of a batch, so `P(z) Π_n L_n^τ` is a distribution.

**Sum.** 2^K sets are too many, and few of them matter. Gibbs sampling finds these: chains go through the classes, and
each comes or goes by its log-odds given the others. A set of probability P is visited at least once in N visits with
chance `1 - exp(-N P)`, nearly. So each set that was visited counts once, with P divided by this chance (the estimator
of Horvitz and Thompson),

    w(z) = P(z) / (1 - exp(-N P(z))),    P(z) = P*(z) / Z,    Σ w(z) = 1,

where the last equation gives Z. Likely sets have their own probability, however long a chain stayed there; unlikely
ones, of which only some were met, count 1/N each. The noise of a class is that of its rank by expected count, always
the same.

**Each item alone.** Items are labelled alone if one of two other hypotheses holds: all K classes are present, or the
shares of the classes present are uneven. The first is weighed against the sets by Z. The second by the counts of the
classes present under a Dirichlet distribution with α = 1 and with α = 10.
"""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

import numpy as np
from scipy.special import entr, expit, gammaln, logsumexp

from handful.model.arrays import Bools, ClassColumns, Doubles, Floats, Ints, chosen_columns, put_columns, take_columns
from handful.model.content import odd_factors
from handful.model.limits import LEAST_NEAR, LINEAR, SMALL_CHANCE, SMALLEST_CHANCE, TOTAL_STEPS
from handful.model.settings import DEFAULT, Settings


class NearClasses(NamedTuple):
    """Classes that some item of a batch may have; what the items have of all others is known as a sum."""

    classes: ClassColumns  # [batch, near], in increasing order
    rest: Floats  # [batch, item], Σ exp(S + t) over the others
    whole: Floats  # [batch, item, class], exp(S + t) of all classes

    def places(self, classes: ClassColumns) -> ClassColumns:
        """Return where some of these classes are among them, [batch, column]."""
        if len(classes) == 1:
            return np.asarray(np.searchsorted(self.classes[0], classes[0])[None])
        width = self.classes.shape[1]
        # Batches one after the other, each beyond the last class of the one before.
        first = (int(self.classes.max()) + 1) * np.arange(len(classes))[:, None]
        found = np.searchsorted((self.classes + first).ravel(), (classes + first).ravel())
        return np.asarray(found.reshape(classes.shape) - width * np.arange(len(classes))[:, None])

    @property
    def n_others(self) -> int:
        """Number of the other classes."""
        return int(self.whole.shape[-1] - self.classes.shape[-1])

    def rest_of_powers(self, power: Floats, some: Bools) -> Floats:
        """`Σ exp(S + t)^p` over the others, [some], for the powers p [batch, item] of some of the items."""
        batch, item = np.nonzero(some)
        p = power[batch, item, None]
        near = np.take_along_axis(self.whole[batch, item], self.classes[batch], -1)
        return np.asarray((self.whole[batch, item] ** p).sum(-1) - (near**p).sum(-1))


class AloneLabels(NamedTuple):
    """Chance of each class when an item is labelled alone, `E_nk = a_n exp(S_nk + t_k)`.

    Classes are those of the catalogue, or the near ones of each batch.
    """

    likelihood: Floats  # [batch, item, class], exp(S + t), not normalised
    scale: Floats  # [batch, item], a
    near: NearClasses | None = None  # None if these are all classes

    @classmethod
    def of(cls, likelihood: Floats, near: NearClasses | None = None) -> AloneLabels:
        """Normalise likelihoods; they stay as they are."""
        total = likelihood @ np.ones(likelihood.shape[-1], likelihood.dtype)
        return cls(likelihood, 1 / (total if near is None else total + near.rest), near)

    def of_near(self) -> AloneLabels:
        """Return the same of the near classes: those with an expected count of at least `LEAST_NEAR`.

        They hold the best class of every item, and every class that a table could list.

        Examples
        --------
        >>> alone = AloneLabels.of(np.array([[[8.0, 0.0, 1.9999, 0.0001], [5.0, 0.0, 5.0, 0.0002]]]))
        >>> near = alone.of_near()
        >>> near.near.classes.tolist(), near.of_columns(np.array([[2]])).round(3)[0, :, 0].tolist()
        ([[0, 2]], [0.2, 0.5])
        """
        counts = (self.scale[:, None] @ self.likelihood)[:, 0]
        kept = counts >= np.minimum(LEAST_NEAR, counts.max(-1, keepdims=True))
        near = self._of_classes(kept)
        lost = near.likelihood.max(-1) * self.scale < LEAST_NEAR  # only these can have a best class that is not kept
        if lost.any():
            batch, item = np.nonzero(lost)
            kept[batch, self.likelihood[batch, item].argmax(-1)] = True
            near = self._of_classes(kept)
        return near

    def _of_classes(self, kept: Bools) -> AloneLabels:
        """Return the same of some of all classes, [batch, class]."""
        classes = chosen_columns(kept)
        likelihood = np.ascontiguousarray(take_columns(self.likelihood, classes))
        total = likelihood @ np.ones(likelihood.shape[-1], likelihood.dtype)
        near = NearClasses(classes, np.maximum(1 / self.scale - total, 0), self.likelihood)
        return AloneLabels(likelihood, self.scale, near)

    def classes_at(self, places: ClassColumns) -> ClassColumns:
        """Return which classes of the catalogue these are, [batch, column]."""
        return places if self.near is None else np.take_along_axis(self.near.classes, places, -1)

    def places(self, classes: ClassColumns) -> ClassColumns:
        """Return where some classes of the catalogue are, [batch, column]."""
        return classes if self.near is None else self.near.places(classes)

    def sums(self, weights: Floats) -> Doubles:
        """Σ_n w_n E_nk for weights [batch, item], [batch, class]."""
        each = (weights * self.scale).astype(self.likelihood.dtype)
        return np.asarray((each[:, None] @ self.likelihood)[:, 0], np.float64)

    def of_columns(self, columns: ClassColumns) -> Floats:
        """Return the chances of some classes of the catalogue, [batch, item, column]."""
        return np.asarray(take_columns(self.likelihood, self.places(columns)) * self.scale[..., None])

    def with_columns(self, factors: Floats, columns: ClassColumns, values: Floats) -> Floats:
        """Return the chances of all classes times a factor for each item, and `values` for some of the classes."""
        q = self.likelihood * (factors * self.scale).astype(self.likelihood.dtype)[..., None]
        put_columns(q, self.places(columns), values)
        return np.asarray(q)


class Presence(NamedTuple):
    """Sets of classes that may be present, of those that could be."""

    columns: ClassColumns  # [batch, column], candidate classes: those that could be present
    states: Floats  # [batch, set, column], z/h, or sizes of classes, see `class_sizes`
    weights: Floats  # [batch, set], P(z) of the sum, one in all
    presence: Floats  # [batch, column], chance that the class is in the set
    alone_weight: Floats  # [batch], chance that each item is better labelled alone
    valid: Bools  # [batch, column]; false for columns that only another batch of the stack needs
    n_typical: Floats  # [batch], h_0, classes that the shares occupy
    shared: Floats  # [batch], mean correlation of the errors of two items of a class

    @property
    def n_present(self) -> Floats:
        """Expected number of classes present, [batch]."""
        return np.asarray(self.presence.sum(-1))


def error_correlation(shots: Floats, settings: Settings) -> Floats:
    """`c/(s + c)`, the correlation of the errors of two items of a class with s examples."""
    odds = settings.shared_error / shots.astype(np.float64)
    return np.asarray(odds / (1 + odds))


def occupied(shares: Floats) -> Floats:
    """Return how many classes shares [..., class] occupy: `exp(-Σ_k π_k ln π_k)`.

    Examples
    --------
    >>> occupied(np.array([0.25, 0.25, 0.25, 0.25, 0.0])).round(6).tolist()
    4.0
    """
    return np.asarray(np.exp(entr(shares).sum(-1)))


def temper_of(n_items: float | int, n_classes: Floats, shared: Floats) -> Floats:
    """τ of items in so many classes, with `1/τ = 1 + max(m/h - 1, 0) c` and c the correlation of their errors."""
    return np.asarray(1 / (1 + np.maximum(n_items / n_classes - 1, 0) * shared))


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
        best = alone.classes_at(alone.likelihood.argmax(-1))
        presence = alone.of_columns(best)[:, 0].astype(np.float64)
        one = np.ones((len(best), 1, 1), np.float32)
        single = np.ones(len(best))
        shared = error_correlation(shots, settings)[best][:, 0]
        return Presence(best, one, one[:, 0], presence, single, best >= 0, single, shared)
    counts = alone.sums(np.ones_like(alone.scale))
    # A class with a smaller expected count is absent but for strays; in proportion to the items of a large batch.
    least = settings.candidate_count * max(n_items / settings.candidate_items, 1.0)
    enough = counts >= np.minimum(least, counts.max(-1, keepdims=True))
    places = np.argsort(np.where(enough, -counts, 0.0), axis=-1, kind="stable")[:, : int(enough.sum(-1).max())]
    valid = take_columns(enough, places)
    columns = alone.classes_at(places)
    order = alone.scale.argsort(-1)  # sums of single precision are the same in whatever order the items came
    own = np.take_along_axis(alone.of_columns(columns), order[..., None], -2) * valid[:, None]
    shares = sparse_shares(own, settings)
    n_typical = occupied(shares)
    shared = (shares * error_correlation(shots, settings)[columns]).sum(-1)
    temper = temper_of(n_items, n_typical, shared)
    sets = SetsOfClasses(np.ascontiguousarray(own.swapaxes(1, 2), np.float32), temper, n_classes, settings)
    visited = sets.search(shares > 0, valid)
    log_weights = sets.log_weights(visited)
    some, log_weights = distinct_sets(visited, log_weights)
    weights, log_total = weights_of_met(log_weights, visited.shape[1])
    states = np.asarray(some / some.sum(-1, keepdims=True), np.float32)
    presence = np.minimum(
        (weights[:, None] @ some.astype(np.float64))[:, 0], 1.0
    )  # weights add up to one but for rounding
    return Presence(
        columns,
        states,
        weights.astype(np.float32),
        presence,
        chance_of_alone(sets, some, weights, log_total),
        valid,
        n_typical,
        shared,
    )


def chance_of_alone(sets: SetsOfClasses, some: Bools, weights: Doubles, log_total: Doubles) -> Doubles:
    """Chance that each item is better labelled alone, [batch]: `1 - σ(ln Z + ln K) (1 - mean chance of uneven shares)`.

    `some` are sets [batch, set, class] with their weights, and `log_total` is ln Z.
    """
    few = expit(log_total + np.log(sets.n_classes))  # against all K classes, of P(K) = 1/K and L_n = 1/K
    uneven = (weights * sets.unevenness(some)).sum(-1)
    return np.asarray(1 - (1 - uneven) * few)


class SetsOfClasses(NamedTuple):
    """What sets of classes of a batch are compared by; a set is a row of true and false, [batch, set, class]."""

    rows: Floats  # [batch, class, item], E_nk
    temper: Floats  # [batch], τ
    n_classes: Ints  # [batch], K
    settings: Settings

    def log_weights(self, sets: Bools) -> Doubles:
        """`ln P(z) + τ Σ_n ln(K L_n(z))`, [batch, set]."""
        n_classes = self.n_classes[:, None].astype(np.float64)
        evidence = np.log(self._likelihood(sets)).sum(-1, dtype=np.float64) + self.rows.shape[-1] * np.log(n_classes)
        each_h = np.arange(1, sets.shape[-1] + 1)
        log_sets = gammaln(n_classes + 1) - gammaln(each_h + 1) - gammaln(n_classes - each_h + 1) + np.log(each_h)
        return np.asarray(self.temper[:, None] * evidence - np.take_along_axis(log_sets, sets.sum(-1) - 1, -1))

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
        # Items of all batches lie one after the other, so that steps of few items are not slower than of many.
        here = np.repeat(first[None], settings.chains, 0)  # [chain, batch, class]
        visited = []
        # With strays in each row, `L_n(z)` is the mean of the rows of z, times 1 - φ.
        strays = settings.strays / (1 - settings.strays) / self.n_classes[:, None, None].astype(np.float32)
        rows = self.rows + strays
        of_class = np.ascontiguousarray(rows.swapaxes(0, 1))
        least = np.broadcast_to(strays[..., 0], of_class[0].shape).copy()
        others = np.maximum(np.arange(width + 1), 1)
        more = -n_items * np.log1p(1 / others)  # of equal shares of one class more
        of_set = np.log(others / np.maximum(self.n_classes[:, None] - others, 0.5))
        prior = self.temper[:, None] * more + of_set  # [batch, others]
        batch = np.arange(len(rows))
        ones = np.ones(n_items, np.float32)
        rest = np.empty((settings.chains, *of_class[0].shape), np.float32)
        for sweep in range(settings.sweeps):
            total = np.ascontiguousarray((here.swapaxes(0, 1).astype(np.float32) @ rows).swapaxes(0, 1))
            h = here.sum(-1)
            for k in order[:, sweep].tolist():
                own = of_class[k]
                was = here[..., k]
                np.multiply(was[..., None].astype(np.float32), own, out=rest)
                np.subtract(total, rest, out=rest)
                np.maximum(rest, least, out=rest)
                np.divide(own, rest, out=rest)
                rest += 1
                evidence = np.log(rest, out=rest) @ ones
                n_others = h - was
                log_odds = self.temper * evidence + prior[batch, n_others]
                now = ((log_odds + noise[k, sweep, :, None] > 0) | (n_others == 0)) & valid[:, k]
                if (now != was).any():
                    total += (now.astype(np.float32) - was)[..., None] * own
                    h = n_others + now
                    here[..., k] = now
            visited.append(here.swapaxes(0, 1).copy())
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
    keys = visited.astype(np.uint64) @ odd_factors(visited.shape[-1])
    order = np.argsort(keys, axis=-1, kind="stable")
    ordered = np.take_along_axis(keys, order, -1)
    again = np.zeros(ordered.shape, bool)
    again[:, 1:] = ordered[:, 1:] == ordered[:, :-1]
    logs = np.where(again, -np.inf, np.take_along_axis(log_weights, order, -1))
    likeliest = np.argsort(-logs, axis=-1, kind="stable")[:, : int((~again).sum(-1).max())]
    rows = np.take_along_axis(order, likeliest, -1)
    return np.take_along_axis(visited, rows[..., None], 1), np.take_along_axis(logs, likeliest, -1)


def weights_of_met(log_weights: Doubles, visits: int) -> tuple[Doubles, Doubles]:
    """`w = P / (1 - exp(-N P))`, `P = P*/Z`, of different sets [batch, set], with Z so that they sum to one; and ln Z.

    Examples
    --------
    Two sets that were met a thousand times have their own weights; of many, each counts the same:

    >>> weights, log_total = weights_of_met(np.log([[3.0, 1.0]]), 1000)
    >>> weights.round(6).tolist(), np.exp(log_total).round(6).tolist()
    ([[0.75, 0.25]], [4.0])
    >>> weights_of_met(np.linspace([0.0], [1e-3], 64, axis=1), 64)[0].round(3)[0, [0, -1]].tolist()
    [0.016, 0.016]
    """
    log_total = logsumexp(log_weights, axis=-1, keepdims=True)
    met = np.isfinite(log_weights)
    for _ in range(TOTAL_STEPS):
        p = np.exp(log_weights - log_total)
        expected = visits * p
        weights = np.where(expected > SMALL_CHANCE, p / -np.expm1(-np.maximum(expected, SMALL_CHANCE)), 1 / visits)
        weights *= met
        total = weights.sum(-1, keepdims=True)
        log_total = log_total + np.log(total)
        if (np.abs(total - 1) < SMALLEST_CHANCE).all():
            break
    return np.asarray(weights / total), np.asarray(log_total[..., 0])


@cache
def _noise(n_classes: int, settings: Settings) -> tuple[Floats, Floats]:
    """Logistic noise [class, sweep, chain], and turns of the classes [class, sweep]; the same for any more classes."""
    rng = np.random.default_rng(settings.seed)
    drawn = rng.random((n_classes, settings.sweeps, settings.chains + 1)).clip(SMALL_CHANCE, 1 - SMALL_CHANCE)
    noise = np.log(drawn[..., 1:] / (1 - drawn[..., 1:]))
    return noise, drawn[..., 0]


class JointLabels(NamedTuple):
    """`q_nk` if few classes are present."""

    columns: Floats  # [batch, item, column], of the candidate classes
    others: Floats  # [batch, item], of all others, divided by the chances of the item alone


def joint_labels(alone: AloneLabels, present: Presence, n_classes: Ints, settings: Settings = DEFAULT) -> JointLabels:
    """`q_nk ∝ E_nk [(1-φ) z_k/h + φ/K]`, averaged over z."""
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
    own = alone.of_columns(alone.classes_at(some))
    chances = [(own * factor[..., None]).clip(max=1 - SMALL_CHANCE) for factor in factors]
    exact = [np.log1p(-chance).sum(-2, dtype=np.float64) for chance in chances]
    put_columns(absent, some, np.stack(exact, -2))
    return absent


def presence_probability(present: Presence, absent: Floats, n_items: float, near: NearClasses | None = None) -> Doubles:
    """Chance that each class has an item, [batch, class], from `log_absence` of `n_items` items, tempered by τ."""
    temper = temper_of(n_items, present.n_typical, present.shared)[:, None]
    here = np.zeros(absent[:, 0].shape)
    put_columns(here, present.columns if near is None else near.places(present.columns), present.presence)
    few = 1 - (1 - here) * np.exp(temper * absent[:, 0])
    alone = present.alone_weight[:, None]
    return np.asarray((1 - alone) * few - alone * np.expm1(temper * absent[:, 1]))
