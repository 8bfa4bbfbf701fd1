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
averaged over. A conditional takes τ from the state before the turn, so the chains sample no joint distribution that is
written above. On twelve small problems they are near a sum over all sets of classes with one τ for all of them: a test
keeps the difference of labels below 0.02 on average, and that of presence below 0.08 (root mean square). The noise of a
class is a smooth function of its own chances (`class_noise`), so answers are deterministic, depend neither on the order
of the classes nor on the coordinates, and change little when the data do.

**Each item alone.** Two other hypotheses lead to labels without z: all K classes have a share (`h = K`, far from the
sets that the chains visit), and sizes that are too uneven for equal shares. The first is compared with the chains by
its evidence, theirs being `E ln P(z) Π L_n^τ` plus the entropy of z. The second by the counts of the classes present
under a Dirichlet with α = 1 and with α = 10.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cache
from typing import NamedTuple

import numpy as np
from scipy.special import entr, expit, gammaln

from handful.engine.arrays import Bools, ClassColumns, Doubles, Floats, Ints, chosen_columns, put_columns, take_columns
from handful.engine.limits import LEAST_COUNT, LEAST_STATE, LINEAR, MOST_LOG_GAIN, SMALL_CHANCE
from handful.engine.settings import DEFAULT, Settings

# What an item has left of its likelihood without a class, at least.
LEAST_RATIO = np.float32(np.exp(-MOST_LOG_GAIN))


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
    """Samples of the classes present, of those that could be."""

    columns: ClassColumns  # [batch, column], candidate classes: those that could be present
    states: Floats  # [batch, state, column], z/h
    presence: Floats  # [batch, column], chance that the class is present
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


def class_noise(own: Floats, settings: Settings = DEFAULT) -> tuple[Floats, Floats]:
    """Return logistic noise of each class, [sweep, ..., class, chain], and how far it comes first, [sweep, ..., class].

    Both are waves of `ln Σ_n p_nk^r`, r = 1/2, 1, 2, in one random direction per sweep. Chains have evenly spaced
    phases: their mean is as exact as that of three times as many with independent noise.

    Parameters
    ----------
    own
        p [..., item, class], the chances when an item is labelled alone.

    Examples
    --------
    >>> own = np.random.default_rng(0).dirichlet(np.full(50, 0.1), size=75)
    >>> bool(np.allclose(class_noise(own)[0][:, 3:], class_noise(own[::-1, 3:])[0], atol=1e-6))
    True
    """
    sweeps = settings.sweeps
    counts = np.stack([of.sum(-2, dtype=np.float64) for of in (np.sqrt(own), own, own**2)], -1)
    directions, starts = _waves(2 * sweeps, counts.shape[-1])
    phases = np.einsum("...r,sr->s...", np.log(counts + settings.noise_floor), settings.noise_frequency * directions)
    phases += starts.reshape(-1, *(1,) * (counts.ndim - 1))
    of_chains = phases[:sweeps, ..., None] + np.arange(settings.chains) / settings.chains
    chance = np.abs(2 * (of_chains - np.floor(of_chains)) - 1).clip(settings.noise_tail, 1 - settings.noise_tail)
    first = np.abs(2 * (phases[sweeps:] % 1) - 1)
    # Few classes have a part of each turn: none jumps from one turn to the other when its chances change by rounding.
    return np.log(chance / (1 - chance)), (0.5 + settings.turn_steepness * (first - 0.5)).clip(0, 1)


@cache
def _waves(n_waves: int, n_numbers: int) -> tuple[Floats, Floats]:
    """Return random directions [wave, number] and phases [wave], always the same."""
    rng = np.random.default_rng(0)
    return rng.normal(size=(n_waves, n_numbers)), rng.random(n_waves)


def sample_presence(
    alone: AloneLabels,
    shots: Floats,
    n_classes: Ints,
    unknown: Floats | None = None,
    settings: Settings = DEFAULT,
) -> Presence:
    """Say which classes are present in each batch.

    Parameters
    ----------
    alone
        The chance of each class when the item is labelled alone.
    shots
        [class], numbers of examples.
    n_classes
        [batch], K without the classes that are ruled out.
    unknown
        [batch, item], u; none if every item has a class.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> means = rng.normal(size=(20, 8))
    >>> points = means[np.repeat([3, 7], 10)] + 0.7 * rng.normal(size=(20, 8))
    >>> alone = AloneLabels.of(np.exp(points @ means.T - (means**2).sum(1) / 2)[None])
    >>> samples = sample_presence(alone, np.full(20, 5.0), np.array([20]))
    >>> samples.columns[samples.presence > 0.5].tolist()
    [3, 7]
    """
    n_items = alone.scale.shape[1]
    if n_items == 1:
        # No set of classes is likelier than another but by its chances: the exact answer is that of the item alone.
        best = alone.likelihood.argmax(-1)
        presence = alone.of_columns(best)[:, 0].astype(np.float64)
        one = np.ones((len(best), 1, 1), np.float32)
        return Presence(best, one, presence, np.ones(len(best)), best >= 0)
    counts = alone.sums(np.ones_like(alone.scale))
    most = counts.max(-1, keepdims=True)
    # A class with a smaller expected count is absent but for strays; in proportion to the items of a large batch.
    least = settings.candidate_count * max(n_items / settings.candidate_items, 1.0)
    enough = counts >= np.minimum(least, most)
    columns = chosen_columns(enough)
    valid = take_columns(enough, columns)
    order = alone.scale.argsort(-1)  # sums of single precision are the same in whatever order the items came
    own = np.take_along_axis(alone.of_columns(columns), order[..., None], -2)
    counts = own.sum(-2, dtype=np.float64)  # to the last digit: the largest one starts alone
    start = expit(settings.start_steepness * np.log(np.maximum(counts, LEAST_COUNT)))
    start[counts >= counts.max(-1, keepdims=True)] = 1.0  # so that there is one
    start *= valid
    of_none = np.zeros_like(alone.scale) if unknown is None else np.take_along_axis(unknown, order, -1)
    rows = (1 - settings.strays) * own + settings.strays / n_classes[:, None, None] + of_none[..., None]
    noise, first = class_noise(own, settings)
    shared = error_correlation(shots, settings)[columns]
    n_states = settings.chains * (settings.sweeps - settings.warm_up)
    states = np.zeros((len(rows), n_states, columns.shape[1]), np.float32)
    presence = np.zeros(columns.shape)
    alone_weight = np.zeros(len(rows))
    # Batches with about as many columns go together.
    sizes = valid.sum(-1)
    powers = np.ceil(np.log2(sizes))
    for power in np.unique(powers):
        some = np.flatnonzero(powers == power)
        size = int(sizes[some].max())
        chains = _Chains(
            rows[some, :, :size], shared[some, :size], n_classes[some], start[some, :size], of_none[some], settings
        )
        visited, chance = chains.sweep(noise[:, some, :size], first[:, some, :size], valid[some, :size])
        few, uneven = chains.evidence(visited)
        few = few + (entr(chance) + entr(1 - chance)).sum(-1)
        states[some, :, :size] = visited / np.maximum(visited.sum(-1, keepdims=True), 1)
        presence[some, :size] = chance
        alone_weight[some] = 1 - (1 - uneven) * expit(few)
    return Presence(columns, states, presence, alone_weight, valid)


def class_sizes(
    labels: Callable[[], Iterable[AloneLabels]],
    present: Presence,
    shots: Floats,
    n_classes: int,
    settings: Settings = DEFAULT,
) -> Presence | None:
    """Class sizes `π_k = Σ_n r_nk / n`, `r_nk ∝ E_nk π_k`, of one batch, or None if `present` says as much.

    Two steps of expectation maximisation: with equal shares, and with the shares that this gives. The second raises
    the log-likelihood by at least `n KL(π, π')`, with π' the shares before. The sizes count if they describe the items
    better than the classes present and than equal shares, by more than one nat for each class that has a size of its
    own. Gains are tempered: items of one class are wrong together, and then sizes that are not there would be learned.
    """
    few = np.full(len(shots), settings.strays / n_classes)
    few[present.columns[0]] += (1 - settings.strays) * present.states[0].mean(0)
    shares = np.full(len(few), 1 / n_classes)
    for _ in range(2):
        before = shares
        counts = np.zeros(len(few))
        log_likelihood = np.zeros(2)
        n_items = 0
        both = np.stack([before, few]).T.astype(np.float32)
        for alone in labels():
            likely = alone.likelihood @ both * alone.scale[..., None]
            log_likelihood += np.log(likely.astype(np.float64)).sum((0, 1))
            counts += alone.sums(1 / likely[..., 0])[0] * before
            n_items += likely.shape[1]
        shares = counts / n_items
    own = np.flatnonzero(counts >= settings.sized_count)  # others are absent but for strays
    gained = log_likelihood[0] + float((counts[own] * np.log(shares[own] / before[own])).sum())
    gained -= max(log_likelihood[1], -n_items * np.log(n_classes))
    n_own = float(np.exp(entr(shares).sum()))
    shared = float((shares * error_correlation(shots, settings)).sum())
    temper = 1 / (1 + max(n_items / n_own - 1, 0) * shared)
    if temper * gained <= n_own:
        return None
    states = (shares[own] / shares[own].sum()).astype(np.float32)
    presence = -np.expm1(-counts[own])
    return Presence(own[None], states[None, None], presence[None], np.zeros(1), np.ones((1, len(own)), bool))


class JointLabels(NamedTuple):
    """`q_nk` if few classes are present."""

    of_columns: Floats  # [batch, item, column], of the candidate classes
    of_others: Floats  # [batch, item], of all others, by the chances of the item alone


def joint_labels(alone: AloneLabels, present: Presence, n_classes: Ints, settings: Settings = DEFAULT) -> JointLabels:
    """`q_nk ∝ E_nk [(1-ϵ) z_k/h + ϵ/K]`, averaged over z."""
    own = alone.of_columns(present.columns)
    stray = settings.strays / n_classes[:, None].astype(own.dtype)
    each = 1 / (((1 - settings.strays) * own + stray[..., None]) @ present.states.swapaxes(-1, -2))
    others = stray * each.mean(-1)
    q = own * (others[..., None] + (1 - settings.strays) / each.shape[-1] * (each @ present.states))
    total = q.sum(-1) + others * (1 - own.sum(-1))
    return JointLabels(q / total[..., None], others / total)


def mean_likelihood(alone: AloneLabels, present: Presence, n_classes: Ints, settings: Settings = DEFAULT) -> Floats:
    """Mean of `L_n(z)` over z, [batch, item]."""
    own = alone.of_columns(present.columns) @ present.states.mean(-2)[..., None]
    return np.asarray((1 - settings.strays) * own[..., 0] + settings.strays / n_classes[:, None])


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


class _Chains:
    """The states of all chains, [batch, column, chain], and what they say about a class given all others.

    The last column is empty: turns of different length are filled up with it.
    """

    def __init__(
        self,
        rows: Floats,
        shared: Floats,
        n_classes: Ints,
        start: Floats,
        unknown: Floats,
        settings: Settings,
    ) -> None:
        self.settings = settings
        self.n_items, size = rows.shape[-2:]
        self.unknown = unknown[:, None].astype(np.float32)  # [batch, 1, item], u, which is part of the rows
        self.rows = np.zeros((len(rows), size + 1, self.n_items), np.float32)
        self.rows[:, :size] = rows.swapaxes(1, 2)
        self.here = np.zeros((len(rows), size + 1, settings.chains))
        self.here[:, :size] = start[..., None]
        # Sums over the columns of states, and of states times what errors share.
        self.weights = np.zeros((len(rows), 2, size + 1))
        self.weights[:, 0, :size] = 1
        self.weights[:, 1, :size] = shared
        self.n_classes = n_classes.reshape(-1, 1, 1).astype(np.float64)
        self.ones = np.ones(self.n_items, np.float32)

    def sweep(self, noise: Floats, first: Floats, valid: Bools) -> tuple[Floats, Floats]:
        """Return the states of the sweeps that count, [batch, state, column], and the chances of the classes."""
        n_batches, width, _ = self.here.shape
        size = width - 1
        n_chains = self.settings.chains
        n_sweeps = self.settings.sweeps
        first_counted = self.settings.warm_up
        parts = np.stack([first, 1 - first], 1) * valid  # [sweep, turn, batch, column]
        sizes = (parts > 0).sum(-1)
        order = np.argsort(parts == 0, axis=-1, kind="stable")
        parts = np.take_along_axis(parts, order, -1)[..., None]
        order = np.where(np.arange(size) < sizes[..., None], order, size) + width * np.arange(n_batches)[:, None]
        drawn = np.zeros((n_sweeps, n_batches * width, n_chains))
        drawn.reshape(n_sweeps, n_batches, width, n_chains)[:, :, :size] = noise
        presence = np.zeros((n_batches * width, n_chains))
        states = []
        here = self.here.reshape(-1, n_chains)
        rows = self.rows.reshape(-1, self.n_items)
        for sweep, most in enumerate(sizes.max(-1).tolist()):
            for half in range(2):
                turn = order[sweep, half, :, : most[half]]
                part = parts[sweep, half, :, : most[half]]
                before = here[turn]
                log_odds, evidence = self.log_odds(before, rows[turn])
                relaxed = _sigmoid((log_odds + drawn[sweep, turn]) / self.settings.softness)
                # Classes of equal counts leave together; none is gone for good, so that there is a class to come back.
                here[turn] = np.maximum(before + part * (relaxed - before), LEAST_STATE)
                self.here[:, size] = 0
                if sweep >= first_counted:
                    presence[turn] += part * (_sigmoid(log_odds) * -np.expm1(-evidence))
            states.append(self.here[:, :size].swapaxes(1, 2).copy())
        presence = presence.reshape(n_batches, width, n_chains)[:, :size].mean(-1) / (n_sweeps - first_counted)
        # Parts of turns add up to one but for rounding.
        return np.concatenate(states[first_counted:], 1), np.minimum(presence, 1)

    def log_odds(self, mine: Floats, own: Floats) -> tuple[Floats, Floats]:
        """Log-odds of some classes given the others, and the evidence for them, [batch, some, chain].

        `mine` and `own` are their states and rows, [batch, some, chain] and [batch, some, item].
        """
        n_present, temper = self._tempered(self.weights @ self.here)
        total = (self.here.astype(np.float32).swapaxes(1, 2) @ self.rows)[:, None]
        own = own[:, :, None]
        ratio = own * mine[..., None].astype(np.float32)
        np.subtract(total, ratio, out=ratio)
        np.maximum(ratio, LEAST_RATIO * total, out=ratio)
        np.divide(own, ratio, out=ratio)
        ratio += 1
        evidence = (np.log(ratio, out=ratio).reshape(-1, self.n_items) @ self.ones).reshape(mine.shape)
        others = np.maximum(n_present - mine, 1)
        log_odds = np.log(others / np.maximum(self.n_classes - others, 0.5))
        log_odds += temper * (evidence - self.n_items * np.log1p(1 / others))
        return log_odds, evidence

    def evidence(self, states: Floats) -> tuple[Floats, Floats]:
        """Log-evidence against all K classes, and the chance of an uneven batch, [batch]; means over the states.

        An item of no class is as likely under all K classes as under few of them, and counts for none.
        """
        rows = self.rows[:, :-1]
        sums = self.weights[..., :-1] @ states.swapaxes(1, 2)
        total = states.astype(np.float32) @ rows
        (n_present, temper) = (each[:, 0] for each in self._tempered(sums))
        n_classes = self.n_classes[:, 0]
        here = sums[:, 0]
        gain = (np.log(total) - np.log(1 / self.n_classes + self.unknown)).sum(-1) - self.n_items * np.log(n_present)
        sets = gammaln(n_classes + 1) - gammaln(n_present + 1) - gammaln(n_classes - n_present + 1)
        few = temper * gain - sets - np.log(n_present / n_classes)
        # Of a class, if it were present for certain; shares are Dirichlet with α = 1, against the α of even batches. Of
        # two whole numbers, Γ(n+a) Γ(b) / (Γ(a) Γ(n+b)) is 1 / Π_{a ≤ j < b} (1 + n/j).
        counts = (1 / total) @ np.maximum(rows - self.unknown, 0).swapaxes(1, 2)
        product = np.ones_like(states)
        for alpha in range(1, self.settings.even):
            product *= 1 + counts / np.float32(alpha)
        alphas = np.array([[[1]], [[self.settings.even]]]) * here
        of_all = gammaln(alphas) - gammaln(alphas + (states * counts).sum(-1))
        bayes = of_all[0] - of_all[1] - (states * np.log(product)).sum(-1)
        return few.mean(1), expit(temper * bayes + self.settings.uneven_log_odds).mean(1)

    def _tempered(self, sums: Floats) -> tuple[Floats, Floats]:
        """Return h and τ of each state, [batch, 1, state], from sums of states and of what errors share."""
        n_present = np.maximum(sums[:, :1], 1)
        return n_present, 1 / (1 + np.maximum(self.n_items / n_present - 1, 0) * sums[:, 1:] / n_present)


def _sigmoid(x: Floats) -> Floats:
    """`1/(1 + exp(-x))`, in fewer steps than that of SciPy."""
    return np.asarray(0.5 + 0.5 * np.tanh(0.5 * x))
