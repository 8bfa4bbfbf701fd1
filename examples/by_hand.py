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
catalogue = classifier.catalogue_
W = catalogue.head.weights
b = catalogue.head.offsets
MU = catalogue.head.means
SHOTS = catalogue.head.mass
V = catalogue.head.spread or 0.0
UNLIKE: Any = catalogue.unknown_model
z = catalogue.points(batch)
M = len(z)
K = len(W)
S: Floats = np.asarray(z @ W.T + b, np.float64)  # (1)
SHARED = 0.2 / SHOTS / (1 + 0.2 / SHOTS)  # ρ/(1+ρ)
RHO = np.append(0.0, (np.arange(12) + 0.5) / 12)  # shares of unknown items that are summed over
STRAYS = 0.02
log_gamma = np.vectorize(math.lgamma)


def sigmoid(x: Floats) -> Floats:
    """`1 / (1 + exp(-x))`."""
    return np.asarray(1 / (1 + np.exp(-x)))


def softmax(x: Floats) -> Floats:
    """`exp(x_k) / Σ_j exp(x_j)`."""
    e = np.exp(x - x.max(-1, keepdims=True))
    return np.asarray(e / e.sum(-1, keepdims=True))


def offset_of(weights: Floats) -> tuple[Floats, Floats]:
    """(3) What the classes do not explain of the mean item, as far as it exceeds twice what chance gives."""
    tilt = np.zeros(K)
    n = weights.sum()
    for _ in range(6):
        share = weights @ softmax(S + tilt) / n
        r = weights @ z / n - share @ MU
        noise = 2 * V * (1 / n + (share**2 / SHOTS).sum())
        d = np.maximum(0, 1 - noise / (r @ r)) * r
        tilt = -W @ d
    return d, tilt


def waves(E: Floats) -> tuple[Floats, Floats]:
    """(8) The noise of each class in six sweeps and eight chains, and how far the class comes first in a sweep."""
    draws = np.random.default_rng(0)
    counts = np.stack([np.sqrt(E).sum(0), E.sum(0), (E**2).sum(0)], -1)
    phases = 2 * draws.normal(size=(12, 3)) @ np.log(counts + 1e-3).T
    phases += draws.random(12)[:, None]
    chance = np.abs(2 * ((phases[:6, :, None] + np.arange(8) / 8) % 1) - 1).clip(1e-6, 1 - 1e-6)
    first = np.abs(2 * (phases[6:] % 1) - 1)
    return np.log(chance / (1 - chance)), (0.5 + 25 * (first - 0.5)).clip(0, 1)


def sample(E: Floats, of_none: Floats) -> tuple[Columns, Floats, Floats, float]:
    """(5), (6), (8) Candidate classes, states z/h, their chances, and the chance that items are better alone."""
    columns = np.flatnonzero(E.sum(0) >= min(0.02, E.sum(0).max()))
    E = E[:, columns]
    L = (1 - STRAYS) * E + STRAYS / K + of_none[:, None]
    start = E.sum(0) ** 4 / (1 + E.sum(0) ** 4)
    start[E.sum(0).argmax()] = 1
    noise, first = waves(E)
    here = np.repeat(start[:, None], 8, 1)
    chances = np.zeros(len(columns))
    states = []
    for sweep in range(6):
        for part in (first[sweep][:, None], 1 - first[sweep][:, None]):
            h = np.maximum(here.sum(0), 1)
            tau = 1 / (1 + np.maximum(M / h - 1, 0) * (SHARED[columns] @ here) / h)
            others = np.maximum(h - here, 1)
            total = here.T @ L.T
            evidence = np.log1p(L.T[:, None] / (total - here[:, :, None] * L.T[:, None])).sum(-1)
            log_odds = np.log(others / np.maximum(K - others, 0.5)) + tau * (evidence - M * np.log1p(1 / others))
            if sweep >= 2:
                chances += (part * sigmoid(log_odds) * -np.expm1(-evidence)).mean(1) / 4
            here = here + part * (sigmoid((log_odds + noise[sweep]) / 0.5) - here)
        states.append(here.T)
    visited = np.concatenate(states[2:])
    chances = np.minimum(chances, 1)
    alone = weight_alone(L, of_none, visited, chances, columns)
    return columns, visited / np.maximum(visited.sum(1, keepdims=True), 1), chances, alone


def weight_alone(L: Floats, of_none: Floats, states: Floats, chances: Floats, columns: Columns) -> float:
    """(9) How likely all classes have a share, or sizes are too uneven, instead of few classes of equal shares."""
    here = states.sum(1)
    h = np.maximum(here, 1)
    tau = 1 / (1 + np.maximum(M / h - 1, 0) * (states @ SHARED[columns]) / h)
    total = states @ L.T
    gain = (np.log(total) - np.log(1 / K + of_none)).sum(1) - M * np.log(h)
    sets = log_gamma(K + 1) - log_gamma(h + 1) - log_gamma(K - h + 1)
    entropy = -(chances * np.log(chances) + (1 - chances) * np.log(1 - chances)).sum()
    few = (tau * gain - sets - np.log(h / K)).mean() + entropy
    counts = (1 / total) @ np.maximum(L - of_none[:, None], 0)
    in_all = (states * counts).sum(1)
    uneven = log_gamma(here) - log_gamma(here + in_all) + (states * (log_gamma(counts + 1))).sum(1)
    even = log_gamma(10 * here) - log_gamma(10 * here + in_all)
    even += (states * (log_gamma(counts + 10) - math.lgamma(10))).sum(1)
    chance_uneven = sigmoid(tau * (uneven - even) - 1).mean()
    return float(1 - (1 - chance_uneven) * sigmoid(few))


def joint(E: Floats, columns: Columns, states: Floats) -> tuple[Floats, Floats]:
    """(7) Labels, averaged over the states; and what strays make of each item."""
    inside = 1 / (((1 - STRAYS) * E[:, columns] + STRAYS / K) @ states.T)
    present = np.zeros((M, K))
    present[:, columns] = (1 - STRAYS) * inside @ states / len(states)
    strays = STRAYS / K * inside.mean(1, keepdims=True)
    q = E * (present + strays)
    return q / q.sum(1, keepdims=True), strays / q.sum(1, keepdims=True)


def gains_of_moved_means(R: Floats, d: Floats) -> Floats:
    """(10), (11) What scores gain by class means that move with their items, each left out of its own class."""
    centred = MU - MU.mean(0)
    slope = ((W - W.mean(0)) * centred).sum(1) / (centred**2).sum(1)
    gains = np.zeros((M, K))
    for n in range(M):
        rest = np.arange(M) != n
        for k in range(K):
            a = 2 * R[rest, k]
            mass = SHOTS[k] + a.sum()
            moved = (SHOTS[k] * MU[k] + a @ (z - d)[rest]) / mass
            gain = (z[n] - d) @ (moved - MU[k]) - (moved @ moved - MU[k] @ MU[k]) / 2
            noise = V / 2 * (1 / SHOTS[k] - (SHOTS[k] + (a**2).sum()) / mass**2)
            gains[n, k] = 0.5 * slope[k] * (gain - noise)
    return gains


def linked() -> tuple[Floats, Floats]:
    """(13) The group of each item, of its ten strongest links: weights of its items, and its size."""
    A, B = UNLIKE.pair_odds
    away = z - MU.mean(0)
    away = away / np.linalg.norm(away, axis=1, keepdims=True)
    odds = A + B * away @ away.T
    more = np.expm1(odds[~np.eye(M, dtype=bool)])
    chance = 0.1
    for _ in range(12):
        ratio = more / (1 + chance * more)
        step = chance + ratio.sum() / (ratio**2).sum()
        chance = float(np.clip(step, max(chance / 2, 1e-4), min((1 + chance) / 2, 0.9)))
    odds = odds + math.log(chance / (1 - chance))
    np.fill_diagonal(odds, np.inf)
    weights = np.where(odds >= np.sort(odds, 1)[:, [-11]], sigmoid(odds), 0)
    weights = weights / weights.sum(1, keepdims=True)
    return weights, np.maximum(1 / (weights**2).sum(1), 1)


GROUPS, SIZES = linked()


def statistic(q: Floats, columns: Columns, d: Floats, tilt: Floats) -> Floats:
    """(12) Distance and score of the group of each item, compared with the item's classes, standardised."""
    share = np.zeros((M, K))
    share[:, columns] = q[:, columns] / q[:, columns].sum(1, keepdims=True)
    centroid = GROUPS @ z - d
    lengths = (MU**2).sum(1) - V / SHOTS
    distance = (centroid**2).sum(1) + (share * (lengths - 2 * centroid @ MU.T)).sum(1) + V - V / SIZES
    score = GROUPS @ (share * (S + tilt)).sum(1)
    of_distance = (distance - UNLIKE.distance[0]) / UNLIKE.distance[1]
    return np.asarray(of_distance - (score - UNLIKE.score[0]) / UNLIKE.score[1])


def times_as_far(q: Floats, columns: Columns, d: Floats) -> float:
    """(17) f: how many times as far a quarter of the items is as left-out examples; at least one."""
    share = q[:, columns] / q[:, columns].sum(1, keepdims=True)
    lengths = (MU**2).sum(1) - V / SHOTS
    distance = ((z - d) ** 2).sum(1) + (share * (lengths - 2 * (z - d) @ MU.T)[:, columns]).sum(1)
    return float(max(np.quantile(distance, 0.25) / UNLIKE.quarter, 1))


def sources() -> list[Floats]:
    """(14) Every shift κ, width w and level g of a batch, and the logarithm of its prior chance."""
    kappa = np.linspace(-1, 7, 17)
    w = np.array([1.0, 2.0, 4.0, 8.0])
    home = np.log(softmax(-0.5 * (kappa / 0.4) ** 2))[:, None] + np.where(w == 1, 0, -np.inf)
    away = np.log(softmax(-np.log1p((kappa / 2) ** 2)))[:, None] + np.log(softmax(-0.5 * (np.log2(w) / 1.6) ** 2))
    both = np.logaddexp(math.log(0.3) + home, math.log(0.7) + away)
    prior = both[..., None] + np.log([0.25, 0.75])
    return [part.ravel() for part in np.broadcast_arrays(kappa[:, None, None], w[:, None], np.array([0.3, 1]), prior)]


def ratios(t: Floats) -> tuple[Floats, Floats]:
    """(14) How many times as likely each item is under each source if it is unknown; and its variance if known."""
    kappa, w, g, _ = sources()
    level, known, unknown = ((base + extra / SIZES)[:, None] for base, extra in UNLIKE[3:6])
    m = np.maximum(g * level, 0.1)
    v0 = w * known
    v1 = np.maximum(v0, w * g * unknown)
    x = t[:, None] - kappa
    outer = np.maximum(x, -m * v0 / np.maximum(v1 - v0, 1e-4))
    log = outer**2 / (2 * v0) - (outer - m) ** 2 / (2 * v1) + np.log(v0 / v1) / 2 + 1e-3 * (x - outer)
    return np.exp(log), v0


def share_of_unknown(t: Floats) -> Floats:
    """(14), (15) The posterior of the share of unknown items and of the source, [share, source]."""
    kappa, _, _, prior = sources()
    ratio, v0 = ratios(t)
    weights = min(1.0, 8 / (1 / SIZES).sum()) / SIZES
    known = weights @ (-0.5 * ((t[:, None] - kappa) ** 2 / v0 + np.log(v0)))
    of_share = np.append(0.5, 0.5 * np.diff(1 - (1 - np.linspace(0, 1, 13)) ** 2))
    log = np.stack([weights @ np.log(1 - rho + rho * ratio) for rho in RHO]) + np.log(of_share)[:, None] + prior + known
    grid = np.exp(log - log.max())
    return np.asarray(grid / grid.sum())


def chance_unknown(t: Floats, grid: Floats) -> Floats:
    """(15) The chance of each item to be unknown."""
    ratio, _ = ratios(t)
    return np.asarray(
        sum((rho * ratio / (rho * ratio + 1 - rho)) @ cells for rho, cells in zip(RHO, grid, strict=True))
    )


def presence_of(E: Floats, strays: Floats, columns: Columns, chances: Floats, alone: float, known: Floats) -> Floats:
    """(18) The chance that each class has an item."""
    counts = known.sum(0)
    share = counts / counts.sum()
    here = np.zeros(K)
    here[columns] = chances
    typical = math.exp(-(share * np.log(share)).sum())
    tau = [1 / (1 + max(M / max(h, 1) - 1, 0) * SHARED) for h in (here.sum(), typical)]
    few = 1 - (1 - here) * np.exp(tau[0] * np.log1p(-strays * E).sum(0))
    each = -np.expm1(tau[1] * np.log1p(-E.clip(max=1 - 1e-6)).sum(0))
    return np.asarray(np.maximum(np.minimum((1 - alone) * few + alone * each, counts), known.max(0)))


# -- the batch, step by step -------------------------------------------------------------------------------------------

d, tilt = offset_of(np.ones(M))
E = softmax(S + tilt)  # (4)
columns, states, chances, alone = sample(E, np.zeros(M))
q, strays = joint(E, columns, states)
f = times_as_far(q, columns, d)
t = statistic(q, columns, d, tilt)
grid = share_of_unknown(t)
weight = np.maximum(1 - chance_unknown(t, grid) ** 2, 1e-3)  # (16)
mean_state = np.zeros(K)
mean_state[columns] = states.mean(0)
of_none = (1 / weight - 1) * ((1 - STRAYS) * E @ mean_state + STRAYS / K)  # (16)
d, tilt = offset_of(weight)
R = np.zeros((M, K))
R[:, columns] = weight[:, None] * q[:, columns]
E = softmax(S + tilt + (1 - alone) * gains_of_moved_means(R, d))
columns, states, chances, alone = sample(E, of_none)
q, strays = joint(E, columns, states)
u = chance_unknown(statistic(q, columns, d, tilt), grid)
together = ((1 - alone) * (1 - u))[:, None]
q = (together * q + (1 - together) * E) ** f**-0.25  # (17)
q = q / q.sum(1, keepdims=True)
presence = presence_of(E, strays, columns, chances, alone, (1 - u)[:, None] * q)

found = classifier.infer(batch)
print("item  label  probability  handful's  unknown  handful's")
for n, k in enumerate(q.argmax(1)):
    print(f"{n:4}{k:7}{q[n, k]:13.6f}{found.probabilities[n, k]:11.6f}{u[n]:9.5f}{found.unknown[n]:11.5f}")
pairs = ((q, found.probabilities), (u, found.unknown), (presence, found.presence))
most = max(float(np.abs(mine - other).max()) for mine, other in pairs)
print(f"rejected: {np.flatnonzero(u > 0.5).tolist()}; the largest difference is {most:.0e}")
assert found.rejected.tolist() == (u > 0.5).tolist()
assert most < 1e-6
