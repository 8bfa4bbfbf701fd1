"""One batch by hand: the formulas of docs/understand/model.md in plain NumPy, compared with handful's answer.

    python examples/by_hand.py

The script takes from handful what was fitted once: the head of a catalogue of 5 classes, and what it tells about
unknown items. From there on it uses nothing of the library. Numbers in brackets are those of the formulas on the page.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

import handful

Floats = npt.NDArray[np.floating]
Columns = npt.NDArray[np.intp]

# -- a catalogue of 5 classes with 5 examples each, and a batch of 12 items: two known classes, and a new one ----------

rng = np.random.default_rng(4)
centres = rng.normal(size=(6, 16))
examples = centres[:5].repeat(5, axis=0) + 0.7 * rng.normal(size=(25, 16))
batch = centres[[1] * 5 + [3] * 4 + [5] * 3] + 0.7 * rng.normal(size=(12, 16))
classifier = handful.BatchClassifier().fit(examples, np.arange(5).repeat(5))
catalogue = classifier.model_
W = catalogue.head.weights
b = catalogue.head.offsets
MU = catalogue.head.means
SHOTS = catalogue.head.mass
V = catalogue.head.spread or 0.0
UNLIKE: Any = catalogue.unknown_model
x = catalogue.points(batch)
M = len(x)
K = len(W)
S: Floats = np.asarray(x @ W.T + b, np.float64)  # (1)
SHARED = 0.4 / (SHOTS + 0.4)  # correlation of the errors of two items of a class
RHO = np.append(0.0, (np.arange(12) + 0.5) / 12)  # ρ, shares of unknown items that are summed over
STRAYS = 0.02  # φ
log_gamma = np.vectorize(math.lgamma)


def sigmoid(s: Floats) -> Floats:
    """`1 / (1 + exp(-s))`."""
    return np.asarray(1 / (1 + np.exp(-s)))


def softmax(s: Floats) -> Floats:
    """`exp(s_k) / Σ_j exp(s_j)`."""
    e = np.exp(s - s.max(-1, keepdims=True))
    return np.asarray(e / e.sum(-1, keepdims=True))


def offset() -> tuple[Floats, Floats]:
    """(3) What the classes do not explain of the mean item, as far as it exceeds twice what chance gives."""
    tilt = np.zeros(K)
    for _ in range(6):
        share = softmax(S + tilt).mean(0)
        r = x.mean(0) - share @ MU
        noise = 2 * V * (1 / M + (share**2 / SHOTS).sum())
        d = np.maximum(0, 1 - noise / (r @ r)) * r
        tilt = -W @ d
    return d, tilt


def sparse_shares(E: Floats) -> Floats:
    """(6b) Shares of the classes, by EM that takes half an item off each count."""
    share = E.mean(0)
    for _ in range(20):
        R = E * share
        counts = np.maximum((R / R.sum(1, keepdims=True)).sum(0) - 0.5, 0)
        share = counts / counts.sum()
    return np.asarray(share)


def evidence(E: Floats, sets: Columns, tau: float) -> Floats:
    """(5), (8) `ln P*(z) = ln P(z) + τ Σ ln(K L_n(z))` of each set, a row of zeros and ones."""
    h = sets.sum(1)
    L = (1 - STRAYS) * sets @ E.T / h[:, None] + STRAYS / K
    log_prior = -np.log(h) - (log_gamma(K + 1) - log_gamma(h + 1) - log_gamma(K - h + 1))
    return np.asarray(log_prior + tau * np.log(K * L).sum(1))


def visit(E: Floats, start: Columns, tau: float) -> Columns:
    """Return the sets at which 16 chains of Gibbs sampling are after each of the last four of six sweeps."""
    draws = np.random.default_rng(0).random((len(start), 6, 17)).clip(1e-6, 1 - 1e-6)
    noise = np.log(draws[..., 1:] / (1 - draws[..., 1:]))
    chains = np.repeat(start[None], 16, 0)
    sets = []
    for sweep in range(6):
        for k in draws[:, sweep, 0].argsort():
            for chain, z in enumerate(chains):
                z[k] = 0
                without = evidence(E, z[None], tau)[0] if z.any() else -np.inf
                z[k] = 1
                z[k] = evidence(E, z[None], tau)[0] - without + noise[k, sweep, chain] > 0
        if sweep >= 2:
            sets.append(chains.copy())
    return np.concatenate(sets)


def sets_of(E: Floats) -> tuple[Columns, Columns, Floats, float, float]:
    """(5) to (9) Candidate classes, sets, their weights, the chance that items are better alone, and τ."""
    count = E.sum(0)
    columns = np.argsort(-count)[: int((count >= min(0.3, count.max())).sum())]
    E = E[:, columns]
    share = sparse_shares(E)
    typical = math.exp(-(share[share > 0] * np.log(share[share > 0])).sum())
    tau = float(1 / (1 + max(M / typical - 1, 0) * (share @ SHARED[columns])))
    visits = visit(E, (share > 0).astype(np.intp), tau)
    sets = np.unique(visits, axis=0)
    log = evidence(E, sets, tau)
    Z = np.exp(log).sum()
    for _ in range(100):
        p = np.exp(log) / Z
        weights = p / (1 - np.exp(-len(visits) * p))  # (8)
        Z = Z * weights.sum()
    L = (1 - STRAYS) * sets @ E.T / sets.sum(1)[:, None] + STRAYS / K
    counts = sets * ((1 - STRAYS) / sets.sum(1)[:, None]) * ((1 / L) @ E)
    h = sets.sum(1)
    in_all = counts.sum(1)
    uneven = log_gamma(h) - log_gamma(h + in_all) + (sets * log_gamma(counts + 1)).sum(1)
    even = log_gamma(10 * h) - log_gamma(10 * h + in_all)
    even += (sets * (log_gamma(counts + 10) - math.lgamma(10))).sum(1)
    chance_uneven = weights @ sigmoid(tau * (uneven - even) - 1)
    few = sigmoid(np.log(Z * K))  # (9)
    return columns, sets, weights, float(1 - (1 - chance_uneven) * few), tau


def joint(E: Floats, columns: Columns, sets: Columns, weights: Floats) -> tuple[Floats, Floats]:
    """(7) Labels, averaged over the sets; and what strays make of each item."""
    states = sets / sets.sum(1, keepdims=True)
    inside = weights / (((1 - STRAYS) * E[:, columns] + STRAYS / K) @ states.T)
    present = np.zeros((M, K))
    present[:, columns] = (1 - STRAYS) * inside @ states
    strays = STRAYS / K * inside.sum(1, keepdims=True)
    q = E * (present + strays)
    return q / q.sum(1, keepdims=True), strays / q.sum(1, keepdims=True)


def gains_of_moved_means(R: Floats, d: Floats) -> Floats:
    """(10), (11) What scores gain by class means that move with their items, each item left out of its own score."""
    centred = MU - MU.mean(0)
    beta = ((W - W.mean(0)) * centred).sum(1) / (centred**2).sum(1)
    gains = np.zeros((M, K))
    for n in range(M):
        rest = np.arange(M) != n
        for k in range(K):
            a = 2 * R[rest, k]
            mass = SHOTS[k] + a.sum()
            moved = (SHOTS[k] * MU[k] + a @ (x - d)[rest]) / mass
            gain = (x[n] - d) @ (moved - MU[k]) - (moved @ moved - MU[k] @ MU[k]) / 2
            noise = V / 2 * (1 / SHOTS[k] - (SHOTS[k] + (a**2).sum()) / mass**2)
            gains[n, k] = 0.5 * beta[k] * (gain - noise)
    return gains


def pair_chances() -> Floats:
    """(13) The chance that two items share a class, by their cosine; one for an item with itself."""
    A, B = UNLIKE.pair_odds
    away = x - MU.mean(0)
    away = away / np.linalg.norm(away, axis=1, keepdims=True)
    odds = A + B * away @ away.T
    more = np.expm1(odds[~np.eye(M, dtype=bool)])
    chance = 0.1
    for _ in range(12):
        ratio = more / (1 + chance * more)
        step = chance + ratio.sum() / (ratio**2).sum()
        chance = float(np.clip(step, max(chance / 2, 1e-4), min((1 + chance) / 2, 0.9)))
    odds = odds + math.log(chance / (1 - chance))
    chances = sigmoid(odds)
    np.fill_diagonal(chances, 1)
    return chances


PAIRS = pair_chances()


def statistic(q: Floats, columns: Columns, d: Floats, tilt: Floats) -> tuple[Floats, Floats]:
    """(12), (13) t of the group of each item, from its distance and its score, and the size G of the group."""
    share = np.zeros((M, K))
    share[:, columns] = q[:, columns] / q[:, columns].sum(1, keepdims=True)
    alike = share @ share.T
    np.fill_diagonal(alike, 1)
    weights = PAIRS * alike
    weights = np.where(weights >= np.sort(weights, 1)[:, [-11]], weights, 0)
    weights = weights / weights.sum(1, keepdims=True)
    sizes = np.maximum(1 / (weights**2).sum(1), 1)
    centroid = weights @ x - d
    lengths = (MU**2).sum(1) - V / SHOTS
    around = weights @ ((x - d) ** 2).sum(1) - (centroid**2).sum(1)
    distance = (centroid**2).sum(1) + (share * (lengths - 2 * centroid @ MU.T)).sum(1)
    distance += V - (V / sizes + around) / sizes
    score = weights @ (share * (S + tilt)).sum(1)
    of_distance = (distance - UNLIKE.distance[0]) / UNLIKE.distance[1]
    return np.asarray(of_distance - (score - UNLIKE.score[0]) / UNLIKE.score[1]) / UNLIKE.scale, sizes


def times_as_far(q: Floats, columns: Columns, d: Floats) -> float:
    """(17) f: lower quartile of the squared distances, divided by that of left-out examples; at least one."""
    share = q[:, columns] / q[:, columns].sum(1, keepdims=True)
    lengths = (MU**2).sum(1) - V / SHOTS
    distance = ((x - d) ** 2).sum(1) + (share * (lengths - 2 * (x - d) @ MU.T)[:, columns]).sum(1)
    return float(max(np.quantile(distance, 0.25) / UNLIKE.quarter, 1))


def sources() -> tuple[Floats, Floats, Floats]:
    """(14) Every shift κ and width ω of a batch, and the logarithm of its prior chance."""
    kappa = np.linspace(-0.5, 7, 31)
    omega = np.array([1.0, 2.0, 4.0])
    home = np.log(softmax(-0.5 * (kappa / 0.2) ** 2))[:, None] + np.where(omega == 1, 0, -np.inf)
    away = np.log(softmax(-np.log1p(kappa**2)))[:, None] + np.log(softmax(-0.5 * (np.log2(omega) / 1.6) ** 2))
    prior = np.logaddexp(home, away) + math.log(0.5)
    return np.repeat(kappa, len(omega)), np.tile(omega, len(kappa)), prior.ravel()


def ratios(t: Floats, sizes: Floats) -> tuple[Floats, Floats]:
    """(15) How many times as likely each item is under each source if it is unknown; and its variance if known."""
    kappa, omega, _ = sources()
    nu = np.maximum(UNLIKE.level[0] + UNLIKE.level[1] / sizes, 0)[:, None]
    v0 = omega * (0.1 + 0.9 / sizes)[:, None]
    v1 = np.maximum(v0, omega * (UNLIKE.unknown[0] + UNLIKE.unknown[1] / sizes)[:, None])
    beyond = np.maximum(t[:, None] - kappa, -nu * v0 / np.maximum(v1 - v0, 1e-4))
    return np.exp(beyond**2 / (2 * v0) - (beyond - nu) ** 2 / (2 * v1) + np.log(v0 / v1) / 2), v0


def share_of_unknown(t: Floats, sizes: Floats) -> Floats:
    """(14), (15) The posterior of the share of unknown items and of the source, [share, source]."""
    kappa, _, prior = sources()
    ratio, variance = ratios(t, sizes)
    weights = 1 / PAIRS.sum(1)  # a class is one piece of evidence
    known = weights @ (-0.5 * ((t[:, None] - kappa) ** 2 / variance + np.log(variance)))
    of_share = np.append(0.5, 0.5 * np.diff(1 - (1 - np.linspace(0, 1, 13)) ** 2))
    log = np.stack([weights @ np.log(1 - rho + rho * ratio) for rho in RHO]) + np.log(of_share)[:, None] + prior + known
    grid = np.exp(log - log.max())
    return np.asarray(grid / grid.sum())


def chance_unknown(t: Floats, sizes: Floats, grid: Floats) -> Floats:
    """(15) The chance of each item to be unknown."""
    ratio, _ = ratios(t, sizes)
    return np.asarray(
        sum((rho * ratio / (rho * ratio + 1 - rho)) @ cells for rho, cells in zip(RHO, grid, strict=True))
    )


def presence_of(E: Floats, strays: Floats, present: Floats, alone: float, tau: float, known: Floats) -> Floats:
    """(18) The chance that each class has an item."""
    few = 1 - (1 - present) * np.prod(1 - strays * E, 0) ** tau
    each = 1 - np.prod(1 - E.clip(max=1 - 1e-6), 0) ** tau
    return np.asarray(np.maximum(np.minimum((1 - alone) * few + alone * each, known.sum(0)), known.max(0)))


# -- the batch, step by step -------------------------------------------------------------------------------------------

d, tilt = offset()
E = softmax(S + tilt)  # (4)
columns, sets, weights, alone, _ = sets_of(E)
q, strays = joint(E, columns, sets, weights)
f = times_as_far(q, columns, d)
t, sizes = statistic(q, columns, d, tilt)
grid = share_of_unknown(t, sizes)
R = np.zeros((M, K))
R[:, columns] = (1 - alone) * q[:, columns] + alone * E[:, columns]
E = softmax(S + tilt + gains_of_moved_means(R, d))
columns, sets, weights, alone, tau = sets_of(E)
q, strays = joint(E, columns, sets, weights)
u = chance_unknown(*statistic(q, columns, d, tilt), grid)
q = ((1 - alone) * q + alone * E) ** f**-0.25  # (17)
q = q / q.sum(1, keepdims=True)
present = np.zeros(K)
present[columns] = weights @ sets
presence = presence_of(E, strays, present, alone, tau, (1 - u)[:, None] * q)

found = classifier.infer(batch)
print("item  label  probability  handful's  unknown  handful's")
for n, k in enumerate(q.argmax(1)):
    print(f"{n:4}{k:7}{q[n, k]:13.6f}{found.probabilities[n, k]:11.6f}{u[n]:9.5f}{found.unknown[n]:11.5f}")
pairs = ((q, found.probabilities), (u, found.unknown), (presence, found.presence))
most = max(float(np.abs(mine - other).max()) for mine, other in pairs)
print(f"rejected: {np.flatnonzero(u > 0.5).tolist()}; the largest difference is {most:.0e}")
assert found.rejected.tolist() == (u > 0.5).tolist()
assert most < 1e-6
