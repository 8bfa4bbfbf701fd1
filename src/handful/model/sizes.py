"""Class sizes of a large batch, learned from more of its items than those that decide."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np

from handful.model.arrays import Floats
from handful.model.presence import AloneLabels, Presence, error_correlation, occupied, temper_of
from handful.model.settings import DEFAULT, Settings


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
    few[present.columns[0]] += (1 - settings.strays) * (present.weights[0] @ present.states[0])
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
    n_own = occupied(shares)[None]
    shared = (shares * error_correlation(shots, settings)).sum()[None]
    if temper_of(n_items, n_own, shared) * gained <= n_own:
        return None
    states = (shares[own] / shares[own].sum()).astype(np.float32)
    presence = -np.expm1(-counts[own])
    return Presence(
        columns=own[None],
        states=states[None, None],
        weights=np.ones((1, 1), np.float32),
        presence=presence[None],
        alone_weight=np.zeros(1),
        valid=np.ones((1, len(own)), bool),
        n_typical=n_own,
        shared=shared,
    )
